"""What an event is, as one number: where it was born, and which streams it has come along.

Tokens of one stream are a block, in the order of the tokens of the operator that sends them, so
that going along a stream adds the same number to every token. An operator's tokens are the blocks
of its streams one after the other (and of what is born in it). Where the ways through a graph are
too many to be told apart, events are told apart by their birth alone, and are as large as the mean
of what comes to an operator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Floats, Index
from thalweg.model.problem import Problem

_MOST_TOKENS = 200_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Lineages:
    """The tokens of an application's events, from 0 on."""

    count: int
    operator_first: npt.NDArray[np.int64]
    operator_count: npt.NDArray[np.int64]
    """The tokens of events that come to each operator (and are born there)."""
    stream_first: npt.NDArray[np.int64]
    stream_count: npt.NDArray[np.int64]
    """The tokens of events on each stream."""
    size_bytes: Floats
    birth: Index
    """The row of the problem's births that each comes from."""
    merged: bool
    """Whether ways that join are not told apart any more."""

    def shifts(self, problem: Problem, stream: int) -> tuple[int, int]:
        """What to add to a token as it leaves along a stream, and as it arrives at its end."""
        graph = problem.application.graph
        source, target = int(graph.source[stream]), int(graph.target[stream])
        leave = int(self.stream_first[stream] - self.operator_first[source])
        arrive = int(self.operator_first[target] - self.stream_first[stream])
        return leave, arrive if self.merged else 0


def trace_lineages(problem: Problem, *, most: int = _MOST_TOKENS) -> Lineages:
    """Number all that an event can be."""
    ways = _count_ways(problem)
    return _by_way(problem) if ways <= most else _by_birth(problem)


def _count_ways(problem: Problem) -> float:
    """How many ways lead from a birth to an operator, over all operators."""
    graph = problem.application.graph
    ways = np.bincount(problem.births.operator, minlength=graph.size).astype(float)
    with np.errstate(over="ignore"):
        for level in graph.downstream():
            ways[level.vertices] += np.add.reduceat(ways[graph.source[level.edges]], level.starts)
    return float(ways.sum())


def _by_way(problem: Problem) -> Lineages:
    app, births = problem.application, problem.births
    graph, columns = app.graph, app.columns
    entering: list[list[int]] = [[] for _ in app.operators]
    for stream, target in enumerate(graph.target.tolist()):
        entering[target].append(stream)
    source = graph.source.tolist()
    first = np.zeros(graph.size, dtype=np.int64)
    count = np.zeros(graph.size, dtype=np.int64)
    stream_first = np.zeros(len(app.streams), dtype=np.int64)
    stream_count = np.zeros(len(app.streams), dtype=np.int64)
    sizes: list[Floats] = []
    rows: list[Index] = []
    total = 0
    at: dict[int, tuple[Floats, Index]] = {}
    for operator in graph.order.tolist():
        born = np.flatnonzero(births.operator == operator).astype(np.int32)
        parts = [(np.full(born.size, columns.event_size[operator]), born)]
        first[operator] = total
        total += born.size
        for stream in entering[operator]:
            size, row = at[source[stream]]
            stream_first[stream], stream_count[stream] = total, row.size
            total += row.size
            parts.append((size, row))
        size = np.concatenate([part[0] for part in parts])
        row = np.concatenate([part[1] for part in parts])
        count[operator] = row.size
        sizes.append(size)
        rows.append(row)
        shrink = 1.0 if columns.is_source[operator] else columns.compression[operator]
        at[operator] = (size * shrink, row)
    return Lineages(
        count=total,
        operator_first=first,
        operator_count=count,
        stream_first=stream_first,
        stream_count=stream_count,
        size_bytes=np.concatenate(sizes),
        birth=np.concatenate(rows),
        merged=False,
    )


def _by_birth(problem: Problem) -> Lineages:
    app, births = problem.application, problem.births
    graph, columns = app.graph, app.columns
    each = births.operator.size
    operators, streams = graph.size, len(app.streams)
    # Rows of operators, then of streams; columns of births.
    rate = np.zeros((operators + streams, each))
    bytes_s = np.zeros((operators + streams, each))
    row = np.arange(each)
    rate[births.operator, row] = np.maximum(births.rate, 1e-300)
    bytes_s[births.operator, row] = rate[births.operator, row] * columns.event_size[births.operator]
    for operator in graph.order.tolist():
        born = bool(columns.is_source[operator])
        share = 1.0 if born else max(float(columns.selectivity[operator]), 1e-300)
        shrink = 1.0 if born else float(columns.compression[operator])
        for stream in np.flatnonzero(graph.source == operator).tolist():
            part = share * float(app.probability[stream])
            rate[operators + stream] = rate[operator] * part
            bytes_s[operators + stream] = bytes_s[operator] * part * shrink
            rate[graph.target[stream]] += rate[operators + stream]
            bytes_s[graph.target[stream]] += bytes_s[operators + stream]
    size = np.divide(bytes_s, rate, out=np.zeros_like(rate), where=rate > 0)
    first = np.arange(operators + streams, dtype=np.int64) * each
    return Lineages(
        count=int(size.size),
        operator_first=first[:operators],
        operator_count=np.full(operators, each, dtype=np.int64),
        stream_first=first[operators:],
        stream_count=np.full(streams, each, dtype=np.int64),
        size_bytes=size.reshape(-1),
        birth=np.tile(row, operators + streams).astype(np.int32),
        merged=True,
    )
