"""Nodes, queues and links that are asked for more than they have."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from thalweg.check.traffic import (
    Traffic,
    cpu_load_ips,
    instructions_per_event,
    memory_load_bytes,
)
from thalweg.check.unfold import Unfolded, label
from thalweg.model.plan import Violation
from thalweg.model.problem import Problem

ROUNDING = 1e-9
"""Sums of floats may miss by this share without being a violation."""


def check_nodes(problem: Problem, unfolded: Unfolded, traffic: Traffic) -> Iterator[Violation]:
    """The CPU and the memory of every node that runs something."""
    net = problem.network
    running = defaultdict(list)
    for copy, node in unfolded.node.items():
        running[node].append(copy)
    for node, copies in sorted(running.items()):
        cpu = sum(cpu_load_ips(problem, traffic, copy) for copy in copies)
        memory = sum(memory_load_bytes(problem, traffic, copy) for copy in copies)
        names = tuple(label(copy) for copy in copies)
        cpu_free = float(net.node_cpu_available_ips[node])
        memory_free = float(net.node_memory_available_bytes[node])
        if cpu > cpu_free * (1 + ROUNDING):
            yield _lack("cpu", net.node_name(node), "cpu", cpu, cpu_free, "instr/s", names)
        if memory > memory_free * (1 + ROUNDING):
            place = net.node_name(node)
            yield _lack("memory", place, "memory", memory, memory_free, "B", names)


def check_queues(problem: Problem, unfolded: Unfolded, traffic: Traffic) -> Iterator[Violation]:
    """Copies and flows that get at least as much as can be served: their queues never end."""
    net = problem.network
    for copy, node in unfolded.node.items():
        need, have = cpu_load_ips(problem, traffic, copy), float(net.node_cpu_available_ips[node])
        if need >= have and instructions_per_event(problem, traffic, copy) > 0:
            place = net.node_name(node)
            yield _lack("stability", place, "cpu", need, have, "instr/s", (label(copy),))
    for flow in traffic.flows:
        if flow.start == flow.end:
            continue
        reachable = _is_reachable(problem, flow.start, flow.end)
        have = _narrowest(problem, flow.start, flow.end) if reachable else 0.0
        if flow.bps >= have and (flow.size_bytes > 0 or not reachable):
            place = f"{net.node_name(flow.start)} → {net.node_name(flow.end)}"
            names = (label(flow.sender), label(flow.receiver))
            yield _lack("stability", place, "bandwidth", flow.bps, have, "bps", names)


def check_links(problem: Problem, traffic: Traffic) -> Iterator[Violation]:
    """LAN links (one per node, both directions together) and WAN links (each direction)."""
    net = problem.network
    lan: dict[int, float] = defaultdict(float)
    wan: dict[int, float] = defaultdict(float)
    for flow in traffic.flows:
        if flow.start == flow.end:
            continue
        lan[flow.start] += flow.bps
        lan[flow.end] += flow.bps
        for link in net.wan.route(int(net.node_site[flow.start]), int(net.node_site[flow.end])):
            wan[int(link)] += flow.bps
    for node, load in sorted(lan.items()):
        free = float(net.node_lan_available_bps[node])
        if load > free * (1 + ROUNDING):
            place = f"LAN of {net.node_name(node)}"
            yield _lack("bandwidth", place, "bandwidth", load, free, "bps")
    for link, load in sorted(wan.items()):
        free = float(net.wan.link_available_bps([link])[0])
        if load > free * (1 + ROUNDING):
            start, end = net.wan.link_ends(link)
            place = f"{net.site_names[start]} → {net.site_names[end]}"
            yield _lack("bandwidth", place, "bandwidth", load, free, "bps")


def _narrowest(problem: Problem, start: int, end: int) -> float:
    net = problem.network
    a, b = int(net.node_site[start]), int(net.node_site[end])
    free = [float(net.node_lan_available_bps[node]) for node in (start, end)]
    if a != b:
        free += net.wan.link_available_bps(net.wan.route(a, b)).tolist()
    return min(free)


def _is_reachable(problem: Problem, start: int, end: int) -> bool:
    net = problem.network
    a, b = int(net.node_site[start]), int(net.node_site[end])
    return a == b or (len(net.wan.route(a, b)) > 0 and math.isfinite(net.wan.latency_s(a, b)))


def _lack(
    constraint: str,
    place: str,
    resource: str,
    need: float,
    have: float,
    unit: str,
    operators: tuple[str, ...] = (),
) -> Violation:
    return Violation(
        constraint=constraint,
        place=place,
        resource=resource,
        need=need,
        have=have,
        unit=unit,
        operators=operators,
    )
