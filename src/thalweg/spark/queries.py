"""Turns a query spec into a running streaming query.

Everything that a query reads comes through intakes, everything that it computes goes into the log.
There is one streaming query for a spec, whatever the number of streams that it reads and writes.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.spark.batch_publisher import (
    BatchGate,
    BatchOperators,
    BatchPublisher,
    PublishedRows,
    WriterOpener,
    put_together,
)
from thalweg.spark.checkpoint import hold_checkpoint, require_writable
from thalweg.spark.intake import Intake
from thalweg.spark.log import Log
from thalweg.spark.log_plan import Reading, parse_offset
from thalweg.spark.pipeline_reference import load_pipeline
from thalweg.spark.query_plan import QueryPlan, plan_query
from thalweg.spark.query_spec import QuerySpec
from thalweg.spark.running_query import RunningQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from thalweg.spark.pipeline import Pipeline

_WATERMARK_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


def check_query(spec: QuerySpec) -> None:
    """Raise `InvalidInput` for what would keep this query from running, as far as can be known.

    Needs no Spark: the coordinator asks before anything is deployed, the site before it starts.
    """
    defects = Defects()
    for path, folder in (("log", spec.log), ("checkpoint", spec.checkpoint.parent)):
        try:
            require_writable(folder)
        except OSError as error:
            defects.add(path, str(folder), "a folder that can be written", str(error))
    if spec.role == "own":
        defects.attempt("", lambda: find_attribute(spec.pipeline))
    else:
        pipeline = defects.attempt("", lambda: load_pipeline(spec.pipeline))
        plan = defects.attempt("", lambda: plan_query(pipeline, spec)) if pipeline else None
        for stream in plan.inputs if plan else ():
            defects.attempt("", lambda stream=stream: _start_of(spec, stream))  # type: ignore[misc]
    defects.raise_if_any()


def start_query(session: SparkSession, spec: QuerySpec) -> RunningQuery:
    """Start the query of this spec; one that has run before goes on from its checkpoint.

    Raises:
        InvalidInput: where it cannot run, or another query has its checkpoint.
    """
    check_query(spec)
    with ExitStack() as stack:
        stack.enter_context(hold_checkpoint(spec.checkpoint))
        BatchGate(spec.checkpoint).open()
        if spec.role == "own":
            query = find_attribute(spec.pipeline)(session, spec)
            return RunningQuery(spec, query, stack.pop_all())
        pipeline = load_pipeline(spec.pipeline)
        plan, schemas = plan_query(pipeline, spec), pipeline.schemas(session)
        intakes = _open_intakes(spec, plan, schemas)
        stream, publisher = _build(session, spec, plan, intakes, schemas)
        # An inbox that no site sends to must not hold back the time of the others.
        session.conf.set(_WATERMARK_POLICY, "max" if spec.role == "cloud" else "min")
        query = (
            stream.writeStream.foreachBatch(publisher)
            .outputMode("append")
            .queryName(spec.name)
            .option("checkpointLocation", str(spec.checkpoint))
            .trigger(processingTime=f"{round(spec.trigger_s * 1000)} milliseconds")
            .start()
        )
        published = PublishedRows(spec, publisher.streams)
        return RunningQuery(spec, query, stack.pop_all(), published, intakes)


def _open_intakes(
    spec: QuerySpec, plan: QueryPlan, schemas: Mapping[str, StructType]
) -> dict[str, Intake]:
    """An intake for every stream that the query reads."""
    from pyspark.sql.pandas.types import to_arrow_schema

    senders = dict(zip(plan.inputs, (*plan.sources, *(a for a, _ in plan.inbox)), strict=True))
    log = Log(spec.log)
    folder = spec.checkpoint.with_name(spec.checkpoint.name + ".intake")
    return {
        stream: Intake(
            # Rows that are born at a site are read there alone; an inbox is for all sites.
            Reading(log=log, stream=stream, site=spec.site if sender in plan.sources else None),
            # No name has a colon in it.
            folder / stream.replace("/", ":"),
            to_arrow_schema(schemas[sender], timezone="UTC"),
            start=_start_of(spec, stream),
            rows=spec.rows_per_batch,
        )
        for stream, sender in senders.items()
    }


def _start_of(spec: QuerySpec, stream: str) -> dict[str, dict[str, int]]:
    return parse_offset((spec.start or {}).get(stream, {}), f"start.{stream}")


def _build(
    session: SparkSession,
    spec: QuerySpec,
    plan: QueryPlan,
    intakes: Mapping[str, Intake],
    schemas: Mapping[str, StructType],
) -> tuple[DataFrame, BatchPublisher]:
    """The stream of a query, and what is done with its batches."""

    def read(stream: str, sender: str) -> DataFrame:
        folder = intakes[stream].rows_folder
        return session.readStream.schema(schemas[sender]).parquet(str(folder))

    pipeline = load_pipeline(spec.pipeline)
    frames = {name: read(stream, name) for name, stream in plan.sources.items()}
    inbox = {edge: read(stream, edge[0]) for edge, stream in plan.inbox.items()}
    compute = None
    if plan.stateless and len(plan.outlets) > 1 and len(frames) == 1 and not inbox:
        # Rows are worked on alone, so the operators can be part of what is done with a batch:
        # its rows are read once, and not for every outlet.
        ((source, stream),) = frames.items()
        compute = BatchOperators(spec.pipeline, source, plan.operators, tuple(plan.outlets))
    else:
        built = pipeline.run(frames, plan.operators, inbox)
        stream = put_together({name: built[name] for name in plan.outlets})
    opener = WriterOpener(spec, _time_columns(pipeline, plan.outlets, schemas))
    return stream, BatchPublisher(spec.checkpoint, plan.outlets, opener, compute)


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
