"""Whether a group of copies has room on a node, on the links it would use, and in the limits."""

from __future__ import annotations

import math

from thalweg.compiling import part
from thalweg.placement.local_search.compiled.state import (
    ALLOWANCE,
    BOUNDARY,
    CHANGED_LINKS,
    KEY,
    LAN_CHANGE,
    MARK,
    SLOT,
    STAMP,
    TOUCHED,
    USED_CPU,
    USED_LAN,
    USED_MEMORY,
    State,
    add_flow,
    clear_links,
    find_link,
    link_free_bps,
    missed_limits,
)
from thalweg.placement.local_search.figures import (
    BPS,
    CPU,
    FREE_CPU,
    FREE_LAN,
    FREE_MEMORY,
    MEMORY,
    RESPONSE_S,
    UPLINK_BPS,
    Figures,
    Integers,
)


@part
def mark_group(f: Figures, s: State, members: Integers, count: int) -> tuple[int, float]:
    """Mark the members, list the edges to others; how many they are, what the group costs now."""
    first, incident, ends = f.first, f.incident, f.ends
    seen, listed, cost, edge_cost = s.seen, s.listed, s.cost, s.edge_cost
    s.counters[STAMP] += 1
    stamp = s.counters[STAMP]
    for k in range(count):
        seen[members[k], MARK] = stamp
    outer, total = 0, 0.0
    for k in range(count):
        i = members[k]
        total += cost[i, 0]
        for j in range(first[i], first[i + 1]):
            e = incident[j]
            start, end = ends[e, 0], ends[e, 1]
            if seen[start, MARK] != seen[end, MARK]:
                listed[outer, BOUNDARY] = e
                outer += 1
                total += edge_cost[e]
            elif start == i:
                total += edge_cost[e]
    return outer, total


@part
def _change_edge(f: Figures, s: State, touched: int, a: int, b: int, bps: float) -> int:
    """Note so much more between nodes a and b, on their LANs and on the WAN between them."""
    used, listed, spot = s.used, s.listed, f.spot
    for n in (a, b):
        if used[n, LAN_CHANGE] == 0.0:
            listed[touched, TOUCHED] = n
            touched += 1
        used[n, LAN_CHANGE] += bps
    if spot[a] != spot[b]:
        s.counters[CHANGED_LINKS] = add_flow(
            f.steps,
            f.route_first,
            f.route_link,
            s.changes,
            s.change_bps,
            s.counters[CHANGED_LINKS],
            spot[a],
            spot[b],
            bps,
        )
    return touched


@part
def _links_have_room(f: Figures, s: State, members: Integers, count: int, n: int) -> bool:
    """Whether LAN and WAN links carry what is on them once the marked group is on node n."""
    first, incident, ends, edge, node = f.first, f.incident, f.ends, f.edge, f.node
    at, seen, used, listed = s.at, s.seen, s.used, s.listed
    stamp = s.counters[STAMP]
    clear_links(s.changes, s.counters[CHANGED_LINKS])
    s.counters[CHANGED_LINKS] = 0
    touched = 0
    for k in range(count):
        i = members[k]
        for j in range(first[i], first[i + 1]):
            e = incident[j]
            start, end = ends[e, 0], ends[e, 1]
            if start != i and seen[start, MARK] == seen[end, MARK]:
                continue  # Within the group: met at its other end.
            a, b, bps = at[start], at[end], -edge[e, BPS]
            for _ in range(2):
                if a != b:
                    touched = _change_edge(f, s, touched, a, b, bps)
                a = n if seen[start, MARK] == stamp else a
                b = n if seen[end, MARK] == stamp else b
                bps = -bps
    has_room = True
    for k in range(touched):
        m = listed[k, TOUCHED]
        rise = used[m, LAN_CHANGE]
        used[m, LAN_CHANGE] = 0.0
        if rise > 0.0 and used[m, USED_LAN] + rise > node[m, FREE_LAN] * ALLOWANCE:
            has_room = False
    for k in range(s.counters[CHANGED_LINKS]):
        slot = s.changes[k, SLOT]
        key, load = s.changes[slot, KEY], s.change_bps[slot]
        if has_room and load > 0.0:
            now = find_link(s.links, key)
            if s.links[now, KEY] == key:
                load += s.link_bps[now]
            free = link_free_bps(f.steps, f.free_bps, f.link_free_bps, key)
            has_room = load <= free * ALLOWANCE
    return has_room


@part
def keeps_all(f: Figures, s: State, members: Integers, count: int, n: int) -> bool:
    """Whether every constraint but the queues' is kept once the marked group is on node n."""
    cpu, memory = s.used[n, USED_CPU], s.used[n, USED_MEMORY]
    for k in range(count):
        if s.at[members[k]] != n:
            cpu += f.copy[members[k], CPU]
            memory += f.copy[members[k], MEMORY]
    if cpu > f.node[n, FREE_CPU] * ALLOWANCE or memory > f.node[n, FREE_MEMORY] * ALLOWANCE:
        return False
    if not _links_have_room(f, s, members, count, n):
        return False
    if f.bounds[RESPONSE_S] == math.inf and f.bounds[UPLINK_BPS] == math.inf:
        return True
    for k in range(count):
        s.listed[k, TOUCHED] = s.at[members[k]]
        s.at[members[k]] = n
    kept = missed_limits(f, s) == 0.0
    for k in range(count):
        s.at[members[k]] = s.listed[k, TOUCHED]
    return kept
