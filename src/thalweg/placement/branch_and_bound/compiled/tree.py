"""Depth-first search over the nodes of all copies that may move."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thalweg.compiling import part, search_kernel
from thalweg.model.graph import Floats
from thalweg.placement.branch_and_bound.compiled.tables import own_costs
from thalweg.placement.local_search.compiled.state import (
    ALLOWANCE,
    COUNT,
    LATENCY_S,
    USED_CPU,
    USED_MEMORY,
    VIOLATION,
    State,
    evaluate,
)
from thalweg.placement.local_search.figures import (
    CPU,
    FREE_CPU,
    FREE_MEMORY,
    LAN_S,
    MEMORY,
    Figures,
    Integers,
)

# A bound so close to the best cost, relatively, cannot lead to a better one.
_ROUNDING = 1e-12
# With more nodes than this it takes longer to look whether the rest fits than to try it.
_MOST_PACKED = 64


class Tables(NamedTuple):
    """The order of the search, the places of every copy, and what the rest costs at the least."""

    copy: Integers
    """The copy of each level."""
    value_first: Integers
    value_place: Integers
    """Level t chooses among the places value_place[value_first[t] : value_first[t + 1]]."""
    place_first: Integers
    place_node: Integers
    message: Floats
    """All tables, one after the other."""
    begin: Integers
    axis_first: Integers
    axis: Integers
    """(axes, 2): the level whose value is looked up, and the step along it."""
    made_first: Integers
    made: Integers
    """The tables that the choice of a level makes needless."""
    read_first: Integers
    read: Integers
    """The tables that can be looked up once a level is chosen."""


class Walk(NamedTuple):
    """Where the search is; rows of levels."""

    bound: Floats
    node: Integers
    value: Integers
    """(levels, children), the most promising first."""
    children: Integers
    turn: Integers
    chosen: Integers
    ahead: Floats
    """What the copies not placed yet cost at the least."""
    level: Integers
    best: Floats
    """The least cost found, the share by which it may be missed, and placements looked at."""
    best_node: Integers


@part
def _look_up(t: Tables, w: Walk, table: int, level: int, value: int) -> float:
    at = t.begin[table]
    for k in range(t.axis_first[table], t.axis_first[table + 1]):
        chosen = value if t.axis[k, 0] == level else w.chosen[t.axis[k, 0]]
        at += chosen * t.axis[k, 1]
    least: float = t.message[at]
    return least


@part
def _sort_children(w: Walk, level: int, count: int) -> None:
    """The lowest bounds first; ties: as they were."""
    order = np.argsort(w.bound[level, :count], kind="mergesort")
    bound, node, value = np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64)
    for k in range(count):
        bound[k] = w.bound[level, order[k]]
        node[k] = w.node[level, order[k]]
        value[k] = w.value[level, order[k]]
    for k in range(count):
        w.bound[level, k] = bound[k]
        w.node[level, k] = node[k]
        w.value[level, k] = value[k]


@part
def _expand(f: Figures, s: State, t: Tables, w: Walk, level: int, cut: float) -> None:
    """List the children of a level, by their bounds; the placement so far is evaluated.

    Of the nodes of a place that are free the first ones come into question, as many as there are
    copies left to fill those before them, and of equal ones the first.
    """
    copy = t.copy[level]
    base = s.total[LATENCY_S] + w.ahead[level]
    for k in range(t.made_first[level], t.made_first[level + 1]):
        base -= _look_up(t, w, t.made[k], -1, 0)
    left = t.copy.size - 1 - level
    count = 0
    for v in range(t.value_first[level + 1] - t.value_first[level]):
        place = t.value_place[t.value_first[level] + v]
        ahead = base
        for k in range(t.read_first[level], t.read_first[level + 1]):
            ahead += _look_up(t, w, t.read[k], level, v)
        if not ahead < cut:
            continue
        nodes = t.place_node[t.place_first[place] : t.place_first[place + 1]]
        cost = own_costs(f, copy, nodes, s.at)
        free, last_s = 0, -1.0
        for k in range(nodes.size):
            n = nodes[k]
            if s.copies[n, COUNT] == 0:
                if free > left:
                    break
                free += 1
                if f.node[n, LAN_S] == last_s:
                    continue
                last_s = f.node[n, LAN_S]
            if (
                ahead + cost[k] < cut
                and s.used[n, USED_CPU] + f.copy[copy, CPU] <= f.node[n, FREE_CPU] * ALLOWANCE
                and s.used[n, USED_MEMORY] + f.copy[copy, MEMORY]
                <= f.node[n, FREE_MEMORY] * ALLOWANCE
            ):
                w.bound[level, count] = ahead + cost[k]
                w.node[level, count] = n
                w.value[level, count] = v
                count += 1
    _sort_children(w, level, count)
    w.children[level] = count
    w.turn[level] = 0


@part
def _rest_fits(
    f: Figures, s: State, t: Tables, level: int, need: int, have: int, used: int
) -> bool:
    """Whether the copies after a level could find room, those that need most looked at first.

    So many of them as need a certain amount or more must fit, together and one by one, into the
    nodes that have that much left. `need`, `have` and `used` are the columns of one resource.
    """
    nodes = t.place_node
    for k in range(level + 1, t.copy.size):
        least = f.copy[t.copy[k], need]
        if not least > 0.0:
            continue
        total, count = 0.0, 0.0
        for j in range(level + 1, t.copy.size):
            if f.copy[t.copy[j], need] >= least:
                total += f.copy[t.copy[j], need]
                count += 1.0
        for j in range(nodes.size):
            left = f.node[nodes[j], have] * ALLOWANCE - s.used[nodes[j], used]
            if left >= least:
                total -= left
                count -= math.floor(min(left / least, count))
            if total <= 0.0 and count <= 0.0:
                break
        if total > 0.0 or count > 0.0:
            return False
    return True


@search_kernel
def walk(f: Figures, s: State, t: Tables, w: Walk, steps: int) -> bool:
    """Search on; True when everything was looked at or ruled out, False after so many placements.

    Begins where `w` is; level −1 begins the search, with the copies that are bound in `s.at`.
    """
    levels = t.copy.size
    until = w.best[2] + steps
    if w.level[0] < 0:
        evaluate(f, s)
        if s.total[VIOLATION] > 0.0:
            return True
        w.level[0] = 0
        _expand(f, s, t, w, 0, w.best[0])
    while w.best[2] < until:
        level = w.level[0]
        cut = w.best[0]
        if cut < math.inf:  # The gap may be ∞, too.
            cut *= (1.0 - _ROUNDING) / (1.0 + w.best[1])
        turn = w.turn[level]
        s.at[t.copy[level]] = -1
        if turn >= w.children[level] or not w.bound[level, turn] < cut:
            if level == 0:
                return True
            w.level[0] -= 1
            continue
        w.turn[level] += 1
        w.best[2] += 1
        s.at[t.copy[level]] = w.node[level, turn]
        w.chosen[level] = w.value[level, turn]
        evaluate(f, s)
        if s.total[VIOLATION] > 0.0 or not s.total[LATENCY_S] < cut:
            continue
        if t.place_node.size <= _MOST_PACKED and not (
            _rest_fits(f, s, t, level, CPU, FREE_CPU, USED_CPU)
            and _rest_fits(f, s, t, level, MEMORY, FREE_MEMORY, USED_MEMORY)
        ):
            continue
        if level == levels - 1:
            w.best[0] = s.total[LATENCY_S]
            for i in range(s.at.size):
                w.best_node[i] = s.at[i]
            continue
        ahead = w.ahead[level]
        for k in range(t.made_first[level], t.made_first[level + 1]):
            ahead -= _look_up(t, w, t.made[k], -1, 0)
        for k in range(t.read_first[level], t.read_first[level + 1]):
            ahead += _look_up(t, w, t.read[k], level, w.chosen[level])
        w.ahead[level + 1] = ahead
        w.level[0] = level + 1
        _expand(f, s, t, w, level + 1, cut)
    return False
