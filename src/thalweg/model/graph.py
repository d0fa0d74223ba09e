"""A directed acyclic graph as arrays, walked level by level instead of vertex by vertex.

Both the application (operators and streams) and the deployment (instances and the flows between
them) are such graphs. A level holds the vertices whose longest way from a root has the same
length, so one vector operation per level replaces a Python loop over vertices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


class CycleFound(Exception):
    """The edges go round; `cycle` lists vertices, the first one again at the end."""

    def __init__(self, cycle: Sequence[int]) -> None:
        self.cycle = tuple(cycle)
        super().__init__(f"cycle: {self.cycle}")


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
    def _vertex_bounds(self) -> npt.NDArray[np.int64]:
        depth = int(self.level.max(initial=-1)) + 1
        return np.searchsorted(self.level[self.order], np.arange(depth + 1))

    @cached_property
    def _edges_in(self) -> list[npt.NDArray[np.int64]]:
        return _group(self.level[self.target], len(self._vertex_bounds) - 1)

    @cached_property
    def _edges_out(self) -> list[npt.NDArray[np.int64]]:
        return _group(self.level[self.source], len(self._vertex_bounds) - 1)

    def downstream(self) -> Iterator[tuple[Index, npt.NDArray[np.int64]]]:
        """Level by level from the roots: (vertices of the level, edges that arrive in it)."""
        bounds = self._vertex_bounds
        for depth, edges in enumerate(self._edges_in):
            yield self.order[bounds[depth] : bounds[depth + 1]], edges

    def upstream(self) -> Iterator[tuple[Index, npt.NDArray[np.int64]]]:
        """Level by level back to the roots: (vertices of the level, edges that leave it)."""
        bounds = self._vertex_bounds
        for depth in range(len(self._edges_out) - 1, -1, -1):
            yield self.order[bounds[depth] : bounds[depth + 1]], self._edges_out[depth]

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
        for _, edges in self.downstream():
            np.add.at(before, self.target[edges], before[self.source[edges]])
        for _, edges in self.upstream():
            np.add.at(after, self.source[edges], after[self.target[edges]])
        return before * after, before[self.source] * after[self.target]

    def longest_to(self, vertex_cost: Floats, edge_cost: Floats) -> Floats:
        """The cost of the dearest way from a root to each vertex, its own cost included."""
        best = np.zeros(self.size)
        for vertices, edges in self.downstream():
            arriving = best[self.source[edges]] + edge_cost[edges]
            np.maximum.at(best, self.target[edges], arriving)
            best[vertices] += vertex_cost[vertices]
        return best


def build_graph(size: int, source: npt.ArrayLike, target: npt.ArrayLike) -> Graph:
    """The graph with these edges; raises `CycleFound` where they go round."""
    sources = np.ascontiguousarray(source, dtype=np.int32)
    targets = np.ascontiguousarray(target, dtype=np.int32)
    by_source = np.argsort(sources, kind="stable")
    first = np.searchsorted(sources[by_source], np.arange(size + 1))
    missing = np.bincount(targets, minlength=size)
    level = np.full(size, -1, dtype=np.int32)
    ready = np.flatnonzero(missing == 0)
    depth = 0
    while ready.size:
        level[ready] = depth
        depth += 1
        leaving = concatenated_ranges(first[ready], first[ready + 1])
        reached = targets[by_source[leaving]]
        np.subtract.at(missing, reached, 1)
        reached = np.unique(reached)
        ready = reached[missing[reached] == 0]
    if (level < 0).any():
        raise CycleFound(_find_cycle(level < 0, sources, targets))
    return Graph(size, sources, targets, level)


def _group(key: Index, count: int) -> list[npt.NDArray[np.int64]]:
    order = np.argsort(key, kind="stable")
    bounds = np.searchsorted(key[order], np.arange(count + 1))
    return [order[bounds[k] : bounds[k + 1]] for k in range(count)]


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
