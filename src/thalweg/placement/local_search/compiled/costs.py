"""Latency of one copy on one node, of one edge between two nodes, and the response time of all.

Formulas (7) and (8) of da Silva Veith et al., Latency-Aware Strategies for Deploying Data Stream
Processing Applications on Large Cloud-Edge Infrastructure, and (15)–(23) of Ntumba et al. 2024,
Adaptive Scheduling of Continuous Operators for IoT Edge Analytics, as `thalweg.estimate` has them.

Small functions take single arrays of `Figures`, not all of them: handing all over takes longer
than what they do.
"""

from __future__ import annotations

import math

from thalweg.compiling import part
from thalweg.estimate.compiled.queueing import stable_dm1_sojourn_s
from thalweg.model.graph import Floats, Index
from thalweg.model.network import Tier
from thalweg.placement.local_search.figures import (
    BORN,
    BPS,
    CPU,
    EDGE_DELAY_S,
    EMISSION,
    EVENTS,
    FLOW,
    FREE_LAN,
    LAN_S,
    OPERATORS,
    PIN_SPOT,
    PIN_TIER,
    SIZE,
    SLIDE_S,
    TOTAL_CPU,
    WINDOW_RATE,
    WINDOW_WORK,
    WORK,
    WORKS,
    Figures,
    Integers,
    Tiers,
)
from thalweg.placement.local_search.ways import (
    FREE_COLUMN,
    FREE_ROW,
    LATENCY_COLUMN,
    LATENCY_ROW,
)

_CLOUD = int(Tier.CLOUD)


@part
def service_s(copy: Floats, i: int, free_ips: float) -> float:
    """Formula (7) without the time that windows take to fill; ∞ where the queue would grow."""
    work = copy[i, WORK]
    if not work > 0.0:
        return 0.0
    rate = free_ips / work
    if copy[i, CPU] >= free_ips or not rate > copy[i, EVENTS]:
        return math.inf
    seconds: float = 1.0 / (rate - copy[i, EVENTS])
    return seconds


@part
def way_between(
    node: Floats,
    spot: Index,
    latency_s: Floats,
    free_bps: Floats,
    steps: Integers,
    a: int,
    b: int,
) -> tuple[float, float]:
    """Latency and free bandwidth from node a to another node b."""
    latency = node[a, LAN_S] + node[b, LAN_S]
    free = min(node[a, FREE_LAN], node[b, FREE_LAN])
    p, q = spot[a], spot[b]
    if p != q:
        latency += latency_s[p * steps[LATENCY_ROW] + q * steps[LATENCY_COLUMN]]
        free = min(free, free_bps[p * steps[FREE_ROW] + q * steps[FREE_COLUMN]])
    return latency, free


@part
def transfer_s(edge: Floats, e: int, latency: float, free: float) -> float:
    """Formula (8) on a way between two nodes; ∞ where the queue would grow or no way leads."""
    size = edge[e, SIZE]
    if not size > 0.0 or latency == math.inf:
        return latency
    if edge[e, BPS] >= free:
        return math.inf
    rate = free / (8.0 * size)
    if rate == math.inf:
        return latency
    if not rate > edge[e, FLOW]:
        return math.inf
    seconds: float = 1.0 / (rate - edge[e, FLOW]) + latency
    return seconds


@part
def may_run_in(pin: Integers, tier: Tiers, i: int, spot: int) -> bool:
    """Whether the copy's pin allows the site, and it is on the board."""
    if spot < 0 or (pin[i, PIN_SPOT] >= 0 and pin[i, PIN_SPOT] != spot):
        return False
    return bool(pin[i, PIN_TIER] < 0 or pin[i, PIN_TIER] == tier[spot])


@part
def uplink_bps(f: Figures, at: Integers) -> float:
    """What goes from below the cloud into clouds."""
    ends, edge, spot, tier = f.ends, f.edge, f.spot, f.tier
    total = 0.0
    for e in range(ends.shape[0]):
        a, b = at[ends[e, 0]], at[ends[e, 1]]
        if a >= 0 and b >= 0 and tier[spot[b]] == _CLOUD and tier[spot[a]] != _CLOUD:
            total += edge[e, BPS]
    return total


@part
def _dm1_sojourn_s(service_rate: float, interval_s: float) -> float:
    a = service_rate * interval_s
    if not a > 1.0:
        return math.inf
    if a == math.inf:
        return 0.0
    return stable_dm1_sojourn_s(service_rate, interval_s)


@part
def _window_s(window: Floats, i: int, share_ips: float) -> float:
    """Waiting and working time of one window on a share of a CPU."""
    work, slide_s = window[i, WINDOW_WORK], window[i, SLIDE_S]
    if not (window[i, WORKS] > 0.0 and work > 0.0):
        return 0.0
    windows = share_ips / work
    if slide_s > 0.0:
        return _dm1_sojourn_s(windows, slide_s)
    rate = window[i, WINDOW_RATE]
    if not windows > rate:
        return math.inf
    seconds: float = 0.5 * (rate / windows) / (windows - rate) + 1.0 / windows
    return seconds


@part
def response_s(f: Figures, at: Integers, sharing: Floats, onward: Floats) -> float:
    """The slowest way from a device to a sink; `sharing` (zeros, per node) is left as it was.

    Copies on node −1 are not placed yet and take no time.
    """
    window, node, edge, ends, spot = f.window, f.node, f.edge, f.ends, f.spot
    first, incident, upstream_first = f.first, f.incident, f.upstream_first
    latency_s, free_bps, steps = f.latency_s, f.free_bps, f.steps
    for i in range(at.size):
        if at[i] >= 0:
            sharing[at[i]] += window[i, WORKS]
    worst = 0.0
    for k in range(at.size - 1, -1, -1):
        i = upstream_first[k]
        n = at[i]
        onward[i] = 0.0
        for j in range(first[i], first[i + 1]):
            e = incident[j]
            other = ends[e, 1]
            if other == i:
                continue
            seconds = onward[other]
            m = at[other]
            if n != m and n >= 0 and m >= 0:
                way_s, free = way_between(node, spot, latency_s, free_bps, steps, n, m)
                seconds += way_s
                if edge[e, EMISSION] > 0.0:
                    seconds += edge[e, EMISSION] / (free / 8.0)
            onward[i] = max(onward[i], seconds)
        if n >= 0:
            share = node[n, TOTAL_CPU] / max(sharing[n] + node[n, OPERATORS], 1.0)
            onward[i] += _window_s(window, i, share)
        if window[i, BORN] > 0.0:
            worst = max(worst, window[i, EDGE_DELAY_S] + onward[i])
    for i in range(at.size):
        if at[i] >= 0:
            sharing[at[i]] = 0.0
    return worst
