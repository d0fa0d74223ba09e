"""Reads demand curves: CSV files with a time stamp and a figure in each row."""

from __future__ import annotations

import os
from datetime import datetime
from functools import partial
from typing import TypeGuard

import numpy as np

from thalweg.errors import Defect
from thalweg.files.workload_csv import (
    LARGEST_CSV_BYTES,
    BadRows,
    number_hint,
    read_contents,
    read_number,
    read_rows,
    refuse_file,
    require_header,
    show_file,
    tell_width,
)
from thalweg.model.demand_curve import DemandCurve

CURVE_COLUMNS = ("timestamp", "value")

_LONGEST_STAMP = 40
_LARGEST_VALUE = 1e15
_STAMP_RULE = "a date and time without a zone, such as 2014-07-01 00:30:00"
_VALUE_RULE = f"a number from 0 to {_LARGEST_VALUE:g}"


def read_demand_curve(path: str | os.PathLike[str]) -> DemandCurve:
    """The curve in a CSV file with the columns `timestamp` and `value`, from second 0 on.

    Raises:
        InvalidInput: with the bad rows by line, and how many there are.
    """
    file = show_file(os.fspath(path))
    contents = read_contents(path, LARGEST_CSV_BYTES)
    rows = read_rows(contents, file)
    header = next(rows, (1, []))[1]
    require_header(header, CURVE_COLUMNS, file)
    bad = BadRows(file)
    at = [header.index(name) for name in CURVE_COLUMNS]
    stamps: list[datetime] = []
    values: list[float] = []
    for line, row in rows:
        if bad.is_full:
            break
        if len(row) != len(header):
            bad.add(partial(tell_width, line, row, header))
            continue
        stamp, value = _read_stamp(row[at[0]]), read_number(row[at[1]])
        last = stamps[-1] if stamps else None
        if stamp is None or (last and stamp <= last) or not _is_value(value):
            bad.add(partial(_tell, line, (row[at[0]], row[at[1]]), last))
            continue
        stamps.append(stamp)
        values.append(value)
    bad.raise_if_any()
    if not stamps:
        refuse_file(file, "no row below the header", "at least one row")
    time_s = np.array([(stamp - stamps[0]).total_seconds() for stamp in stamps])
    return DemandCurve(time_s=time_s, value=np.array(values), start=stamps[0])


def _tell(line: int, cells: tuple[str, str], last: datetime | None) -> list[Defect]:
    """What is wrong with the cells of one row."""
    found = []
    stamp, value = _read_stamp(cells[0]), read_number(cells[1])
    if stamp is None or (last and stamp <= last):
        rule = _STAMP_RULE if stamp is None else f"a moment after the row before, {last}"
        found.append(Defect(path="timestamp", line=line, value=cells[0], rule=rule))
    if not _is_value(value):
        hint = number_hint(cells[1]) if value is None else ""
        found.append(Defect(path="value", line=line, value=cells[1], rule=_VALUE_RULE, hint=hint))
    return found


def _is_value(value: float | None) -> TypeGuard[float]:
    return value is not None and 0 <= value <= _LARGEST_VALUE


def _read_stamp(cell: str) -> datetime | None:
    if len(cell) > _LONGEST_STAMP:
        return None
    try:
        found = datetime.fromisoformat(cell.strip())
    except ValueError:
        return None
    return found if found.tzinfo is None else None
