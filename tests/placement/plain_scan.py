"""The greedy strategies again, obviously: every node tried for every operator, room in dicts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable

from thalweg.estimate.demand import estimate_demand
from thalweg.estimate.latency import transfer_time_s
from thalweg.estimate.queueing import mm1_sojourn_s
from thalweg.estimate.rates import estimate_rates
from thalweg.model import Instance, Placement, Problem, Tier, deploy
from thalweg.placement.sequence import deployment_sequence


class PlainScan:
    """What is where, what is taken, what a node costs an operator, and whether it has room."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.net, self.app = problem, problem.network, problem.application
        births = problem.births
        instances = [
            Instance(
                operator=self.app.operators[o].name,
                node=self.net.node_name(n),
                origin=self.net.site_names[s],
            )
            for o, s, n in zip(
                births.operator.tolist(), births.site.tolist(), births.node.tolist(), strict=True
            )
        ]
        anywhere = self.net.node_name(0)
        instances += [
            Instance(operator=o.name, node=anywhere)
            for o in self.app.operators
            if o.kind != "source"
        ]
        self.deployment = deploy(problem, Placement.of(instances))
        self.rates = estimate_rates(self.deployment)
        self.demand = estimate_demand(self.deployment, self.rates)
        graph = self.deployment.graph
        self.edges = list(enumerate(zip(graph.source.tolist(), graph.target.tolist(), strict=True)))
        self.host: dict[int, int] = {}
        self.cpu: dict[int, float] = defaultdict(float)
        self.memory: dict[int, float] = defaultdict(float)
        self.lan: dict[int, float] = defaultdict(float)
        self.wan: dict[int, float] = defaultdict(float)
        self.known_s: dict[tuple[int, int], float] = {}
        self.runner_up: dict[str, tuple[int, float] | None] = {}
        for instance, operator in enumerate(self.deployment.operator.tolist()):
            if self.app.operators[operator].kind == "source":
                self.settle(instance, int(self.deployment.node[instance]))

    def instance_of(self, operator: int) -> int:
        return self.deployment.operator.tolist().index(operator)

    def others(self, instance: int) -> list[tuple[int, int, bool]]:
        """(edge, node at its other end, whether it leaves the instance), if that has a node."""
        found = []
        for edge, (source, target) in self.edges:
            if target == instance and source in self.host:
                found.append((edge, self.host[source], False))
            if source == instance and target in self.host:
                found.append((edge, self.host[target], True))
        return found

    def added_s(self, instance: int, node: int) -> float:
        if (instance, node) not in self.known_s:
            self.known_s[instance, node] = self._added_s(instance, node)
        return self.known_s[instance, node]

    def _added_s(self, instance: int, node: int) -> float:
        total = 0.0
        for edge, other, outward in self.others(instance):
            ends = (node, other) if outward else (other, node)
            total += float(
                transfer_time_s(
                    self.net.available_bps(*ends),
                    self.net.latency_s(*ends),
                    self.rates.flow[edge],
                    self.rates.flow_size[edge],
                    other == node,
                )
            )
        work = float(self.demand.work_per_event[instance] * self.demand.passes[instance])
        if work > 0:
            rate = float(self.net.node_cpu_available_ips[node]) / work
            total += float(mm1_sojourn_s(rate, self.rates.events_in[instance]))
        return total

    def room_on_node(self, instance: int, node: int) -> bool:
        cpu, memory = float(self.demand.cpu_ips[instance]), self.demand.memory_bytes[instance]
        cpu_left = float(self.net.node_cpu_available_ips[node]) - self.cpu[node]
        memory_left = float(self.net.node_memory_available_bytes[node]) - self.memory[node]
        return bool((cpu == 0 or cpu <= cpu_left) and (memory == 0 or memory <= memory_left))

    def loads(self, instance: int, node: int) -> tuple[dict[int, float], dict[int, float]]:
        lan: dict[int, float] = defaultdict(float)
        wan: dict[int, float] = defaultdict(float)
        for edge, other, outward in self.others(instance):
            if other == node:
                continue
            bps = float(self.rates.flow_bps[edge])
            lan[other] += bps
            lan[node] += bps
            sites = int(self.net.node_site[other]), int(self.net.node_site[node])
            for link in self.net.wan.route(*(sites[::-1] if outward else sites)).tolist():
                wan[link] += bps
        return lan, wan

    def links_carry(self, instance: int, node: int) -> bool:
        lan, wan = self.loads(instance, node)
        for end, load in lan.items():
            left = float(self.net.node_lan_available_bps[end]) - self.lan[end]
            if load > 0 and load > left * (1 + 1e-9):
                return False
        for link, load in wan.items():
            left = float(self.net.wan.link_available_bps([link])[0]) - self.wan[link]
            if load > 0 and load > left * (1 + 1e-9):
                return False
        return True

    def fits(self, instance: int, node: int) -> bool:
        return (
            self.room_on_node(instance, node)
            and math.isfinite(self.added_s(instance, node))
            and self.links_carry(instance, node)
        )

    def best(self, instance: int, nodes: Iterable[int]) -> int | None:
        """The node with room that adds least; ties: the lower index. Notes the next best."""
        ranked = sorted(
            (self.added_s(instance, node), node) for node in set(nodes) if self.fits(instance, node)
        )
        if not ranked:
            return None
        name = self.app.operators[int(self.deployment.operator[instance])].name
        self.runner_up[name] = (ranked[1][1], ranked[1][0]) if len(ranked) > 1 else None
        return ranked[0][1]

    def least_bad(self, instance: int, nodes: Iterable[int]) -> int:
        """Where there is no room: CPU, memory and queues first, then latency, then the index."""

        def rank(node: int) -> tuple[bool, float, int]:
            cost = self.added_s(instance, node)
            return not (self.room_on_node(instance, node) and math.isfinite(cost)), cost, node

        return min(nodes, key=rank)

    def settle(self, instance: int, node: int) -> None:
        lan, wan = self.loads(instance, node)
        self.host[instance] = node
        self.known_s.clear()
        self.cpu[node] += float(self.demand.cpu_ips[instance])
        self.memory[node] += float(self.demand.memory_bytes[instance])
        for end, load in lan.items():
            self.lan[end] += load
        for link, load in wan.items():
            self.wan[link] += load

    def nodes(self, *, cloud: bool | None = None) -> list[int]:
        tiers = self.net.site_tier[self.net.node_site].tolist()
        return [n for n, t in enumerate(tiers) if cloud is None or (t == Tier.CLOUD) == cloud]

    def nodes_of(self, site: int) -> list[int]:
        return [n for n, s in enumerate(self.net.node_site.tolist()) if s == site]

    def site_of(self, node: int) -> int:
        return int(self.net.node_site[node])

    def sinks_after(self, operator: int) -> set[int]:
        """The sinks at the ends of an operator's paths."""
        after = [
            t
            for s, t in zip(
                self.app.graph.source.tolist(), self.app.graph.target.tolist(), strict=True
            )
            if s == operator
        ]
        own = {operator} if self.app.operators[operator].kind == "sink" else set()
        return own.union(*(self.sinks_after(target) for target in after))

    def is_cloud_sink(self, sink: int) -> bool:
        allowed = self.problem.allowed_nodes(sink)
        return allowed is not None and set(allowed.tolist()) <= set(self.nodes(cloud=True))

    def sink_sites(self, operator: int) -> list[int]:
        sites = set()
        for sink in self.sinks_after(operator):
            pin = self.app.operators[sink].pin
            if pin is not None and pin.tier is None:
                sites |= {self.site_of(n) for n in self.problem.allowed_nodes(sink).tolist()}
        return sorted(sites)

    def run(self, choose: Choose, order: Callable[[PlainScan], list[int]]) -> dict[str, str]:
        """Operator → node for all but sources."""
        chosen = {}
        for operator in order(self):
            instance = self.instance_of(operator)
            allowed = self.problem.allowed_nodes(operator)
            if allowed is not None:
                node = self.best(instance, allowed.tolist())
                node = self.least_bad(instance, allowed.tolist()) if node is None else node
            else:
                node = choose(self, operator, instance)
            self.settle(instance, node)
            chosen[self.app.operators[operator].name] = self.net.node_name(node)
        return chosen


Choose = Callable[[PlainScan, int, int], int]


def upstream_first(scan: PlainScan) -> list[int]:
    """The deployment sequence without the sources."""
    sequence = deployment_sequence(scan.app)
    return [k for k in sequence if scan.app.operators[k].kind != "source"]


def _first_that_finds(scan: PlainScan, instance: int, *pools: list[int]) -> int | None:
    for pool in pools:
        node = scan.best(instance, pool)
        if node is not None:
            return node
    return None


def scan_aels(scan: PlainScan, operator: int, instance: int) -> int:
    """All nodes."""
    node = scan.best(instance, scan.nodes())
    return scan.least_bad(instance, scan.nodes()) if node is None else node


def scan_cloud_only(scan: PlainScan, operator: int, instance: int) -> int:
    """All clouds."""
    clouds = scan.nodes(cloud=True)
    node = scan.best(instance, clouds)
    return scan.least_bad(instance, clouds) if node is None else node


def scan_cloud_region(scan: PlainScan, operator: int, instance: int) -> int:
    """Clouds by the sum of latencies to the sites of the sinks, then anything."""
    sinks = scan.sink_sites(operator)
    clouds = sorted({scan.site_of(node) for node in scan.nodes(cloud=True)})
    if sinks:
        clouds.sort(
            key=lambda site: (sum(float(scan.net.wan.latency_s(site, s)) for s in sinks), site)
        )
        pools = [scan.nodes_of(site) for site in clouds]
    else:
        pools = [scan.nodes(cloud=True)]
    node = _first_that_finds(scan, instance, *pools, scan.nodes(cloud=False))
    return scan.least_bad(instance, scan.nodes()) if node is None else node


def _is_cloud_region(scan: PlainScan, operator: int) -> bool:
    return all(scan.is_cloud_sink(sink) for sink in scan.sinks_after(operator))


def scan_aels_rp(scan: PlainScan, operator: int, instance: int) -> int:
    """The edge before the clouds, or the sinks' clouds."""
    if _is_cloud_region(scan, operator):
        return scan_cloud_region(scan, operator, instance)
    node = _first_that_finds(scan, instance, scan.nodes(cloud=False), scan.nodes(cloud=True))
    return scan.least_bad(instance, scan.nodes()) if node is None else node


def scan_aels_rp_la(scan: PlainScan, operator: int, instance: int) -> int:
    """Hosts of senders, and the best device of some sites: near senders, near sinks."""
    if _is_cloud_region(scan, operator):
        return scan_cloud_region(scan, operator, instance)
    hosts = {other for _, other, _ in scan.others(instance)}
    sites = {scan.site_of(node) for node in scan.nodes()}
    clouds = {scan.site_of(node) for node in scan.nodes(cloud=True)}

    def device(site: int) -> list[int]:
        """The node with room and least LAN latency, other than the hosts of senders."""
        fitting = [
            (float(scan.net.node_lan_latency_s[node]), node)
            for node in scan.nodes_of(site)
            if node not in hosts and scan.fits(instance, node)
        ]
        return [min(fitting)[1]] if fitting else []

    def by_latency(start: int, among: set[int]) -> list[int]:
        return sorted(among, key=lambda site: (float(scan.net.wan.latency_s(start, site)), site))

    around = {scan.site_of(host) for host in hosts}
    rows = [
        row
        for site in around
        for row in (by_latency(site, sites - clouds - {site}), by_latency(site, clouds))
    ]
    near = around.union(scan.sink_sites(operator), *(row[:1] for row in rows))
    node = scan.best(instance, [*hosts, *(n for site in near for n in device(site))])
    for turn in range(len(sites)):
        if node is None:
            next_sites = {row[turn] for row in rows if turn < len(row)} | around
            node = scan.best(instance, [n for site in next_sites for n in device(site)])
    return scan.least_bad(instance, scan.nodes()) if node is None else node


def small_first(scan: PlainScan) -> list[int]:
    """Pinned operators, then the others by CPU need."""
    sequence = upstream_first(scan)
    pinned = [k for k in sequence if scan.app.operators[k].pin is not None]
    free = [k for k in sequence if scan.app.operators[k].pin is None]
    need = {k: float(scan.demand.cpu_ips[scan.instance_of(k)]) for k in free}
    return pinned + sorted(free, key=lambda k: (need[k], k))


def scan_tcep(scan: PlainScan, operator: int, instance: int) -> int:
    """Halve the nodes by CPU; else the clouds; else the others."""
    cpu = scan.net.node_cpu_available_ips
    ranked = sorted(scan.nodes(cloud=False), key=lambda node: (float(cpu[node]), node))
    low, high = 0, len(ranked)
    while low < high:
        middle = (low + high) // 2
        if scan.fits(instance, ranked[middle]):
            high = middle
        else:
            low = middle + 1
    if low < len(ranked):
        return ranked[low]
    node = _first_that_finds(scan, instance, scan.nodes(cloud=True), scan.nodes(cloud=False))
    return scan.least_bad(instance, scan.nodes()) if node is None else node
