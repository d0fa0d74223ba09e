"""Measures what Spark keeps in memory for a stateful operator, by running it as a stream.

All rows of a sample go through in one batch, before any window can be closed; so what is kept then
is the state of all windows in the sample. In a stream without end, it is that of the windows that
are open at a time: the part of it that falls to one window's length and the delay that rows may
have.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.spark.pipeline.kinds import Step
from thalweg.spark.profile.run import Part, run_step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from thalweg.spark.pipeline import Pipeline

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
# Keeps state in the JVM's heap and says how much it is; RocksDB's memory is mostly its caches.
_COUNTED = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReading:
    """What is kept for all windows of a sample: rows of state, and their bytes in memory."""

    rows: int
    memory_bytes: int


def measure_states(
    pipeline: Pipeline, session: SparkSession, part: Part
) -> dict[str, StateReading]:
    """The state of every operator with time windows on these rows.

    An operator that cannot be run as a stream has no entry.
    """
    readings: dict[str, StateReading] = {}
    with _setting(session, _PROVIDER, _COUNTED):
        for step in pipeline.steps:
            if step.window is not None:
                reading = _measure_state(pipeline, step, part.frames)
                if reading is not None:
                    readings[step.name] = reading
    return readings


def _measure_state(
    pipeline: Pipeline, step: Step, frames: Mapping[str, DataFrame]
) -> StateReading | None:
    from pyspark.errors import PySparkException

    with tempfile.TemporaryDirectory(prefix="thalweg-profile-") as folder:
        streams: dict[str, DataFrame] = {}
        for sender in step.inputs:
            rows = frames[sender.name]
            place = str(Path(folder) / f"rows-{len(streams)}")
            rows.write.parquet(place)
            reader = rows.sparkSession.readStream.schema(rows.schema)
            streams[sender.name] = reader.parquet(place)
        try:
            writer = run_step(pipeline, step, streams).writeStream.format("noop")
            writer = writer.option("checkpointLocation", str(Path(folder) / "checkpoint"))
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
        except PySparkException:
            # Not every function that works on tables works on streams.
            return None
        return _largest_state(query)


def _largest_state(query: StreamingQuery) -> StateReading | None:
    """The state after the batch that had the rows; the batch after it closes windows."""
    found = [
        StateReading(
            rows=sum(state.numRowsTotal for state in progress.stateOperators),
            memory_bytes=sum(state.memoryUsedBytes for state in progress.stateOperators),
        )
        for progress in query.recentProgress
        if progress.stateOperators
    ]
    return max(found, key=lambda state: state.rows, default=None)


@contextmanager
def _setting(session: SparkSession, key: str, value: str) -> Iterator[None]:
    before = session.conf.get(key, None)
    session.conf.set(key, value)
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, before)
