"""`aels`: the node that adds least latency, of all nodes.

The Aggregate End-to-End Latency Strategy of da Silva Veith et al., Latency-Aware Strategies for
Deploying Data Stream Processing Applications on Large Cloud-Edge Infrastructure: operators in the
deployment sequence (Algorithm 1), each on the feasible node of least service and communication
time from those that send to it (Algorithm 2).

The paper looks at every node; here one node stands for all nodes of its site that differ in LAN
latency alone, with the same answer. Links are checked for what all streams together put on them.
The authors' simulator tries clouds only where no edge device fits; the paper, and this, does not
tell them apart.
"""

from __future__ import annotations

from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.strategy import strategy


@strategy("aels", "each operator on the node that adds least latency, of all nodes")
def aels(problem: Problem, current: Placement | None = None) -> Plan:
    """Each operator in turn goes to the node that adds least latency and has room.

    Added latency is the service time there plus the communication time from every operator that
    sends to it. Pinned operators go to the best node that their pin allows. Ties: the lower node
    index. `current` changes nothing: a first placement starts from nothing.
    """
    from thalweg.placement.greedy.run import Run

    del current
    run = Run(problem, "aels")
    for operator in run.sequence():
        if run.is_pinned(operator):
            run.put_where_pinned(operator)
        else:
            run.put_in(operator, run.scopes.everywhere())
    return run.plan()
