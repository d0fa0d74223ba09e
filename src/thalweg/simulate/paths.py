"""Which latencies are told apart: a row for each way from a birth to a sink, if there are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.simulate.program import Program

_MOST_ROWS = 2_000
Index = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRow:
    """Ways from sources to a sink whose latencies are counted together."""

    application: int
    name: str
    source: str
    sink: str
    ways: float
    """How many."""


@dataclass(frozen=True, slots=True, eq=False)
class PathBook:
    """The rows, and the row of each token."""

    rows: list[PathRow]
    row_of: Index


def list_paths(programs: Sequence[Program], *, most: int = _MOST_ROWS) -> PathBook:
    """A row for each way; where there are too many, for each birth and sink, or source and sink."""
    total = sum(program.lineages.count for program in programs)
    row_of = np.zeros(total, dtype=np.int32)
    rows: list[PathRow] = []
    for program in programs:
        _list_own(program, rows, row_of, most)
    return PathBook(rows or [], row_of)


def _list_own(program: Program, rows: list[PathRow], row_of: Index, most: int) -> None:
    app, lineages = program.problem.application, program.lineages
    sinks = [k for k, o in enumerate(app.operators) if o.kind == "sink"]
    ends = int(sum(lineages.operator_count[k] for k in sinks))
    births = program.problem.births.operator.size
    single = not lineages.merged and ends <= most
    by_birth = births * len(sinks) <= most
    ways, entering = _ways(program), _entering(program)
    known: dict[tuple[int, int], int] = {}
    for sink in sinks:
        first = int(lineages.operator_first[sink])
        for place in range(int(lineages.operator_count[sink])):
            token = first + place
            birth = int(lineages.birth[token])
            count = 1.0 if not lineages.merged else ways[sink, birth]
            if not count:
                continue
            if single:
                row_of[program.first_token + token] = len(rows)
                rows.append(_single(program, entering, token, sink))
                continue
            source = int(program.problem.births.operator[birth])
            key = (sink, birth if by_birth else source)
            if key not in known:
                known[key] = len(rows)
                rows.append(_group(program, sink, birth, site=by_birth))
            number = known[key]
            row_of[program.first_token + token] = number
            old = rows[number]
            rows[number] = PathRow(
                application=old.application,
                name=old.name,
                source=old.source,
                sink=old.sink,
                ways=old.ways + count,
            )


def _ways(program: Program) -> npt.NDArray[np.float64]:
    """How many ways lead from each birth to each operator."""
    app, births = program.problem.application, program.problem.births
    if not program.lineages.merged:
        return np.zeros((0, 0))
    ways = np.zeros((len(app.operators), births.operator.size))
    ways[births.operator, np.arange(births.operator.size)] = 1.0
    graph = app.graph
    with np.errstate(over="ignore"):
        for operator in graph.order.tolist():
            for stream in np.flatnonzero(graph.source == operator).tolist():
                ways[graph.target[stream]] += ways[operator]
    return ways


def _entering(program: Program) -> list[list[tuple[int, int, int, int]]]:
    """Of each operator the blocks of tokens that come in: first, end, sender, and its first."""
    lineages = program.lineages
    graph = program.problem.application.graph
    found: list[list[tuple[int, int, int, int]]] = [[] for _ in range(graph.size)]
    for stream, (a, b) in enumerate(zip(graph.source.tolist(), graph.target.tolist(), strict=True)):
        first = int(lineages.stream_first[stream])
        end = first + int(lineages.stream_count[stream])
        found[b].append((first, end, a, int(lineages.operator_first[a])))
    return found


def _single(
    program: Program, entering: list[list[tuple[int, int, int, int]]], token: int, sink: int
) -> PathRow:
    """The row of one way, named after the operators on it."""
    app, lineages = program.problem.application, program.lineages
    names = [app.operators[sink].name]
    operator = sink
    while True:
        for first, end, sender, sender_first in entering[operator]:
            if first <= token < end:
                operator, token = sender, token - first + sender_first
                names.append(app.operators[operator].name)
                break
        else:
            break
    birth = int(lineages.birth[token])
    source = _birth_name(program, birth)
    names[-1] = source
    return PathRow(
        application=program.number,
        name=" → ".join(names[::-1]),
        source=source,
        sink=app.operators[sink].name,
        ways=1.0,
    )


def _group(program: Program, sink: int, birth: int, *, site: bool) -> PathRow:
    app = program.problem.application
    operator = int(program.problem.births.operator[birth])
    source = _birth_name(program, birth) if site else app.operators[operator].name
    name = app.operators[sink].name
    return PathRow(
        application=program.number,
        name=f"{source} → … → {name}",
        source=source,
        sink=name,
        ways=0.0,
    )


def _birth_name(program: Program, birth: int) -> str:
    births, problem = program.problem.births, program.problem
    name = problem.application.operators[int(births.operator[birth])].name
    return f"{name}@{problem.network.site_names[int(births.site[birth])]}"
