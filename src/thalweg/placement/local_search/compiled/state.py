"""Where the copies are now, what that loads, what it violates, and what it costs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thalweg.compiling import part, search_kernel
from thalweg.estimate.constraints import ROUNDING
from thalweg.model.graph import Floats
from thalweg.placement.local_search.compiled.costs import (
    may_run_in,
    response_s,
    service_s,
    transfer_s,
    uplink_bps,
    way_between,
)
from thalweg.placement.local_search.figures import (
    BPS,
    CONSTANT_S,
    CPU,
    EDGE_PATHS,
    FREE_CPU,
    FREE_LAN,
    FREE_MEMORY,
    MEMORY,
    MOVABLE,
    PATHS,
    RESPONSE_S,
    UPLINK_BPS,
    Figures,
    Integers,
)
from thalweg.placement.local_search.ways import FREE_COLUMN, FREE_ROW, ROUTED, SITES

ALLOWANCE = 1.0 + ROUNDING
# Every violation weighs this much, however small it is, so that a queue that is just full counts.
_LEAST_EXCESS = 1e-3
_MOST_EXCESS = 1e6

# Columns of `State.used`, `.copies`, `.seen`, `.total`, a table of links, and `.listed`.
USED_CPU, USED_MEMORY, USED_LAN, LAN_CHANGE, SHARING = range(5)
COUNT, HOST_MARK = range(2)
LOADED, MARK = range(2)
VIOLATION, LATENCY_S = range(2)
KEY, SLOT = range(2)
TOUCHED, BOUNDARY = range(2)
# Of `State.counters`.
WEIGHED, NODES_LOADED, STAMP, LINKS, CHANGED_LINKS = range(5)


class State(NamedTuple):
    """The current placement, and room to work in. Columns have names above."""

    at: Integers
    """The node of each copy; −1 where it is not placed yet."""
    used: Floats
    """(nodes, 5): CPU, memory and LAN that the copies take; the last two are room to work in."""
    copies: Integers
    """(nodes, 2): how many there are; a stamp."""
    cost: Floats
    """(copies, 2): paths × seconds, 0 where a queue grows, which is a violation; room to work."""
    edge_cost: Floats
    total: Floats
    """Violation (0 where every constraint is kept) and aggregate latency [s]."""
    seen: Integers
    """(copies, 2): the nodes in use; a stamp."""
    listed: Integers
    """(edges × 4, 2): nodes whose LAN changes; edges that leave a group."""
    counters: Integers
    links: Integers
    link_bps: Floats
    """(slots, 2): loads of the WAN links in use by number, with open addressing, −1 is free; the
    slots in use, as many as counted."""
    changes: Integers
    change_bps: Floats
    """The same for what a move changes."""


def make_state(figures: Figures) -> State:
    """Room for one search; arrays per node cost nothing until they are touched."""
    copies, edges, nodes = len(figures.copy), len(figures.ends), len(figures.node)
    distinct = figures.link_free_bps.size if figures.steps[ROUTED] else 2 * edges
    slots = 1 << max(2 * distinct, 4).bit_length()
    return State(
        at=np.zeros(copies, dtype=np.int64),
        used=np.zeros((nodes, 5)),
        copies=np.zeros((nodes, 2), dtype=np.int64),
        cost=np.zeros((copies, 2)),
        edge_cost=np.zeros(edges),
        total=np.zeros(2),
        seen=np.zeros((copies, 2), dtype=np.int64),
        listed=np.zeros((max(4 * edges, copies) + 4, 2), dtype=np.int64),
        counters=np.zeros(5, dtype=np.int64),
        links=np.full((slots, 2), -1, dtype=np.int64),
        link_bps=np.zeros(slots),
        changes=np.full((slots, 2), -1, dtype=np.int64),
        change_bps=np.zeros(slots),
    )


@part
def clear_links(table: Integers, used: int) -> None:
    """Forget all loads."""
    for k in range(used):
        table[table[k, SLOT], KEY] = -1


@part
def find_link(table: Integers, key: int) -> int:
    """The slot of a link, or the free one where it would be."""
    at: int = (key * 0x9E3779B1) & (table.shape[0] - 1)
    while table[at, KEY] != key and table[at, KEY] != -1:
        at = (at + 1) & (table.shape[0] - 1)
    return at


@part
def _add_to_link(table: Integers, loads: Floats, used: int, key: int, bps: float) -> int:
    at = find_link(table, key)
    if table[at, KEY] == -1:
        table[at, KEY] = key
        loads[at] = 0.0
        table[used, SLOT] = at
        used += 1
    loads[at] += bps
    return used


@part
def add_flow(
    steps: Integers,
    route_first: Integers,
    route_link: Integers,
    table: Integers,
    loads: Floats,
    used: int,
    a: int,
    b: int,
    bps: float,
) -> int:
    """Put a flow from spot a to another spot b on every link of its way; how many are in use."""
    pair = a * steps[SITES] + b
    if not steps[ROUTED]:
        return _add_to_link(table, loads, used, pair, bps)
    for k in range(route_first[pair], route_first[pair + 1]):
        used = _add_to_link(table, loads, used, route_link[k], bps)
    return used


@part
def link_free_bps(steps: Integers, free_bps: Floats, shared_bps: Floats, key: int) -> float:
    """What is free on a link of a table."""
    free: float
    if steps[ROUTED]:
        free = shared_bps[key]
    else:
        a, b = key // steps[SITES], key % steps[SITES]
        free = free_bps[a * steps[FREE_ROW] + b * steps[FREE_COLUMN]]
    return free


@part
def _excess(need: float, have: float) -> float:
    """By how much a sum is too large, relatively; 0 where it is not."""
    if not need > have * ALLOWANCE:
        return 0.0
    return _full(need, have)


@part
def _full(need: float, have: float) -> float:
    """How bad it is that a queue gets as much as it can serve, or more."""
    over = need / have - 1.0 if have > 0.0 else _MOST_EXCESS
    return _LEAST_EXCESS + min(max(over, 0.0), _MOST_EXCESS)


@part
def missed_limits(f: Figures, s: State) -> float:
    """By how much the application's limits are missed; 0 where they are kept."""
    missed = 0.0
    if f.bounds[UPLINK_BPS] < math.inf:
        missed += _excess(uplink_bps(f, s.at), f.bounds[UPLINK_BPS])
    if f.bounds[RESPONSE_S] < math.inf:
        slowest = response_s(f, s.at, s.used[:, SHARING], s.cost[:, 1])
        missed += _excess(slowest, f.bounds[RESPONSE_S])
    return missed


@part
def _evaluate_copies(f: Figures, s: State) -> tuple[float, float]:
    copy, node, pin, spot, tier = f.copy, f.node, f.pin, f.spot, f.tier
    at, used, copies, cost, seen = s.at, s.used, s.copies, s.cost, s.seen
    violation, latency, loaded = 0.0, f.bounds[CONSTANT_S], 0
    for k in range(s.counters[NODES_LOADED]):
        n = seen[k, LOADED]
        used[n, USED_CPU] = used[n, USED_MEMORY] = used[n, USED_LAN] = 0.0
        copies[n, COUNT] = 0
    for i in range(at.size):
        n = at[i]
        if n < 0:
            continue
        if copies[n, COUNT] == 0:
            seen[loaded, LOADED] = n
            loaded += 1
        copies[n, COUNT] += 1
        used[n, USED_CPU] += copy[i, CPU]
        used[n, USED_MEMORY] += copy[i, MEMORY]
        seconds = service_s(copy, i, node[n, FREE_CPU])
        cost[i, 0] = 0.0
        if seconds == math.inf:
            violation += _full(copy[i, CPU], node[n, FREE_CPU])
        elif seconds > 0.0:
            cost[i, 0] = copy[i, PATHS] * seconds
            latency += cost[i, 0]
        if pin[i, MOVABLE] and not may_run_in(pin, tier, i, spot[n]):
            violation += 1.0
    s.counters[NODES_LOADED] = loaded
    return violation, latency


@part
def _evaluate_edges(f: Figures, s: State) -> tuple[float, float]:
    ends, edge, node, spot = f.ends, f.edge, f.node, f.spot
    latency_s, free_bps, steps = f.latency_s, f.free_bps, f.steps
    route_first, route_link = f.route_first, f.route_link
    at, used, links, link_bps, edge_cost = s.at, s.used, s.links, s.link_bps, s.edge_cost
    violation, latency, count = 0.0, 0.0, 0
    clear_links(links, s.counters[LINKS])
    for e in range(ends.shape[0]):
        a, b = at[ends[e, 0]], at[ends[e, 1]]
        edge_cost[e] = 0.0
        if a == b or a < 0 or b < 0:
            continue
        bps = edge[e, BPS]
        used[a, USED_LAN] += bps
        used[b, USED_LAN] += bps
        p, q = spot[a], spot[b]
        if p != q:
            count = add_flow(steps, route_first, route_link, links, link_bps, count, p, q, bps)
        way_s, free = way_between(node, spot, latency_s, free_bps, steps, a, b)
        seconds = transfer_s(edge, e, way_s, free)
        if seconds == math.inf:
            violation += _full(bps, 0.0 if way_s == math.inf else free)
        elif seconds > 0.0:
            edge_cost[e] = edge[e, EDGE_PATHS] * seconds
            latency += edge_cost[e]
    s.counters[LINKS] = count
    return violation, latency


@search_kernel
def evaluate(f: Figures, s: State) -> None:
    """Loads, costs and totals of the placement `s.at`, from scratch.

    Sums run in the order of copies and edges, as in `thalweg.estimate`. Copies on node −1 are not
    placed yet: they and their edges count nothing, so both totals can only rise with them.
    """
    violation, latency = _evaluate_copies(f, s)
    more, more_s = _evaluate_edges(f, s)
    violation += more
    node, used, seen, links, link_bps = f.node, s.used, s.seen, s.links, s.link_bps
    for k in range(s.counters[NODES_LOADED]):
        n = seen[k, LOADED]
        violation += _excess(used[n, USED_CPU], node[n, FREE_CPU])
        violation += _excess(used[n, USED_MEMORY], node[n, FREE_MEMORY])
        violation += _excess(used[n, USED_LAN], node[n, FREE_LAN])
    steps, free_bps, shared_bps = f.steps, f.free_bps, f.link_free_bps
    for k in range(s.counters[LINKS]):
        slot = links[k, SLOT]
        free = link_free_bps(steps, free_bps, shared_bps, links[slot, KEY])
        violation += _excess(link_bps[slot], free)
    s.total[VIOLATION] = violation + missed_limits(f, s)
    s.total[LATENCY_S] = latency + more_s
