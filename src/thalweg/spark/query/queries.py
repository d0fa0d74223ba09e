"""Turns a query spec into a running streaming query.

Everything that a query reads comes through intakes, everything that it computes goes into the log.
There is one streaming query for a spec, whatever the number of streams that it reads and writes.
"""

from __future__ import annotations

import importlib
import json
import logging
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.spark.log import Log
from thalweg.spark.log.disk import LogError
from thalweg.spark.log.founding import require_log
from thalweg.spark.log.plan import Reading, parse_offset
from thalweg.spark.monitor.observation import watch, watch_broken, watch_inbox
from thalweg.spark.pipeline.kinds import CLOCK
from thalweg.spark.pipeline.reference import load_pipeline
from thalweg.spark.pipeline.windows import BOUNDS
from thalweg.spark.query.carry import require_carried
from thalweg.spark.query.checkpoint import hold_checkpoint, last_number, require_writable
from thalweg.spark.query.clock import (
    SINK_CLOCK,
    SITE_CLOCK,
    SOURCE_CLOCK,
    Clock,
    SiteTime,
    SourceTime,
)
from thalweg.spark.query.cpu import BatchCpu
from thalweg.spark.query.feeder import Feeder
from thalweg.spark.query.intake import Intake, read_rows_files
from thalweg.spark.query.left_out import LEFT_OUT_STREAM
from thalweg.spark.query.parts import QueryParts, opening_edges
from thalweg.spark.query.plan import QueryPlan, plan_query
from thalweg.spark.query.publisher import (
    BatchGate,
    BatchPublisher,
    PublishedRows,
    ToldTime,
    WriterOpener,
    put_together,
)
from thalweg.spark.query.quarantine import Quarantine, TriedStream
from thalweg.spark.query.running import Repair, RunningQuery
from thalweg.spark.query.set_aside import SetAside
from thalweg.spark.query.spec import DEAD_LETTER, QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from thalweg.spark.pipeline import Pipeline

_ERROR_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_WATERMARK_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


def check_query(spec: QuerySpec) -> None:
    """Raise `InvalidInput` for what would keep this query from running, as far as can be known.

    Needs no Spark: the coordinator asks before anything is deployed, the site before it starts.
    """
    defects = Defects()
    for path, folder in (("log", spec.log), ("checkpoint", spec.checkpoint.parent)):
        try:
            # What a query of one's own does with a log is its own business.
            if path == "log" and spec.role != "own":
                require_log(folder)
            require_writable(folder)
        except LogError as error:
            defects.add(path, str(folder), "the folder of a log", str(error))
        except OSError as error:
            defects.add(path, str(folder), "a folder that can be written", str(error))
    if spec.role == "own":
        defects.attempt("", lambda: find_attribute(spec.pipeline))
    else:
        pipeline = defects.attempt("", lambda: load_pipeline(spec.pipeline))
        if pipeline is not None:
            # A file may have been edited since the run began, and its process started again.
            defects.attempt("", lambda: spec.require_code(pipeline))
        plan = defects.attempt("", lambda: plan_query(pipeline, spec)) if pipeline else None
        for stream in plan.inputs if plan else ():
            defects.attempt("", lambda stream=stream: _start_of(spec, stream))  # type: ignore[misc]
    defects.raise_if_any()


def start_query(session: SparkSession, spec: QuerySpec, *, held: bool = False) -> RunningQuery:
    """Start the query of this spec; one that has run before goes on from its checkpoint.

    One that is held gets ready and takes no rows until `RunningQuery.release`.

    Raises:
        InvalidInput: where it cannot run, or another query has its checkpoint.
    """
    from pyspark.logger import PySparkLogger

    check_query(spec)
    for name in _ERROR_LOGGERS:
        # What pyspark logs of an error is told as the query's.
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        stack.enter_context(hold_checkpoint(spec.checkpoint))
        BatchGate(spec.checkpoint).open()
        if spec.role == "own":
            make = find_attribute(spec.pipeline)
            repair = Repair(restart=partial(make, session, spec))
            return RunningQuery(spec, make(session, spec), stack.pop_all(), repair=repair)
        _discard_what_was_for_another(spec)
        _discard_what_never_began(spec.checkpoint)
        if not held:
            # What gets ready is handed nothing yet.
            require_carried(spec)
        parts_of = QueryParts.of_spec(session, spec)
        pipeline, plan = parts_of.pipeline, parts_of.plan
        intakes = _open_intakes(spec, pipeline, plan, parts_of.schemas)
        clock = Clock(_intake_folder(spec) / CLOCK)
        stream, publisher = _build(session, spec, parts_of, intakes, clock)
        # The clock is one of several that Spark sees, and the only one that goes.
        session.conf.set(_WATERMARK_POLICY, "max")
        writer = (
            stream.writeStream.foreachBatch(publisher)
            .outputMode("append")
            .queryName(spec.name)
            .option("checkpointLocation", str(spec.checkpoint))
            .trigger(processingTime=f"{round(spec.trigger_s * 1000)} milliseconds")
        )
        query = writer.start()
        beside = (SITE_CLOCK, LEFT_OUT_STREAM) if spec.role == "fog" else ()
        published = PublishedRows(spec, publisher.streams, beside=beside)
        timekeeper = _timekeeper(spec, pipeline, plan, intakes)
        eager = publisher.stateful
        feeder = Feeder(spec.checkpoint, intakes, clock, timekeeper, eager=eager, held=held)
        repair = Repair(restart=writer.start)
        if spec.bad_rows == DEAD_LETTER:
            quarantine = _quarantine(session, spec, parts_of, intakes)
            repair = Repair(set_aside=quarantine, restart=writer.start)
        counting = parts_of.counting(session) if spec.watched else None
        cpu = BatchCpu(session) if spec.watched else None
        held_by = stack.pop_all()
        return RunningQuery(spec, query, held_by, published, feeder, repair, counting, cpu)


def _discard_what_was_for_another(spec: QuerySpec) -> None:
    """Make room for a query of another shape than the one that was got ready, and took nothing.

    Raises:
        InvalidInput: where rows were taken; then the checkpoint is that of another query.
    """
    shape = json.dumps(
        {"cut": sorted(spec.cut), "gates": dict(spec.gates), "carried": dict(spec.carried)},
        sort_keys=True,
    )
    known = spec.checkpoint.with_name(spec.checkpoint.name + ".shape")
    if known.exists() and known.read_text() != shape:
        lots = _intake_folder(spec).glob("*/lots/*.json")
        if any(int(lot.stem) > 0 for lot in lots):
            rule = "a checkpoint of a query with the same operators and gates"
            raise InvalidInput([Defect(path="checkpoint", value=str(spec.checkpoint), rule=rule)])
        for ending in ("", ".intake", ".taken"):
            shutil.rmtree(
                spec.checkpoint.with_name(spec.checkpoint.name + ending), ignore_errors=True
            )
    known.write_text(shape)


def _discard_what_never_began(checkpoint: Path) -> None:
    """Remove what a query has left that was killed while it wrote down its first batch.

    Spark refuses to begin where a draft of that lies. Nothing was done: no batch was begun. Where
    one was, and what says so is gone, nothing is removed: that is damage, which others look for.
    """
    taken = checkpoint.with_name(checkpoint.name + ".taken")
    known = (checkpoint / "offsets", checkpoint / "commits", taken)
    if checkpoint.is_dir() and all(last_number(folder) < 0 for folder in known):
        shutil.rmtree(checkpoint)


def _intake_folder(spec: QuerySpec) -> Path:
    return spec.checkpoint.with_name(spec.checkpoint.name + ".intake")


def _timekeeper(
    spec: QuerySpec, pipeline: Pipeline, plan: QueryPlan, intakes: Mapping[str, Intake]
) -> SourceTime | SiteTime:
    """Who knows how far time has come: at a site its sources, in the cloud the sites."""
    log = Log(spec.log)
    if spec.role == "cloud":
        # Rows that are born in the cloud are not waited for.
        return SiteTime(intakes, spec.sites, Reading(log=log, stream=SITE_CLOCK))
    steps = {stream: pipeline.step(name) for name, stream in plan.sources.items()}
    delays_s = {stream: step.delay_s for stream, step in steps.items() if step.time is not None}
    marks = Reading(log=log, stream=SOURCE_CLOCK, site=spec.site)
    return SourceTime(intakes, delays_s, marks)


def _open_intakes(
    spec: QuerySpec, pipeline: Pipeline, plan: QueryPlan, schemas: Mapping[str, StructType]
) -> dict[str, Intake]:
    """An intake for every stream that the query reads."""
    bounded = {stream for edge, stream in plan.inbox.items() if edge in opening_edges(pipeline)}
    log, folder = Log(spec.log), _intake_folder(spec)
    return {
        stream: Intake(
            # Rows that are born at a site are read there alone; an inbox is for all sites.
            Reading(log=log, stream=stream, site=spec.site if sender in plan.sources else None),
            # No name has a colon in it.
            folder / stream.replace("/", ":"),
            arrow_schema(schemas[sender], bounded=stream in bounded),
            start=_start_of(spec, stream),
            rows=spec.rows_per_batch,
            time=pipeline.step(sender).time if sender in plan.sources else None,
        )
        for stream, sender in plan.senders.items()
    }


def arrow_schema(schema: StructType, *, bounded: bool) -> pa.Schema:
    """The columns of a stream's rows; with those that say which windows count, if it has them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema, timezone="UTC")
    for name in BOUNDS if bounded else ():
        arrow = arrow.append(pa.field(name, pa.timestamp("us", "UTC")))
    return arrow


def _start_of(spec: QuerySpec, stream: str) -> dict[str, dict[str, int]]:
    return parse_offset((spec.start or {}).get(stream, {}), f"start.{stream}")


def _build(
    session: SparkSession,
    spec: QuerySpec,
    parts_of: QueryParts,
    intakes: Mapping[str, Intake],
    clock: Clock,
) -> tuple[DataFrame, BatchPublisher]:
    """The stream of a query, and what is done with its batches."""
    pipeline, plan = parts_of.pipeline, parts_of.plan

    def read_lots(stream: str, sender: str, reader: str | None = None) -> DataFrame:
        schema = parts_of.row_schema(sender, reader)
        return read_rows_files(session, intakes[stream].rows_folder, schema)

    frames = {n: read_lots(stream, n) for n, stream in plan.sources.items()}
    inbox = {edge: read_lots(stream, *edge) for edge, stream in plan.inbox.items()}
    for edge, folder in plan.carried.items():
        # Spark wants a folder; whether the rows are there that have to be was asked before. A query
        # that is held takes them as soon as they are. Nothing comes of it: no reader refuses them
        # or fails on them, and windows are put out when time goes on, which waits for the release.
        Path(folder).mkdir(parents=True, exist_ok=True)
        inbox[edge] = session.readStream.schema(parts_of.row_schema(*edge)).parquet(folder)
        if spec.watched:
            inbox[edge] = watch_inbox(*edge, inbox[edge])
    counting = parts_of.counting(session) if spec.watched else None

    def watch_some(operator: str, frame: DataFrame) -> DataFrame:
        if counting is None:
            return frame
        if operator in counting.measured:
            return watch(operator, frame, parts_of.widths[operator].variable_bytes())
        return watch(operator, frame) if operator in counting.observed else frame

    def watch_refused(sender: str, reader: str, frame: DataFrame) -> DataFrame:
        needed = counting is not None and reader in counting.refusing
        return watch_broken(sender, reader, frame) if needed else frame

    built = parts_of.run(frames, inbox, watch_some, watch_refused)
    # Measured with one source and three outlets: to read the rows for each outlet again is twice
    # as quick as to keep them in memory for a batch.
    parts = parts_of.of(built)
    parts[CLOCK] = clock.stream(session)
    opener = WriterOpener(spec, _time_columns(pipeline, plan.outlets, parts_of.schemas))
    told = ToldTime(
        stream=SINK_CLOCK if spec.role == "cloud" else SITE_CLOCK,
        checkpoint=spec.checkpoint,
        clock=_intake_folder(spec) / CLOCK,
        stateful=any(pipeline.step(name).is_stateful for name in plan.operators),
    )
    outlets = {**parts_of.outlets, CLOCK: ()}
    set_aside = SetAside(_intake_folder(spec))
    publisher = BatchPublisher(
        spec.checkpoint, outlets, opener, told, set_aside, durable=spec.durable
    )
    return put_together(parts), publisher


def _quarantine(
    session: SparkSession, spec: QuerySpec, parts_of: QueryParts, intakes: Mapping[str, Intake]
) -> Quarantine:
    """What finds the rows that make this query fail."""
    senders = parts_of.plan.senders
    streams = {
        intake.label: TriedStream(
            sender=senders[stream],
            try_file=partial(parts_of.try_rows, session, stream),
            # Only sites compute anything of the same rows once more: when windows are handed over.
            find_places=intake.places if spec.role == "fog" else None,
        )
        for stream, intake in intakes.items()
    }
    return Quarantine(spec.checkpoint, _intake_folder(spec), streams)


def _time_columns(
    pipeline: Pipeline, outlets: Mapping[str, tuple[str, ...]], schemas: Mapping[str, StructType]
) -> dict[str, str]:
    """The column with the event time, for each stream that has one."""
    columns: dict[str, str] = {}
    for name in set(outlets) & set(schemas):
        kinds = {field.name: field.dataType.typeName() for field in schemas[name]}
        times = [t for t in pipeline.step(name).times if kinds.get(t, "").startswith("timestamp")]
        columns |= {stream: times[0] for stream in outlets[name] if times}
    return columns


def find_attribute(reference: str) -> Any:
    """What a reference `package.module:attribute` means.

    Raises:
        InvalidInput: where there is no such module, or it has no such attribute.
    """
    module, _, attribute = reference.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        rule = "package.module:attribute of what can be imported"
        raise InvalidInput(
            [Defect(path="pipeline", value=reference, rule=rule, hint=str(error))]
        ) from error
    return found
