"""Carries the open windows of an operator from one place to the next, as the rows they are made of.

What a window holds is a function of its rows, and those are in the log. So when an operator leaves
a site, the rows of its windows that are still open are computed again from the source's log, and
given to where the windows are finished: to the site's next epoch, or to the cloud. A row carries
which of its windows count, as others of them may have been put out already.

What has a dead letter here has it for good: rows that the site has set aside, and those that the
operator refuses, are not handed over. Elsewhere they would be set aside once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from thalweg.errors import Defects
from thalweg.spark.log import Log
from thalweg.spark.log.disk import Disk
from thalweg.spark.log.names import edge_stream, source_stream
from thalweg.spark.log.plan import Reading, parse_offset
from thalweg.spark.log.segment import Segment
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.pipeline.dataflow import keep_good
from thalweg.spark.pipeline.reference import load_pipeline
from thalweg.spark.pipeline.windows import AFTER, UPTO, first_start_us
from thalweg.spark.query.checkpoint import Offsets, last_finished
from thalweg.spark.query.feeder import TakenLots
from thalweg.spark.query.intake import read_segments, write_rows
from thalweg.spark.query.kept import ROWS_FILE, find_fault
from thalweg.spark.query.left_out import read_left_out
from thalweg.spark.query.quarantine import find_bad_rows, why_it_fails
from thalweg.spark.query.spec import DEAD_LETTER, QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from thalweg.spark.pipeline import Pipeline
    from thalweg.spark.pipeline.kinds import Step

# The names on the way to a file of rows are in RUN/carried/SITE@EPOCH/EDGE/rows.
_FOLDERS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryOrder:
    """What an ended epoch hands over: open windows by operator, and the ends [ms] they come after.

    `keep` stays at the site, in `folder`; `send` goes up, as one more batch of the epoch.
    """

    offsets: Offsets
    """Where the epoch ended."""
    batch: int
    """The number for the batch that goes up."""
    folder: str
    keep: Mapping[str, int] = field(default_factory=dict)
    send: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


def carry_folder(folder: Path | str, edge: str) -> Path:
    """Where the rows of one edge lie, for Spark's file source."""
    return Path(folder) / edge / "rows"


def carry_file(folder: Path | str, edge: str) -> Path:
    """The file with the rows of one edge."""
    return carry_folder(folder, edge) / ROWS_FILE


def require_carried(spec: QuerySpec) -> None:
    """Raise `InvalidInput` for what was handed over to a query, is lost, and was not worked on.

    Without it, its open windows would be left out, and nobody would know.
    """
    defects = Defects()
    for edge, folder in sorted(spec.carried.items()):
        file = Path(folder) / ROWS_FILE
        fault = find_fault(file)
        if fault and not _was_finished(spec.checkpoint, edge):
            rule = "the rows of open windows that were handed over"
            hint = (
                f"it {fault}; restore the whole folder of the run from a copy, or have all rows "
                "worked on again by `thalweg doctor FOLDER --rebuild`"
            )
            defects.add(f"carried.{edge}", str(file), rule, hint)
    defects.raise_if_any()


def _was_finished(checkpoint: Path, edge: str) -> bool:
    """Whether a batch that is finished has taken the rows of an edge."""
    try:
        return edge in TakenLots(checkpoint).finished(last_finished(checkpoint))
    except (OSError, ValueError):
        return False


def carry_windows(session: SparkSession, spec: QuerySpec, order: CarryOrder) -> dict[str, int]:
    """Hand over the open windows of an epoch that was drained; gives the rows by edge.

    To do it again changes nothing. What is kept at the site is as safe then as what is sent: with
    `durable`, on the disk.
    """
    pipeline = load_pipeline(spec.pipeline)
    spec.require_code(pipeline)
    carried: dict[str, int] = {}
    rows = _Rows(session, spec, order, pipeline)
    for name, after_ms in {**order.keep, **order.send}.items():
        opening = pipeline.openings[name]
        since_us = first_start_us(after_ms, opening.window)
        for sender in opening.senders:
            edge = f"{sender}+{name}"
            wanted = _Wanted(sender=sender, since_us=since_us, must=pipeline.step(name).must)
            table = _with_bounds(rows.table(wanted), after_ms)
            carried[edge] = table.num_rows
            if name in order.keep:
                keep_rows(table, carry_file(order.folder, edge), Disk(durable=spec.durable))
            elif table.num_rows:
                stream = edge_stream(sender, name)
                writer = LogWriter(
                    spec.log, stream, spec.site, spec.epoch, durable=spec.durable, founds=False
                )
                writer.publish(order.batch, table)
    return carried


def keep_rows(table: pa.Table, file: Path, disk: Disk) -> None:
    """Put rows into their file, and have the folders that lead to it survive as it does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_rows(table, file, disk)
    for folder in file.parents[1:_FOLDERS]:
        disk.sync_folder(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The rows of a sender since a time [us] that their reader does not refuse."""

    sender: str
    since_us: int
    must: tuple[str, ...]


class _Rows:
    """What senders have put out up to where the epoch ended."""

    def __init__(
        self, session: SparkSession, spec: QuerySpec, order: CarryOrder, pipeline: Pipeline
    ) -> None:
        self._session, self._spec, self._order = session, spec, order
        self._pipeline = pipeline
        self._log = Log(spec.log)
        self._left_out = read_left_out(self._log, spec.site)
        # Operators that read the same rows often have the same windows.
        self._made: dict[_Wanted, pa.Table] = {}

    def table(self, wanted: _Wanted) -> pa.Table:
        """These rows."""
        if wanted not in self._made:
            self._made[wanted] = self._compute(wanted)
        return self._made[wanted]

    def _compute(self, wanted: _Wanted) -> pa.Table:
        sources = self._pipeline.step(wanted.sender).sources
        tables = {source.name: self._read(source, wanted.since_us) for source in sources}
        try:
            return self._make(wanted, tables).toArrow()
        except Exception:
            if self._spec.bad_rows != DEAD_LETTER:
                raise
        left = {name: self._without_failing(wanted, tables, name) for name in tables}
        return self._make(wanted, left).toArrow()

    def _without_failing(
        self, wanted: _Wanted, tables: Mapping[str, pa.Table], source: str
    ) -> pa.Table:
        """The rows of a source without those that the sender, or what is before it, fails at.

        They were in no window here, or the site would have set them aside: they came before the
        sender did, and went up as they were born. However many they are, none is needed.
        """
        table = tables[source]

        def attempt(places: Sequence[int]) -> str | None:
            some = table.take(list(places))
            return why_it_fails(self._make(wanted, {**_empty(tables), source: some}))

        bad: dict[int, str] = {}
        find_bad_rows(range(table.num_rows), attempt, bad, most=table.num_rows)
        return table.take([place for place in range(table.num_rows) if place not in bad])

    def _make(self, wanted: _Wanted, tables: Mapping[str, pa.Table]) -> DataFrame:
        from pyspark.sql import functions as sql

        frames = {name: self._show(name, table) for name, table in tables.items()}
        step = self._pipeline.step(wanted.sender)
        if step.role == "source":
            made = frames[step.name]
        else:
            made = self._pipeline.run(frames, self._pipeline.upstream_of(step.name))[step.name]
        time = next(name for name in step.times if name in made.columns)
        recent = made.where(sql.col(time) >= sql.timestamp_micros(sql.lit(wanted.since_us)))
        return keep_good(recent, wanted.must)

    def _show(self, source: str, table: pa.Table) -> DataFrame:
        file = Path(self._order.folder) / f"{source}-{uuid4().hex}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_rows(table, file)
        schema = self._pipeline.schemas(self._session)[source]
        return self._session.read.schema(schema).parquet(str(file))

    def _read(self, source: Step, since_us: int) -> pa.Table:
        from pyspark.sql.pandas.types import to_arrow_schema

        stream = source_stream(source.name)
        upto = parse_offset(self._order.offsets.get(stream, {}), f"offsets.{stream}")
        reading = Reading(log=self._log, stream=stream, site=self._spec.site)
        schema = to_arrow_schema(self._pipeline.schemas(self._session)[source.name], timezone="UTC")
        left = [
            self._left_out.drop_from(source.name, segment, read_segments([segment], schema))
            for segment in reading.between({}, upto)
            if _may_hold(segment, since_us)
        ]
        return pa.concat_tables([schema.empty_table(), *left])


def _with_bounds(table: pa.Table, after_ms: int) -> pa.Table:
    """The rows with the columns that say which of their windows count."""
    sort = pa.timestamp("us", "UTC")
    after = pa.repeat(pa.scalar(after_ms * 1000, pa.int64()).cast(sort), table.num_rows)
    bounded = table.append_column(AFTER, after)
    return bounded.append_column(UPTO, pa.nulls(table.num_rows, sort))


def _empty(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    return {name: table.slice(0, 0) for name, table in tables.items()}


def _may_hold(segment: Segment, since_us: int) -> bool:
    """Whether a segment can have an event since a time; one whose times are not known can."""
    return segment.latest_us is None or segment.latest_us >= since_us
