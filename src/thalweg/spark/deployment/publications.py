"""What the readers of a sink have seen, in order: the history of a run, to be checked."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from thalweg.history import Publication
from thalweg.spark.log import Log
from thalweg.spark.log.names import sink_stream
from thalweg.spark.log.segment import Segment, read_batches
from thalweg.spark.query.clock import SINK_CLOCK


def read_publications(log: Log, sink: str) -> Iterator[Publication]:
    """Every publication of a sink, with what the run said of its time after it.

    Raises:
        InvalidInput: where there can be no such sink.
        LogError: where the log cannot be read.
    """
    rows = {_turn_of(segment): segment for segment in log.segments(sink_stream(sink))}
    marks = {_turn_of(segment): segment.latest_us for segment in log.segments(SINK_CLOCK)}
    for turn in sorted({*rows, *marks}):
        latest_us = marks.get(turn)
        yield Publication(
            rows=_read(rows[turn]) if turn in rows else pa.table({}),
            complete_ms=None if latest_us is None else latest_us // 1000,
        )


def complete_ms(log: Log) -> int | None:
    """Up to when a run has said that its sinks have everything [ms since 1970]; None: nothing."""
    latest = [s.latest_us for s in log.segments(SINK_CLOCK) if s.latest_us is not None]
    return max(latest) // 1000 if latest else None


def _turn_of(segment: Segment) -> tuple[int, int]:
    # Sinks are the cloud's alone: there is one site.
    return segment.epoch, segment.batch


def _read(segment: Segment) -> pa.Table:
    return pa.Table.from_batches([b for file in segment.files for b in read_batches(file)])
