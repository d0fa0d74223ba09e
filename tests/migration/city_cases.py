"""Small random cities for tests."""

from __future__ import annotations

import numpy as np

from migration.random_trees import random_brokers
from thalweg.migration.city import City
from thalweg.migration.connections import Connections
from thalweg.migration.fan import NOWHERE
from thalweg.migration.operators import MobileGraph, MobileOperator, MobileStream


def random_chain(rng: np.random.Generator, operators: int = 2, **figures: float) -> MobileGraph:
    """source → o0 → o1 … → consumer with random streams and states."""
    names = ["source", *(f"o{k}" for k in range(operators)), "consumer"]
    return MobileGraph(
        name="chain",
        users=("source", "consumer"),
        operators=tuple(
            MobileOperator(
                name=f"o{k}",
                immutable_bytes=float(rng.choice([0.0, 20.0, 200.0])),
                mutable_bytes=0.0,
                window_s=float(rng.choice([0.0, 3.0])),
                demand_ips=figures.get("demand_ips", 1.0),
                instructions=figures.get("instructions", 0.0),
                share=1.0 / operators,
            )
            for k in range(operators)
        ),
        streams=tuple(
            MobileStream(
                source=names[k],
                target=names[k + 1],
                events_per_s=1.0,
                event_bytes=float(rng.integers(5, 60)),
            )
            for k in range(operators + 1)
        ),
        latency_s=figures.get("latency_s", np.inf),
    )


def random_walks(rng: np.random.Generator, brokers: int, vehicles: int, ticks: int) -> Connections:
    """Vehicles that change their leaf now and then, and come and go."""
    leaf = np.empty((vehicles, ticks), dtype=np.int32)
    for row in leaf:
        at = int(rng.integers(brokers))
        for t in range(ticks):
            if rng.random() < 0.2:
                at = int(rng.integers(brokers))
            row[t] = at
        first, last = int(rng.integers(0, 3)), ticks - int(rng.integers(0, 3))
        row[:first] = NOWHERE
        row[last:] = NOWHERE
    where = np.where(leaf < 0, np.nan, leaf + 0.5)
    return Connections(
        names=tuple(f"v{k}" for k in range(vehicles)),
        start_s=100.0,
        step_s=1.0,
        x_m=where,
        y_m=where * 0 + 0.5,
        leaf=leaf,
        at_the_rim=0,
    )


def random_city(
    seed: int,
    *,
    brokers: int = 5,
    ticks: int = 12,
    instances: int = 2,
    operators: int = 2,
    varying: bool = False,
    **figures: float,
) -> City:
    rng = np.random.default_rng(seed)
    tree = random_brokers(rng, brokers, bandwidth_bps=1e9)
    tree = type(tree)(**{**vars_of(tree), "link_delay_s": tree.link_delay_s * 0.2})
    graph = random_chain(rng, operators, **figures)
    connections = random_walks(rng, brokers, 4, ticks)
    pairs = np.array([rng.permutation(4)[:2] for _ in range(instances)], dtype=np.int32)
    factor = rng.uniform(0.5, 2.0, (instances, len(graph.streams), ticks)) if varying else None
    return City(
        brokers=tree,
        connections=connections,
        graph=graph,
        vehicles=pairs,
        start=rng.integers(0, brokers, (instances, operators)).astype(np.int32),
        factor=factor,
    )


def vars_of(brokers: object) -> dict[str, object]:
    return {
        name: getattr(brokers, name)
        for name in brokers.__dataclass_fields__  # type: ignore[attr-defined]
    }
