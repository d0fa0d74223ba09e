"""`data-min-cut` and `ru-min-cut`: every stream by itself at its cheapest cut.

Sections 5.1.1 and 5.1.2 of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators for IoT
Edge Analytics.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from thalweg.model.graph import Floats
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.scheduling.schedule import Choice, Table, plan_cuts
from thalweg.strategy import strategy


@strategy("data-min-cut", "per stream, the cut with least network usage that fits the fog")
def data_min_cut(problem: Problem, current: Placement | None = None) -> Plan:
    """Least NRU for every stream; ties: fewer operators on the fog, then operator order.

    The application's limits play no part, and neither does `current`.
    """
    del current
    started = perf_counter()
    table = Table.of(problem)
    choice = cheapest(table, table.costs.network_usage)
    why = "the cut of least network usage that fits"
    return plan_cuts(table, choice, strategy="data-min-cut", why=why, started=started)


@strategy("ru-min-cut", "per stream, the cut with least resource usage that fits the fog")
def ru_min_cut(problem: Problem, current: Placement | None = None) -> Plan:
    """Least RU for every stream; ties: fewer operators on the fog, then operator order.

    Where the result keeps the application's limits, no other deployment has less RU.
    """
    del current
    started = perf_counter()
    table = Table.of(problem)
    choice = cheapest(table, table.usage)
    why = "the cut of least usage that fits"
    return plan_cuts(table, choice, strategy="ru-min-cut", why=why, started=started)


def cheapest(table: Table, cost: Floats) -> Choice:
    """The cut of least cost for every stream among those that fit.

    Where none does, among those that the fog can run though the uplink is too small; the empty one
    where there is none of these either.
    """
    choice: Choice = np.where(table.costs.usable, cost, np.inf).argmin(axis=0)
    return choice
