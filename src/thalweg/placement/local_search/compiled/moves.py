"""The best node for some copies together, all other copies staying where they are."""

from __future__ import annotations

import math

from thalweg.compiling import part, search_kernel
from thalweg.model.graph import Floats, Index
from thalweg.placement.local_search.compiled.costs import (
    may_run_in,
    service_s,
    transfer_s,
    way_between,
)
from thalweg.placement.local_search.compiled.room import keeps_all, mark_group
from thalweg.placement.local_search.compiled.state import (
    ALLOWANCE,
    BOUNDARY,
    COUNT,
    HOST_MARK,
    LATENCY_S,
    MARK,
    STAMP,
    USED_CPU,
    USED_LAN,
    USED_MEMORY,
    VIOLATION,
    WEIGHED,
    State,
    evaluate,
)
from thalweg.placement.local_search.figures import (
    BPS,
    CPU,
    EDGE_PATHS,
    FREE_CPU,
    FREE_LAN,
    FREE_MEMORY,
    MEMORY,
    PATHS,
    RESPONSE_S,
    Figures,
    Integers,
    Tiers,
)

# A move that gains less than this share of the aggregate latency is rounding.
LEAST_GAIN = 1e-12
# Violations are sums in an order that changes with the placement.
_SAME_VIOLATION = 1e-9


@part
def _service_on(copy: Floats, members: Integers, count: int, free_ips: float) -> float:
    """Paths × service time of all members on a node; ∞ where a queue would grow."""
    total = 0.0
    for k in range(count):
        seconds = service_s(copy, members[k], free_ips)
        if seconds > 0.0:
            total += copy[members[k], PATHS] * seconds
    return total


@part
def _edges_on(f: Figures, s: State, outer: int, n: int, most: float) -> float:
    """Paths × communication time of the listed edges with the marked group on node n.

    More than `most` is not told apart.
    """
    ends, edge, node, spot = f.ends, f.edge, f.node, f.spot
    latency_s, free_bps, steps = f.latency_s, f.free_bps, f.steps
    at, seen, listed, stamp = s.at, s.seen, s.listed, s.counters[STAMP]
    total = 0.0
    for k in range(outer):
        if total > most:
            break
        e = listed[k, BOUNDARY]
        inward = seen[ends[e, 1], MARK] == stamp
        other = at[ends[e, 0] if inward else ends[e, 1]]
        if other == n:
            continue
        a, b = (other, n) if inward else (n, other)
        way_s, free = way_between(node, spot, latency_s, free_bps, steps, a, b)
        seconds = transfer_s(edge, e, way_s, free)
        if seconds > 0.0:
            total += edge[e, EDGE_PATHS] * seconds
    return total


@part
def _group_may_run_in(pin: Integers, tier: Tiers, members: Integers, count: int, spot: int) -> bool:
    allowed = True
    for k in range(count):
        allowed = allowed and may_run_in(pin, tier, members[k], spot)
    return allowed


@part
def _need(
    f: Figures, s: State, members: Integers, count: int, outer: int
) -> tuple[float, float, float]:
    cpu, memory, lan = 0.0, 0.0, 0.0
    for k in range(count):
        cpu += f.copy[members[k], CPU]
        memory += f.copy[members[k], MEMORY]
    for k in range(outer):
        lan += f.edge[s.listed[k, BOUNDARY], BPS]
    return cpu, memory, lan


@part
def _first_with_room(
    order: Index,
    node: Floats,
    used: Floats,
    copies: Integers,
    stamp: int,
    position: int,
    stop: int,
    cpu: float,
    memory: float,
    lan: float,
) -> int:
    """The first position of a group whose node has room and is not marked, or −1."""
    while position < stop:
        n = order[position]
        if (
            copies[n, HOST_MARK] != stamp
            and used[n, USED_CPU] + cpu <= node[n, FREE_CPU] * ALLOWANCE
            and used[n, USED_MEMORY] + memory <= node[n, FREE_MEMORY] * ALLOWANCE
            and used[n, USED_LAN] + lan <= node[n, FREE_LAN] * ALLOWANCE
        ):
            return position
        if copies[n, COUNT] == 0:
            return -1  # Not even an empty node of the group has room.
        position += 1
    return -1


@part
def _next_host(f: Figures, s: State, members: Integers, count: int, k: int) -> int:
    """The k-th node among those of the members and of their neighbours; −1 where it was met."""
    stamp = s.counters[STAMP]
    if k < count:
        n = s.at[members[k]]
    else:
        e = s.listed[k - count, BOUNDARY]
        inward = s.seen[f.ends[e, 1], MARK] == stamp
        n = s.at[f.ends[e, 0] if inward else f.ends[e, 1]]
    if s.copies[n, HOST_MARK] == stamp:
        return -1
    s.copies[n, HOST_MARK] = stamp
    return n if _group_may_run_in(f.pin, f.tier, members, count, f.spot[n]) else -1


@search_kernel
def find_best(
    f: Figures, s: State, members: Integers, count: int, least: float
) -> tuple[float, int]:
    """(change of the aggregate latency, node) of the best node for the group, −1 where none is.

    Only changes below `least` count. All nodes are weighed: those that run a neighbour or a member
    one by one, all others by the first of their group that has room, since the rest of the group
    is as good but farther from its LAN. Ties: the lower node index. Where the placement violates
    something, copies that have part in it find no better node here.
    """
    copy, node, pin, tier, order = f.copy, f.node, f.pin, f.tier, f.order
    group_first, group_spot = f.group_first, f.group_spot
    at, used, copies = s.at, s.used, s.copies
    shares = f.bounds[RESPONSE_S] < math.inf
    outer, now = mark_group(f, s, members, count)
    stamp = s.counters[STAMP]
    cpu, memory, lan = _need(f, s, members, count, outer)
    together = True
    for k in range(1, count):
        together = together and at[members[k]] == at[members[0]]
    if together:
        copies[at[members[0]], HOST_MARK] = stamp
    hosts = count + outer
    best, found = least, -1
    where, allowed = -1, False
    item, position, weighed = 0, -1, 0
    while item < hosts + group_spot.size:
        if item < hosts:
            n = _next_host(f, s, members, count, item)
            item += 1
            if n < 0:
                continue
        else:
            g = item - hosts
            if position < 0:
                if group_spot[g] != where:
                    where = group_spot[g]
                    allowed = _group_may_run_in(pin, tier, members, count, where)
                position = group_first[g]
            if allowed:
                stop = group_first[g + 1]
                position = _first_with_room(
                    order, node, used, copies, stamp, position, stop, cpu, memory, lan
                )
            if position < 0 or not allowed:
                item, position = item + 1, -1
                continue
            n = order[position]
            position += 1
            # Unless copies share the CPU, what fails here fails on the rest of the group, too.
            if not shares or copies[n, COUNT] == 0:
                item, position = item + 1, -1
        weighed += 1
        change = _service_on(copy, members, count, node[n, FREE_CPU]) - now
        change += _edges_on(f, s, outer, n, best - change)
        better = change < best or (change == best and n < found)
        if better and keeps_all(f, s, members, count, n):
            best, found = change, n
            if position >= 0:
                item, position = item + 1, -1
    s.counters[WEIGHED] += weighed
    return best, found


@part
def settle(f: Figures, s: State, before: Integers) -> bool:
    """Evaluate the placement; if it is no better than the one before, undo it, and False."""
    violation, latency = s.total[VIOLATION], s.total[LATENCY_S]
    for attempt in range(2):
        evaluate(f, s)
        if attempt == 0:
            if is_better(s.total[VIOLATION], s.total[LATENCY_S], violation, latency):
                return True
            for i in range(before.size):
                s.at[i] = before[i]
    return False


@search_kernel
def is_better(violation: float, latency: float, than: float, than_s: float) -> bool:
    """Whether less is violated, or as much at less latency, by more than rounding."""
    if abs(violation - than) > _SAME_VIOLATION * than:
        return violation < than
    return latency < than_s * (1.0 - LEAST_GAIN)
