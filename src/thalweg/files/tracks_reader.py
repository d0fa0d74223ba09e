"""Reads where vehicles were: SUMO's floating-car data, or any table with the same columns."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.files.vehicle_table import (
    MOST_ROWS,
    Columns,
    Field,
    Whole,
    natural_order,
    read_columns,
)
from thalweg.files.workload_csv import refuse_file, show_file
from thalweg.model.graph import Floats
from thalweg.model.vehicles import VehicleTracks
from thalweg.model.workload import Tracks
from thalweg.units import DURATION

Gaps = Literal["refuse", "fill"]

MOST_VEHICLES_TOLD = 5
LONGEST_NAME = 256
LONGEST_TOLD = 64
_FIELDS = (
    Field(("t", "time_s", "timestep_time")),
    Field(("vehicle", "user", "vehicle_id"), "text"),
    Field(("x", "x_m", "vehicle_x")),
    Field(("y", "y_m", "vehicle_y")),
    Field(("speed", "speed_ms", "vehicle_speed"), optional=True),
    Field(("angle", "angle_deg", "vehicle_angle"), optional=True),
    Field(("edge", "vehicle_edge"), "text", optional=True),
    Field(("lane", "vehicle_lane"), "text", optional=True),
    Field(("pos", "pos_m", "vehicle_pos"), optional=True),
)
_FIGURES = ("t", "x", "y", "speed", "angle", "pos")
_LANE = re.compile(r"_[0-9]+\Z")
_NAME_RULE = f"a name of 1 to {LONGEST_NAME} printable characters"


def load_tracks(
    path: str | os.PathLike[str],
    *,
    most_speed_ms: float = 100.0,
    gaps: Gaps = "refuse",
    most_gap_s: float | None = None,
) -> VehicleTracks:
    """The tracks in a `.parquet` or `.csv` file, with rows in any order.

    Columns: time `t` (s), `vehicle`, `x`, `y` (m); where known `speed` (m/s), `angle` (degrees),
    `edge` and `pos` (m along the edge). Names as in SUMO's CSV (`timestep_time`, `vehicle_x`…) do
    as well; of a lane its edge is taken. Vehicles come in the order in which people count: v2
    before v10. Rows without a vehicle and a position, which SUMO writes while no one drives, say
    nothing.

    A vehicle must not move faster than `most_speed_ms`. Where two of its rows are more than
    `most_gap_s` apart (1.5 times the median step, unless given) there is a gap: it is refused, or
    filled on a straight line at the median step; `filled` counts these rows.

    Raises:
        InvalidInput: with every kind of problem, for at most five vehicles each.
    """
    _require_options(most_speed_ms, gaps, most_gap_s)
    file = show_file(os.fspath(path))
    columns = read_columns(path, _FIELDS)
    rows = _sorted_rows(columns)
    if not rows.vehicle.size:
        refuse_file(file, "no row with a vehicle", "at least one position of a vehicle")
    problems = _Problems(rows=rows)
    good = _check_cells(rows, columns, problems)
    step_s, wide = _check_steps(rows, good, problems, most_speed_ms, gaps, most_gap_s)
    problems.raise_if_any(file)
    filled = 0
    if wide.size:
        before = rows.vehicle.size
        rows = _fill(rows, wide, step_s, most_gap_s or 1.5 * step_s, file)
        filled = rows.vehicle.size - before
    return _build(rows, filled)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Rows:
    """Rows by vehicle, then time; `values` holds the figures and the road that there are."""

    names: tuple[str, ...]
    vehicle: Whole
    values: dict[str, Floats]
    edge: Whole | None
    edge_names: tuple[str, ...]


@dataclass(kw_only=True)
class _Problems:
    """Bad rows, told for the first vehicles of each kind of problem."""

    rows: _Rows
    found: list[Defect] = field(default_factory=list)

    def add(
        self, bad: npt.NDArray[Any], path: str, value: Callable[[int], Any], rule: str, hint: str
    ) -> None:
        """Remember rows that break a rule."""
        if not bad.size:
            return
        vehicles, first = np.unique(self.rows.vehicle[bad], return_index=True)
        for vehicle, row in zip(
            vehicles[:MOST_VEHICLES_TOLD].tolist(), bad[first].tolist(), strict=False
        ):
            name = self.rows.names[vehicle]
            place = f"{path} of {name[:LONGEST_TOLD]}{'…' * (len(name) > LONGEST_TOLD)}"
            time_s = self.rows.values["t"][row]
            place += f" at {time_s:g} s" if math.isfinite(time_s) else ""
            self.found.append(Defect(path=place, value=value(row), rule=rule, hint=hint))
        if vehicles.size > MOST_VEHICLES_TOLD:
            told = f"the first {MOST_VEHICLES_TOLD} vehicles above"
            many = f"{bad.size} such rows of {vehicles.size} vehicles, {told}"
            self.found.append(Defect(path=path, value=many, rule="none of them"))

    def raise_if_any(self, file: str) -> None:
        """Raise everything that was remembered."""
        if self.found:
            raise InvalidInput(self.found).in_file(file)


def _require_options(most_speed_ms: float, gaps: str, most_gap_s: float | None) -> None:
    defects = Defects()
    for path, value in (("most_speed_ms", most_speed_ms), ("most_gap_s", most_gap_s)):
        if value is not None:
            good = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
            defects.require(good, path, value, "a number > 0")
    defects.require(gaps in ("refuse", "fill"), "gaps", gaps, 'one of "refuse" and "fill"')
    defects.raise_if_any()


def _sorted_rows(columns: Columns) -> _Rows:
    code, words = columns.texts["vehicle"]
    values = {name: columns.numbers[name] for name in _FIGURES if name in columns.numbers}
    edge, edge_names = _roads(columns)
    if "" in words:
        # SUMO writes a row for a moment at which no one drives.
        nobody = (code == words.index("")) & np.isnan(values["x"]) & np.isnan(values["y"])
        keep = np.flatnonzero(~nobody)
        if keep.size < code.size:
            code, values = code[keep], {name: array[keep] for name, array in values.items()}
            edge = None if edge is None else edge[keep]
    seen = np.flatnonzero(np.bincount(code, minlength=len(words)))
    names = [words[k] for k in seen.tolist()]
    order = natural_order(names)
    rank = np.zeros(len(words), dtype=np.int64)
    rank[seen[order]] = np.arange(seen.size)
    vehicle = rank[code]
    if not _is_sorted(vehicle, values["t"]):
        by = np.lexsort((values["t"], vehicle))
        vehicle, values = vehicle[by], {name: array[by] for name, array in values.items()}
        edge = None if edge is None else edge[by]
    ordered = tuple(names[k] for k in order)
    return _Rows(names=ordered, vehicle=vehicle, values=values, edge=edge, edge_names=edge_names)


def _is_sorted(vehicle: Whole, time_s: Floats) -> bool:
    step = np.diff(vehicle)
    return bool(((step > 0) | ((step == 0) & (np.diff(time_s) >= 0))).all())


def _roads(columns: Columns) -> tuple[Whole | None, tuple[str, ...]]:
    """The road of each row as a position in the sorted names of all roads; −1 for no road."""
    if "edge" in columns.texts:
        code, words = columns.texts["edge"]
    elif "lane" in columns.texts:
        code, words = columns.texts["lane"]
        words = [_LANE.sub("", word) for word in words]
    else:
        return None, ()
    seen = set(np.flatnonzero(np.bincount(code, minlength=len(words))).tolist())
    names = sorted({word for k, word in enumerate(words) if k in seen} - {""})
    place = {name: k for k, name in enumerate(names)}
    number = np.array([place.get(word, -1) for word in words], dtype=np.int64)
    return number[code], tuple(names)


def _check_cells(rows: _Rows, columns: Columns, problems: _Problems) -> npt.NDArray[np.bool_]:
    """Tell what is no name or no finite number; which rows have a moment and a position."""
    is_name = [0 < len(name) <= LONGEST_NAME and name.isprintable() for name in rows.names]
    bad = np.flatnonzero(~np.array(is_name, dtype=bool)[rows.vehicle])
    called = columns.called["vehicle"]
    hint = "every position belongs to a vehicle"
    problems.add(bad, called, lambda row: rows.names[rows.vehicle[row]], _NAME_RULE, hint)
    good = np.ones(rows.vehicle.size, dtype=bool)
    for name, values in rows.values.items():
        is_good, rule = np.isfinite(values), "a finite number"
        if name == "t":
            is_good &= (values >= 0) & (values <= DURATION.largest)
            rule = f"seconds from 0 to {DURATION.largest:g}"
        hint = "" if name in ("t", "x", "y") else "leave the whole column out where it is not known"
        bad = np.flatnonzero(~is_good)
        problems.add(bad, columns.called[name], _value_of(values), rule, hint)
        if name in ("t", "x", "y"):
            good &= is_good
    return good


def _value_of(values: Floats) -> Callable[[int], float]:
    return lambda row: float(values[row])


def _check_steps(
    rows: _Rows,
    good: npt.NDArray[np.bool_],
    problems: _Problems,
    most_speed_ms: float,
    gaps: Gaps,
    most_gap_s: float | None,
) -> tuple[float, Whole]:
    """Tell moments that are there twice, jumps and gaps; the median step, and gaps to be filled."""
    at = np.flatnonzero(good)
    time_s, x_m, y_m = (rows.values[name][at] for name in ("t", "x", "y"))
    same = np.diff(rows.vehicle[at]) == 0
    step_s = np.diff(time_s)
    way_m = np.hypot(np.diff(x_m), np.diff(y_m))
    twice = at[1:][same & (step_s == 0)]
    hint = "keep one row for each vehicle and moment"
    problems.add(twice, "t", _value_of(rows.values["t"]), "a moment only once", hint)
    moving = same & (step_s > 0)
    jump = np.flatnonzero(moving & (way_m > most_speed_ms * step_s))
    place = dict(zip(at[jump + 1].tolist(), jump.tolist(), strict=True))

    def tell_jump(row: int) -> str:
        return f"{way_m[place[row]]:.6g} m in {step_s[place[row]]:.6g} s"

    rule = f"at most {most_speed_ms:g} m/s"
    hint = "positions are in metres, times in seconds; name trips apart that are not one"
    problems.add(at[jump + 1], "position", tell_jump, rule, hint)
    if not moving.any():
        return 1.0, np.empty(0, np.int64)
    median_s = float(np.median(step_s[moving]))
    # A row that is bad already leaves a gap that is none.
    whole = np.bincount(rows.vehicle[~good], minlength=len(rows.names)) == 0
    longest_s = most_gap_s or 1.5 * median_s
    wide = np.flatnonzero(moving & (step_s > longest_s) & whole[rows.vehicle[at[1:]]])
    if gaps == "fill":
        return median_s, at[wide]
    place = dict(zip(at[wide + 1].tolist(), wide.tolist(), strict=True))

    def tell_gap(row: int) -> str:
        return f"nothing for {step_s[place[row]]:.6g} s before"

    rule = f"a row at least every {longest_s:g} s of a trip"
    problems.add(at[wide + 1], "t", tell_gap, rule, "`--fill-gaps` fills them on a straight line")
    return median_s, np.empty(0, np.int64)


def _fill(rows: _Rows, wide: Whole, step_s: float, longest_s: float, file: str) -> _Rows:
    """The rows, with further ones between each of the rows in `wide` and the one after it."""
    time_s = rows.values["t"]
    gap_s = time_s[wide + 1] - time_s[wide]
    parts = np.maximum(np.rint(gap_s / step_s), np.ceil(gap_s / longest_s * (1 - 1e-12)))
    total = rows.vehicle.size + float(parts.sum())
    if total > MOST_ROWS:
        rule = f"gaps that {MOST_ROWS} rows can fill"
        refuse_file(file, f"{total:.0f} rows", rule, "name trips apart that are not one")
    copies = np.ones(rows.vehicle.size, dtype=np.int64)
    copies[wide] = np.maximum(parts, 2).astype(np.int64)
    old = np.repeat(np.arange(copies.size), copies)
    turn = np.arange(old.size) - np.repeat(np.cumsum(copies) - copies, copies)
    new = np.flatnonzero(turn)
    share = turn[new] / copies[old[new]]
    a, b = old[new], old[new] + 1
    values = {name: array[old] for name, array in rows.values.items()}
    for name, array in rows.values.items():
        way = array[b] - array[a]
        if name == "angle":
            way = (way + 180.0) % 360.0 - 180.0
        if name == "pos" and rows.edge is not None:
            # On another road the metres begin anew.
            way = np.where(rows.edge[a] == rows.edge[b], way, 0.0)
        values[name][new] = array[a] + share * way
    if "angle" in values:
        values["angle"][new] %= 360.0
    return _Rows(
        names=rows.names,
        vehicle=rows.vehicle[old],
        values=values,
        edge=None if rows.edge is None else rows.edge[old],
        edge_names=rows.edge_names,
    )


def _build(rows: _Rows, filled: int) -> VehicleTracks:
    values = rows.values
    return VehicleTracks(
        names=rows.names,
        tracks=Tracks(user=rows.vehicle, time_s=values["t"], x_m=values["x"], y_m=values["y"]),
        speed_ms=values.get("speed"),
        angle_deg=values.get("angle"),
        edge=None if rows.edge is None else rows.edge.astype(np.int32),
        edge_names=rows.edge_names,
        pos_m=values.get("pos"),
        filled=filled,
    )
