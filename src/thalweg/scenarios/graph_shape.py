"""The shape of an application: what is joined to what, without any figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from thalweg.model.graph import build_graph

GraphSize = Literal["medium", "large", "extra-large"]


@dataclass(frozen=True, kw_only=True)
class GraphShape:
    """Sources, transforms and sinks by name, and the edges between them.

    >>> shape = GraphShape(name="tee", size="medium", sources=("s",), transforms=("a", "b"),
    ...                    sinks=("near", "far"),
    ...                    edges=(("s", "a"), ("a", "near"), ("a", "b"), ("b", "far")))
    >>> shape.critical_sink
    'far'
    """

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
        ends = np.array([(index[a], index[b]) for a, b in self.edges])
        level = build_graph(len(vertices), ends[:, 0], ends[:, 1]).level
        return self.sinks[int(np.argmax(level[[index[sink] for sink in self.sinks]]))]


def edges_of(*chains: str) -> tuple[tuple[str, str], ...]:
    """The edges of chains, in the order in which they are written.

    >>> edges_of("a → b → c", "b → d")
    (('a', 'b'), ('b', 'c'), ('b', 'd'))
    """
    return tuple(edge for chain in chains for edge in pairwise(chain.split(" → ")))
