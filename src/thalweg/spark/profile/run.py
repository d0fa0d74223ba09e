"""Runs every operator of a pipeline on parts of a sample, and notes what goes in and comes out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.spark.log.names import sink_stream
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.pipeline.dataflow import unite
from thalweg.spark.pipeline.kinds import Step
from thalweg.spark.profile.meter import CpuMeter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from thalweg.spark.pipeline import Pipeline

_SITE = "profile"
# Work on fewer rows than that is lost among what Spark does for each task.
_ENOUGH_ROWS = 40_000
_WARM_UPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What came out of a source or an operator: rows, and their bytes as the log counts them.

    `data_bytes` is their size in Arrow's format; `file_bytes` what is left of that on the link
    after compression, where a batch is published for every second of events.
    """

    rows: int
    data_bytes: int
    file_bytes: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """One part of the sample, and what every step made of it."""

    frames: Mapping[str, DataFrame]
    flows: Mapping[str, Flow]


@dataclass(slots=True)
class CpuReading:
    """Events in and CPU seconds of every part, for every repetition."""

    events: list[list[float]] = field(default_factory=list)
    seconds: list[list[float]] = field(default_factory=list)


def run_part(
    pipeline: Pipeline, session: SparkSession, rows: Mapping[str, Sequence[pa.Table]], batches: int
) -> Part:
    """Run the whole pipeline on these rows of every source, a table for each site.

    What may run at the sites does, on each site's rows alone; the rest gets the rows of all. Every
    output is kept in memory, so that the work of one operator can be repeated without the others.
    """
    sites = len(next(iter(rows.values())))
    apart: list[dict[str, DataFrame]] = [{} for _ in range(sites)]
    whole: dict[str, DataFrame] = {}
    flows: dict[str, Flow] = {}
    for step in pipeline.steps:
        if step.role == "sink":
            continue
        if step.role == "source":
            made = [_keep(session.createDataFrame(table)) for table in rows[step.name]]
        elif step.operator.replicable:
            made = [_keep(run_step(pipeline, step, frames)) for frames in apart]
        else:
            made = [_keep(run_step(pipeline, step, whole))]
        if len(made) == sites:
            for frames, frame in zip(apart, made, strict=True):
                frames[step.name] = frame
        whole[step.name] = made[0] if len(made) == 1 else _keep(unite(made))
        flows[step.name] = _count_flow(step, whole[step.name].toArrow(), batches)
    return Part(frames=whole, flows=flows)


def run_step(pipeline: Pipeline, step: Step, frames: Mapping[str, DataFrame]) -> DataFrame:
    """What one operator makes of the outputs of those before it."""
    inbox = {(sender.name, step.name): frames[sender.name] for sender in step.inputs}
    return pipeline.run({}, only=[step.name], inbox=inbox)[step.name]


def _keep(frame: DataFrame) -> DataFrame:
    """The rows in memory as they are: reading them again costs next to nothing."""
    return frame.coalesce(1).localCheckpoint(eager=True)


def _count_flow(step: Step, table: pa.Table, batches: int) -> Flow:
    """The bytes of these rows in the log, as many batches."""
    if table.num_rows == 0:
        return Flow(rows=0, data_bytes=0, file_bytes=0)
    size = -(-table.num_rows // max(1, min(batches, table.num_rows)))
    with tempfile.TemporaryDirectory(prefix="thalweg-profile-") as folder:
        writer = LogWriter(folder, sink_stream(step.name), _SITE, 0, durable=False)
        segments = [
            writer.publish(number, table.slice(start, size))
            for number, start in enumerate(range(0, table.num_rows, size))
        ]
    return Flow(
        rows=table.num_rows,
        data_bytes=sum(segment.data_bytes for segment in segments),
        file_bytes=sum(segment.file_bytes for segment in segments),
    )


def measure_cpu(
    pipeline: Pipeline,
    meter: CpuMeter,
    parts: Sequence[Part],
    repeat: int,
    on_progress: Callable[[int, int], None],
) -> dict[str, CpuReading]:
    """The CPU time of every operator on every part, several times.

    The repetitions of an operator lie apart, so that what happens on the machine meanwhile does
    not fall on one operator alone. Taking rows from memory and handing them on is part of the work.
    """
    steps = [step for step in pipeline.steps if step.inputs and step.role != "sink"]
    works = {}
    for step in steps:
        times = _repetitions(step, parts[-1])
        works[step.name] = [_Work.of(pipeline, step, part, times) for part in parts]
    for number, work in enumerate(works.values()):
        for _ in range(_WARM_UPS):
            meter.measure_frame(work[-1].frame)
        on_progress(number + 1, len(steps) * (repeat + 1))
    readings = {name: CpuReading() for name in works}
    done = len(steps)
    for _ in range(repeat):
        for name, work in works.items():
            reading = readings[name]
            reading.events.append([each.events for each in work])
            reading.seconds.append([meter.measure_frame(each.frame) for each in work])
            done += 1
            on_progress(done, len(steps) * (repeat + 1))
    return readings


@dataclass(frozen=True, kw_only=True, eq=False)
class _Work:
    """What is measured of an operator on one part."""

    frame: DataFrame
    events: float

    @classmethod
    def of(cls, pipeline: Pipeline, step: Step, part: Part, times: int) -> _Work:
        inputs = {sender.name: part.frames[sender.name] for sender in step.inputs}
        if times > 1:
            inputs = {name: _keep(_repeated(frame, times)) for name, frame in inputs.items()}
        return cls(
            frame=run_step(pipeline, step, inputs),
            events=float(events_in(step, part) * times),
        )


def events_in(step: Step, part: Part) -> int:
    """How many rows an operator reads of this part of the sample."""
    return sum(part.flows[sender.name].rows for sender in step.inputs)


def _repetitions(step: Step, part: Part) -> int:
    """How often the rows are given to an operator so that it has something to do.

    Each row is worked on alone in a row-wise operator, so the same ones again cost what others
    would. In all others more rows of the same windows would not be more of the same work.
    """
    events = events_in(step, part)
    return -(-_ENOUGH_ROWS // events) if step.role == "row-wise" and events else 1


def _repeated(frame: DataFrame, times: int) -> DataFrame:
    again = frame.sparkSession.range(times).select()
    return frame.crossJoin(again)
