"""What the readers of a sink have seen, in order: the history of a run, to be checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from thalweg.history import Publication
from thalweg.spark.log import Log
from thalweg.spark.log.names import EDGES, SINKS, sink_stream
from thalweg.spark.log.segment import Segment, read_batches
from thalweg.spark.pipeline.kinds import DEAD_LETTERS
from thalweg.spark.query.clock import SINK_CLOCK
from thalweg.spark.query.set_aside import LETTER_SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """The dead letters of a run: a site's are of rows of its sources, the cloud's of any edge."""

    of_sites: pa.Table
    of_cloud: pa.Table

    @property
    def publications(self) -> tuple[Publication, ...]:
        """All of them, as a history of one sink."""
        return (Publication(rows=self.of_sites), Publication(rows=self.of_cloud))


def read_letters(log: Log) -> Letters:
    """The dead letters in the cloud's log, where those of the sites arrive, too.

    Raises:
        LogError: where the log cannot be read.
        KeyError: where what is there are no letters.
    """
    sites, cloud = (_read_letters(log, f"{kind}/{DEAD_LETTERS}") for kind in (EDGES, SINKS))
    return Letters(of_sites=sites, of_cloud=cloud)


def _read_letters(log: Log, stream: str) -> pa.Table:
    # Places with conditions and places without have schemas that differ in small things.
    tables = [_read(segment) for segment in log.segments(stream)]
    letters = [table.select(LETTER_SCHEMA.names).cast(LETTER_SCHEMA) for table in tables]
    return pa.concat_tables([LETTER_SCHEMA.empty_table(), *letters])


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
