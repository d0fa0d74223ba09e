"""Random problems and placements, from tame to nasty, all from one generator of random numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thalweg.model import (
    Application,
    CoordinateWan,
    CountWindow,
    Instance,
    Limits,
    LinkWan,
    MeshWan,
    Network,
    Operator,
    Pin,
    Placement,
    Problem,
    Stream,
    Tier,
    TimeWindow,
    TreeWan,
    Wan,
)

Rng = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large a random problem may get."""

    sites: int = 6
    nodes_per_site: int = 3
    sources: int = 3
    transforms: int = 6
    sinks: int = 3


def _chance(rng: Rng, share: float) -> bool:
    return bool(rng.random() < share)


def _pick(rng: Rng, choices: list) -> object:
    return choices[int(rng.integers(len(choices)))]


def random_wan(rng: Rng, count: int, *, scale_bps: float = 1e6) -> Wan:
    """A network of any shape between `count` sites; links may lead nowhere, be full, or lack."""
    shape = _pick(rng, ["mesh", "coordinates", "tree", "links"])
    if shape == "mesh":
        bandwidth = rng.uniform(0.1, 10, (count, count)) * scale_bps
        free = bandwidth * rng.uniform(0, 1, (count, count))
        free[rng.random((count, count)) < 0.05] = 0.0
        latency = rng.uniform(0, 0.2, (count, count))
        return MeshWan(latency=latency, bandwidth=bandwidth, available=free)
    if shape == "coordinates":
        wan = CoordinateWan(
            position_s=rng.uniform(-0.1, 0.1, (count, 2)),
            height_s=rng.uniform(0, 0.01, count),
            capacity_bps=float(rng.uniform(0.1, 10) * scale_bps),
        )
        links = rng.integers(0, count * count, 3)
        return wan.reserved(links, rng.uniform(0, 5, 3) * scale_bps)
    if shape == "tree":
        return random_tree(rng, count, scale_bps=scale_bps)
    return random_links(rng, count, scale_bps=scale_bps)


def random_tree(rng: Rng, count: int, *, scale_bps: float = 1e6) -> TreeWan:
    """A tree with a random root, unequal in its two directions."""
    hidden = rng.permutation(count)
    parent = np.full(count, -1, dtype=np.int32)
    for k in range(1, count):
        parent[hidden[k]] = hidden[int(rng.integers(k))]
    bandwidth = rng.uniform(0.1, 10, count) * scale_bps
    return TreeWan(
        parent=parent,
        latency=rng.uniform(0, 0.2, count),
        bandwidth=bandwidth,
        available=bandwidth[:, None] * rng.uniform(0, 1, (count, 2)),
    )


def random_links(rng: Rng, count: int, *, scale_bps: float = 1e6) -> LinkWan:
    """Some of all possible links, so that some pairs of sites may have no route; many ties."""
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count) if _chance(rng, 0.6)]
    m = len(pairs)
    bandwidth = rng.uniform(0.1, 10, m) * scale_bps
    return LinkWan(
        site_count=count,
        a=np.array([a for a, _ in pairs], dtype=np.int32),
        b=np.array([b for _, b in pairs], dtype=np.int32),
        # Multiples of 1/64: sums are exact, so equal ways are exactly equal.
        latency=rng.integers(0, 5, m) / 64,
        bandwidth=bandwidth,
        available=bandwidth[:, None] * rng.uniform(0, 1, (m, 2)),
    )


def random_network(rng: Rng, sizes: Sizes | None = None, *, cloud: bool | None = None) -> Network:
    """Sites of all tiers, some without nodes, some with names; `cloud` insists on one or none."""
    sizes = sizes or Sizes()
    count = int(rng.integers(1, sizes.sites + 1))
    tiers = rng.integers(0, 3, count).astype(np.uint8)
    per_site = rng.integers(0, sizes.nodes_per_site + 1, count)
    if not per_site.any():
        per_site[int(rng.integers(count))] = 1
    if cloud is not None:
        tiers[tiers == Tier.CLOUD] = Tier.FOG
    if cloud:
        last = int(rng.integers(count))
        tiers[last], per_site[last] = Tier.CLOUD, max(per_site[last], 1)
    nodes = int(per_site.sum())
    cpu = rng.choice([2e5, 1e6, 5e6, 2e7], nodes) * rng.choice([1.0, rng.uniform(0.5, 2)], nodes)
    cpu[rng.random(nodes) < 0.04] = 0.0
    memory = rng.choice([2e4, 1e6, 1e8], nodes)
    memory[rng.random(nodes) < 0.04] = np.inf
    lan = np.where(rng.random(nodes) < 0.4, np.inf, rng.uniform(0.1, 20, nodes) * 1e6)
    used = np.where(rng.random(nodes) < 0.5, 1.0, rng.uniform(0, 1, nodes))
    names = tuple(f"n{k}" for k in range(nodes)) if _chance(rng, 0.5) else None
    return Network(
        name="random",
        site_names=tuple(f"site-{k}" for k in range(count)),
        site_tier=tiers,
        site_parent=np.full(count, -1, dtype=np.int32),
        site_edge_delay_s=rng.choice([0.0, 0.01, 0.3], count),
        node_site=np.repeat(np.arange(count, dtype=np.int32), per_site),
        node_cpu_ips=cpu,
        node_cpu_available_ips=cpu * used,
        node_memory_bytes=memory,
        node_memory_available_bytes=memory * np.where(used > 0, used, 1.0),
        node_lan_latency_s=rng.choice([0.0, 0.0005, 0.003], nodes),
        node_lan_bandwidth_bps=lan,
        node_lan_available_bps=lan * np.where(used > 0, used, 1.0),
        node_operators=rng.choice([0, 0, 0, 1, 4], nodes).astype(np.int32),
        node_names=names,
        wan=random_wan(rng, count),
    )


def random_pin(rng: Rng, network: Network) -> Pin:
    """A pin of any kind that the network can keep."""
    node = int(rng.integers(network.node_count))
    site = int(network.node_site[node])
    kind = _pick(rng, ["node", "site", "tier", "tier"])
    if kind == "node":
        return Pin(node=network.node_name(node))
    if kind == "site":
        return Pin(site=network.site_names[site])
    return Pin(tier=Tier(int(network.site_tier[site])).label)  # type: ignore[arg-type]


def _random_window(rng: Rng) -> CountWindow | TimeWindow | None:
    kind = _pick(rng, ["none", "none", "count", "time", "sliding"])
    if kind == "count":
        return CountWindow(int(_pick(rng, [1, 3, 40])))  # type: ignore[call-overload]
    if kind == "time":
        return TimeWindow(float(rng.uniform(0.1, 2)))
    if kind == "sliding":
        length = float(rng.uniform(0.5, 2))
        return TimeWindow(length, length / float(rng.uniform(1, 4)))
    return None


def random_operator(rng: Rng, name: str, kind: str, network: Network, pinned: float) -> Operator:
    """An operator of a kind; a source always has a pin, the others with the chance `pinned`."""
    source = kind == "source"
    return Operator(
        name=name,
        kind=kind,  # type: ignore[arg-type]
        selectivity=float(rng.choice([0.0, 0.3, 1.0, 1.0, 1.7])),
        compression=float(rng.choice([0.0, 0.5, 1.0, 1.0, 1.3])),
        cpu_per_event=float(rng.choice([0.0, 100.0, 3000.0, rng.uniform(10, 1e5)])),
        cpu_per_byte=float(rng.choice([0.0, 0.0, rng.uniform(0, 20)])),
        memory=float(rng.choice([0.0, 1000.0, rng.uniform(0, 1e6)])),
        memory_factor=float(rng.choice([1.0, 1.0, 0.0, 1.8])),
        window=None if source else _random_window(rng),
        replicable=bool(rng.integers(2)),
        pin=random_pin(rng, network) if source or _chance(rng, pinned) else None,
        rate=float(rng.choice([0.0, 5.0, 200.0, rng.uniform(0, 500)])) if source else None,
        event_size=float(rng.choice([20.0, 150.0, rng.uniform(1, 400)])) if source else None,
    )


def random_application(
    rng: Rng, network: Network, sizes: Sizes | None = None, *, pinned: float = 0.3
) -> Application:
    """A connected random graph; operators are listed in an order that is not topological."""
    sizes = sizes or Sizes()
    sources = [f"source-{k}" for k in range(int(rng.integers(1, sizes.sources + 1)))]
    transforms = [f"work-{k}" for k in range(int(rng.integers(0, sizes.transforms + 1)))]
    sinks = [f"sink-{k}" for k in range(int(rng.integers(1, sizes.sinks + 1)))]
    edges: dict[tuple[str, str], None] = {}
    for k, name in enumerate(transforms):
        edges[str(_pick(rng, sources + transforms[:k])), name] = None
    for name in sinks:
        edges[str(_pick(rng, sources + transforms)), name] = None
    sending = {source for source, _ in edges}
    for k, name in enumerate(transforms):
        if name not in sending:
            edges[name, str(_pick(rng, transforms[k + 1 :] + sinks))] = None
    for name in sources:
        if name not in sending:
            edges[name, str(_pick(rng, transforms + sinks))] = None
    for _ in range(int(rng.integers(0, 6))):
        senders = sources + transforms
        start = int(rng.integers(len(senders)))
        after = transforms[max(start - len(sources) + 1, 0) :] + sinks
        edges[senders[start], str(_pick(rng, after))] = None
    named = [(n, "source") for n in sources] + [(n, "sink") for n in sinks]
    named += [(n, "transform") for n in transforms]
    streams = list(edges)
    return Application(
        name="random",
        operators=[
            random_operator(rng, *named[int(k)], network, pinned)
            for k in rng.permutation(len(named))
        ],
        streams=[
            Stream(
                source=streams[int(k)][0],
                target=streams[int(k)][1],
                probability=float(rng.choice([1.0, 1.0, 0.5, 0.25])),
            )
            for k in rng.permutation(len(streams))
        ],
        limits=Limits(
            response_time_s=float(rng.choice([math.inf, 0.05, 1.0])),
            uplink_bps=float(rng.choice([math.inf, 1e4, 1e6])),
        ),
    )


def random_problem(
    rng: Rng, sizes: Sizes | None = None, *, cloud: bool | None = None, pinned: float = 0.3
) -> Problem:
    """A random application on a random network, some births with a rate of their own."""
    network = random_network(rng, sizes, cloud=cloud)
    application = random_application(rng, network, sizes, pinned=pinned)
    plain = Problem(application=application, network=network)
    rates = {
        (application.operators[o].name, network.site_names[s]): float(rng.choice([0.0, 7.5, 90.0]))
        for o, s in zip(plain.births.operator.tolist(), plain.births.site.tolist(), strict=True)
        if _chance(rng, 0.2)
    }
    return Problem(application=application, network=network, rates=rates or None)


def random_instances(rng: Rng, problem: Problem, *, astray: float = 0.2) -> list[Instance]:
    """Instances that make up a deployment: everything is served and nothing is idle.

    Each operator runs once, as replicas for the origins that reach it, or as both. With the
    chance `astray` an instance is put anywhere, else where its pin allows.
    """
    app, net, births = problem.application, problem.network, problem.births

    def somewhere(operator: int) -> str:
        allowed = problem.allowed_nodes(operator)
        if allowed is None or _chance(rng, astray):
            return net.node_name(int(rng.integers(net.node_count)))
        return net.node_name(int(_pick(rng, allowed.tolist())))  # type: ignore[call-overload]

    reaches: dict[int, set[str | None]] = {k: set() for k in range(len(app.operators))}
    instances = []
    for o, s, n in zip(
        births.operator.tolist(), births.site.tolist(), births.node.tolist(), strict=True
    ):
        origin = net.site_names[s]
        node = somewhere(o) if _chance(rng, astray) else net.node_name(n)
        instances.append(Instance(operator=app.operators[o].name, node=node, origin=origin))
        reaches[o].add(origin)
    for o in app.graph.order.tolist():
        operator = app.operators[o]
        if operator.kind == "source":
            continue
        arriving: set[str | None] = set()
        for stream in app.streams:
            if stream.target == operator.name:
                arriving |= reaches[app.index[stream.source]]
        origins = sorted(origin for origin in arriving if origin is not None)
        share = float(rng.choice([0.0, 0.5, 1.0])) if operator.replicable else 0.0
        share = float(rng.choice([share, share, share, 0.5]))
        served = {origin for origin in origins if _chance(rng, share)}
        if arriving - served:
            instances.append(Instance(operator=operator.name, node=somewhere(o)))
            reaches[o].add(None)
        for origin in sorted(served):
            node = somewhere(o)
            instances.append(Instance(operator=operator.name, node=node, origin=origin))
            reaches[o].add(origin)
    return [instances[int(k)] for k in rng.permutation(len(instances))]


def random_placement(rng: Rng, problem: Problem, *, astray: float = 0.2) -> Placement:
    """A placement that describes a deployment; it may violate any constraint."""
    return Placement.of(random_instances(rng, problem, astray=astray))
