"""`cloud-only`: everything that may move runs in a cloud."""

from __future__ import annotations

from thalweg.errors import Defect, InvalidInput
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.strategy import strategy


@strategy("cloud-only", "every movable operator on the cloud that adds least latency")
def cloud_only(problem: Problem, current: Placement | None = None) -> Plan:
    """Each operator in turn goes to the cloud node that adds least latency and has room.

    Added latency is the service time there plus the communication time from every operator that
    sends to it. Pinned operators go to the best node that their pin allows. Ties: the lower node
    index. Where nothing has room for all of it, the node of least latency among those with CPU and
    memory for it, or else among all, is taken all the same, and the plan says what it violates.
    `current` changes nothing: a first placement starts from nothing.
    """
    from thalweg.placement.greedy.run import Run

    del current
    if not problem.network.cloud_nodes.size:
        _require_pins(problem)
    run = Run(problem, "cloud-only")
    for operator in run.sequence():
        if run.is_pinned(operator):
            run.put_where_pinned(operator)
        else:
            run.put_in(operator, run.scopes.clouds())
    return run.plan()


def _require_pins(problem: Problem) -> None:
    """Without a cloud, only pinned operators have a place."""
    if any(operator.pin is None for operator in problem.application.operators):
        raise InvalidInput(
            [
                Defect(
                    path="network",
                    value=problem.network.name,
                    rule="a network with at least one cloud site",
                    hint="cloud-only places operators in clouds alone",
                )
            ]
        )
