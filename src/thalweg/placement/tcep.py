"""`tcep-best-fit`: the smallest operators first, each on the first node with enough CPU.

The strategy that da Silva Veith et al., Latency-Aware Strategies for Deploying Data Stream
Processing Applications on Large Cloud-Edge Infrastructure, compare with under this name: operators
ranked by CPU need and nodes by CPU capacity, both ascending; the search for a node starts in the
middle of the rank and halves it down to the first node that fits; else a cloud. Latency is nowhere
looked at but in the choice of that cloud.

The paper does not say which operators or nodes come first; the authors' simulator ranks both
ascending, and so does this. There the rank is made anew from what is left after each operator, the
search gives up at the first node that does not fit, and the next one starts above the last node
found; this keeps one rank, halves it to the end, and starts afresh. Pinned operators come first.
`tcep` is the same for now.
"""

from __future__ import annotations

import numpy as np

from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.strategy import strategy


@strategy(
    "tcep-best-fit", "small operators first, each on the first node with enough CPU, else a cloud"
)
@strategy("tcep", "TCEP as in da Silva Veith et al.; for now the same as tcep-best-fit")
def tcep(problem: Problem, current: Placement | None = None) -> Plan:
    """Operators by CPU need: each goes to the node to which halving the ranked nodes leads.

    A node fits if it has CPU and memory left, no queue grows, and the links to all that are
    placed already carry it. Where the search ends without one, the cloud that adds least latency
    is taken, or else the node outside of the clouds that does. Pinned operators go to the node
    that adds least among those that their pin allows, before all others. Ties: the lower operator
    and node index. `current` changes nothing: a first placement starts from nothing.
    """
    from thalweg.placement.greedy.run import Run
    from thalweg.placement.greedy.steps import HALVING, Stage

    del current
    run = Run(problem, "tcep-best-fit")
    scopes = run.scopes
    stages = (
        Stage(scopes.everywhere(), "the first by CPU that fits, of {looked} tried", HALVING),
        Stage(scopes.clouds(), "no node by CPU fits: the cloud that adds least latency"),
        Stage(scopes.outside(), "neither a node by CPU nor a cloud fits: least added latency"),
    )
    sequence = run.sequence()
    for operator in sequence:
        if run.is_pinned(operator):
            run.put_where_pinned(operator)
    need_ips = run.search.demand.cpu_ips[np.array(run.search.instance_of)].tolist()
    movable = [operator for operator in sequence if not run.is_pinned(operator)]
    for operator in sorted(movable, key=lambda k: (need_ips[k], k)):
        run.put(operator, *stages)
    return run.plan()
