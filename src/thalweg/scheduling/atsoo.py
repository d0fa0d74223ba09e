"""`atsoo-both-ways`: what runs now, changed only where it breaks something, then made cheaper.

aTSOO-H, Algorithm 1 of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators for IoT Edge
Analytics. Where the paper saves usage by moves back to the cloud alone, moves go both ways here.
`atsoo` is the same for now.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from thalweg.errors import InvalidInput
from thalweg.estimate.evaluate import make_plan
from thalweg.estimate.usage import COMPUTE_WEIGHT, NETWORK_WEIGHT
from thalweg.model.graph import Floats
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.scheduling.cuts import compare_cuts
from thalweg.scheduling.min_cut import cheapest
from thalweg.scheduling.schedule import Choice, Table, plan_cuts
from thalweg.scheduling.search import Search
from thalweg.scheduling.terms import cost_cuts_with
from thalweg.scheduling.tsoo import schedule_afresh
from thalweg.strategy import strategy


@strategy("atsoo-both-ways", "keeps what runs, repairs only what is violated, then saves usage")
@strategy("atsoo", "aTSOO-H of Ntumba et al. 2024; for now the same as atsoo-both-ways")
def atsoo(
    problem: Problem,
    current: Placement | None = None,
    *,
    compute_weight: float = COMPUTE_WEIGHT,
    network_weight: float = NETWORK_WEIGHT,
    energy_weight: float = 0.0,
    state_weight: float = 0.0,
) -> Plan:
    """Adapts the current cuts; without any, the answer of `tsoo-both-ways`.

    `compute_weight` and `network_weight` are w_c and w_n of formula (30), by which it chooses; the
    usage of the plan is shown with equal weights, as that of all plans.

    In this order: fogs that are too full, the limit of the uplink, the response time, usage. The
    plan violates nothing that keeping the current placement would not violate.
    """
    started = perf_counter()
    table = Table.of(problem)
    running = None if current is None else table.choice_of(current)
    cost = cost_cuts_with(
        table,
        running,
        compute_weight=compute_weight,
        network_weight=network_weight,
        energy_weight=energy_weight,
        state_weight=state_weight,
    )
    if running is None:
        search, why = schedule_afresh(table, cost)
    else:
        search, why = adapt(table, running, cost)
    plan = plan_cuts(table, search.choice, strategy="atsoo-both-ways", why=why, started=started)
    if current is None or plan.feasible:
        return plan
    kept = _keep(problem, current, plan)
    return plan if kept is None or _violated(plan) <= _violated(kept) else kept


def adapt(table: Table, running: Choice, cost: Floats) -> tuple[Search, str]:
    """The search after Algorithm 1, and what it had to do.

    A step after which something is violated that is not violated now is taken back.
    """
    search = Search(table, running)
    before = search.violations
    good, done = search.choice.copy(), ["kept"]
    for step, name in (
        (_relieve_fogs, "full fogs relieved"),
        (_relieve_uplink, "uplink relieved"),
        (_shorten, "moved for time"),
        (lambda search: _save(search, cost), "moved for least usage"),
    ):
        step(search)
        if np.array_equal(search.choice, good):
            continue
        if search.violations.within(before):
            good = search.choice.copy()
            done.append(name)
    if not np.array_equal(search.choice, good):
        search.choose(good)
    return search, ", ".join(done[1:] or done)


def _relieve_fogs(search: Search) -> None:
    """Less on every fog that has too much: the least network usage within what runs there now."""
    table, costs = search.table, search.table.costs
    full = np.flatnonzero(search.overfull)
    if not full.size:
        return
    within = compare_cuts(table.cuts, search.choice[full], beyond=False)
    fits = costs.fits[:, full]
    usage = np.where(fits, costs.network_usage[:, full], np.inf)
    some = np.where((within & fits).any(axis=0), within, True)
    choice = search.choice.copy()
    best = np.where(some, usage, np.inf).argmin(axis=0)
    choice[full] = np.where(fits.any(axis=0), best, choice[full])
    search.choose(choice)


def _relieve_uplink(search: Search) -> None:
    """Least network usage: first for streams that have nothing on the fog, then by their rate."""
    if search.uplink_fits:
        return
    table, uplink = search.table, search.table.costs.uplink_bps
    streams = np.arange(search.choice.size)
    least = cheapest(table, table.costs.network_usage)
    saved = uplink[search.choice, streams] - uplink[least, streams]
    saved[~table.costs.fits[least, streams]] = 0.0
    choice = search.choice.copy()
    raw = (table.cuts.sizes[choice] == 0) & (saved > 0)
    choice[raw] = least[raw]
    others = np.flatnonzero(~raw & (saved > 0))
    others = others[np.argsort(-table.traffic.born_bps[others], kind="stable")]
    excess = search.uplink_bps - saved[raw].sum() - search.most_bps
    if excess > 0:
        count = int(np.searchsorted(np.cumsum(saved[others]), excess)) + 1
        choice[others[:count]] = least[others[:count]]
    search.choose(choice)


def _shorten(search: Search) -> None:
    if search.uplink_fits and not search.in_time:
        search.shorten()


def _save(search: Search, cost: Floats) -> None:
    if search.uplink_fits and search.in_time:
        search.improve(cost)


def _keep(problem: Problem, current: Placement, plan: Plan) -> Plan | None:
    """The plan that changes nothing; None where the current placement is not one any more."""
    try:
        return make_plan(
            problem,
            current,
            strategy=plan.strategy,
            objective_name=plan.objective_name,
            reasons=plan.reasons,
            seconds=plan.seconds,
            candidates=plan.candidates,
        )
    except InvalidInput:
        return None


def _violated(plan: Plan) -> set[tuple[str, str]]:
    return {(violation.constraint, violation.place) for violation in plan.violations}
