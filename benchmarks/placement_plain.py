"""AELS as the paper has it: every operator on every node, one after the other.

Algorithm 2 of da Silva Veith et al., Latency-Aware Strategies for Deploying Data Stream Processing
Applications on Large Cloud-Edge Infrastructure. It is what `aels` is measured against, and in the
tests also what `aels` has to answer.
"""

from __future__ import annotations

from collections import defaultdict
from math import inf
from time import perf_counter

import numpy as np

from thalweg.estimate.constraints import ROUNDING
from thalweg.estimate.demand import estimate_demand
from thalweg.estimate.rates import estimate_rates
from thalweg.model import Problem, deploy_indices
from thalweg.placement.sequence import deployment_sequence


class TimeIsUp(Exception):
    """The search has not ended within its limit."""


class PlainSearch:
    """One run: which operator is where, and what is left of every node and link."""

    def __init__(self, problem: Problem, *, limit_s: float = inf) -> None:
        self.problem, self.network = problem, problem.network
        self._deadline = perf_counter() + limit_s
        births, operators = problem.births, problem.application.operators
        others = [k for k, operator in enumerate(operators) if operator.kind != "source"]
        self.skeleton = deploy_indices(
            problem,
            np.concatenate([births.operator, np.array(others, dtype=np.int32)]),
            np.concatenate([births.node, np.zeros(len(others), dtype=np.int32)]),
            np.concatenate([births.site, np.full(len(others), -1, dtype=np.int32)]),
        )
        self.rates = estimate_rates(self.skeleton)
        self.demand = estimate_demand(self.skeleton, self.rates)
        self.position = {o: births.operator.size + k for k, o in enumerate(others)}
        self.node: dict[int, int] = dict(enumerate(births.node.tolist()))
        net = self.network
        self._site = net.node_site.tolist()
        self._cpu = net.node_cpu_available_ips.tolist()
        self._lan_s = net.node_lan_latency_s.tolist()
        self._lan_bps = net.node_lan_available_bps.tolist()
        self._cpu_left = list(self._cpu)
        self._memory_left = net.node_memory_available_bytes.tolist()
        self._lan_left = list(self._lan_bps)
        self._wan_taken: dict[int, float] = defaultdict(float)
        self._wan_from: dict[int, tuple[list[float], list[float]]] = {}
        for position, node in list(self.node.items()):
            self._take(position, node)

    def place_all(self) -> dict[str, str] | None:
        """The node of every operator but the sources; None where one of them fits nowhere."""
        operators = self.problem.application.operators
        for operator in deployment_sequence(self.problem.application):
            if operators[operator].kind == "source":
                continue
            position = self.position[operator]
            node = self._best_node(operator, position)
            if node is None:
                return None
            self.node[position] = node
            self._take(position, node)
        return {
            operators[o].name: self.network.node_name(self.node[p])
            for o, p in self.position.items()
        }

    def _best_node(self, operator: int, position: int) -> int | None:
        allowed = self.problem.allowed_nodes(operator)
        nodes = range(self.network.node_count) if allowed is None else allowed.tolist()
        senders = self._senders(position)
        work = float(self.demand.work_per_event[position] * self.demand.passes[position])
        events = float(self.rates.events_in[position])
        need = float(self.demand.cpu_ips[position]), float(self.demand.memory_bytes[position])
        best, chosen = inf, None
        for node in nodes:
            if node % 1024 == 0 and perf_counter() > self._deadline:
                raise TimeIsUp
            if not self._has_room(node, *need):
                continue
            cost = _sojourn_s(self._cpu[node] / work, events) if work > 0 else 0.0
            for sender, rate, size, _bps in senders:
                cost += self._communication_s(sender, node, rate, size)
            if cost < best and self._carries(senders, node):
                best, chosen = cost, node
        return chosen

    def _senders(self, position: int) -> list[tuple[int, float, float, float]]:
        """Node, events/s, bytes per event and bits/s of everything that an operator gets."""
        edges = np.flatnonzero(self.skeleton.graph.target == position).tolist()
        source = self.skeleton.graph.source
        return [
            (
                self.node[int(source[edge])],
                float(self.rates.flow[edge]),
                float(self.rates.flow_size[edge]),
                float(self.rates.flow_bps[edge]),
            )
            for edge in edges
        ]

    def _has_room(self, node: int, cpu_ips: float, memory_bytes: float) -> bool:
        return (cpu_ips == 0 or self._cpu_left[node] >= cpu_ips) and (
            memory_bytes == 0 or self._memory_left[node] >= memory_bytes
        )

    def _communication_s(self, a: int, b: int, rate: float, size: float) -> float:
        if a == b:
            return 0.0
        start, end = self._site[a], self._site[b]
        wan_s, wan_bps = self._ways_from(start)
        bps = min(self._lan_bps[a], self._lan_bps[b], wan_bps[end])
        latency_s = self._lan_s[a] + self._lan_s[b] + wan_s[end]
        waiting_s = _sojourn_s(bps / (8.0 * size), rate) if size > 0 and bps < inf else 0.0
        return waiting_s + latency_s

    def _ways_from(self, site: int) -> tuple[list[float], list[float]]:
        """Latency and bandwidth to every site, as lists: Python reads those fastest."""
        if site not in self._wan_from:
            wan, ends = self.network.wan, np.arange(self.network.site_count)
            self._wan_from[site] = (
                wan.latency_s(site, ends).tolist(),
                wan.available_bps(site, ends).tolist(),
            )
        return self._wan_from[site]

    def _loads(
        self, senders: list[tuple[int, float, float, float]], node: int
    ) -> tuple[dict[int, float], dict[int, float]]:
        """What the flows to a node put on LAN links and on WAN links."""
        lan: dict[int, float] = defaultdict(float)
        wan: dict[int, float] = defaultdict(float)
        for sender, _rate, _size, bps in senders:
            if sender != node:
                lan[sender] += bps
                lan[node] += bps
                for link in self.network.wan.route(self._site[sender], self._site[node]).tolist():
                    wan[link] += bps
        return lan, wan

    def _carries(self, senders: list[tuple[int, float, float, float]], node: int) -> bool:
        lan, wan = self._loads(senders, node)
        links = self.network.wan.link_available_bps
        return all(
            load == 0 or load <= self._lan_left[k] * (1 + ROUNDING) for k, load in lan.items()
        ) and all(
            load == 0 or load <= (float(links([k])[0]) - self._wan_taken[k]) * (1 + ROUNDING)
            for k, load in wan.items()
        )

    def _take(self, position: int, node: int) -> None:
        self._cpu_left[node] -= float(self.demand.cpu_ips[position])
        self._memory_left[node] -= float(self.demand.memory_bytes[position])
        lan, wan = self._loads(self._senders(position), node)
        for k, load in lan.items():
            self._lan_left[k] -= load
        for k, load in wan.items():
            self._wan_taken[k] += load


def _sojourn_s(service_rate: float, arrival_rate: float) -> float:
    """Time in an M/M/1 queue; ∞ where it cannot keep up."""
    return 1.0 / (service_rate - arrival_rate) if service_rate > arrival_rate else inf
