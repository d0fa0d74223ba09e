"""Random application shapes: connected, without cycles, with branches that part and join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from thalweg.errors import Defects
from thalweg.model.graph import build_graph
from thalweg.scenarios.graph_shape import GraphShape, GraphSize
from thalweg.scenarios.parameters import require_count

Item = TypeVar("Item")
Edge = tuple[int, int]

_MOST = 1_000
_PARALLEL_SHARE = 0.55
_LONGER_SHARE = 0.6
_PLAIN_ROLES = ("map", "filter", "enrich", "aggregate")


def grow_shape(
    name: str,
    size: GraphSize,
    rng: np.random.Generator,
    *,
    transforms: int,
    sources: int,
    sinks: int,
) -> GraphShape:
    """A random shape of so many vertices.

    It starts as source → transform → sink and grows by one transform at a time. That one is put
    into a random edge, in line, or beside a random stretch of edges, so that the stretch and it
    become parallel branches between a splitter and a merger. Half-way the other sources and
    sinks are tied to random transforms, and their lines grow on with the rest. Every source has
    one consumer, every sink one producer.

    Transforms are numbered upstream before downstream and named after what they do in the graph:
    `parse` takes from a source, `merge` from several operators, `split` gives to several.
    """
    defects = Defects()
    require_count(defects, "transforms", transforms, 1, _MOST)
    require_count(defects, "sources", sources, 1, _MOST)
    require_count(defects, "sinks", sinks, 1, _MOST)
    defects.raise_if_any()
    # Vertices: transforms are 0, 1, …; source k is −1 − 2k, sink k is −2 − 2k.
    edges: list[Edge] = [(-1, 0), (0, -2)]
    half = max(transforms // 2, 1)
    for grown in range(1, transforms + 1):
        if grown == half:
            edges += [(-1 - 2 * k, _pick(range(grown), rng)) for k in range(1, sources)]
            edges += [(_pick(range(grown), rng), -2 - 2 * k) for k in range(1, sinks)]
        if grown < transforms:
            _add_transform(edges, grown, rng)
    return _name_vertices(name, size, edges, transforms, sources, sinks)


def _add_transform(edges: list[Edge], new: int, rng: np.random.Generator) -> None:
    between = [edge for edge in edges if min(edge) >= 0]
    if between and rng.random() < _PARALLEL_SHARE:
        splitter, merger = _pick(between, rng)
        onward = [b for a, b in edges if a == merger and b >= 0]
        while onward and rng.random() < _LONGER_SHARE:
            merger = _pick(onward, rng)
            onward = [b for a, b in edges if a == merger and b >= 0]
        edges += [(splitter, new), (new, merger)]
    else:
        before, after = edges.pop(int(rng.random() * len(edges)))
        edges += [(before, new), (new, after)]


def _pick(items: Sequence[Item], rng: np.random.Generator) -> Item:
    # random() alone: its numbers stay the same from one NumPy to the next, so graphs do too.
    return items[int(rng.random() * len(items))]


def _name_vertices(
    name: str, size: GraphSize, edges: list[Edge], transforms: int, sources: int, sinks: int
) -> GraphShape:
    inner = np.array([edge for edge in edges if min(edge) >= 0], dtype=np.int64).reshape(-1, 2)
    level = build_graph(transforms, inner[:, 0], inner[:, 1]).level
    order = np.lexsort((np.arange(transforms), level)).tolist()
    arriving, leaving = Counter(b for _, b in edges), Counter(a for a, _ in edges)
    fed = {b for a, b in edges if a < 0}
    names = {-1 - 2 * k: f"source-{k}" for k in range(sources)}
    names |= {-2 - 2 * k: f"sink-{k}" for k in range(sinks)}
    for number, vertex in enumerate(order):
        role = _PLAIN_ROLES[number % len(_PLAIN_ROLES)]
        role = "split" if leaving[vertex] > 1 else role
        role = "merge" if arriving[vertex] > 1 else role
        role = "parse" if vertex in fed else role
        names[vertex] = f"{role}-{number}"
    rank = {vertex: number for number, vertex in enumerate(names)}
    ranked = sorted(edges, key=lambda edge: (rank[edge[0]], rank[edge[1]]))
    return GraphShape(
        name=name,
        size=size,
        sources=tuple(names[-1 - 2 * k] for k in range(sources)),
        transforms=tuple(names[vertex] for vertex in order),
        sinks=tuple(names[-2 - 2 * k] for k in range(sinks)),
        edges=tuple((names[a], names[b]) for a, b in ranked),
    )
