"""Thirteen application graphs by name: what is joined to what, without any figures.

Five medium graphs (up to 9 operators): the four dataflows of RIoTBench and a random one; seven
large ones (25) and an extra-large one (50), all random. Sources and sinks are not counted. The
sizes are those of section 5 of da Silva Veith et al., Latency-Aware Strategies for Deploying Data
Stream Processing Applications on Large Cloud-Edge Infrastructure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np

from thalweg.model.graph import build_graph
from thalweg.scenarios.randomness import random_stream

GraphSize = Literal["medium", "large", "extra-large"]


@dataclass(frozen=True, kw_only=True)
class GraphShape:
    """Sources, transforms and sinks by name, in that order, and the edges between them."""

    name: str
    size: GraphSize
    sources: tuple[str, ...]
    transforms: tuple[str, ...]
    sinks: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]

    @cached_property
    def critical_sink(self) -> str:
        """The sink of the path with most operators; ties: the one that comes first."""
        vertices = [*self.sources, *self.transforms, *self.sinks]
        index = {vertex: position for position, vertex in enumerate(vertices)}
        ends = [(index[a], index[b]) for a, b in self.edges]
        graph = build_graph(len(vertices), [a for a, _ in ends], [b for _, b in ends])
        depth = graph.level[[index[sink] for sink in self.sinks]]
        return self.sinks[int(np.argmax(depth))]

    def out_degree(self, vertex: str) -> int:
        """How many edges leave the vertex."""
        return sum(source == vertex for source, _ in self.edges)


def grow_shape(
    name: str, size: GraphSize, transforms: int, sources: int, sinks: int, rng: np.random.Generator
) -> GraphShape:
    """A random connected graph without cycles, with splitters, parallel regions and mergers.

    It starts as source → transform → sink and grows by one transform at a time, which is put
    into a random edge (in line), or beside a random stretch of one or more edges, so that the
    stretch becomes one of two parallel branches. Half-way the other sources and sinks are tied
    to random transforms; their lines grow on with the rest. Only sources and sinks have a single
    edge by construction: a source has one consumer, a sink one producer.
    """
    # Vertices: transforms are 0, 1, …; source k is −1 − 2k, sink k is −2 − 2k.
    edges = [(-1, 0), (0, -2)]
    for new in range(1, transforms + 1):
        if new == (transforms + 1) // 2 or transforms == 1:
            edges += [(-1 - 2 * k, _pick(range(new), rng)) for k in range(1, sources)]
            edges += [(_pick(range(new), rng), -2 - 2 * k) for k in range(1, sinks)]
        if new == transforms:
            break
        between = [edge for edge in edges if min(edge) >= 0]
        if between and rng.random() < 0.55:
            split, at = _pick(between, rng)
            while (after := [b for a, b in edges if a == at and b >= 0]) and rng.random() < 0.6:
                at = _pick(after, rng)
            edges += [(split, new), (new, at)]
        else:
            a, b = edges.pop(int(rng.random() * len(edges)))
            edges += [(a, new), (new, b)]
    return _named(name, size, transforms, sources, sinks, edges)


def _pick[Item](items, rng):
    return items[int(rng.random() * len(items))]
