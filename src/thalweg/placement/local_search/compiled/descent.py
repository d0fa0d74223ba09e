"""From a placement to one that no single, group or swapping move makes better."""

from __future__ import annotations

import math

import numpy as np

from thalweg.compiling import part, search_kernel
from thalweg.model.graph import Floats
from thalweg.placement.local_search.compiled.costs import (
    may_run_in,
    service_s,
    transfer_s,
    way_between,
)
from thalweg.placement.local_search.compiled.moves import (
    LEAST_GAIN,
    find_best,
    is_better,
    settle,
)
from thalweg.placement.local_search.compiled.state import (
    ALLOWANCE,
    COUNT,
    KEY,
    LATENCY_S,
    LINKS,
    MARK,
    SLOT,
    STAMP,
    USED_CPU,
    USED_LAN,
    USED_MEMORY,
    VIOLATION,
    WEIGHED,
    State,
    evaluate,
    link_free_bps,
)
from thalweg.placement.local_search.figures import (
    CPU,
    FREE_CPU,
    FREE_LAN,
    FREE_MEMORY,
    MEMORY,
    MOVABLE,
    RESPONSE_S,
    UPLINK_BPS,
    Figures,
    Integers,
)

REPAIR, SINGLE, PAIR, ON_NODE, IN_SITE, STAR, SWAP, DONE = range(8)
# With more copies than this, swaps are tried between neighbours only.
_MOST_SWAPPED = 150
# Groups larger than this seldom fit on a node.
_MOST_MEMBERS = 64


@part
def _roomy_node(f: Figures, s: State, i: int, g: int) -> int:
    """The first node of a group with CPU and memory for copy i besides the others there."""
    found: int = f.order[f.group_first[g]]
    for k in range(f.group_first[g], f.group_first[g + 1]):
        n = f.order[k]
        own = s.at[i] == n
        cpu = s.used[n, USED_CPU] + (0.0 if own else f.copy[i, CPU])
        memory = s.used[n, USED_MEMORY] + (0.0 if own else f.copy[i, MEMORY])
        if cpu <= f.node[n, FREE_CPU] * ALLOWANCE and memory <= f.node[n, FREE_MEMORY] * ALLOWANCE:
            found = n
            break
        if s.copies[n, COUNT] == 0:
            break
    return found


@part
def _is_overloaded(f: Figures, s: State, n: int) -> bool:
    return bool(
        s.used[n, USED_CPU] > f.node[n, FREE_CPU] * ALLOWANCE
        or s.used[n, USED_MEMORY] > f.node[n, FREE_MEMORY] * ALLOWANCE
        or s.used[n, USED_LAN] > f.node[n, FREE_LAN] * ALLOWANCE
    )


@part
def _can_help(f: Figures, s: State, i: int) -> bool:
    """Whether anything is violated that depends on where copy i runs."""
    if f.bounds[RESPONSE_S] < math.inf or f.bounds[UPLINK_BPS] < math.inf:
        return True
    n = s.at[i]
    if _is_overloaded(f, s, n) or not may_run_in(f.pin, f.tier, i, f.spot[n]):
        return True
    if service_s(f.copy, i, f.node[n, FREE_CPU]) == math.inf:
        return True
    for k in range(f.first[i], f.first[i + 1]):
        e = f.incident[k]
        a, b = s.at[f.ends[e, 0]], s.at[f.ends[e, 1]]
        if a == b:
            continue
        way_s, free = way_between(f.node, f.spot, f.latency_s, f.free_bps, f.steps, a, b)
        if transfer_s(f.edge, e, way_s, free) == math.inf:
            return True
        if _is_overloaded(f, s, a if b == n else b):
            return True
    for k in range(s.counters[LINKS]):
        slot = s.links[k, SLOT]
        key = s.links[slot, KEY]
        free = link_free_bps(f.steps, f.free_bps, f.link_free_bps, key)
        if s.link_bps[slot] > free * ALLOWANCE:
            return True
    return False


@part
def repair(f: Figures, s: State, i: int) -> bool:
    """Move copy i where least is violated, or as much at less latency; whether it moved.

    Every host of a neighbour is weighed, and of each group the first node that has CPU and memory
    for it, else its first. Ties: the first weighed.
    """
    if not _can_help(f, s, i):
        return False
    home = s.at[i]
    found, violation, latency = home, s.total[VIOLATION], s.total[LATENCY_S]
    hosts = f.first[i + 1] - f.first[i]
    last = hosts + f.group_spot.size
    for c in range(last + 1):
        if c < hosts:
            e = f.incident[f.first[i] + c]
            n = s.at[f.ends[e, 1] if f.ends[e, 0] == i else f.ends[e, 0]]
        elif c < last:
            n = _roomy_node(f, s, i, c - hosts)
        else:
            n = found
        if c < last and not may_run_in(f.pin, f.tier, i, f.spot[n]):
            continue
        s.counters[WEIGHED] += 1
        s.at[i] = n
        evaluate(f, s)
        if is_better(s.total[VIOLATION], s.total[LATENCY_S], violation, latency):
            found, violation, latency = n, s.total[VIOLATION], s.total[LATENCY_S]
    return bool(found != home)


@part
def _join_cluster(f: Figures, s: State, seed: int, stage: int, members: Integers) -> int:
    """The movable copies that are linked to the seed within its node, or site, or one step away.

    0 where another member has a lower index (the cluster is met there), or it is too large.
    """
    s.counters[STAMP] += 1
    stamp = s.counters[STAMP]
    s.seen[seed, MARK] = stamp
    members[0] = seed
    count, k = 1, 0
    home = s.at[seed]
    while k < count:
        i = members[k]
        k += 1
        for j in range(f.first[i], f.first[i + 1]):
            e = f.incident[j]
            other = f.ends[e, 1] if f.ends[e, 0] == i else f.ends[e, 0]
            n = s.at[other]
            if s.seen[other, MARK] == stamp or not f.pin[other, MOVABLE]:
                continue
            if (stage == ON_NODE and n != home) or (stage == IN_SITE and f.spot[n] != f.spot[home]):
                continue
            if (stage != STAR and other < seed) or count == members.size:
                return 0
            s.seen[other, MARK] = stamp
            members[count] = other
            count += 1
        if stage == STAR:
            break
    return count


@part
def _swap_with_others(f: Figures, s: State, i: int) -> bool:
    """Exchange nodes with the first copy that makes it better; whether there is one."""
    few = s.at.size <= _MOST_SWAPPED
    before = s.at.copy()
    for k in range(i + 1 if few else f.first[i], s.at.size if few else f.first[i + 1]):
        j = k if few else f.ends[f.incident[k], 1]
        a, b = s.at[i], s.at[j]
        if a == b or not f.pin[j, MOVABLE]:
            continue
        if may_run_in(f.pin, f.tier, i, f.spot[b]) and may_run_in(f.pin, f.tier, j, f.spot[a]):
            s.counters[WEIGHED] += 1
            s.at[i], s.at[j] = b, a
            if settle(f, s, before):
                return True
    return False


@part
def _try_item(f: Figures, s: State, stage: int, item: int, members: Integers) -> bool:
    members[0], count = item, 1
    if stage == PAIR:
        members[0], members[1] = f.ends[item, 0], f.ends[item, 1]
        count = 2
    for k in range(count):
        if not f.pin[members[k], MOVABLE]:
            return False
    if stage == REPAIR:
        return repair(f, s, item)
    if stage == SWAP:
        return _swap_with_others(f, s, item)
    if stage > PAIR:
        count = _join_cluster(f, s, item, stage, members)
        if count <= 2:  # Pairs are a stage of their own.
            return False
    _, n = find_best(f, s, members, count, -LEAST_GAIN * s.total[LATENCY_S])
    if n < 0:
        return False
    before = s.at.copy()
    for k in range(count):
        s.at[members[k]] = n
    return settle(f, s, before)


@search_kernel
def descend(f: Figures, s: State, cursor: Integers, budget: int) -> bool:
    """Move while it helps; True at a local optimum, False when the budget is used up before.

    `cursor` (stage, item, moves made since the stage began) keeps the place for the next call;
    zeros begin a descent. The budget counts nodes weighed. While anything is violated, moves
    repair as long as they can; then single copies, pairs, clusters and swaps take turns, and after
    each move of these that helped it begins again. What remains violated does not get worse.
    """
    members = np.empty(_MOST_MEMBERS, np.int64)
    until = s.counters[WEIGHED] + budget
    while cursor[0] != DONE:
        if s.counters[WEIGHED] >= until:
            return False
        stage = cursor[0]
        if stage == REPAIR and s.total[VIOLATION] == 0.0:
            cursor[0], cursor[1], cursor[2] = SINGLE, 0, 0
            continue
        if cursor[1] < (f.ends.shape[0] if stage == PAIR else s.at.size):
            cursor[1] += 1
            s.counters[WEIGHED] += 1
            if _try_item(f, s, stage, cursor[1] - 1, members):
                cursor[2] += 1
                if stage > SINGLE:
                    cursor[0], cursor[1], cursor[2] = REPAIR, 0, 0
        elif cursor[2] > 0:
            cursor[1], cursor[2] = 0, 0
        else:
            cursor[0] = stage + 1
            cursor[1], cursor[2] = 0, 0
    return True


@search_kernel
def perturb(f: Figures, s: State, draws: Floats) -> None:
    """Put some copies elsewhere: the one drawn and those nearest to it in the graph.

    Each goes to the node of another copy, or to the first node with room of a group in its site
    or, now and then, of any group. `draws` are numbers from 0 to 1: two, and three for each copy.
    """
    size = s.at.size
    s.counters[STAMP] += 1
    stamp = s.counters[STAMP]
    queue = np.empty(size, np.int64)
    queue[0] = int(draws[0] * size)
    s.seen[queue[0], MARK] = stamp
    count, k, moved = 1, 0, 0
    wanted = 2 + int(draws[1] * draws[1] * size * 0.6)
    while k < count and moved < wanted:
        i = queue[k]
        k += 1
        for j in range(f.first[i], f.first[i + 1]):
            e = f.incident[j]
            other = f.ends[e, 1] if f.ends[e, 0] == i else f.ends[e, 0]
            if s.seen[other, MARK] != stamp:
                s.seen[other, MARK] = stamp
                queue[count] = other
                count += 1
        if not f.pin[i, MOVABLE]:
            continue
        moved += 1
        n = s.at[int(draws[3 * i + 2] * size)]
        way = draws[3 * i + 3]
        if way > 0.5:
            g = int(draws[3 * i + 4] * f.group_spot.size)
            if way < 0.85:  # A group of that node's site: groups are in the order of sites.
                low = np.searchsorted(f.group_spot, f.spot[n])
                high = np.searchsorted(f.group_spot, f.spot[n], side="right")
                g = low + int(draws[3 * i + 4] * (high - low))
            n = _roomy_node(f, s, i, g)
        if may_run_in(f.pin, f.tier, i, f.spot[n]):
            s.at[i] = n
    evaluate(f, s)
