"""A directed acyclic graph as arrays, walked level by level instead of vertex by vertex.

Both the application (operators and streams) and the deployment (instances and the flows between
them) are such graphs. A level holds the vertices whose longest way from a root has the same
length, so one vector operation per level replaces a Python loop over vertices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


class CycleFound(Exception):
    """The edges go round; `cycle` lists vertices, the first one again at the end."""

    def __init__(self, cycle: Sequence[int]) -> None:
        self.cycle = tuple(cycle)
        super().__init__(f"cycle: {self.cycle}")


class Level(NamedTuple):
    """Vertices of one level, ascending, and their edges: those of vertex k begin at starts[k]."""

    vertices: Index
    edges: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Graph:
    """Vertices 0…size−1 and edges source[e] → target[e]; no cycles (checked by `build_graph`)."""

    size: int
    source: Index
    target: Index
    level: Index
    """Length of the longest way from a root to each vertex."""

    @cached_property
    def order(self) -> Index:
        """Vertices, upstream before downstream; within a level the lower index first."""
        return np.lexsort((np.arange(self.size), self.level)).astype(np.int32)

    @cached_property
    def _vertices(self) -> list[Index]:
        depth = int(self.level.max(initial=-1)) + 1
        bounds = np.searchsorted(self.level[self.order], np.arange(depth + 1))
        return [self.order[bounds[k] : bounds[k + 1]] for k in range(depth)]

    @cached_property
    def _arrivals(self) -> list[Level]:
        return _group_edges(self.level, self.target, len(self._vertices))

    @cached_property
    def _departures(self) -> list[Level]:
        return _group_edges(self.level, self.source, len(self._vertices))

    def downstream(self) -> Iterator[Level]:
        """From the second level on: the vertices of each level with the edges that enter them."""
        return iter(self._arrivals[1:])

    def upstream(self) -> Iterator[tuple[Index, Level]]:
        """From the last level back: all vertices of a level, and those of them that edges leave."""
        return zip(reversed(self._vertices), reversed(self._departures), strict=True)

    @cached_property
    def roots(self) -> npt.NDArray[np.bool_]:
        """True for vertices that no edge enters."""
        return np.equal(np.bincount(self.target, minlength=self.size), 0)

    @cached_property
    def leaves(self) -> npt.NDArray[np.bool_]:
        """True for vertices that no edge leaves."""
        return np.equal(np.bincount(self.source, minlength=self.size), 0)

    @cached_property
    def path_counts(self) -> tuple[Floats, Floats]:
        """How many root→leaf paths go through each vertex, and through each edge.

        Counts are floats: beyond 2**53 they round, beyond 1.8e308 they are infinite.
        """
        before, after = self.roots.astype(float), self.leaves.astype(float)
        with np.errstate(over="ignore"):
            for level in self.downstream():
                arriving = before[self.source[level.edges]]
                before[level.vertices] = np.add.reduceat(arriving, level.starts)
            for _, level in self.upstream():
                if level.edges.size:
                    onward = after[self.target[level.edges]]
                    after[level.vertices] = np.add.reduceat(onward, level.starts)
            return before * after, before[self.source] * after[self.target]

    def longest_to(self, vertex_cost: Floats, edge_cost: Floats) -> Floats:
        """The cost of the dearest way from a root to each vertex, its own cost included."""
        best = np.array(vertex_cost)
        for level in self.downstream():
            arriving = best[self.source[level.edges]] + edge_cost[level.edges]
            best[level.vertices] += np.maximum.reduceat(arriving, level.starts)
        return best

    def longest_from(self, vertex_cost: Floats, edge_cost: Floats) -> Floats:
        """The cost of the dearest way from each vertex to a leaf, its own cost included."""
        best = np.array(vertex_cost)
        for _, level in self.upstream():
            if level.edges.size:
                onward = edge_cost[level.edges] + best[self.target[level.edges]]
                best[level.vertices] += np.maximum.reduceat(onward, level.starts)
        return best


def build_graph(size: int, source: npt.ArrayLike, target: npt.ArrayLike) -> Graph:
    """The graph with these edges; raises `CycleFound` where they go round."""
    sources = np.ascontiguousarray(source, dtype=np.int32)
    targets = np.ascontiguousarray(target, dtype=np.int32)
    by_source = np.argsort(sources, kind="stable")
    first = np.searchsorted(sources[by_source], np.arange(size + 1))
    missing = np.bincount(targets, minlength=size)
    level = np.full(size, -1, dtype=np.int32)
    ready: Index = np.flatnonzero(missing == 0).astype(np.int32)
    depth = 0
    while ready.size:
        level[ready] = depth
        depth += 1
        leaving = concatenated_ranges(first[ready], first[ready + 1])
        reached = targets[by_source[leaving]]
        np.subtract.at(missing, reached, 1)
        ready = distinct(reached[missing[reached] == 0])
    if (level < 0).any():
        raise CycleFound(_find_cycle(level < 0, sources, targets))
    return Graph(size, sources, targets, level)


def _group_edges(level: Index, end: Index, depth: int) -> list[Level]:
    """The edges of each level by the vertex at that end, so that one `reduceat` sums them up."""
    order = np.lexsort((end, level[end]))
    ends = end[order]
    first = np.flatnonzero(_changes(ends))
    bounds = np.searchsorted(level[ends], np.arange(depth + 1)).tolist()
    cuts = np.searchsorted(first, bounds).tolist()
    groups = []
    for k in range(depth):
        starts = first[cuts[k] : cuts[k + 1]]
        groups.append(Level(ends[starts], order[bounds[k] : bounds[k + 1]], starts - bounds[k]))
    return groups


def _changes(ordered: Index) -> npt.NDArray[np.bool_]:
    """Whether each entry differs from the one before it; the first one does."""
    changes = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=changes[1:])
    return changes


def distinct(indices: Index) -> Index:
    """The indices ascending, each once; `np.unique` would load NumPy's masked arrays for that."""
    ordered = np.sort(indices)
    return ordered[_changes(ordered)]


def concatenated_ranges(
    start: npt.NDArray[np.int64], stop: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Every whole number from start[k] to stop[k] − 1, for each k in turn."""
    length = stop - start
    offset = np.repeat(start - np.concatenate(([0], np.cumsum(length)[:-1])), length)
    return np.arange(length.sum()) + offset


def _find_cycle(stuck: npt.NDArray[np.bool_], source: Index, target: Index) -> list[int]:
    """A cycle among the stuck vertices: each has a stuck predecessor, so walking back repeats."""
    predecessor = {
        int(t): int(s) for s, t in zip(source, target, strict=True) if stuck[s] and stuck[t]
    }
    vertex = next(int(v) for v in np.flatnonzero(stuck) if int(v) in predecessor)
    position: dict[int, int] = {}
    walk: list[int] = []
    while vertex not in position:
        position[vertex] = len(walk)
        walk.append(vertex)
        vertex = predecessor[vertex]
    cycle = walk[position[vertex] :][::-1]
    lowest = cycle.index(min(cycle))
    cycle = cycle[lowest:] + cycle[:lowest]
    return [*cycle, cycle[0]]
