"""What an operator that fits nowhere lacks, and by how little."""

from __future__ import annotations

import numpy as np

from thalweg.estimate.constraints import ROUNDING
from thalweg.model.plan import Violation
from thalweg.placement.greedy.scopes import Scope
from thalweg.placement.greedy.search import Search


def name_miss(search: Search, instance: int, scope: Scope, node: int) -> Violation:
    """The constraint that keeps an instance out of a scope, and who comes closest to it.

    If no node has the CPU left, that with most; if none of those with the CPU has the memory, that
    with most of it; else what is furthest off of the links and queues of the node that was taken,
    or of the first with CPU and memory where that one has none.
    """
    lacks, nearest, left = search.nearest_miss(instance, scope)
    net, demand = search.problem.network, search.demand
    if lacks == 0:
        need = float(demand.cpu_ips[instance])
        return _violation("cpu", net.node_name(nearest), "cpu", need, left, "instr/s")
    if lacks == 1:
        need = float(demand.memory_bytes[instance])
        return _violation("memory", net.node_name(nearest), "memory", need, left, "B")
    if _full_node(search, instance, node):
        node = nearest  # Of those with CPU and memory none was taken: their queues would grow.
    missed = [
        *_full_node(search, instance, node),
        *_closed_ways(search, instance, node),
        *_full_lan(search, instance, node),
        *_full_wan(search, instance, node),
    ]
    if not missed:
        # By a rounding: its queue gets just what it can serve.
        need, have = float(demand.cpu_ips[instance]), search.left_on_node(node)[0]
        return _violation("cpu", net.node_name(node), "cpu", need, have, "instr/s")
    return max(missed, key=lambda miss: miss.need / miss.have if miss.have > 0 else np.inf)


def _violation(
    constraint: str, place: str, resource: str, need: float, have: float, unit: str
) -> Violation:
    return Violation(
        constraint=constraint,
        place=place,
        resource=resource,
        need=need,
        have=max(have, 0.0),
        unit=unit,
    )


def _full_node(search: Search, instance: int, node: int) -> list[Violation]:
    name, demand = search.problem.network.node_name(node), search.demand
    cpu, memory = float(demand.cpu_ips[instance]), float(demand.memory_bytes[instance])
    cpu_left, memory_left = search.left_on_node(node)
    missed = []
    # A queue that gets all it can serve grows, so CPU that is just enough is too little, too.
    if (cpu > 0 and cpu >= cpu_left) or (demand.work_per_event[instance] > 0 and cpu_left <= 0):
        missed.append(_violation("cpu", name, "cpu", cpu, cpu_left, "instr/s"))
    if memory > 0 and memory > memory_left:
        missed.append(_violation("memory", name, "memory", memory, memory_left, "B"))
    return missed


def _closed_ways(search: Search, instance: int, node: int) -> list[Violation]:
    """Ways that do not exist, or on which more would wait than ever passes."""
    net, flows = search.problem.network, search.flows_of(instance)
    apart = flows.node != node
    there, bps = flows.node[apart], flows.bps[apart]
    start = np.where(flows.outward[apart], node, there)
    end = np.where(flows.outward[apart], there, node)
    no_way = np.isinf(net.latency_s(start, end))
    free = np.where(no_way, 0.0, net.available_bps(start, end))
    closed = (bps >= free) & ((search.rates.flow_size[flows.edge[apart]] > 0) | no_way)
    return [
        _violation(
            "stability",
            f"{net.node_name(int(start[k]))} → {net.node_name(int(end[k]))}",
            "bandwidth",
            float(bps[k]),
            float(free[k]),
            "bps",
        )
        for k in np.flatnonzero(closed).tolist()
    ]


def _full_lan(search: Search, instance: int, node: int) -> list[Violation]:
    flows = search.flows_of(instance)
    loads: dict[int, float] = {}
    for other, bps in zip(flows.node.tolist(), flows.bps.tolist(), strict=True):
        if other != node:
            loads[other] = loads.get(other, 0.0) + bps
            loads[node] = loads.get(node, 0.0) + bps
    missed = []
    for end, load in loads.items():
        left = search.left_on_lan_bps(end)
        if load > 0 and load > left * (1 + ROUNDING):
            place = f"LAN of {search.problem.network.node_name(end)}"
            missed.append(_violation("bandwidth", place, "bandwidth", load, left, "bps"))
    return missed


def _full_wan(search: Search, instance: int, node: int) -> list[Violation]:
    net = search.problem.network
    missed = []
    for link, load, left in search.full_links(instance, node):
        start, end = net.wan.link_ends(link)
        place = f"{net.site_names[start]} → {net.site_names[end]}"
        missed.append(_violation("bandwidth", place, "bandwidth", load, left, "bps"))
    return missed
