"""The best node for one operator, found over groups of nodes instead of nodes."""

from __future__ import annotations

import math

import numpy as np

from thalweg.compiling import kernel, part
from thalweg.placement.compiled.pools import (
    OUTSIDE,
    ROOM_FOR_ALL,
    Found,
    Groups,
    Pool,
    is_in,
    no_candidates,
    offer,
)
from thalweg.placement.compiled.question import Question, Rows, ask, find_missing
from thalweg.placement.compiled.room import Index, Longs, Nodes, Taken, Work, slot_of
from thalweg.placement.compiled.weighing import try_groups, try_next_of_best, try_node


@part
def search_pool(
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
    """Find the two best candidates of a pool; how many nodes were looked at."""
    looked = 0
    for node in q.host:
        site = nodes.site[node]
        column = pool.column[site]
        inside = pool.node < 0 or pool.node == node
        inside = inside and column >= 0 and is_in(pool.where, pool.tier, site)
        if inside and pool.priority[column] < OUTSIDE:
            looked += 1
            cost_s = try_node(q, nodes, work, taken, rows, pool, node, level)
            if cost_s >= 0.0:
                priority = pool.priority[column] if level == ROOM_FOR_ALL else 0
                offer(found, int(priority), cost_s, int(node), q.nobody)
    if pool.node >= 0 and looked == 0:
        looked = 1
        cost_s = try_node(q, nodes, work, taken, rows, pool, pool.node, level)
        if cost_s >= 0.0:
            offer(found, 0, cost_s, pool.node, q.nobody)
    looked += try_groups(q, nodes, groups, work, taken, rows, pool, level, found)
    if found.group[0] >= 0:
        try_next_of_best(q, nodes, groups, taken, rows, pool, level, found)
    return looked


@kernel
def choose(
    nodes: Nodes,
    groups: Groups,
    work: Work,
    taken: Taken,
    rows: Rows,
    pool: Pool,
    instance: int,
    level: int,
    wanted: Longs,
) -> tuple[int, int, float, int, float, int]:
    """How many rows are missing (then nothing else is said), and the two best candidates.

    Best is the lowest priority, then cost, then node index; −1 where there is no candidate. The
    last number tells how many nodes were looked at.
    """
    missing = find_missing(nodes, work, taken, rows, instance, wanted)
    if missing > 0:
        return missing, -1, 0.0, -1, 0.0, 0
    q = ask(nodes, work, taken, rows, instance)
    found = no_candidates()
    looked = search_pool(q, nodes, groups, work, taken, rows, pool, level, found)
    return missing, found.node[0], found.cost_s[0], found.node[1], found.cost_s[1], looked


@part
def halve(
    q: Question,
    nodes: Nodes,
    work: Work,
    taken: Taken,
    rows: Rows,
    pool: Pool,
    ranked: Index,
    found: Found,
) -> tuple[int, int]:
    """Halve the ranked nodes again and again, down to the first that fits.

    The next best is the one that fitted before it. Returns how many nodes were looked at, and the
    site on whose WAN a verdict is missing: −1 for none, else nothing is found.
    """
    low, high, looked = 0, ranked.size, 0
    while low < high:
        middle = (low + high) // 2
        node = int(ranked[middle])
        looked += 1
        cost_s = try_node(q, nodes, work, taken, rows, pool, node, ROOM_FOR_ALL)
        if cost_s < 0.0:
            low = middle + 1
            continue
        site = nodes.site[node]
        if not taken.on_links and pool.verdict[pool.column[site]] == 0:
            for other in q.site:
                if other != site:
                    return looked, site
        high = middle
        # Later ones go before earlier ones, so each is the best so far.
        offer(found, high, cost_s, node, q.nobody)
    return looked, -1


@kernel
def find_lower_bound(
    nodes: Nodes,
    work: Work,
    taken: Taken,
    rows: Rows,
    pool: Pool,
    ranked: Index,
    instance: int,
    wanted: Longs,
) -> tuple[int, int, int, float, int, float, int]:
    """What `halve` finds for one instance: rows missing, verdict missing, best, next, looked."""
    missing = find_missing(nodes, work, taken, rows, instance, wanted)
    if missing > 0:
        return missing, -1, -1, 0.0, -1, 0.0, 0
    q = ask(nodes, work, taken, rows, instance)
    found = no_candidates()
    looked, doubtful = halve(q, nodes, work, taken, rows, pool, ranked, found)
    node, cost_s = found.node, found.cost_s
    return 0, doubtful, node[0], cost_s[0], node[1], cost_s[1], looked


@kernel
def find_nearest_miss(
    nodes: Nodes, groups: Groups, work: Work, taken: Taken, pool: Pool, instance: int
) -> tuple[int, int, float]:
    """What every node lacks, and the node that comes closest with what it has left.

    0: none has the CPU, 1: none of those with the CPU has the memory, 2: neither is the reason.
    Ties: the group that comes first, and its nodes by LAN latency.
    """
    node_of, left_of = np.full(2, -1), np.full(2, -math.inf)
    lacks = 0
    for k in range(-1, pool.groups.size):
        if k < 0 and pool.node < 0:
            continue
        at, end = (
            (0, 1)
            if k < 0
            else (
                int(groups.first[pool.groups[k]]),
                int(groups.first[pool.groups[k] + 1]),
            )
        )
        while at < end:
            node = pool.node if k < 0 else int(groups.order[at])
            slot = slot_of(taken, node)
            cpu, memory = nodes.cpu_ips[node], nodes.memory_bytes[node]
            if slot >= 0:
                cpu -= taken.cpu_ips[slot]
                memory -= taken.memory_bytes[slot]
            if cpu > left_of[0]:
                node_of[0], left_of[0] = node, cpu
            if work.cpu_ips[instance] == 0.0 or cpu >= work.cpu_ips[instance]:
                lacks = max(lacks, 1)
                if memory > left_of[1]:
                    node_of[1], left_of[1] = node, memory
                if work.memory_bytes[instance] == 0.0 or memory >= work.memory_bytes[instance]:
                    return 2, node, 0.0
            if slot < 0:
                break  # The rest of the group has no more.
            at += 1
    return lacks, node_of[lacks], left_of[lacks]
