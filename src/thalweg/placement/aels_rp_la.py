"""`aels-rp-la-free`: as `aels-rp`, but only nodes near the senders and the sinks are candidates.

AELS+RP with Latency Awareness of da Silva Veith et al., Latency-Aware Strategies for Deploying
Data Stream Processing Applications on Large Cloud-Edge Infrastructure. Candidates of an operator
of the edge region are, for each operator that sends to it, the sender's own host and the device
with room and least LAN latency in the sender's site (in situ), in the nearest other edge site and
in the nearest cloud (in transit), and in the site of each sink at the end of its paths.

Where none of these has room the paper has no answer; here the next nearest site and the next
nearest cloud of every sender are looked at, then those after them, as long as there are any. In the
authors' simulator the comparison in transit is the wrong way round, so that no neighbour site is
ever added; this follows the paper. In one point it does not: devices and clouds compete in one
ranking, where the paper takes a cloud only if no device fits. `aels-rp-la` is the same for now.
"""

from __future__ import annotations

from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.strategy import strategy


@strategy("aels-rp-la-free", "as aels-rp, on devices and clouds near senders and sinks alone")
@strategy("aels-rp-la", "AELS+RP+LA of da Silva Veith et al.; for now the same as aels-rp-la-free")
def aels_rp_la(problem: Problem, current: Placement | None = None) -> Plan:
    """Each operator in turn goes to the candidate that adds least latency and has room.

    Added latency is as in `aels`. Operators of the cloud region go to the cloud nearest to their
    sinks, as in `aels-rp`. Pinned operators go to the best node that their pin allows. Ties: the
    lower node index. `current` changes nothing: a first placement starts from nothing.
    """
    from thalweg.placement.greedy.regions import Regions, cloud_region
    from thalweg.placement.greedy.run import Run
    from thalweg.placement.greedy.steps import NEAR, ROUNDS, Stage

    del current
    run = Run(problem, "aels-rp-la-free")
    scope, regions = run.scopes.everywhere(), Regions(problem)
    near = "edge region: least added latency of {looked} near senders and sinks"
    further = "edge region, no room near senders and sinks: the nearest further on"
    for operator in run.sequence():
        if run.is_pinned(operator):
            run.put_where_pinned(operator)
        elif regions.is_cloud(operator):
            run.put(operator, *cloud_region(run.scopes, regions, operator), scope=scope)
        else:
            run.put(
                operator,
                Stage(scope, near, NEAR, sinks=regions.sink_sites(operator)),
                Stage(scope, further, ROUNDS),
            )
    return run.plan()
