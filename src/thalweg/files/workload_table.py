"""Reads workloads kept as tables: CSV and Parquet with a row for each moment, source and site."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defect, Defects, InvalidInput
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
from thalweg.files.workload_reader import require_few
from thalweg.files.workload_writer import COLUMNS
from thalweg.model.names import NAME_RULE, is_name, name_hint
from thalweg.model.workload import ALL_SITES, Workload
from thalweg.units import DURATION, EVENT_RATE

if TYPE_CHECKING:
    from thalweg.files.workload_arrow import Rows

TABLE_ENDINGS = (".csv", ".parquet")
LARGEST_PARQUET_BYTES = 128 * 1024 * 1024

_LARGEST = {"time_s": DURATION.largest, "rate": EVENT_RATE.largest}
RULES = {
    "time_s": f"seconds from 0 to {DURATION.largest:g}",
    "source": NAME_RULE,
    "site": f'a name, or "{ALL_SITES}" for all sites together',
    "rate": f"events/s from 0 to {EVENT_RATE.largest:g}",
}
_ONCE = "one row for each moment, source and site"


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether the ending of the name is that of a table."""
    return Path(path).suffix.lower() in TABLE_ENDINGS


def is_csv(path: str | os.PathLike[str]) -> bool:
    """Whether the ending of the name is that of a CSV file."""
    return Path(path).suffix.lower() == ".csv"


def load_workload_table(path: str | os.PathLike[str]) -> Workload:
    """The workload in a `.csv` or `.parquet` file, called like the file.

    Raises:
        InvalidInput: with the bad rows by line, and how many there are.
    """
    return parse_workload_table(read_table_contents(path), path)


def read_table_contents(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a table that is not too large."""
    if is_csv(path):
        return read_contents(path, LARGEST_CSV_BYTES, "save large workloads as .parquet")
    return read_contents(path, LARGEST_PARQUET_BYTES)


def parse_workload_table(contents: bytes, path: str | os.PathLike[str]) -> Workload:
    """What a file of this name with these contents would be loaded as."""
    file, stem = show_file(os.fspath(path)), Path(path).stem
    name = stem if is_name(stem) else "workload"
    if is_csv(path):
        return _parse_csv(contents, file, name)
    from thalweg.files.workload_arrow import read_parquet

    rows = read_parquet(contents, file)
    if not rows.rate.size:
        refuse_file(file, "no row", "at least one row")
    _tell_bad_rows(rows, file)
    return _build(rows, file, name)


def first_row(contents: bytes, path: str | os.PathLike[str], source: str, site: str) -> int | None:
    """The line in a CSV file, or the row in a Parquet file, that first names this pair."""
    file = show_file(os.fspath(path))
    if is_csv(path):
        rows = read_rows(contents, file)
        _, header = next(rows)
        at = header.index("source"), header.index("site")
        return next((n for n, row in rows if (row[at[0]], row[at[1]]) == (source, site)), None)
    from thalweg.files.workload_arrow import read_parquet

    found = read_parquet(contents, file)
    wanted = (np.array(found.sources) == source)[found.source]
    wanted &= (np.array(found.sites) == site)[found.site]
    return int(np.argmax(wanted)) if wanted.any() else None


def _parse_csv(contents: bytes, file: str, name: str) -> Workload:
    if len(contents) > LARGEST_CSV_BYTES:
        rule = f"a file of at most {LARGEST_CSV_BYTES} bytes"
        refuse_file(file, f"{len(contents)} bytes", rule, "save large workloads as .parquet")
    header = next(read_rows(contents, file), (1, []))[1]
    if sorted(header) == ["timestamp", "value"]:
        rule = f"a workload, with the columns {', '.join(COLUMNS)}"
        hint = "read_demand_curve and spread_curve make a workload of it"
        refuse_file(file, "a demand curve", rule, hint, line=1)
    require_header(header, COLUMNS, file)
    from thalweg.files.workload_arrow import read_csv

    try:
        rows = read_csv(contents)
    except ValueError as error:
        _explain_csv(contents, file)
        # Only where both readers differ about what a row is.
        refuse_file(file, str(error).splitlines()[0][:200], "rows of four cells between commas")
    if not rows.rate.size:
        refuse_file(file, "no row below the header", "at least one row")
    if any(bad.any() for bad in _bad_cells(rows).values()) or _repeated(rows).size:
        _explain_csv(contents, file)
    return _build(rows, file, name)


def _explain_csv(contents: bytes, file: str) -> None:
    """Go through the rows one by one, and raise what is wrong with them, by line."""
    bad = BadRows(file)
    rows = read_rows(contents, file)
    _, header = next(rows)
    at = [header.index(name) for name in COLUMNS]
    seen: dict[tuple[float | None, str, str], int] = {}
    known_sources, known_sites = dict[str, bool](), {ALL_SITES: True}
    for line, row in rows:
        if bad.is_full:
            break
        if len(row) != len(header):
            bad.add(partial(tell_width, line, row, header))
            continue
        time_s, source, site, rate = (row[k] for k in at)
        moment = read_number(time_s)
        is_good = (
            _is_figure("time_s", moment)
            and known_sources.setdefault(source, is_name(source))
            and known_sites.setdefault(site, is_name(site))
            and _is_figure("rate", read_number(rate))
        )
        if not is_good:
            bad.add(partial(_tell_cells, line, (time_s, source, site, rate)))
        elif (first := seen.setdefault((moment, source, site), line)) != line:
            bad.add(partial(_tell_repeated, line, f"{time_s}, {source}, {site}", first))
    bad.raise_if_any()


def _tell_repeated(line: int, value: str, first: int) -> list[Defect]:
    hint = f"line {first} has them already"
    return [Defect(path="", line=line, value=value, rule=_ONCE, hint=hint)]


def _is_figure(column: str, number: float | None) -> bool:
    return number is not None and 0 <= number <= _LARGEST[column]


def _tell_cells(line: int, cells: Sequence[str]) -> list[Defect]:
    """What is wrong with the cells of one row."""
    found = []
    for name, cell in zip(COLUMNS, cells, strict=True):
        if name in _LARGEST:
            number = read_number(cell)
            is_good, hint = _is_figure(name, number), number_hint(cell) if number is None else ""
        else:
            is_good, hint = is_name(cell), name_hint(cell)
            is_good = is_good or (name == "site" and cell == ALL_SITES)
        if not is_good:
            found.append(Defect(path=name, line=line, value=cell, rule=RULES[name], hint=hint))
    return found


def _tell_bad_rows(rows: Rows, file: str) -> None:
    """Raise the bad rows of a table without lines, by their number from 0."""
    bad = BadRows(file)
    cells = _bad_cells(rows)

    def tell(row: int) -> list[Defect]:
        found = dict(zip(COLUMNS, _cells(rows, row), strict=True))
        return [
            Defect(path=f"{name}[{row}]", value=found[name], rule=RULES[name])
            for name in COLUMNS
            if cells[name][row]
        ]

    def tell_repeated(row: int) -> list[Defect]:
        value = ", ".join(str(cell) for cell in _cells(rows, row)[:3])
        hint = "a row before has them already"
        return [Defect(path=f"[{row}]", value=value, rule=_ONCE, hint=hint)]

    for row in np.flatnonzero(np.logical_or.reduce(list(cells.values()))).tolist():
        bad.add(partial(tell, row))
    for row in [] if bad.count else _repeated(rows).tolist():
        bad.add(partial(tell_repeated, row))
    bad.raise_if_any()


def _cells(rows: Rows, row: int) -> tuple[float, str, str, float]:
    source, site = rows.sources[rows.source[row]], rows.sites[rows.site[row]]
    return float(rows.time_s[row]), source, site, float(rows.rate[row])


def _bad_cells(rows: Rows) -> dict[str, npt.NDArray[np.bool_]]:
    """Which cells of each column break its rule."""
    bad = {}
    for name, figures in (("time_s", rows.time_s), ("rate", rows.rate)):
        bad[name] = ~((figures >= 0) & (figures <= _LARGEST[name]))
    for name, words, at, also in (
        ("source", rows.sources, rows.source, ()),
        ("site", rows.sites, rows.site, (ALL_SITES,)),
    ):
        bad[name] = ~np.array([is_name(word) or word in also for word in words], dtype=bool)[at]
    return bad


def _repeated(rows: Rows) -> npt.NDArray[np.int64]:
    """The rows that say something about a moment, source and site once more; ascending."""
    order = np.lexsort((rows.site, rows.source, rows.time_s))
    same = np.ones(max(order.size - 1, 0), dtype=bool)
    for column in (rows.site, rows.source, rows.time_s):
        ordered = column[order]
        same &= ordered[1:] == ordered[:-1]
    return np.sort(order[1:][same])


def _build(rows: Rows, file: str, name: str) -> Workload:
    """The workload of rows without defects, in any order; pairs as they first appear."""
    moments, row = np.unique(rows.time_s, return_inverse=True)
    key = rows.source * len(rows.sites) + rows.site
    pairs, first, column = np.unique(key, return_index=True, return_inverse=True)
    defects = Defects()
    require_few(defects, "", moments.size, pairs.size)
    try:
        defects.raise_if_any()
    except InvalidInput as error:
        raise error.in_file(file) from None
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    rate = np.zeros((moments.size, pairs.size))
    rate[row, rank[column]] = rows.rate
    births = [
        (rows.sources[k // len(rows.sites)], rows.sites[k % len(rows.sites)])
        for k in pairs[order].tolist()
    ]
    return Workload(time_s=moments, births=tuple(births), rate=rate, name=name)
