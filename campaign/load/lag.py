"""How far a run is behind, in rows and in seconds, read from its log and its checkpoints.

Rows: what is published in a stream that a query reads, less what its finished batches have taken.
At the fogs those are rides that came in; in the cloud, rows that the fogs have sent up.

Seconds: from the newest ride that came in back to the moment up to which the cloud has said that
all results are out. It is never 0: rides may come two seconds late, so that windows wait for them.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thalweg.spark.log import Log
from thalweg.spark.log.names import EDGES, SINKS, source_stream
from thalweg.spark.query.checkpoint import last_finished
from thalweg.spark.query.clock import SINK_CLOCK
from thalweg.spark.query.feeder import TakenLots

_TRIES = 20
Position = tuple[str, str, int]
"""Stream, site and epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a run is behind, and how much has come in by then."""

    born_rows: int
    fog_rows: int
    cloud_rows: int
    seconds: float | None
    """None before the first result."""
    results_upto_us: int | None
    """The moment up to which all results are out."""

    @property
    def rows(self) -> int:
        """All rows that wait."""
        return self.fog_rows + self.cloud_rows


class LagGauge:
    """Reads the lag of a run again and again; what has been worked on is forgotten."""

    def __init__(self, log: Path, checkpoints: Path, source: str, cloud: str) -> None:
        self._root, self._checkpoints, self._cloud = log, checkpoints, cloud
        self._source = source_stream(source)
        self._read: dict[Position, int] = {}
        self._waiting: dict[Position, deque[tuple[int, int]]] = {}
        self._newest_us: int | None = None
        self._sink_us: int | None = None
        self.born_rows = 0
        self.segments = 0
        self.log_bytes = 0

    def read(self) -> Lag:
        """How far the run is behind now."""
        # Taken first: what is finished by now was published by now.
        taken = [self._taken(checkpoint) for checkpoint in self._find_checkpoints()]
        self._count()
        for reached in taken:
            for position, batch in reached.items():
                queue = self._waiting.get(position, deque())
                while queue and queue[0][0] <= batch:
                    queue.popleft()
        rows = {p: sum(rows for _, rows in queue) for p, queue in self._waiting.items()}
        known = self._newest_us is not None and self._sink_us is not None
        return Lag(
            born_rows=self.born_rows,
            fog_rows=sum(n for (stream, _, _), n in rows.items() if stream == self._source),
            cloud_rows=sum(n for (stream, _, _), n in rows.items() if stream != self._source),
            seconds=((self._newest_us or 0) - (self._sink_us or 0)) / 1e6 if known else None,
            results_upto_us=self._sink_us,
        )

    def _find_checkpoints(self) -> list[Path]:
        return sorted(p for p in self._checkpoints.glob("*@*") if p.is_dir() and not p.suffix)

    def _taken(self, checkpoint: Path) -> dict[Position, int]:
        """The last batch that a query has worked on, of everything that it reads."""
        for _ in range(_TRIES):
            # The query goes on, and removes what it is done with.
            with suppress(FileNotFoundError):
                return self._try_taken(checkpoint)
        return {}

    def _try_taken(self, checkpoint: Path) -> dict[Position, int]:
        lots = TakenLots(checkpoint).finished(last_finished(checkpoint))
        intake = checkpoint.with_name(checkpoint.name + ".intake")
        found: dict[Position, int] = {}
        for label, number in lots.items():
            if ":" in label and number >= 0:
                lot = json.loads((intake / label / "lots" / f"{number}.json").read_bytes())
                found |= _positions(label.replace(":", "/"), lot["end"])
        return found

    def _count(self) -> None:
        """Take in what was published since the last time."""
        # A new one each time: a log remembers what it has read, and we measure memory.
        log = Log(self._root)
        inboxes = {
            folder.name.replace(":", "/")
            for folder in (self._checkpoints / f"{self._cloud}@0.intake").glob("*:*")
        }
        streams = [self._source, *log.streams(EDGES), *log.streams(SINKS)]
        for stream in streams:
            waits = stream == self._source or stream in inboxes
            for segment in log.segments(stream, after=self._offset(stream)):
                position = (stream, segment.site, segment.epoch)
                self._read[position] = segment.batch
                self.segments += 1
                self.log_bytes += segment.file_bytes
                if waits:
                    self._waiting.setdefault(position, deque()).append(
                        (segment.batch, segment.rows)
                    )
                if stream == self._source:
                    self.born_rows += segment.rows
                    self._newest_us = _later(self._newest_us, segment.latest_us)
                elif stream == SINK_CLOCK:
                    self._sink_us = _later(self._sink_us, segment.latest_us)

    def _offset(self, stream: str) -> dict[str, dict[str, int]]:
        offset: dict[str, dict[str, int]] = {}
        for (known, site, epoch), batch in self._read.items():
            if known == stream:
                offset.setdefault(site, {})[str(epoch)] = batch
        return offset


def _positions(stream: str, end: Mapping[str, Mapping[str, Any]]) -> dict[Position, int]:
    return {
        (stream, site, int(epoch)): int(batch)
        for site, epochs in end.items()
        for epoch, batch in epochs.items()
    }


def _later(known: int | None, found: int | None) -> int | None:
    times: Iterable[int] = (t for t in (known, found) if t is not None)
    return max(times, default=None)
