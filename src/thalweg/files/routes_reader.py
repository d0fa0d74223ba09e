"""Reads where vehicles mean to drive: their roads with planned times, and the roads' shapes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defect, Defects, InvalidInput, nearest
from thalweg.files.vehicle_table import Field, Whole, natural_order, read_columns
from thalweg.files.workload_csv import refuse_file, show_file
from thalweg.model.graph import Floats
from thalweg.model.planned_routes import PlannedRoutes
from thalweg.units import DURATION

EDGES_FILE = "edges.parquet"
_MOST_TOLD = 5
_ROUTE_FIELDS = (
    Field(("vehicle", "user", "vehicle_id"), "text"),
    Field(("depart", "depart_s")),
    Field(("seq", "step")),
    Field(("edge",), "text"),
    Field(("planned_exit_s",)),
)
_EDGE_FIELDS = (
    Field(("edge", "edge_id"), "text"),
    Field(("length_m",)),
    Field(("x0", "x0_m")),
    Field(("y0", "y0_m")),
    Field(("x1", "x1_m")),
    Field(("y1", "y1_m")),
    Field(("shape",), "list", optional=True),
)


class _Roads(NamedTuple):
    """Roads by name, and their corners."""

    names: list[str]
    length_m: Floats
    first_corner: Whole
    corner_x_m: Floats
    corner_y_m: Floats


def load_routes(
    path: str | os.PathLike[str], edges_path: str | os.PathLike[str] | None = None
) -> PlannedRoutes:
    """The routes in a `.parquet` or `.csv` file, over the roads of `edges_path`.

    A route is a row for each step: `vehicle`, `depart` (s), `seq` (0, 1, 2…), `edge` and
    `planned_exit_s`; what happened in truth (`actual_exit_s`) is not read. The roads stand in
    `edges.parquet` beside it, unless another file is named: `edge`, `length_m`, `x0`, `y0`, `x1`,
    `y1` and, where they are not straight, `shape` as x, y, x, y…. Rows may come in any order;
    vehicles come in the order in which people count: v2 before v10.

    Raises:
        InvalidInput: with every kind of problem, for at most five vehicles or roads each.
    """
    file = show_file(os.fspath(path))
    edges = Path(os.fspath(path)).parent / EDGES_FILE if edges_path is None else edges_path
    defects = Defects()
    columns = defects.attempt("", lambda: read_columns(path, _ROUTE_FIELDS))
    roads = defects.attempt("", lambda: _read_roads(edges))
    defects.raise_if_any()
    assert columns is not None and roads is not None  # noqa: S101
    if not columns.rows:
        refuse_file(file, "no row", "at least one step of a route")
    code, words = columns.texts["vehicle"]
    seen = np.flatnonzero(np.bincount(code, minlength=len(words)))
    names = [words[k] for k in seen.tolist()]
    order = natural_order(names)
    rank = np.zeros(len(words), dtype=np.int64)
    rank[seen[order]] = np.arange(seen.size)
    vehicle, seq = rank[code], columns.numbers["seq"]
    by = np.lexsort((seq, vehicle))
    steps = _Steps(
        names=tuple(names[k] for k in order),
        vehicle=vehicle[by],
        seq=seq[by],
        depart_s=columns.numbers["depart"][by],
        exit_s=columns.numbers["planned_exit_s"][by],
        edge=columns.texts["edge"][0][by],
        words=columns.texts["edge"][1],
    )
    road = _check_steps(steps, roads, file)
    first = np.searchsorted(steps.vehicle, np.arange(len(names) + 1))
    return PlannedRoutes(
        names=steps.names,
        depart_s=steps.depart_s[first[:-1]],
        first_step=first.astype(np.int64),
        edge=road.astype(np.int32),
        exit_s=steps.exit_s,
        edge_names=tuple(roads.names),
        length_m=roads.length_m,
        first_corner=roads.first_corner,
        corner_x_m=roads.corner_x_m,
        corner_y_m=roads.corner_y_m,
    )


class _Steps(NamedTuple):
    """The rows of all routes by vehicle, then step; edges as positions in `words`."""

    names: tuple[str, ...]
    vehicle: Whole
    seq: Floats
    depart_s: Floats
    exit_s: Floats
    edge: Whole
    words: list[str]


def _check_steps(steps: _Steps, roads: _Roads, file: str) -> Whole:
    """The road of each step; raises everything that is wrong with the routes."""
    found: list[Defect] = []

    def tell(
        is_bad: npt.NDArray[Any], path: str, value: Callable[[int], Any], rule: str, hint: str = ""
    ) -> None:
        bad = np.flatnonzero(is_bad)
        vehicles, at = np.unique(steps.vehicle[bad], return_index=True)
        for number, row in list(zip(vehicles.tolist(), bad[at].tolist(), strict=True))[:_MOST_TOLD]:
            place = f"{path} of {steps.names[number]} in step {steps.seq[row]:g}"
            found.append(Defect(path=place, value=value(row), rule=rule, hint=hint))
        if vehicles.size > _MOST_TOLD:
            many = f"{bad.size} such steps of {vehicles.size} vehicles, the first above"
            found.append(Defect(path=path, value=many, rule="none of them"))

    nameless = np.array([not (name and name.isprintable()) for name in steps.names], dtype=bool)
    rule = "a name of printable characters"
    tell(nameless[steps.vehicle], "vehicle", lambda r: steps.names[steps.vehicle[r]], rule)
    new = np.append(True, np.diff(steps.vehicle) != 0)
    begin = np.maximum.accumulate(np.where(new, np.arange(new.size), 0))
    expected = np.arange(new.size) - begin
    rule, hint = "the steps 0, 1, 2… each once", "a step is missing or there twice before"
    tell(steps.seq != expected, "seq", lambda r: float(steps.seq[r]), rule, hint)
    times = (("depart", steps.depart_s), ("planned_exit_s", steps.exit_s))
    rule = f"seconds from 0 to {DURATION.largest:g}"
    for name, values in times:
        is_bad = ~((values >= 0) & (values <= DURATION.largest))
        tell(is_bad, name, lambda r, values=values: float(values[r]), rule)  # type: ignore[misc]
    other = steps.depart_s != steps.depart_s[begin]
    other &= np.isfinite(steps.depart_s) & np.isfinite(steps.depart_s[begin])
    rule = "one departure for all steps of a vehicle"
    tell(other, "depart", lambda r: float(steps.depart_s[r]), rule)
    entered = np.where(new, steps.depart_s, np.append(0.0, steps.exit_s[:-1]))
    rule = "a time that is not before the step begins"
    hint = "planned_exit_s counts from the same zero as depart"
    tell(steps.exit_s < entered, "planned_exit_s", lambda r: float(steps.exit_s[r]), rule, hint)
    number = {name: k for k, name in enumerate(roads.names)}
    known = np.array([number.get(word, -1) for word in steps.words], dtype=np.int64)
    road: Whole = known[steps.edge]
    missing = [steps.words[k] for k in np.unique(steps.edge[road < 0])[:1].tolist()]
    hint = nearest(missing[0], roads.names[:500]) if missing else ""
    rule = "a road of the file of edges"
    tell(road < 0, "edge", lambda r: steps.words[steps.edge[r]], rule, hint)
    if found:
        raise InvalidInput(found).in_file(file)
    return road


def _read_roads(path: str | os.PathLike[str]) -> _Roads:
    file = show_file(os.fspath(path))
    columns = read_columns(path, _EDGE_FIELDS)
    code, words = columns.texts["edge"]
    names = [words[k] for k in code.tolist()]
    length_m = columns.numbers["length_m"]
    ends = [columns.numbers[name] for name in ("x0", "y0", "x1", "y1")]
    found: list[Defect] = []

    def tell(is_bad: npt.NDArray[Any], path: str, value: Callable[[int], Any], rule: str) -> None:
        bad = np.flatnonzero(is_bad)
        found.extend(
            Defect(path=f"{path} of {names[row]}", value=value(row), rule=rule)
            for row in bad[:_MOST_TOLD].tolist()
        )
        if bad.size > _MOST_TOLD:
            value_all = f"{bad.size} such roads, the first {_MOST_TOLD} of them above"
            found.append(Defect(path=path, value=value_all, rule="none of them"))

    twice = np.ones(len(names), dtype=bool)
    twice[np.unique(code, return_index=True)[1]] = False
    tell(twice, "edge", lambda r: names[r], "each road once")
    empty = np.array([not name for name in names], dtype=bool)
    tell(empty, "edge", lambda r: names[r], "a name")
    is_bad = ~((length_m > 0) & np.isfinite(length_m))
    tell(is_bad, "length_m", lambda r: float(length_m[r]), "metres > 0")
    corners, values = columns.lists.get("shape", (np.zeros(len(names) + 1, np.int64), np.empty(0)))
    sizes = np.diff(corners)
    bent = sizes > 0
    rule = "at least two corners as x, y, x, y…"
    tell(bent & ((sizes < 4) | (sizes % 2 == 1)), "shape", lambda r: f"{sizes[r]} numbers", rule)
    broken = np.zeros(len(names), dtype=bool)
    broken[np.repeat(np.arange(len(names)), sizes)[~np.isfinite(values)]] = True
    for values_of in ends:
        broken |= ~bent & ~np.isfinite(values_of)
    tell(broken, "shape", lambda _: "NaN or ∞", "finite numbers")
    if found:
        raise InvalidInput(found).in_file(file)
    if not bent.all():
        corners, values = _straighten(corners, values, np.stack(ends, axis=1))
    return _Roads(names, length_m, corners // 2, values[0::2].copy(), values[1::2].copy())


def _straighten(corners: Whole, values: Floats, ends: Floats) -> tuple[Whole, Floats]:
    """The shapes, with a straight line from end to end for every road without one."""
    sizes = np.diff(corners)
    straight = sizes == 0
    all_sizes = np.where(straight, 4, sizes)
    joined = np.empty(int(all_sizes.sum()))
    is_new = np.repeat(straight, all_sizes)
    joined[is_new], joined[~is_new] = ends[straight].reshape(-1), values
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(all_sizes)]), joined
