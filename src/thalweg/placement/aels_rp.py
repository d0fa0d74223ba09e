"""`aels-rp`: edge nodes for what ends at the edge, the sinks' clouds for the rest.

AELS with Region Patterns of da Silva Veith et al., Latency-Aware Strategies for Deploying Data
Stream Processing Applications on Large Cloud-Edge Infrastructure. An operator that shares a path
with a sink outside of the clouds is of the edge region; one whose paths all end in cloud sinks is
of the cloud region.

What the paper leaves open: an operator of the cloud region with several sinks goes to the cloud
with the least sum of latencies to them, and on to the next nearest where there is no room; where
no cloud has room, to the edge. Sinks without a pin count as edge sinks, and fog sites as edge.
"""

from __future__ import annotations

from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.strategy import strategy


@strategy("aels-rp", "edge nodes for what ends at the edge, the sinks' clouds for the rest")
def aels_rp(problem: Problem, current: Placement | None = None) -> Plan:
    """Each operator in turn goes to the node of its region that adds least latency and has room.

    Added latency is as in `aels`. Operators of the edge region that fit nowhere at the edge go to
    the cloud that adds least. Pinned operators go to the best node that their pin allows. Ties:
    the lower node index. `current` changes nothing: a first placement starts from nothing.
    """
    from thalweg.placement.greedy.regions import Regions, cloud_region
    from thalweg.placement.greedy.run import Run
    from thalweg.placement.greedy.steps import Stage

    del current
    run = Run(problem, "aels-rp")
    scopes, regions = run.scopes, Regions(problem)
    edge_region = (
        Stage(scopes.outside(), "edge region: least added latency of {looked} at the edge"),
        Stage(scopes.clouds(), "edge region, no room at the edge: least added latency in clouds"),
    )
    for operator in run.sequence():
        if run.is_pinned(operator):
            run.put_where_pinned(operator)
        elif regions.is_cloud(operator):
            run.put(operator, *cloud_region(scopes, regions, operator), scope=scopes.everywhere())
        else:
            run.put(operator, *edge_region, scope=scopes.everywhere())
    return run.plan()
