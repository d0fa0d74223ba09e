"""Cuts of applications that have too many of them to list.

A cut is a closed set of operators, so the cheapest one for weights on operators and edges is a
minimum cut of a flow network (Picard 1976, Maximal Closure of a Graph and Applications to
Combinatorial Problems): an operator on the fog pays its own weight, an edge that crosses pays
its, and an edge without bound leads from every operator back to those that send to it. One
maximum flow so looks at all cuts at once. With weights that trade memory for uplink it finds the
cuts worth listing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from thalweg.model.application import Application
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index
from thalweg.scheduling.cuts import MOST_CUTS, Cuts, Flags
from thalweg.scheduling.traffic import StreamTraffic

MOST_FLOWS = 100
"""Maximum flows of one sweep: as many corners of the front as it finds."""
SWEPT_STREAMS = 3
"""Single streams that are swept besides their sum."""

_FLOW_BITS = 29
"""SciPy's flows are 32 bit: ∞ (30 bits) and what flows against it have to fit."""
_PRECISION = 1e-12


@dataclass(frozen=True, eq=False)
class CutGraph:
    """What decides which sets are cuts: the edges, the sources, and what can run on a fog."""

    source: Index
    target: Index
    order: Index
    """Operators, upstream first."""
    is_source: Flags
    may_run: Flags
    """Replicable transforms that only such transforms and sources are upstream of."""

    def __post_init__(self) -> None:
        freeze(self)

    @classmethod
    def of(cls, application: Application) -> CutGraph:
        """The graph of an application."""
        graph, columns = application.graph, application.columns
        may_run = columns.replicable & columns.is_transform
        for level in graph.downstream():
            fine = (may_run | columns.is_source)[graph.source[level.edges]]
            may_run[level.vertices] &= np.logical_and.reduceat(fine, level.starts)
        return cls(graph.source, graph.target, graph.order, columns.is_source, may_run)

    def crossing(self, members: Flags) -> Flags:
        """Whether an edge goes from the fog up to the cloud; sets may be stacked in rows."""
        on_fog = members | self.is_source
        crossing: Flags = on_fog[..., self.source] & ~members[..., self.target]
        return crossing

    def draw_in(self, members: Flags, joined: Flags) -> Flags:
        """The least closed set with these members and all that `joined` edges lead on to."""
        grown = members.copy()
        while True:
            size = np.count_nonzero(grown)
            grown[self.target[joined & (grown | self.is_source)[self.source]]] = True
            grown[self.source[grown[self.target]]] = True
            grown &= ~self.is_source
            if np.count_nonzero(grown) == size:
                return grown

    def draw_down(self, members: Flags) -> Flags:
        """These operators and all downstream of them."""
        grown = members.copy()
        while True:
            size = np.count_nonzero(grown)
            grown[self.target[grown[self.source]]] = True
            if np.count_nonzero(grown) == size:
                return grown


@dataclass(frozen=True, eq=False)
class LeastCut:
    """The cheapest cut for some weights."""

    members: Flags
    value: float
    """What it costs; ∞ where every cut does."""
    bound: float
    """No cut costs less: the flow, which differs from `value` by rounding only."""


def least_cut(
    graph: CutGraph,
    operator_weight: Floats,
    edge_weight: Floats,
    *,
    inside: Flags | None = None,
    outside: Flags | None = None,
    rounds: int = 6,
) -> LeastCut:
    """The cut of least weight: its operators' and that of the edges that cross, all ≥ 0.

    ∞ forbids an operator the fog, or an edge to cross. The cut holds `inside`, a cut itself, and
    nothing of `outside`. Of several the smallest, which is in all others (up to rounding). One
    round is right to about a millionth of what crosses at `inside`, each more to the square.

    >>> from thalweg.scenarios import taxi_fares
    >>> app = taxi_fares()
    >>> cut = least_cut(CutGraph.of(app), np.ones(len(app.operators)), np.ones(len(app.streams)))
    >>> cut.value, int(cut.members.sum())
    (1.0, 0)
    """
    banned = ~graph.may_run | np.isinf(operator_weight)
    if outside is not None:
        banned |= outside
    joined = np.isinf(edge_weight)
    base = np.zeros(banned.size, dtype=bool) if inside is None else inside
    base = graph.draw_in(base, joined)
    if (base & banned).any():
        return LeastCut(base, np.inf, np.inf)
    crossing = graph.crossing(base)
    fixed = float(operator_weight[base].sum())
    vertex = np.cumsum(~(base | banned | graph.is_source)) + 1
    vertex[banned] = 1
    vertex[base | graph.is_source] = 0
    free = vertex > 1
    tail, head = vertex[graph.source], vertex[graph.target]
    closing = (head > 1) & (tail > 0)
    arcs = _Arcs.of(
        np.concatenate([vertex[free], tail, head[closing]]),
        np.concatenate([np.ones(np.count_nonzero(free), dtype=np.int64), head, tail[closing]]),
        np.concatenate(
            [operator_weight[free], edge_weight, np.full(np.count_nonzero(closing), np.inf)]
        ),
        int(vertex.max(initial=1)) + 1,
    )
    flow, side = arcs.saturate(float(edge_weight[crossing].sum()), rounds)
    members = base | (free & side[vertex])
    value = operator_weight[members].sum() + edge_weight[graph.crossing(members)].sum()
    return LeastCut(members, float(value), min(fixed + flow, float(value)))


@dataclass(frozen=True, eq=False)
class _Arcs:
    """A flow network from vertex 0 to vertex 1, each arc with its reverse, by tail and head."""

    tail: npt.NDArray[np.int64]
    head: npt.NDArray[np.int64]
    capacity: Floats
    size: int

    @classmethod
    def of(
        cls,
        tail: npt.NDArray[np.int64],
        head: npt.NDArray[np.int64],
        capacity: Floats,
        size: int,
    ) -> _Arcs:
        """Parallel arcs become one, reverses are added; those into 0 and out of 1 do not count."""
        useful = (tail != head) & (head != 0) & (tail != 1)
        forward, backward = (tail * size + head)[useful], (head * size + tail)[useful]
        key, position = np.unique(np.concatenate([forward, backward]), return_inverse=True)
        total = np.zeros(key.size)
        np.add.at(total, position[: forward.size], capacity[useful])
        return cls(key // size, key % size, total, size)

    def saturate(self, most: float, rounds: int) -> tuple[float, Flags]:
        """The maximum flow, which is at most `most`, and what it leaves within reach of vertex 0.

        SciPy takes 32-bit whole numbers only, so capacities are rounded down to the grid that
        `most` needs. What rounding has left free flows in the next round, on a finer grid. The
        flow is never too large, and its distance to the cut around what is within reach is known.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        start = np.searchsorted(self.tail, np.arange(self.size + 1)).astype(np.int32)
        head = self.head.astype(np.int32)
        reached = np.zeros(self.size, dtype=bool)
        reached[0] = True
        residual, flow, cut = self.capacity, 0.0, most
        for _ in range(rounds):
            gap = cut - flow
            if gap <= _PRECISION * cut:
                break
            # A power of two: scaling rounds nothing.
            grid = np.ldexp(1.0, min(_FLOW_BITS - int(np.frexp(gap)[1]), 1_000))
            room = np.minimum(residual * grid, 2.0 ** (_FLOW_BITS + 1) - 1).astype(np.int32)
            network = csr_array((room, head, start), shape=(self.size, self.size))
            result = maximum_flow(network, 0, 1)
            # Every arc has its reverse, so the flow comes back in the order of the arcs.
            sent = result.flow.data
            residual = np.maximum(residual - sent / grid, 0.0)
            flow += float(result.flow_value / grid)
            left = np.flatnonzero(room > sent)
            within = np.searchsorted(left, start).astype(np.int32)
            open_arcs = csr_array((room[left], head[left], within), shape=network.shape)
            reached = np.zeros(self.size, dtype=bool)
            reached[breadth_first_order(open_arcs, 0, return_predecessors=False)] = True
            cut = float(self.capacity[reached[self.tail] & ~reached[self.head]].sum())
        return flow, reached


def sweep_front(traffic: StreamTraffic, *, most: int = MOST_CUTS) -> Cuts:
    """Cuts worth choosing from, where there are too many to list: at most `most`, ordered alike.

    The corners of the lower convex hull of memory against uplink, for all streams together and
    for some single ones from the slowest to the fastest; cuts between neighbouring corners, one
    operator apart, in the order of the graph; the same from nothing to all that may run; and, for
    all streams together, corners with one operator more or less. Where that is more than `most`,
    corners go first.
    """
    graph = CutGraph.of(traffic.problem.application)
    nothing = np.zeros(graph.may_run.size, dtype=bool)
    fronts = [
        [*_find_corners(graph, memory, flow), graph.may_run]
        for memory, flow in _pick_streams(traffic)
    ]
    ways = [[nothing, graph.may_run], *fronts]
    chosen: dict[bytes, Flags] = {}
    filled = (_fill_in(graph, way) for way in ways)
    beside = (_step_aside(graph, corner) for corner in fronts[0])
    for members in chain([nothing], *fronts, *filled, *beside):
        if len(chosen) >= most:
            break
        chosen.setdefault(np.packbits(~members).tobytes(), members)
    return arrange_cuts(graph, chosen.values())


def arrange_cuts(graph: CutGraph, chosen: Iterable[Flags]) -> Cuts:
    """The cuts in the order that `list_cuts` has, each once."""
    distinct = {np.packbits(~members).tobytes(): members for members in chosen}
    ordered = sorted(distinct.items(), key=lambda item: (np.count_nonzero(item[1]), item[0]))
    members = np.array([members for _, members in ordered])
    return Cuts(members, graph.crossing(members), complete=False)


def _pick_streams(traffic: StreamTraffic) -> Iterator[tuple[Floats, Floats]]:
    """Memory of operators and flow on edges, of the sum and of streams with other proportions.

    Weights that are the same up to a factor have the same corners: only different ones are told.
    """
    by_rate = np.argsort(traffic.born_bps, kind="stable")
    ranks = np.linspace(0, by_rate.size - 1, SWEPT_STREAMS).round().astype(np.int64)
    columns = [
        (traffic.memory_bytes.sum(axis=1), traffic.flow_bps.sum(axis=1)),
        *((traffic.memory_bytes[:, j], traffic.flow_bps[:, j]) for j in by_rate[ranks]),
    ]
    seen: list[Floats] = []
    for memory, flow in columns:
        shares = np.concatenate([memory / (memory.sum() or 1.0), flow / (flow.sum() or 1.0)])
        if not any(np.allclose(shares, other, rtol=1e-6, atol=1e-12) for other in seen):
            seen.append(shares)
            yield memory, flow


def _find_corners(graph: CutGraph, memory: Floats, flow: Floats) -> list[Flags]:
    """The supported front, from no memory to least uplink; after `MOST_FLOWS` the outline of it.

    More weight on the uplink only adds operators to the least cut: every corner is in the next.
    So between two corners only what they differ in has to be looked at, and halving ends.
    """
    first = np.zeros(graph.may_run.size, dtype=bool)
    last = least_cut(graph, np.zeros(memory.size), flow, rounds=2).members
    corners = [first, last]
    spans = deque([(first, last)])
    for _ in range(MOST_FLOWS):
        if not spans:
            break
        low, high = spans.popleft()
        more_memory = float(memory[high & ~low].sum())
        less_flow = float(flow[graph.crossing(low)].sum() - flow[graph.crossing(high)].sum())
        if np.count_nonzero(high) - np.count_nonzero(low) < 2 or less_flow <= 0:
            continue
        weights = (less_flow * memory, more_memory * flow)
        between = least_cut(graph, *weights, inside=low, outside=~high, rounds=1).members
        if (between != low).any() and (between != high).any():
            corners.append(between)
            spans.extend([(low, between), (between, high)])
    return sorted(corners, key=np.count_nonzero)


def _fill_in(graph: CutGraph, way: Iterable[Flags]) -> Iterator[Flags]:
    """The cuts between each and the next, one operator more at a time, upstream first."""
    for low, high in pairwise(way):
        members = low
        for operator in graph.order[(high & ~low)[graph.order]].tolist():
            members = members.copy()
            members[operator] = True
            yield members


def _step_aside(graph: CutGraph, members: Flags) -> Iterator[Flags]:
    """The cuts with one operator more, and those with one less."""
    waits, needed = np.zeros((2, members.size), dtype=bool)
    waits[graph.target[~(members | graph.is_source)[graph.source]]] = True
    needed[graph.source[members[graph.target]]] = True
    may_change = np.where(members, ~needed, graph.may_run & ~waits)
    for operator in np.flatnonzero(may_change).tolist():
        other = members.copy()
        other[operator] = ~members[operator]
        yield other
