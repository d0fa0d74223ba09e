"""What a site's query does with each of its batches: publishes its rows in the log, once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.errors import ThalwegError
from thalweg.spark.log import Log
from thalweg.spark.log.names import EpochPlace
from thalweg.spark.log.segment import read_segment
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.monitor.record import Published, published_in
from thalweg.spark.pipeline.kinds import DEAD_LETTERS
from thalweg.spark.query.checkpoint import watermark_of
from thalweg.spark.query.clock import DAWN_MS, SINK_CLOCK, SITE_CLOCK, clock_table, read_mark
from thalweg.spark.query.ended_batches import EndedBatches
from thalweg.spark.query.feeder import TakenLots
from thalweg.spark.query.left_out import LEFT_OUT_STREAM, places_of
from thalweg.spark.query.set_aside import LETTER_SCHEMA, SetAside
from thalweg.spark.query.source_lists import SourceLists
from thalweg.spark.query.spec import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_FROM = "/"


class BatchHeld(ThalwegError):
    """A batch was not to begin any more: its query is being drained."""


class BatchGate:
    """Says whether another batch of a query may begin; a file, as batches may run anywhere."""

    def __init__(self, checkpoint: Path) -> None:
        self._closed = checkpoint.with_name(checkpoint.name + ".closed")

    def close(self) -> None:
        """Let no other batch begin."""
        self._closed.touch()

    def open(self) -> None:
        """Let batches begin."""
        self._closed.unlink(missing_ok=True)

    def pass_through(self) -> None:
        """Go on if the gate is open; a batch function calls this before anything else.

        Raises:
            BatchHeld: where it is closed. The query ends, and nothing of the batch was done.
        """
        if self._closed.exists():
            raise BatchHeld("no other batch may begin: the query is being drained")


class BatchPublisher:
    """A function for `foreachBatch`: every row of a batch into the streams that it is meant for.

    A batch is computed in one job, whatever the number of streams: state must not be worked on
    twice. Its rows come to the driver as Arrow, from there into the log. A batch that is done
    again, after a crash, publishes what is missing of it, and nothing twice. `outlets` are the
    streams for each of the frames that the batch was put together from.
    """

    def __init__(
        self,
        checkpoint: Path,
        outlets: Mapping[str, tuple[str, ...]],
        open_writer: Callable[[str], LogWriter],
        told: ToldTime | None = None,
        set_aside: SetAside | None = None,
        *,
        durable: bool = True,
    ) -> None:
        self._gate = BatchGate(checkpoint)
        self._ended = EndedBatches()
        self._lists = SourceLists(checkpoint, durable=durable)
        self._taken = TakenLots(checkpoint)
        self._told = told
        self._set_aside = set_aside
        self._outlets = outlets
        self._open_writer = open_writer
        self._writers: dict[str, LogWriter] = {}

    @property
    def stateful(self) -> bool:
        """Whether the query keeps rows from one batch to another."""
        return self._told is not None and self._told.stateful

    @property
    def streams(self) -> tuple[str, ...]:
        """All streams that it publishes in."""
        return tuple(stream for streams in self._outlets.values() for stream in streams)

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Publish the batch of this number."""
        self._ended.let_go()
        self._gate.pass_through()
        lots = self._taken.record(number)
        tables = take_apart(batch.toArrow(), self._outlets)
        if self._set_aside is not None and DEAD_LETTERS in tables:
            before = self._taken.finished(number - 1)
            self._set_aside.forget(before)
            bad = self._set_aside.between(before, lots)
            self._publish_places(number, places_of(bad))
            letters = bad.select(LETTER_SCHEMA.names)
            tables[DEAD_LETTERS] = _join_letters(tables[DEAD_LETTERS], letters)
        for label, table in tables.items():
            for stream in self._outlets[label]:
                # A stream may have gaps in its numbers, so nothing is no reason for a segment.
                if table.num_rows:
                    self._writer(stream).publish(number, table)
        time_ms = self._told.after(number, lots) if self._told else None
        # A query that was only got ready has nothing to say: it may yet be thrown away.
        if self._told and time_ms is not None and time_ms > DAWN_MS:
            # After all rows: who reads it may count on their being there.
            self._writer(self._told.stream).publish(number, clock_table(time_ms))
        self._lists.shorten(number)

    def _publish_places(self, number: int, places: pa.Table) -> None:
        """Say which rows of its sources the batch was done without; the cloud's are not asked."""
        if places.num_rows:
            self._writer(LEFT_OUT_STREAM).publish(number, places)

    def _writer(self, stream: str) -> LogWriter:
        if stream not in self._writers:
            self._writers[stream] = self._open_writer(stream)
        return self._writers[stream]

    def __getstate__(self) -> dict[str, Any]:
        # Writers are opened where they write.
        return self.__dict__ | {"_writers": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTime:
    """Which time a query tells after each batch, and in which stream.

    With state, it is the batch's own: all windows that end by then have been put out. Without, it
    is that of the last mark taken.
    """

    stream: str
    checkpoint: Path
    clock: Path
    stateful: bool

    def after(self, batch: int, lots: Mapping[str, int]) -> int | None:
        """The time [ms] to tell after a batch that has taken these lots; None: not known yet."""
        if self.stateful:
            return watermark_of(self.checkpoint, batch)
        return read_mark(self.clock, lots.get(self.clock.name, -1))


def _join_letters(broken: pa.Table, bad: pa.Table) -> pa.Table:
    """All dead letters of a batch: rows that break a condition, then those that raised."""
    # Where no operator has a condition, there are no columns for them.
    if not broken.num_columns:
        return bad
    return pa.concat_tables([broken, bad.cast(broken.schema)]) if bad.num_rows else broken


class PublishedRows:
    """Counts the rows that a query has published in its epoch, wherever its batches ran.

    `beside` them it publishes streams that hold no rows of the application, and take up a link.
    """

    def __init__(
        self, spec: QuerySpec, streams: Iterable[str], *, beside: Iterable[str] = ()
    ) -> None:
        self._log = Log(spec.log)
        self._places, self._beside = (
            [
                EpochPlace(root=spec.log, stream=stream, site=spec.site, epoch=spec.epoch)
                for stream in group
            ]
            for group in (streams, beside)
        )
        self._counted = {place.stream: (-1, 0) for place in self._places}

    def __call__(self) -> dict[str, int]:
        """The rows in each stream."""
        for place in self._places:
            batch, rows = self._counted[place.stream]
            for segment in self._log.segments_at(place, batch, fenced=True):
                batch, rows = segment.batch, rows + segment.rows
            self._counted[place.stream] = (batch, rows)
        return {stream: rows for stream, (_, rows) in self._counted.items()}

    def figures(self, batch: int) -> dict[str, Published]:
        """What one batch has published in each stream; see `thalweg.spark.monitor.record`."""
        places = (*self._places, *self._beside)
        found = {place.stream: read_segment(place, batch) for place in places}
        return {stream: published_in(segment) for stream, segment in found.items() if segment}


class WriterOpener:
    """Opens the writers of a query's streams."""

    def __init__(self, spec: QuerySpec, times: Mapping[str, str]) -> None:
        self._spec = spec
        self._times = times

    def __call__(self, stream: str) -> LogWriter:
        """The writer of a stream, which knows where event times are, if they are anywhere."""
        spec = self._spec
        durable = spec.durable
        time = "time" if stream in (SITE_CLOCK, SINK_CLOCK) else self._times.get(stream)
        return LogWriter(
            spec.log, stream, spec.site, spec.epoch, time=time, durable=durable, founds=False
        )


def put_together(frames: Mapping[str, DataFrame]) -> DataFrame:
    """One frame with the rows of several, each in columns of its own, and where each row is from.

    Flat columns rather than a structure for each frame: what is empty then costs next to nothing.
    A single frame stays as it is; `take_apart` knows.
    """
    from pyspark.sql import functions as sql

    if len(frames) == 1:
        (frame,) = frames.values()
        return frame
    parts = []
    for label, frame in frames.items():
        columns = [
            # In the rows of other frames there is nothing, where perhaps something must be.
            sql.col(f"`{field.name}`")
            .cast(_nullable(field.dataType))
            .alias(f"{label}/{field.name}")
            for field in frame.schema
        ]
        parts.append(frame.select(sql.lit(label).alias(_FROM), *columns))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    return whole


def _nullable(kind: DataType) -> DataType:
    """The same type, with nothing allowed in all parts of it."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _nullable(f.dataType)) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_nullable(kind.keyType), _nullable(kind.valueType))
    return kind


def take_apart(table: pa.Table, labels: Collection[str]) -> dict[str, pa.Table]:
    """The rows of each frame that `put_together` was given."""
    if len(labels) == 1:
        (label,) = labels
        return {label: table}
    taken = {}
    for label in labels:
        names = [name for name in table.column_names if name.startswith(f"{label}/")]
        rows = table.filter(pc.equal(table.column(_FROM), label)).select(names)
        taken[label] = rows.rename_columns([name.removeprefix(f"{label}/") for name in names])
    return taken
