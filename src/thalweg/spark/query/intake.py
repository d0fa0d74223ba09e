"""Hands the rows of a stream of the log to a streaming query, one lot after the other.

A lot is what is new in the stream, as one Parquet file in a folder that Spark's own file source
reads. The next one is laid down when the query has finished the last. To drain a query is to lay
down no other lot.

The alternative is a data source in Python (`thalweg.spark.log.source`). Where a plan has branches,
Spark makes a source of its own of every branch that reads the same stream: each with a Python
process, for which it waits ten seconds before it fails the query, and each with offsets of its own,
so that there is no single place where a successor could begin. A file source it has once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from thalweg.spark.log.disk import Disk
from thalweg.spark.log.plan import Reading
from thalweg.spark.log.reader import LogError, Offset
from thalweg.spark.log.segment import Segment, read_batches
from thalweg.spark.pipeline.windows import BOUNDS
from thalweg.spark.query.left_out import RowPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# For so long Spark keeps every file that it has taken in memory. A week is what it does by itself:
# at two files in a second, over a million of them. Files here only become younger (`be_no_older`),
# so that the one which is laid down next is always within it.
_REMEMBERED = "1h"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """What a query is given at once: the rows after one offset up to another."""

    number: int
    start: Offset
    end: Offset
    newest_us: int | None = None
    """The latest event time in this lot and those before it, where rows have one."""


class Intake:
    """The lots of one stream for one query.

    What was laid down stays laid down over the death of any process: a lot is written down before
    its rows are there, and a lot whose rows are missing gets the same rows again.
    """

    def __init__(
        self,
        reading: Reading,
        folder: Path,
        schema: pa.Schema,
        *,
        start: Offset,
        rows: int | None,
        time: str | None = None,
    ) -> None:
        self.label = folder.name
        self.rows_folder = folder / "rows"
        self._reading = reading
        self._schema = schema
        self._rows = rows
        self._time = time
        self._lots_folder = folder / "lots"
        self.rows_folder.mkdir(parents=True, exist_ok=True)
        self._lots_folder.mkdir(exist_ok=True)
        self._last = self._find_last() or Lot(number=-1, start=start, end=start)
        if self._last.number == 0 and self._last.start == self._last.end != start:
            self.begin_at(start)
        if self._last.number >= 0 and not self._rows_file(self._last).exists():
            self._lay_down(self._last, self._read(self._last.start, self._last.end))

    @property
    def last(self) -> Lot:
        """The lot laid down last; number -1 before the first."""
        return self._last

    def lay_next(self, upto: Offset | None = None) -> bool:
        """Lay down the next lot, if there is anything new up to an offset.

        Raises:
            LogError: where the log cannot be read, or its rows do not have the right columns.
        """
        start = self._last.end
        end = self._reading.next_offset(start, rows=self._rows, upto=upto)
        if end == start:
            return False
        table = self._read(start, end)
        newest_us = newest_of(table, self._time, self._last.newest_us)
        number = self._last.number + 1
        self._put(Lot(number=number, start=start, end=end, newest_us=newest_us), table)
        return True

    def _put(self, lot: Lot, table: pa.Table) -> None:
        _write(self._lots_folder / f"{lot.number}.json", json.dumps(asdict(lot)).encode())
        self._lay_down(lot, table)
        self._last = lot

    def _empty(self) -> pa.Table:
        return self._schema.empty_table()

    def lay_nothing(self) -> None:
        """Lay down a first lot without rows, so that the query has begun before there are any."""
        if self._last.number < 0:
            self._put(Lot(number=0, start=self._last.start, end=self._last.end), self._empty())

    def begin_at(self, start: Offset) -> None:
        """Begin at another offset than was thought; only possible before any row."""
        if self._last.number > 0:
            raise LogError(f"{self.label} has begun already, it cannot begin at {dict(start)}")
        self._last = replace(self._last, start=start, end=start)
        if self._last.number == 0:
            self._put(self._last, self._empty())

    def has_all(self, upto: Offset) -> bool:
        """Whether everything up to an offset has been laid down."""
        return self._reading.next_offset(self._last.end, upto=upto) == self._last.end

    def is_at_end(self) -> bool:
        """Whether everything that there is has been laid down."""
        return self._reading.next_offset(self._last.end) == self._last.end

    def places(self, number: int) -> list[RowPlace]:
        """Where in the log each row of a lot is that is not forgotten, in the lot's order."""
        lot = Lot(**json.loads((self._lots_folder / f"{number}.json").read_bytes()))
        segments = self._reading.between(lot.start, lot.end)
        return [(s.epoch, s.batch, place) for s in segments for place in range(s.rows)]

    def forget(self, number: int) -> None:
        """Remove what came before this lot, which the query has finished."""
        for file in (*self._lots_folder.glob("*.json"), *self.rows_folder.glob("*.parquet")):
            if int(file.stem) < number:
                file.unlink()

    def _read(self, start: Offset, end: Offset) -> pa.Table:
        return read_segments(self._reading.between(start, end), self._schema)

    def _lay_down(self, lot: Lot, table: pa.Table) -> None:
        target = self._rows_file(lot)
        # What Spark has found once must stay as it was.
        if not target.exists():
            write_rows(table, target)

    def _rows_file(self, lot: Lot) -> Path:
        return self.rows_folder / f"{lot.number}.parquet"

    def _find_last(self) -> Lot | None:
        files = sorted(self._lots_folder.glob("*.json"), key=lambda file: int(file.stem))
        return Lot(**json.loads(files[-1].read_bytes())) if files else None


def write_rows(table: pa.Table, target: Path, disk: Disk | None = None) -> None:
    """Put rows where Spark's file source finds them, all at once.

    With a disk that is durable, they are there after a power cut; else they may be lost with one.
    """
    # Spark does not look at what begins with a dot.
    draft = target.with_name(f".{uuid4().hex}")
    pq.write_table(table, draft, compression="none", use_dictionary=False)
    be_no_older(draft, _least_ns(target))
    if disk is not None and disk.durable:
        with draft.open("r+b") as file:
            disk.sync_file(file)
    draft.rename(target)
    if disk is not None:
        disk.sync_folder(target.parent)


def read_rows_files(session: SparkSession, folder: Path, schema: StructType | str) -> DataFrame:
    """The rows of the numbered files in a folder, each file a batch as soon as it is there."""
    reader = session.readStream.schema(schema).option("maxFileAge", _REMEMBERED)
    return reader.parquet(str(folder))


def be_no_older(file: Path, least_ns: int) -> int:
    """Let a file be no older than this, whatever was done to the clock; tells how old it is.

    Spark takes no file that is by `maxFileAge` older than the newest that it has seen.
    """
    is_ns = file.stat().st_mtime_ns
    if is_ns >= least_ns:
        return is_ns
    os.utime(file, ns=(least_ns, least_ns))
    return least_ns


def _least_ns(target: Path) -> int:
    """How old a file may be at most: as the one before it, and the one in whose place it comes."""
    if not target.stem.isdecimal():
        return 0
    before = target.with_name(f"{int(target.stem) - 1}{target.suffix}")
    least_ns = 0
    for file in (before, target):
        with suppress(FileNotFoundError):
            least_ns = max(least_ns, file.stat().st_mtime_ns)
    return least_ns


def newest_of(table: pa.Table, time: str | None, before_us: int | None = None) -> int | None:
    """The latest event time of these rows, and of what was before them."""
    if time is None or not table.num_rows:
        return before_us
    latest = pc.max(table.column(time).cast(pa.timestamp("us", "UTC")).cast(pa.int64())).as_py()
    return max((t for t in (latest, before_us) if t is not None), default=None)


def read_segments(segments: Sequence[Segment], schema: pa.Schema) -> pa.Table:
    """The rows of these segments, with exactly the columns of the schema.

    Raises:
        LogError: where a segment cannot be read, or has other columns.
    """
    files = (file for segment in segments for file in segment.files)
    batches = [_fit(batch, schema, file) for file in files for batch in read_batches(file)]
    return pa.Table.from_batches(batches, schema=schema)


def _fit(batch: pa.RecordBatch, schema: pa.Schema, file: Path) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    for name in BOUNDS:
        if name in schema.names and name not in batch.schema.names:
            nothing = pa.nulls(batch.num_rows, schema.field(name).type)
            batch = batch.append_column(schema.field(name), nothing)
    try:
        return batch.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError, ValueError) as error:
        raise LogError(
            f"cannot read {file}: its columns are not those of the schema: {error}"
        ) from error


def _write(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{uuid4().hex}")
    draft.write_bytes(content)
    draft.rename(path)
