"""The points of a sweep: what a parameter may be, and the key by which a point is known again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from thalweg.errors import Defects

Point: TypeAlias = dict[str, object]

_PLAIN = "text, a number, true, false, nothing, or a list of these"
_KEY_DIGITS = 32
_MOST_DEFECTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """The points of a sweep in their order: as a table, as rows, and the key of each."""

    table: pa.Table
    rows: tuple[Point, ...]
    keys: tuple[str, ...]


def point_key(point: Mapping[str, object]) -> str:
    """The same text for the same parameters, whatever their order; equal numbers are the same.

    >>> point_key({"seed": 1, "load": 0.5}) == point_key({"load": 0.5, "seed": 1.0})
    True
    >>> point_key({"seed": 1}) == point_key({"seed": "1"})
    False
    """
    parts = (f"{json.dumps(name)}:{_canonical(value)}" for name, value in sorted(point.items()))
    return sha256("\n".join(parts).encode()).hexdigest()[:_KEY_DIGITS]


def read_points(points: object, found: Defects) -> Points | None:
    """The points of a table or a list of mappings; None and defects where they are not usable."""
    table = points if isinstance(points, pa.Table) else _tabulate(points, found)
    if table is None:
        return None
    if len(set(table.column_names)) < table.num_columns:
        found.add("points", table.column_names, "columns of different names")
        return None
    rows, first, defective = table.to_pylist(), dict[str, int](), 0
    for number, row in enumerate(rows):
        path = f"points[{number}]"
        if not check_values(row, path, found):
            defective += 1
        elif (earlier := first.setdefault(point_key(row), number)) != number:
            hint = "runs that are to differ need a parameter that differs, such as a seed"
            found.add(path, row, f"a point of its own; points[{earlier}] is the same", hint)
            defective += 1
        if defective == _MOST_DEFECTS:
            break
    return None if defective else Points(table=table, rows=tuple(rows), keys=tuple(first))


def parameter_names(points: object) -> list[str]:
    """The names of the parameters, as far as they can be told: also of points with defects."""
    if isinstance(points, pa.Table):
        return list(points.column_names)
    first = points[0] if isinstance(points, Sequence) and points else None
    return list(first) if isinstance(first, Mapping) else []


def check_values(values: Mapping[str, object], path: str, found: Defects) -> bool:
    """Whether every value is one that a point may have; a defect for each that is not."""
    usable = True
    for name, value in values.items():
        if not _is_plain(value):
            found.add(f"{path}.{name}", value, _PLAIN)
            usable = False
    return usable


def plain(value: object) -> object:
    """The value with NumPy scalars as Python's, and tuples as lists."""
    if isinstance(value, np.generic):
        return value.item()
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def jsonable(value: object) -> object:
    """The value as JSON can say it: numbers that are not finite become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return [jsonable(item) for item in value] if isinstance(value, list) else value


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(not isinstance(item, list) and _is_plain(item) for item in value)
    return value is None or isinstance(value, (bool, int, float, str))


def _canonical(value: object) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_canonical, value))}]"
    if isinstance(value, float):
        # 2 and 2.0 are one point: a column of whole numbers that gains a fraction turns to floats.
        return str(int(value)) if value.is_integer() else repr(value)
    return json.dumps(value)


def _tabulate(points: object, found: Defects) -> pa.Table | None:
    """A list of mappings as a table: each parameter a column of one type."""
    if not isinstance(points, Iterable) or isinstance(points, (str, bytes, Mapping)):
        found.add("points", points, "a pyarrow table or a list of mappings")
        return None
    rows = [_plain_row(row) for row in points]
    wanted = next((list(row) for row in rows if row is not None), [])
    wrong = [number for number, row in enumerate(rows) if row is None or set(row) != set(wanted)]
    for number in wrong[:_MOST_DEFECTS]:
        row = rows[number]
        rule = f"the parameters {', '.join(map(str, wanted))}" if wanted else "a mapping"
        found.add(f"points[{number}]", None if row is None else list(row), rule)
    if wrong:
        return None
    columns = {name: _column(name, [row[name] for row in rows if row], found) for name in wanted}
    return None if None in columns.values() else pa.table(columns)


def _plain_row(row: object) -> Point | None:
    if not isinstance(row, Mapping) or not row or not all(isinstance(name, str) for name in row):
        return None
    return {name: plain(value) for name, value in row.items()}


def _column(name: str, values: Sequence[object], found: Defects) -> pa.Array | None:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        found.add(f"points.{name}", values, f"values of one type ({error})")
        return None
