"""`fc-interplay`: in the cloud what can be, on the fog only what gains by it.

The Fog Cloud Interplay policy of section 6.1 of Ntumba et al. 2024, Adaptive Scheduling of
Continuous Operators for IoT Edge Analytics.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.scheduling.min_cut import cheapest
from thalweg.scheduling.schedule import Choice, Table, plan_cuts
from thalweg.scheduling.search import Search
from thalweg.strategy import strategy


@strategy("fc-interplay", "streams in the cloud unless only the fog makes them fast enough")
def fc_interplay(problem: Problem, current: Placement | None = None) -> Plan:
    """Each stream wholly in the cloud, or at its cut of least network usage.

    In the cloud if it is fast enough there, or if no cut makes it fast enough, so that the fog is
    not used in vain; in both cases only while the uplink has room. How fast a stream is, is judged
    with all others at their cut of least network usage; room is given out in the order of the
    streams. `current` is ignored.
    """
    del current
    started = perf_counter()
    table = Table.of(problem)
    search = Search(table, interplay(table))
    why = "in the cloud where that is fast enough or nothing is, else least network usage"
    return plan_cuts(table, search.choice, strategy="fc-interplay", why=why, started=started)


def interplay(table: Table) -> Choice:
    """The cut of every stream."""
    from thalweg.scheduling.compiled.latency import all_latencies

    costs = table.costs
    least = cheapest(table, costs.network_usage)
    search = Search(table, least)
    latency = np.empty(costs.fits.shape)
    # The empty cut is the first; the others matter only where it is too slow.
    wanted = np.zeros(costs.fits.shape, dtype=bool)
    wanted[0] = costs.fits[0]
    all_latencies(search.figures, search.onward_s, wanted, latency)
    fast_in_cloud = latency[0] <= search.most_s
    wanted[1:] = costs.fits[1:] & ~fast_in_cloud
    all_latencies(search.figures, search.onward_s, wanted, latency)
    hopeless = ~(latency <= search.most_s).any(axis=0)
    wants_cloud = costs.fits[0] & (fast_in_cloud | hopeless)
    choice, total = least.copy(), search.uplink_bps
    for stream in np.flatnonzero(wants_cloud).tolist():
        after = total - costs.uplink_bps[choice[stream], stream] + costs.uplink_bps[0, stream]
        if after <= search.most_bps:
            choice[stream], total = 0, after
    return choice
