"""Measured times in tables: when events were born, and how long operators worked on them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defect, InvalidInput
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
from thalweg.files.workload_table import is_csv, is_table
from thalweg.units import DURATION

Floats = npt.NDArray[np.float64]
_RULE = f"seconds from 0 to {DURATION.largest:g}"


def load_births(path: str | os.PathLike[str]) -> dict[tuple[str, str], Floats]:
    """When events are born, by (source, site): a `.csv` or `.parquet` file with these columns.

    The columns are `source`, `site` and `time_s`; rows may come in any order.

    Raises:
        InvalidInput: with the bad rows by line, and how many there are.
    """
    found = _load(path, ("source", "site"), "time_s")
    return {(key[0], key[1]): np.sort(times) for key, times in found.items()}


def load_service_times(path: str | os.PathLike[str]) -> dict[str, Floats]:
    """How long operators worked on events: a `.csv` or `.parquet` file.

    The columns are `operator` and `seconds`.

    Raises:
        InvalidInput: with the bad rows by line, and how many there are.
    """
    return {key[0]: values for key, values in _load(path, ("operator",), "seconds").items()}


def _load(
    path: str | os.PathLike[str], names: Sequence[str], figure: str
) -> dict[tuple[str, ...], Floats]:
    file = show_file(os.fspath(path))
    if not is_table(path):
        refuse_file(file, None, "a file name that ends in .csv or .parquet")
    if is_csv(path):
        hint = "save large tables as .parquet"
        return _parse_csv(read_contents(path, LARGEST_CSV_BYTES, hint), file, names, figure)
    return _load_parquet(path, file, names, figure)


def _parse_csv(
    contents: bytes, file: str, names: Sequence[str], figure: str
) -> dict[tuple[str, ...], Floats]:
    rows = read_rows(contents, file)
    _, header = next(rows)
    require_header(header, (*names, figure), file)
    at = [header.index(name) for name in names]
    place = header.index(figure)
    bad = BadRows(file)
    found: dict[tuple[str, ...], list[float]] = {}
    for line, row in rows:
        if len(row) != len(header):
            bad.add(lambda line=line, row=row: tell_width(line, row, header))  # type: ignore[misc]
            continue
        number = read_number(row[place])
        if number is None or not 0 <= number <= DURATION.largest:
            cell = row[place]
            bad.add(lambda line=line, cell=cell: [_bad_cell(figure, line, cell)])  # type: ignore[misc]
            continue
        found.setdefault(tuple(row[k].strip() for k in at), []).append(number)
    bad.raise_if_any()
    return {key: np.array(values) for key, values in found.items()}


def _bad_cell(figure: str, line: int, cell: str) -> Defect:
    return Defect(path=figure, line=line, value=cell, rule=_RULE, hint=number_hint(cell))


def _load_parquet(
    path: str | os.PathLike[str], file: str, names: Sequence[str], figure: str
) -> dict[tuple[str, ...], Floats]:
    from thalweg.files.vehicle_table import Field, read_columns

    columns = read_columns(path, [*(Field((name,), "text") for name in names), Field((figure,))])
    values = columns.numbers[figure]
    good = np.isfinite(values) & (values >= 0) & (values <= DURATION.largest)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        bad = f"{float(values[row])} in row {row}"
        raise InvalidInput([Defect(file=file, path=figure, value=bad, rule=_RULE)])
    # Rows by the position of their texts, in the order of the file within each group.
    group = np.zeros(values.size, dtype=np.int64)
    for name in names:
        code, words = columns.texts[name]
        group = np.unique(group * len(words) + code, return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    parts = np.split(values[order], first[1:]) if first.size else []
    keys = [
        tuple(columns.texts[name][1][columns.texts[name][0][row]] for name in names)
        for row in order[first].tolist()
    ]
    return dict(sorted(zip(keys, parts, strict=True), key=lambda pair: pair[0]))
