"""The multiple-choice knapsack: one cut for every stream, least cost, weights within a capacity.

The relaxation is solved on the lower hulls (steps taken by falling rate), which gives a bound and a
good choice. Cuts whose reduced cost lifts the bound to the best choice known are dropped; what is
left of the streams is settled by a dynamic program over the states that no other state dominates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Floats
from thalweg.scheduling.schedule import Choice

Flags = npt.NDArray[np.bool_]

MOST_STATES = 20_000
# States tried over all streams; beyond, the bound is close enough for so many streams.
_MOST_TRIED = 400_000
# Bounds and sums are compared with this relative allowance for rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """The best choice found, its cost, and what no choice can be cheaper than."""

    choice: Choice
    cost: float
    bound: float

    @property
    def proven(self) -> bool:
        """Whether the choice is an optimum."""
        return self.cost <= self.bound + _ROUNDING * abs(self.cost)


def pack(
    cost: Floats,
    weight: Floats,
    allowed: Flags,
    capacity: float,
    *,
    most_states: int = MOST_STATES,
) -> Packing | None:
    """The cheapest choice of one allowed row in every column; None where there is none.

    Ties: less weight, then the lower row. Exact unless the program would need more than
    `most_states` states; then `bound` says how far the choice can be from the optimum.
    """
    allowed = allowed & np.isfinite(cost) & np.isfinite(weight)
    if not allowed.any(axis=0).all():
        return None
    streams = np.arange(cost.shape[1])
    best = np.where(allowed, cost, np.inf)
    least = best.min(axis=0)
    start = np.where(best <= least, weight, np.inf).argmin(axis=0)
    if weight[start, streams].sum() <= capacity:
        value = float(least.sum())
        return Packing(start, value, value)
    if np.where(allowed, weight, np.inf).min(axis=0).sum() > capacity:
        return None
    choice, rate = _walk_hulls(cost, weight, allowed, start, capacity)
    return _close_gap(cost, weight, allowed, capacity, choice, 1.0 / rate, most_states)


def _walk_hulls(
    cost: Floats, weight: Floats, allowed: Flags, start: Choice, capacity: float
) -> tuple[Choice, float]:
    """Take steps by falling rate until the weight fits; the choice, and the last step's rate."""
    from thalweg.scheduling.compiled.fronts import find_bargains

    stream, cut, rate, saved = find_bargains(cost, weight, allowed, start)
    # Stable: the steps of one stream stay in their order, since their rates fall.
    order = np.argsort(-rate, kind="stable")
    stream, cut, rate, saved = stream[order], cut[order], rate[order], np.cumsum(saved[order])
    choice = start.copy()
    total = weight[start, np.arange(start.size)].sum()
    last = int(np.searchsorted(saved, total - capacity, side="left"))
    last = min(last, stream.size - 1)
    choice[stream[: last + 1]] = cut[: last + 1]
    return choice, float(rate[last])


def _close_gap(
    cost: Floats,
    weight: Floats,
    allowed: Flags,
    capacity: float,
    choice: Choice,
    price: float,
    most_states: int,
) -> Packing:
    """From the relaxed optimum to the true one; `price` is what a unit of weight is worth."""
    streams = np.arange(cost.shape[1])
    fits = weight[choice, streams].sum() <= capacity
    best = float(cost[choice, streams].sum()) if fits else np.inf
    priced = np.where(allowed, cost + price * weight, np.inf)
    least = priced.min(axis=0)
    bound = float(least.sum() - price * capacity)
    reduced = priced - least
    open_rows = allowed & (bound + reduced <= best + _ROUNDING * abs(best))
    try:
        found = _search_states(
            cost, weight, reduced, open_rows, capacity, best - bound, most_states
        )
    except _TooManyStates:
        return Packing(choice, best, min(bound, best))
    if found is not None and float(cost[found, streams].sum()) < best:
        choice, best = found, float(cost[found, streams].sum())
    return Packing(choice, best, best)


class _TooManyStates(Exception):
    """The program would need more states than allowed."""


def _search_states(
    cost: Floats,
    weight: Floats,
    reduced: Floats,
    open_rows: Flags,
    capacity: float,
    slack: float,
    most_states: int,
) -> Choice | None:
    """The cheapest choice of open rows; None where none of them fits."""
    choice: Choice = open_rows.argmax(axis=0)
    several = np.flatnonzero(open_rows.sum(axis=0) > 1)
    single = np.setdiff1d(np.arange(choice.size), several)
    # The widest choices last: their states are never unfolded further.
    several = several[np.argsort(open_rows[:, several].sum(axis=0), kind="stable")]
    lightest = np.where(open_rows, weight, np.inf).min(axis=0)
    room = capacity - weight[choice[single], single].sum()
    later = np.append(np.cumsum(lightest[several][::-1])[::-1], 0.0)
    w, v = np.zeros(1), np.zeros(1)
    r = np.full(1, float(reduced[choice[single], single].sum()))
    history: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    tolerance = _ROUNDING * max(abs(capacity), 1e-300)
    # A little more than the gap: a sum of reduced costs must not be cut off by its rounding.
    limit = 1.0001 * slack
    tried = 0
    for k, stream in enumerate(several.tolist()):
        rows = np.flatnonzero(open_rows[:, stream])
        tried += rows.size * w.size
        if tried > _MOST_TRIED:
            raise _TooManyStates
        new_w = (w[:, None] + weight[rows, stream]).ravel()
        new_v = (v[:, None] + cost[rows, stream]).ravel()
        new_r = (r[:, None] + reduced[rows, stream]).ravel()
        fits = new_w + later[k + 1] <= room + tolerance
        keep = np.flatnonzero(fits & (new_r <= limit))
        order = keep[np.lexsort((new_v[keep], new_w[keep]))]
        values = new_v[order]
        # Of states that weigh no less, only a cheaper one is worth keeping.
        lowest = np.minimum.accumulate(values)
        better = np.ones(order.size, dtype=bool)
        better[1:] = values[1:] < lowest[:-1]
        order = order[better]
        if order.size > most_states:
            raise _TooManyStates
        if not order.size:
            return None
        history.append((order // rows.size, rows[order % rows.size]))
        w, v, r = new_w[order], new_v[order], new_r[order]
    at = int(np.argmin(v))
    for (parent, row), stream in zip(reversed(history), several.tolist()[::-1], strict=True):
        choice[stream] = row[at]
        at = int(parent[at])
    return choice
