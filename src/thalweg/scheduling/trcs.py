"""`trcs`: as little on the fog as keeps the response time and the uplink within bounds.

Time and resource constraint satisfaction, a baseline of section 6.1 of Ntumba et al. 2024, Adaptive
Scheduling of Continuous Operators for IoT Edge Analytics.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Floats
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.scheduling.cuts import compare_cuts
from thalweg.scheduling.schedule import Choice, Table, plan_cuts
from thalweg.scheduling.search import Search
from thalweg.strategy import strategy


@strategy("trcs", "least fog use that keeps response time and uplink within bounds")
def trcs(problem: Problem, current: Placement | None = None) -> Plan:
    """Starts with everything in the cloud, or from what runs now, and moves what it must.

    Down to the fog while the uplink is above its limit, most saved per byte of fog memory first;
    back to the cloud while the uplink is below its least, most memory freed per bit first; then
    for time, as `tsoo-both-ways` does.
    """
    started = perf_counter()
    table = Table.of(problem)
    running = None if current is None else table.choice_of(current)
    in_cloud = np.zeros(table.traffic.site.size, dtype=np.int64)
    choice = keep_within_bounds(table, in_cloud if running is None else running)
    why = "as little on the fog as keeps the limits"
    return plan_cuts(table, choice, strategy="trcs", why=why, started=started)


def keep_within_bounds(table: Table, choice: Choice) -> Choice:
    """The cuts after the least moves that keep the limits, as far as they can be kept."""
    search = Search(table, choice)
    _mend_fogs(search)
    if not search.uplink_fits:
        _move_down(search)
    elif search.uplink_bps < table.problem.application.limits.uplink_least_bps:
        _move_back(search)
    if search.uplink_fits and not search.in_time:
        search.shorten()
    return search.choice


def _mend_fogs(search: Search) -> None:
    """Where a cut does not fit: less on the fog if that helps, else as little more as does.

    Less is what sends least, more is what takes least memory.
    """
    full = np.flatnonzero(search.overfull)
    if not full.size:
        return
    costs = search.table.costs
    usable, choice = costs.usable[:, full], search.choice.copy()
    less = compare_cuts(search.table.cuts, choice[full], beyond=False) & costs.fits[:, full]
    sent = np.where(less, costs.uplink_bps[:, full], np.inf).argmin(axis=0)
    taken = np.where(usable, costs.memory_bytes[:, full], np.inf).argmin(axis=0)
    mended = np.where(less.any(axis=0), sent, taken)
    choice[full] = np.where(usable.any(axis=0), mended, choice[full])
    search.choose(choice)


def _move_down(search: Search) -> None:
    costs = search.table.costs
    beyond = compare_cuts(search.table.cuts, search.choice, beyond=True)
    stream, cut, saved = _bargain(search, costs.memory_bytes, costs.uplink_bps, beyond & costs.fits)
    needed = search.uplink_bps - search.most_bps
    count = int(np.searchsorted(np.cumsum(saved), needed)) + 1
    choice = search.choice.copy()
    choice[stream[:count]] = cut[:count]
    search.choose(choice)


def _move_back(search: Search) -> None:
    """Until the least is reached; a stream whose move would break a limit stays as it is."""
    costs, limits = search.table.costs, search.table.problem.application.limits
    allowed = compare_cuts(search.table.cuts, search.choice, beyond=False) & costs.fits
    stream, cut, _ = _bargain(search, costs.uplink_bps, costs.memory_bytes, allowed)
    after = search.choice.copy()
    for k in range(stream.size):
        after[stream[k]] = cut[k]
    # What each stream would send more; taken in the order of the best bargains.
    order = np.array(list(dict.fromkeys(stream.tolist())), dtype=np.int64)
    more = costs.uplink_bps[after[order], order] - costs.uplink_bps[search.choice[order], order]
    needed = limits.uplink_least_bps - search.uplink_bps
    count = int(np.searchsorted(np.cumsum(more), needed)) + 1
    search.take(after[order[:count]], order[:count])


def _bargain(
    search: Search, cost: Floats, weight: Floats, allowed: npt.NDArray[np.bool_]
) -> tuple[Choice, Choice, Floats]:
    """Steps that lower the weight, the best bargains first: stream, cut, and what each saves."""
    from thalweg.scheduling.compiled.fronts import find_bargains

    stream, cut, rate, saved = find_bargains(cost, weight, allowed, search.choice)
    order = np.argsort(-rate, kind="stable")
    return stream[order], cut[order], saved[order]
