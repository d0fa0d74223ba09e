"""How far event time has come, told to a query and told by it.

Spark moves the time of a query on by the rows that it sees, and drops what comes later. With rows
from several sites that would be the time of the quickest, and the rows of a site that is behind
would be lost. So rows do not move the time of our queries. A clock does: a stream of its own, with
one row each time that it is known that nothing older will come.

At a site that is when the newest row of every source, less the delay that the source allows, is
later. The site says so in the stream `edges/clock`, after the rows of the batch. In the cloud it is
the time of the site that is furthest behind, once everything that came before is there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from thalweg.spark.log.names import EDGES, SINKS, SOURCES
from thalweg.spark.log.plan import Reading, advance
from thalweg.spark.pipeline.kinds import CLOCK
from thalweg.spark.query.intake import Intake, read_rows_files, write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from thalweg.spark.log.reader import Offset

CLOCK_SCHEMA = pa.schema([("time", pa.timestamp("us", "UTC"))])
SITE_CLOCK = f"{EDGES}/{CLOCK}"
SOURCE_CLOCK = f"{SOURCES}/{CLOCK}"
SINK_CLOCK = f"{SINKS}/{CLOCK}"
# A clock's rows never get further than its watermark. Spark keeps a condition on the time of a
# stream above the watermark, where it has seen the row already.
_NEVER = "time < timestamp'1900-01-01'"
_ALL = 2**62
DAWN_MS = 1
"""The first mark of every clock: a query that has it is ready, and has seen nothing."""
END_OF_TIME_MS = 253_370_764_800_000
"""The year 9999: said of a source that nothing else will come from."""


def clock_table(time_ms: int) -> pa.Table:
    """One row that says how far time has come."""
    return pa.table({"time": pa.array([time_ms * 1000], pa.timestamp("us", "UTC"))})


class Clock:
    """The marks that a query is told the time by, in a folder that Spark's file source reads."""

    def __init__(self, folder: Path) -> None:
        self.label = folder.name
        self.rows_folder = folder / "rows"
        self._marks_folder = folder / "marks"
        self.rows_folder.mkdir(parents=True, exist_ok=True)
        self._marks_folder.mkdir(exist_ok=True)
        self.number, self.time_ms = self._find_last()
        if self.number >= 0 and self.time_ms is not None:
            self._show()

    def advance(self, time_ms: int | None) -> bool:
        """Lay down another mark, if it is later than the last."""
        if time_ms is None or (self.time_ms is not None and time_ms <= self.time_ms):
            return False
        draft = self._marks_folder / f".{uuid4().hex}"
        draft.write_text(json.dumps(time_ms))
        draft.rename(self._marks_folder / f"{self.number + 1}.json")
        self.number, self.time_ms = self.number + 1, time_ms
        self._show()
        return True

    def forget(self, number: int) -> None:
        """Remove marks that were long taken."""
        for file in (*self._marks_folder.glob("*.json"), *self.rows_folder.glob("*.parquet")):
            if int(file.stem) < number:
                file.unlink()

    def stream(self, session: SparkSession) -> DataFrame:
        """The clock as a frame that moves a query's time on and never has a row."""
        read = read_rows_files(session, self.rows_folder, "time timestamp")
        return read.withWatermark("time", "0 seconds").where(_NEVER)

    def _show(self) -> None:
        target = self.rows_folder / f"{self.number}.parquet"
        if self.time_ms is not None and not target.exists():
            write_rows(clock_table(self.time_ms), target)

    def _find_last(self) -> tuple[int, int | None]:
        numbers = [int(file.stem) for file in self._marks_folder.glob("*.json")]
        if not numbers:
            return -1, None
        return max(numbers), read_mark(self._marks_folder.parent, max(numbers))


def read_mark(folder: Path, number: int) -> int | None:
    """The time [ms] of one mark of the clock in this folder; None for the number -1."""
    if number < 0:
        return None
    time_ms: int = json.loads((folder / "marks" / f"{number}.json").read_bytes())
    return time_ms


class SourceTime:
    """The time at a site: by the newest rows of its sources, or by what their gateways say."""

    def __init__(
        self, intakes: Mapping[str, Intake], delays_s: Mapping[str, float], marks: Reading
    ):
        self._timed = {s: intake for s, intake in intakes.items() if s in delays_s}
        self._intakes = intakes
        self._delays_ms = {stream: round(s * 1000) for stream, s in delays_s.items()}
        self._marks = _Newest(marks)
        self._promised_ms: int | None = None

    def prepare(self) -> None:
        """Look what is promised, before rows are laid down."""
        latest_us = self._marks.update().get(self._marks.reading.site or "")
        self._promised_ms = None if latest_us is None else latest_us // 1000

    def reached_ms(self) -> int | None:
        """How far time has come with the rows laid down; None: unknown."""
        times = []
        for stream, intake in self._timed.items():
            newest_us = intake.last.newest_us
            times.append(None if newest_us is None else newest_us // 1000 - self._delays_ms[stream])
        reached = [] if None in times else [min((t for t in times if t is not None), default=None)]
        if self._promised_ms is not None and all(i.is_at_end() for i in self._intakes.values()):
            reached.append(self._promised_ms)
        return max((t for t in reached if t is not None), default=None)


class SiteTime:
    """The time in the cloud: that of the site which is furthest behind."""

    def __init__(self, intakes: Mapping[str, Intake], sites: tuple[str, ...], clocks: Reading):
        self._intakes = intakes
        self._sites = sites
        self._clocks = _Newest(clocks)
        self._upto: Offset = {}
        self._aimed_ms: int | None = None

    def prepare(self) -> None:
        """Look how far the sites have come, before rows are laid down."""
        if self._aimed_ms is not None:
            return
        latest_us = self._clocks.update()
        if self._sites and set(self._sites) <= set(latest_us):
            self._aimed_ms = min(latest_us[site] for site in self._sites) // 1000
            self._upto = _whole_epochs(self._clocks.read_upto)

    def reached_ms(self) -> int | None:
        """How far time has come: known when all that came before the clocks' last word is there."""
        aimed_ms = self._aimed_ms
        if aimed_ms is None:
            return None
        if not all(intake.has_all(self._upto) for intake in self._intakes.values()):
            return None
        self._aimed_ms = None
        return aimed_ms


def _whole_epochs(offset: Offset) -> Offset:
    """The same offset with all that earlier epochs of each site have, clock or not."""
    return {
        site: {str(e): _ALL for e in range(max(map(int, epochs)))} | _last_of(epochs)
        for site, epochs in offset.items()
    }


def _last_of(epochs: Mapping[str, int]) -> dict[str, int]:
    last = max(epochs, key=int)
    return {last: epochs[last]}


class _Newest:
    """The latest mark of each site in a stream of the log, read once."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.read_upto: Offset = {}
        self._latest_us: dict[str, int] = {}

    def update(self) -> dict[str, int]:
        end = self.reading.next_offset(self.read_upto)
        if end != self.read_upto:
            segments = self.reading.between(self.read_upto, end)
            for segment in segments:
                if segment.latest_us is not None:
                    before = self._latest_us.get(segment.site, segment.latest_us)
                    self._latest_us[segment.site] = max(before, segment.latest_us)
            self.read_upto = advance(self.read_upto, segments)
        return self._latest_us
