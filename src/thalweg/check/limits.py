"""The application's limits: response time and uplink."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from thalweg.check.capacity import ROUNDING
from thalweg.check.traffic import Flow, Traffic, instructions_per_event
from thalweg.check.unfold import Copy, Unfolded
from thalweg.model.network import Tier
from thalweg.model.operator import CountWindow, TimeWindow
from thalweg.model.plan import Violation
from thalweg.model.problem import Problem

SOURCE_PERIOD_S = 1.0
"""A source emits once in this time."""

Edge = tuple[Copy, Copy]
"""Sender and receiver of a flow."""


def check_limits(problem: Problem, unfolded: Unfolded, traffic: Traffic) -> Iterator[Violation]:
    """Response time and uplink against what the application asks for."""
    limits = problem.application.limits
    if math.isfinite(limits.response_time_s):
        need = response_time_s(problem, unfolded, traffic)
        if need > limits.response_time_s * (1 + ROUNDING):
            yield _missed(
                problem, "response-time", "response time", need, limits.response_time_s, "s"
            )
    if math.isfinite(limits.uplink_bps):
        need = uplink_bps(problem, traffic)
        if need > limits.uplink_bps * (1 + ROUNDING):
            yield _missed(problem, "uplink", "uplink", need, limits.uplink_bps, "bps")


def uplink_bps(problem: Problem, traffic: Traffic) -> float:
    """What goes from below the cloud into clouds."""
    net = problem.network

    def in_cloud(node: int) -> bool:
        return int(net.site_tier[net.node_site[node]]) == Tier.CLOUD

    return sum(f.bps for f in traffic.flows if in_cloud(f.end) and not in_cloud(f.start))


def response_time_s(problem: Problem, unfolded: Unfolded, traffic: Traffic) -> float:
    """The slowest way of an event from a device through all copies to a sink."""
    net, app = problem.network, problem.application
    sharing = Counter(
        node for copy, node in unfolded.node.items() if app.operator(copy[0]).kind == "transform"
    )
    leaving: dict[Copy, list[Flow]] = {copy: [] for copy in unfolded.node}
    for flow in traffic.flows:
        leaving[flow.sender].append(flow)
    emission = count_emissions(problem, traffic)
    onward: dict[Copy, float] = {}
    worst = 0.0
    for copy in reversed(traffic.order):
        node = unfolded.node[copy]
        operators = sharing[node] + int(net.node_operators[node])
        own = _copy_latency_s(problem, traffic, copy, float(net.node_cpu_ips[node]), operators)
        after = [_crossing_s(problem, emission, f) + onward[f.receiver] for f in leaving[copy]]
        onward[copy] = own + max(after, default=0.0)
        if app.operator(copy[0]).kind == "source":
            delay = float(net.site_edge_delay_s[net.site_index[str(copy[1])]])
            worst = max(worst, delay + onward[copy])
    return worst


def _copy_latency_s(
    problem: Problem, traffic: Traffic, copy: Copy, cpu_ips: float, operators: int
) -> float:
    """Waiting and working time of one window on an even share of the CPU."""
    operator = problem.application.operator(copy[0])
    if operator.kind != "transform":
        return 0.0
    rate = traffic.events_in[copy]
    window = operator.window
    if isinstance(window, TimeWindow):
        events = window.length * rate
    else:
        events = window.events if isinstance(window, CountWindow) else 1
    work = instructions_per_event(problem, traffic, copy) * events
    if work == 0:
        return 0.0
    share = min(cpu_ips, cpu_ips / max(operators, 1))
    if share == 0:
        return math.inf
    mu = share / work
    if mu < 1e-290:
        return math.inf  # Slower than floats can tell from standing still.
    if isinstance(window, TimeWindow):
        return _wait_deterministic_arrivals(mu, window.slide) + 1 / mu
    rho = rate / events / mu
    return math.inf if rho >= 1 else rho / (2 * mu * (1 - rho)) + 1 / mu


def _wait_deterministic_arrivals(mu: float, interval_s: float) -> float:
    """D/M/1: bisection for gamma = exp(−mu · interval · (1 − gamma)) below 1."""
    load = mu * interval_s
    if load <= 1:
        return math.inf
    # x = 1 − gamma is the positive root of x = 1 − exp(−load · x).
    low, high = 0.0, 1.0
    probe = 1.0
    while -math.expm1(-load * probe) <= probe and probe > 1e-300:
        high, probe = probe, probe / 2
    low = probe
    for _ in range(200):
        middle = (low + high) / 2
        if -math.expm1(-load * middle) > middle:
            low = middle
        else:
            high = middle
    x = (low + high) / 2
    return (1 - x) / (mu * x)


def _crossing_s(problem: Problem, emission: Mapping[Edge, float], flow: Flow) -> float:
    """Propagation of the way, and transmission of one emission at its narrowest link."""
    if flow.start == flow.end:
        return 0.0
    net = problem.network
    a, b = int(net.node_site[flow.start]), int(net.node_site[flow.end])
    lan = float(net.node_lan_latency_s[flow.start]) + float(net.node_lan_latency_s[flow.end])
    latency = lan + float(net.wan.latency_s(a, b))
    free = min(float(net.node_lan_available_bps[node]) for node in (flow.start, flow.end))
    free = min(free, float(net.wan.available_bps(a, b)))
    bits = emission[flow.sender, flow.receiver] * flow.size_bytes * 8
    if bits == 0:
        return latency
    return latency + bits / free if free > 0 else math.inf


def count_emissions(problem: Problem, traffic: Traffic) -> dict[Edge, float]:
    """The events that one emission of the sender puts on each flow."""
    gathered = dict.fromkeys(traffic.order, 0.0)
    emission: dict[Edge, float] = {}
    for flow in traffic.flows:  # All that come into a copy stand before those that leave it.
        operator = problem.application.operator(flow.sender[0])
        window, rate = operator.window, traffic.events_in[flow.sender]
        if operator.kind == "source":
            events = flow.events_per_s * SOURCE_PERIOD_S
        elif isinstance(window, TimeWindow):
            events = flow.events_per_s * window.slide
        else:
            worked_on = window.events if isinstance(window, CountWindow) else gathered[flow.sender]
            events = worked_on * (flow.events_per_s / rate) if rate > 0 else 0.0
        gathered[flow.receiver] += events
        emission[flow.sender, flow.receiver] = events
    return emission


def _missed(
    problem: Problem, constraint: str, resource: str, need: float, have: float, unit: str
) -> Violation:
    return Violation(
        constraint=constraint,
        place=problem.application.name,
        resource=resource,
        need=need,
        have=have,
        unit=unit,
    )
