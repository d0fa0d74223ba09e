"""`tsoo-both-ways`: the cheapest cuts, repaired until the limits are kept, then made cheaper again.

TSOO-H, section 5.2 of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators for IoT Edge
Analytics. Where the paper takes the effect of a move on the rest of the cloud as nothing, every
move is judged here by what it does to all streams; and where the paper saves usage by moves back
to the cloud alone, moves go both ways here. `tsoo` is the same for now.
"""

from __future__ import annotations

from time import perf_counter

from thalweg.estimate.usage import COMPUTE_WEIGHT, NETWORK_WEIGHT
from thalweg.model.graph import Floats
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.scheduling.min_cut import cheapest
from thalweg.scheduling.schedule import Table, plan_cuts
from thalweg.scheduling.search import Search
from thalweg.scheduling.terms import cost_cuts_with
from thalweg.strategy import strategy


@strategy("tsoo-both-ways", "least usage within the limits, searched greedily from scratch")
@strategy("tsoo", "TSOO-H of Ntumba et al. 2024; for now the same as tsoo-both-ways")
def tsoo(
    problem: Problem,
    current: Placement | None = None,
    *,
    compute_weight: float = COMPUTE_WEIGHT,
    network_weight: float = NETWORK_WEIGHT,
    energy_weight: float = 0.0,
) -> Plan:
    """The cheapest cut of every stream; where that breaks a limit, a greedy repair.

    The repair starts from the cuts of least network usage, which decide whether the uplink can be
    kept at all; moves operators of too slow streams back to the cloud, then down to the fog; and
    at last takes the moves that save most, each stream once. Where a limit stays broken the last
    cuts are the answer, and the plan says what they break. `current` is ignored.
    `compute_weight` and `network_weight` are w_c and w_n of formula (30).
    """
    del current
    started = perf_counter()
    table = Table.of(problem)
    cost = cost_cuts_with(
        table,
        None,
        compute_weight=compute_weight,
        network_weight=network_weight,
        energy_weight=energy_weight,
    )
    search, why = schedule_afresh(table, cost)
    return plan_cuts(table, search.choice, strategy="tsoo-both-ways", why=why, started=started)


def schedule_afresh(table: Table, cost: Floats) -> tuple[Search, str]:
    """The search after TSOO-H, and how it ended."""
    search = Search(table, cheapest(table, cost))
    if search.uplink_fits and search.in_time:
        return search, "the cut of least usage keeps every limit"
    search.choose(cheapest(table, table.costs.network_usage))
    if not search.uplink_fits:
        return search, "least network usage, and still above the limit of the uplink"
    if not search.in_time:
        search.shorten()
    if not search.in_time:
        return search, "least network usage, moved for time, and still too slow"
    search.improve(cost)
    return search, "least network usage, moved until the limits were kept, then for least usage"
