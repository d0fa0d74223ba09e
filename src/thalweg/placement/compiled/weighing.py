"""What the nodes of groups would add, and the best of every group."""

from __future__ import annotations

import math

import numpy as np

from thalweg.compiling import part
from thalweg.placement.compiled.pools import (
    LAST,
    NO_ROOM,
    ROOM_FOR_ALL,
    Found,
    Groups,
    Pool,
    offer,
)
from thalweg.placement.compiled.question import (
    ALLOWED,
    Question,
    Rows,
    added_s,
    has_lan,
    has_room,
    has_wan,
)
from thalweg.placement.compiled.room import Floats, Nodes, Taken, Work, hash_of, slot_of
from thalweg.placement.compiled.walking import has_only_others, lowest_of_equals, start_of, walk


@part
def try_node(
    q: Question,
    nodes: Nodes,
    work: Work,
    taken: Taken,
    rows: Rows,
    pool: Pool,
    node: int,
    level: int,
) -> float:
    """What the node would add; −1 where it is no candidate."""
    site = nodes.site[node]
    column = pool.column[site]
    if pool.verdict[column] < 0:
        return -1.0
    slot = slot_of(taken, node)
    if level != NO_ROOM and not has_room(q, nodes, taken, node, slot):
        return -1.0
    if level == ROOM_FOR_ALL and not (
        has_lan(q, nodes, taken, node, slot) and has_wan(q, work, taken, rows, column, site)
    ):
        return -1.0
    cost_s = added_s(q, nodes, rows, column, node)
    return -1.0 if level != NO_ROOM and math.isinf(cost_s) else cost_s


@part
def _weigh_first(
    q: Question,
    nodes: Nodes,
    groups: Groups,
    taken: Taken,
    rows: Rows,
    pool: Pool,
    level: int,
    cost_s: Floats,
) -> None:
    """What the first node of each group adds; ∞ where none has room, NaN where others decide.

    Everything is looked up before the loop and nothing is called in it, for this is where the
    time goes: `added_s`, `has_room` and `has_lan` say the same for one node.
    """
    order, first, start, site = groups.order, groups.first, groups.start, groups.site
    column, full = pool.column, q.full_hosts > 0 and level == ROOM_FOR_ALL
    cpu, memory, lan, latency = (
        nodes.cpu_ips,
        nodes.memory_bytes,
        nodes.lan_bps,
        nodes.lan_latency_s,
    )
    keys, slots, mask = taken.node_key, taken.node_slot, taken.node_key.size - 1
    asked, turn = taken.asked, taken.used[1]
    used_cpu, used_memory, used_lan = taken.cpu_ips, taken.memory_bytes, taken.lan_bps
    way_latency, way_bps = rows.latency_s, rows.available_bps
    other_row, flow, size = q.row, q.flow, q.size
    other_lan, other_latency = q.lan_bps, q.lan_latency_s
    edges = other_row.size
    work, events, need_cpu, need_memory = q.work, q.events_in, q.cpu_ips, q.memory_bytes
    need_lan = q.total_bps if level == ROOM_FOR_ALL else 0.0
    screened = level != NO_ROOM
    from_start = screened and need_cpu > 0.0
    for k in range(pool.groups.size):
        group = pool.groups[k]
        if not from_start and start[group] != first[group]:
            cost_s[k] = math.nan
            continue
        if start[group] == first[group + 1]:  # All its nodes are out of CPU.
            cost_s[k] = math.inf
            continue
        node = order[start[group]]
        at = hash_of(node) & mask
        while keys[at] >= 0 and keys[at] != node:
            at = (at + 1) & mask
        cpu_left, memory_left, lan_left = cpu[node], memory[node], lan[node]
        if keys[at] == node:
            slot = slots[at]
            if asked[slot] == turn:
                cost_s[k] = math.nan
                continue
            cpu_left -= used_cpu[slot]
            memory_left -= used_memory[slot]
            lan_left -= used_lan[slot]
        if screened and (
            (need_cpu > 0.0 and cpu_left < need_cpu)
            or (need_memory > 0.0 and memory_left < need_memory)
            or (need_lan > 0.0 and need_lan > lan_left * ALLOWED)
            or full
        ):
            # Where nothing is on the node, the rest of the group has no more.
            alone = keys[at] != node or start[group] + 1 == first[group + 1]
            cost_s[k] = math.inf if alone else math.nan
            continue
        here = column[site[group]]
        total = 0.0
        for j in range(edges):
            row = other_row[j]
            waiting = 0.0
            if size[j] > 0.0:
                free = min(min(other_lan[j], lan[node]), way_bps[row, here])
                transfers = free / (8.0 * size[j])
                if not math.isinf(transfers):
                    stable = transfers > flow[j]
                    waiting = 1.0 / (transfers - flow[j]) if stable else math.inf
            total += waiting + ((other_latency[j] + latency[node]) + way_latency[row, here])
        if work > 0.0:
            service_rate = cpu[node] / work
            stable = service_rate > events
            total += 1.0 / (service_rate - events) if stable else math.inf
        cost_s[k] = total


@part
def _weigh_next(
    q: Question,
    nodes: Nodes,
    groups: Groups,
    taken: Taken,
    rows: Rows,
    pool: Pool,
    level: int,
    group: int,
) -> tuple[int, float]:
    """The place of a group's first node with room, and what it adds; ∞ where there is none."""
    end = groups.first[group + 1]
    at = int(groups.first[group])
    if level != NO_ROOM:
        at = start_of(nodes, groups, taken, group, q.cpu_ips)
    at = walk(q, nodes, groups, taken, at, end, level, q.nobody)
    if at == end:
        return end, math.inf
    return at, added_s(q, nodes, rows, pool.column[groups.site[group]], groups.order[at])


@part
def _find_limit(groups: Groups, pool: Pool, level: int, cost_s: Floats) -> tuple[int, float]:
    """Priority and cost of the second best of the groups' first nodes; all else can wait."""
    site_of, column_of, priority_of = groups.site, pool.column, pool.priority
    wanted, verdict = pool.groups, pool.verdict
    best, next_best = (LAST, math.inf), (LAST, math.inf)
    for k in range(wanted.size):
        column = column_of[site_of[wanted[k]]]
        if verdict[column] < 0 or not cost_s[k] < math.inf:
            continue
        here = (int(priority_of[column]) if level == ROOM_FOR_ALL else 0, cost_s[k])
        if here < best:
            best, next_best = here, best
        elif here < next_best:
            next_best = here
    return next_best


@part
def _offer_groups(
    q: Question,
    nodes: Nodes,
    groups: Groups,
    work: Work,
    taken: Taken,
    rows: Rows,
    pool: Pool,
    level: int,
    first_cost_s: Floats,
    limit: tuple[int, float],
    found: Found,
) -> tuple[int, bool]:
    """Offer the best of every group up to a limit; how many were looked at, any without WAN."""
    looked, refused = 0, False
    held, held_cost_s, held_priority = -1, 0.0, 0
    wanted, site_of, verdict = pool.groups, groups.site, pool.verdict
    column_of, priority_of = pool.column, pool.priority
    last_priority, last_cost_s, lowest = found.priority, found.cost_s, groups.lowest
    for k in range(wanted.size):
        group, cost_s = wanted[k], first_cost_s[k]
        site = site_of[group]
        column = column_of[site]
        if verdict[column] < 0:
            continue
        priority = priority_of[column] if level == ROOM_FOR_ALL else 0
        if priority > last_priority[1]:
            continue
        looked += 1
        if math.isinf(cost_s) and level != NO_ROOM:
            continue
        late = priority == last_priority[1] and (
            cost_s > last_cost_s[1] or (cost_s == last_cost_s[1] and lowest[group] > found.node[1])
        )
        late |= priority > limit[0] or (priority == limit[0] and cost_s > limit[1])
        if late and not pool.one_per_site:
            continue
        at = int(groups.start[group])
        if math.isnan(cost_s):
            at, cost_s = _weigh_next(q, nodes, groups, taken, rows, pool, level, group)
            if at == groups.first[group + 1]:
                looked -= has_only_others(taken, groups, group)
                continue
            if math.isinf(cost_s) and level != NO_ROOM:
                continue
        if level == ROOM_FOR_ALL and not has_wan(q, work, taken, rows, column, site):
            refused = True
            continue
        if not pool.one_per_site:
            node = lowest_of_equals(
                q, nodes, groups, taken, rows, group, column, at, level, q.nobody, cost_s
            )
            offer(found, int(priority), cost_s, int(node), int(group))
            continue
        node = groups.order[at]
        if held >= 0 and nodes.site[held] != site:
            offer(found, held_priority, held_cost_s, held, q.nobody)
            held = -1
        if held < 0 or (nodes.lan_latency_s[node], node) < (nodes.lan_latency_s[held], held):
            held, held_cost_s, held_priority = int(node), cost_s, priority
    if held >= 0:
        offer(found, held_priority, held_cost_s, held, q.nobody)
    return looked, refused


@part
def try_groups(
    q: Question,
    nodes: Nodes,
    groups: Groups,
    work: Work,
    taken: Taken,
    rows: Rows,
    pool: Pool,
    level: int,
    found: Found,
) -> int:
    """Offer the best of the groups; how many nodes were looked at."""
    first_cost_s = np.empty(pool.groups.size)
    _weigh_first(q, nodes, groups, taken, rows, pool, level, first_cost_s)
    limit = _find_limit(groups, pool, level, first_cost_s)
    before = Found(
        found.priority.copy(), found.cost_s.copy(), found.node.copy(), found.group.copy()
    )
    looked, refused = _offer_groups(
        q, nodes, groups, work, taken, rows, pool, level, first_cost_s, limit, found
    )
    if refused and not pool.one_per_site:
        # Those beyond the limit may be the second best now.
        found.priority[:], found.cost_s[:] = before.priority, before.cost_s
        found.node[:], found.group[:] = before.node, before.group
        limit = (limit[0] + LAST, math.inf)
        _offer_groups(q, nodes, groups, work, taken, rows, pool, level, first_cost_s, limit, found)
    return looked


@part
def try_next_of_best(
    q: Question,
    nodes: Nodes,
    groups: Groups,
    taken: Taken,
    rows: Rows,
    pool: Pool,
    level: int,
    found: Found,
) -> None:
    """The runner-up may be in the group of the best."""
    group, best = found.group[0], found.node[0]
    column = pool.column[groups.site[group]]
    end = groups.first[group + 1]
    at = int(groups.first[group])
    if level != NO_ROOM:
        at = start_of(nodes, groups, taken, group, q.cpu_ips)
    at = walk(q, nodes, groups, taken, at, end, level, best)
    if at < end:
        cost_s = added_s(q, nodes, rows, column, groups.order[at])
        node = lowest_of_equals(
            q, nodes, groups, taken, rows, group, column, at, level, best, cost_s
        )
        offer(found, found.priority[0], cost_s, int(node), int(group))
