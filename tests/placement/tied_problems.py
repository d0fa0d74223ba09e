"""Problems in which much is equal: figures come from tiny sets, so that ties are frequent."""

from __future__ import annotations

import numpy as np

from generators.problems import Sizes, random_application, random_pin
from thalweg.model import (
    Application,
    CoordinateWan,
    LinkWan,
    MeshWan,
    Network,
    Operator,
    Problem,
    Stream,
    Tier,
    TreeWan,
    Wan,
)

Rng = np.random.Generator

# Sums of these are exact, so what looks equal is equal.
_LATENCY_S = [0.0, 1 / 64, 1 / 32, 3 / 64]
_BPS = [1.2e4, 4e4, 1e6]


def tied_wan(rng: Rng, count: int, shape: str) -> Wan:
    """A network between sites of one of the four shapes."""
    if shape == "mesh":
        bandwidth = rng.choice(_BPS, (count, count))
        return MeshWan(
            latency=rng.choice(_LATENCY_S, (count, count)), bandwidth=bandwidth, available=bandwidth
        )
    if shape == "coordinates":
        return CoordinateWan(
            position_s=rng.choice(_LATENCY_S, (count, 2)),
            height_s=rng.choice(_LATENCY_S[:2], count),
            capacity_bps=float(rng.choice(_BPS)),
        )
    if shape == "tree":
        parent = np.array([-1, *(rng.integers(k) for k in range(1, count))], dtype=np.int32)
        bandwidth = rng.choice(_BPS, count)
        return TreeWan(
            parent=parent,
            latency=rng.choice(_LATENCY_S, count),
            bandwidth=bandwidth,
            available=np.repeat(bandwidth[:, None], 2, axis=1),
        )
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count) if rng.random() < 0.7]
    bandwidth = rng.choice(_BPS, len(pairs))
    return LinkWan(
        site_count=count,
        a=np.array([a for a, _ in pairs], dtype=np.int32),
        b=np.array([b for _, b in pairs], dtype=np.int32),
        latency=rng.choice(_LATENCY_S, len(pairs)),
        bandwidth=bandwidth,
        available=np.repeat(bandwidth[:, None], 2, axis=1),
    )


def tied_network(rng: Rng, *, most_sites: int = 6, most_nodes: int = 6) -> Network:
    """Sites whose nodes are of few kinds; at least one cloud, mostly some edge."""
    count = int(rng.integers(1, most_sites + 1))
    tiers = rng.choice([0, 0, 1, 2], count).astype(np.uint8)
    per_site = rng.integers(0, most_nodes + 1, count)
    cloud = int(rng.integers(count))
    tiers[cloud], per_site[cloud] = Tier.CLOUD, max(int(per_site[cloud]), 1)
    nodes = int(per_site.sum())
    cpu = rng.choice([5e3, 3e4, 1e6], nodes, p=[0.5, 0.3, 0.2])
    memory = rng.choice([3e3, 1e6], nodes)
    lan = rng.choice([3e4, 1e6, np.inf], nodes)
    # The last two vanish when they are added to anything else.
    lan_latency = rng.choice([0.0, 1 / 1024, 1 / 512, 1e-20, 2e-20], nodes)
    return Network(
        name="tied",
        site_names=tuple(f"site-{k}" for k in range(count)),
        site_tier=tiers,
        site_parent=np.full(count, -1, dtype=np.int32),
        site_edge_delay_s=np.zeros(count),
        node_site=np.repeat(np.arange(count, dtype=np.int32), per_site),
        node_cpu_ips=cpu,
        node_cpu_available_ips=cpu,
        node_memory_bytes=memory,
        node_memory_available_bytes=memory,
        node_lan_latency_s=lan_latency,
        node_lan_bandwidth_bps=lan,
        node_lan_available_bps=lan,
        node_operators=np.zeros(nodes, dtype=np.int32),
        wan=tied_wan(rng, count, str(rng.choice(["mesh", "coordinates", "tree", "links"]))),
    )


def tied_application(rng: Rng, network: Network) -> Application:
    """The shape of a random application with figures from tiny sets."""
    sizes = Sizes(sources=2, transforms=12, sinks=3)
    shape = random_application(rng, network, sizes)
    pinned = float(rng.choice([0.1, 0.4]))
    operators = []
    for given in shape.operators:
        source = given.kind == "source"
        pin = random_pin(rng, network) if source or rng.random() < pinned else None
        operators.append(
            Operator(
                name=given.name,
                kind=given.kind,
                selectivity=float(rng.choice([1.0, 1.0, 0.5])),
                compression=float(rng.choice([1.0, 1.0, 0.5])),
                cpu_per_event=float(rng.choice([0.0, 100.0, 400.0, 2000.0])),
                memory=float(rng.choice([0.0, 1000.0, 2000.0])),
                pin=pin,
                rate=float(rng.choice([0.0, 16.0, 32.0])) if source else None,
                event_size=float(rng.choice([16.0, 64.0])) if source else None,
            )
        )
    streams = [
        Stream(source=s.source, target=s.target, probability=float(rng.choice([1.0, 0.5])))
        for s in shape.streams
    ]
    return Application(name="tied", operators=operators, streams=streams)


def tied_problem(seed: int) -> Problem:
    """A problem with many ties, in which room runs out here and there."""
    rng = np.random.default_rng(seed)
    network = tied_network(rng)
    return Problem(application=tied_application(rng, network), network=network)


def crowded_problem(seed: int) -> Problem:
    """Many operators on few small nodes of one kind, between sites with narrow links."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 6))
    per_site = rng.integers(2, 8, count)
    nodes = int(per_site.sum())
    ample = np.full(nodes, np.inf)
    cpu = np.full(nodes, 5e3)
    bandwidth = rng.choice([3e3, 9e3, 1e6], (count, count))
    network = Network(
        name="crowded",
        site_names=tuple(f"site-{k}" for k in range(count)),
        site_tier=np.array([*[Tier.EDGE] * (count - 1), Tier.CLOUD], dtype=np.uint8),
        site_parent=np.full(count, -1, dtype=np.int32),
        site_edge_delay_s=np.zeros(count),
        node_site=np.repeat(np.arange(count, dtype=np.int32), per_site),
        node_cpu_ips=cpu,
        node_cpu_available_ips=cpu,
        node_memory_bytes=ample,
        node_memory_available_bytes=ample,
        node_lan_latency_s=rng.choice([1 / 1024, 1 / 512, 1 / 256], nodes),
        node_lan_bandwidth_bps=ample,
        node_lan_available_bps=ample,
        node_operators=np.zeros(nodes, dtype=np.int32),
        wan=MeshWan(
            latency=rng.choice(_LATENCY_S[1:], (count, count)),
            bandwidth=bandwidth,
            available=bandwidth,
        ),
    )
    shape = random_application(rng, network, Sizes(sources=3, transforms=30, sinks=2), pinned=0.0)
    operators = [
        Operator(
            name=given.name,
            kind=given.kind,
            cpu_per_event=0.0 if given.kind == "source" else float(rng.choice([100.0, 150.0])),
            pin=given.pin,
            rate=16.0 if given.kind == "source" else None,
            event_size=16.0 if given.kind == "source" else None,
        )
        for given in shape.operators
    ]
    streams = [
        Stream(source=s.source, target=s.target, probability=float(rng.choice([1.0, 0.5, 0.5])))
        for s in shape.streams
    ]
    app = Application(name="crowded", operators=operators, streams=streams)
    return Problem(application=app, network=network)
