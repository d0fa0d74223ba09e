"""Steps along a group of nodes: who is first with room, who is lowest among equals."""

from __future__ import annotations

import math

from thalweg.compiling import leaf, part
from thalweg.placement.compiled.pools import NO_ROOM, ROOM_FOR_ALL, Groups
from thalweg.placement.compiled.question import Question, Rows, added_s, has_lan, has_room
from thalweg.placement.compiled.room import Index, Nodes, Taken, slot_of


@leaf
def walk(
    q: Question,
    nodes: Nodes,
    groups: Groups,
    taken: Taken,
    at: int,
    end: int,
    level: int,
    skip: int,
) -> int:
    """The first place from `at` on whose node has room and is at no other end; `end` for none.

    Nodes that nothing is on are alike, so the first of them decides for all.
    """
    while at < end:
        node = groups.order[at]
        slot = slot_of(taken, node)
        if node != skip and (slot < 0 or taken.asked[slot] != taken.used[1]):
            fits = level == NO_ROOM or has_room(q, nodes, taken, node, slot)
            if fits and level == ROOM_FOR_ALL:
                fits = has_lan(q, nodes, taken, node, slot)
            if fits:
                return at
            if slot < 0:
                return end
        at += 1
    return end


@leaf
def _after_equals(nodes: Nodes, order: Index, at: int, end: int) -> int:
    """The first place whose LAN latency is above that of the place `at`."""
    latency_s = nodes.lan_latency_s[order[at]]
    low, high = at + 1, end
    while low < high:
        middle = (low + high) // 2
        if nodes.lan_latency_s[order[middle]] > latency_s:
            high = middle
        else:
            low = middle + 1
    return low


@part
def lowest_of_equals(
    q: Question,
    nodes: Nodes,
    groups: Groups,
    taken: Taken,
    rows: Rows,
    group: int,
    column: int,
    at: int,
    level: int,
    skip: int,
    cost_s: float,
) -> int:
    """The lowest node index among those of the group that cost the same as the one `at`.

    A higher LAN latency can vanish in rounding; where the cost is infinite, all nodes are equal.
    """
    end = groups.first[group + 1]
    lowest = groups.order[at]
    if math.isinf(cost_s):
        # Only a search for any node at all comes here.
        for k in range(at, end):
            at = walk(q, nodes, groups, taken, k, end, level, skip)
            if at < end:
                lowest = min(lowest, groups.order[at])
            if lowest == groups.lowest[group]:
                break
        return int(lowest)
    while True:
        at = _after_equals(nodes, groups.order, at, end)
        at = walk(q, nodes, groups, taken, at, end, level, skip)
        if at == end:
            return int(lowest)
        node = groups.order[at]
        if added_s(q, nodes, rows, column, node) > cost_s:
            return int(lowest)
        lowest = min(lowest, node)


@leaf
def start_of(nodes: Nodes, groups: Groups, taken: Taken, group: int, need_ips: float) -> int:
    """Where to start in a group: nodes that are out of CPU for good are passed over."""
    if need_ips == 0.0:
        return int(groups.first[group])
    end = groups.first[group + 1]
    at = groups.start[group]
    while at < end:
        node = groups.order[at]
        slot = slot_of(taken, node)
        if slot < 0 or nodes.cpu_ips[node] - taken.cpu_ips[slot] >= groups.least_cpu_ips:
            break
        at += 1
    groups.start[group] = at
    return int(at)


@part
def has_only_others(taken: Taken, groups: Groups, group: int) -> bool:
    """Whether all nodes of a group are at other ends, and so looked at by themselves."""
    for at in range(groups.first[group], groups.first[group + 1]):
        slot = slot_of(taken, groups.order[at])
        if slot < 0 or taken.asked[slot] != taken.used[1]:
            return False
    return True
