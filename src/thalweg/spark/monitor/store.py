"""Keeps the records of a monitor as Parquet: a few files that take turns, all with one schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import ThalwegError

_COUNTS = pa.map_(pa.string(), pa.int64())
SCHEMA = pa.schema(
    [
        pa.field("at_s", pa.float64(), nullable=False),
        pa.field("site", pa.string(), nullable=False),
        pa.field("role", pa.string(), nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("batch", pa.int64(), nullable=False),
        pa.field("batch_s", pa.float64()),
        pa.field("input_rows", pa.int64()),
        pa.field("lag_s", pa.float64()),
        pa.field("watermark_s", pa.float64()),
        pa.field("rows", _COUNTS),
        pa.field("rows_in", _COUNTS),
        pa.field("stream_rows", _COUNTS),
        pa.field("bytes", _COUNTS),
        pa.field("link_bytes", _COUNTS),
        pa.field("output_bytes", _COUNTS),
        pa.field("cpu_s", pa.float64()),
    ]
)
"""One row for each record; see `thalweg.spark.monitor.record`."""
_NAME = re.compile(r"monitor-(\d{8})\.parquet")


class MonitorStore:
    """Appends records to the newest file of a folder; each file is whole at every moment.

    A file that has `rows_per_file` rows is followed by a new one, and of all of them the newest
    `files` are kept.
    """

    def __init__(self, folder: Path, *, rows_per_file: int = 10_000, files: int = 20) -> None:
        self._folder = folder
        self._rows_per_file = rows_per_file
        self._files = files
        self._table = SCHEMA.empty_table()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # What an earlier monitor wrote stays as it is.
            self._number = max((_number(file) for file in _list(folder)), default=-1) + 1
        except OSError as error:
            raise ThalwegError(f"cannot keep what is monitored in {folder}: {error}") from error

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Put records into the folder.

        Raises:
            ThalwegError: where it cannot be written; nothing is lost of what was there.
        """
        added = to_table(records)
        if not added.num_rows:
            return
        table = pa.concat_tables([self._table, added])
        path = self._folder / f"monitor-{self._number:08d}.parquet"
        draft = path.with_suffix(".draft")
        try:
            pq.write_table(table, draft)
            draft.replace(path)
            for old in _list(self._folder)[: -self._files]:
                old.unlink(missing_ok=True)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise ThalwegError(f"cannot keep what is monitored in {path}: {error}") from error
        if table.num_rows >= self._rows_per_file:
            table, self._number = SCHEMA.empty_table(), self._number + 1
        self._table = table


def read_monitor(folder: Path | str) -> pa.Table:
    """All records in a folder, by time; of equal times, in the order in which they came.

    Raises:
        ThalwegError: where a file cannot be read.
    """
    try:
        tables = [pq.read_table(file, schema=SCHEMA) for file in _list(Path(folder))]
    except (OSError, pa.ArrowException) as error:
        raise ThalwegError(f"cannot read what was monitored in {folder}: {error}") from error
    whole = pa.concat_tables([SCHEMA.empty_table(), *tables])
    order = sorted(range(whole.num_rows), key=whole.column("at_s").to_pylist().__getitem__)
    return whole.take(pa.array(order, pa.int64()))


def to_table(records: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Records as rows of `SCHEMA`."""
    rows = [
        {
            field.name: list(record[field.name].items())
            if pa.types.is_map(field.type)
            else record[field.name]
            for field in SCHEMA
        }
        for record in records
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def to_records(table: pa.Table) -> list[dict[str, Any]]:
    """The records that `to_table` made these rows of."""
    maps = [field.name for field in SCHEMA if pa.types.is_map(field.type)]
    # Monitors before this one kept fewer columns.
    return [row | {name: dict(row[name] or ()) for name in maps} for row in table.to_pylist()]


def _list(folder: Path) -> list[Path]:
    """The files of records, oldest first."""
    return sorted(file for file in folder.glob("monitor-*") if _NAME.fullmatch(file.name))


def _number(file: Path) -> int:
    found = _NAME.fullmatch(file.name)
    return int(found[1]) if found else -1
