"""Feeds the intakes of a query: the next lot of a stream as soon as the last one is finished."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq

from thalweg.errors import ThalwegError
from thalweg.spark.log.plan import parse_offset
from thalweg.spark.pipeline.kinds import CLOCK
from thalweg.spark.query.checkpoint import (
    Offsets,
    Stand,
    has_reached,
    last_finished,
    last_number,
    watermark_of,
)
from thalweg.spark.query.clock import DAWN_MS, Clock
from thalweg.spark.query.intake import Intake

_POLL_S = 0.05
_FORGET_EVERY = 50
# Spark keeps what it tells of the last hundred batches.
_KEPT_RECORDS = 120


class TakenLots:
    """Which lots a query has taken, as of each of its batches.

    Spark's file source writes down which files it took each time that it finds new ones, but
    Spark's offsets do not say which source they are of. So a batch that begins records the last
    lots that its sources took; once it is finished, so are those lots.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._records = checkpoint.with_name(checkpoint.name + ".taken")

    def record(self, batch: int) -> dict[str, int]:
        """Write down what the sources have taken; for a batch before it does anything else.

        What a batch has recorded before, it took: a batch that is done again takes nothing else.
        There may be fewer rows, however, if some have been set aside.
        """
        known = (self._records / str(batch)).exists()
        lots = self.finished(batch) if known else {}
        rows = {}
        before = self.finished(batch - 1)
        sources = self._checkpoint / "sources"
        for source in sources.iterdir() if sources.is_dir() else ():
            folder, lot = _last_taken(source)
            if folder is None:
                continue
            name = folder.parent.name
            if not known:
                lots[name] = lot
            # Marks of the clock are no rows.
            if name in lots and name != CLOCK:
                rows[name] = _count_rows(folder, before.get(name, -1) + 1, lots[name])
        self._records.mkdir(exist_ok=True)
        draft = self._records / f".{batch}"
        told = {"lots": lots, "rows": rows, "state": self._stateful()}
        draft.write_text(json.dumps(told))
        draft.rename(self._records / str(batch))
        (self._records / str(batch - _KEPT_RECORDS)).unlink(missing_ok=True)
        return lots

    def _stateful(self) -> list[int]:
        """The operators that have state, by Spark's numbers: no file of Spark says who should."""
        state = self._checkpoint / "state"
        names = [folder.name for folder in state.iterdir()] if state.is_dir() else []
        return sorted(int(name) for name in names if name.isdecimal())

    def finished(self, batch: int) -> dict[str, int]:
        """The last lot taken by the end of this batch, by the name of the intake's folder."""
        return self._read(batch, "lots")

    def rows(self, batch: int) -> dict[str, int]:
        """The rows of the lots that this batch took, by the name of the intake's folder.

        Nothing is known of batches long ago.
        """
        return self._read(batch, "rows") if (self._records / str(batch)).exists() else {}

    def _read(self, batch: int, what: str) -> dict[str, int]:
        if batch < 0:
            return {}
        found: dict[str, Any] = json.loads((self._records / str(batch)).read_bytes())
        if "lots" not in found:
            # As it was written before rows were: the lots alone.
            found = {"lots": found, "rows": {}}
        told: dict[str, int] = found[what]
        return told


def _count_rows(folder: Path, first: int, last: int) -> int:
    files = (folder / f"{lot}.parquet" for lot in range(first, last + 1))
    return sum(pq.read_metadata(file).num_rows for file in files if file.exists())


def _last_taken(source: Path) -> tuple[Path | None, int]:
    """The folder that a file source reads, and the last lot that it took from there."""
    number = last_number(source)
    if number < 0:
        return None, -1
    plain, compact = source / str(number), source / f"{number}.compact"
    # Every tenth file has all entries up to then.
    _, *lines = (plain if plain.exists() else compact).read_text().split("\n")
    files: list[Path] = []
    last: int | None = None
    for line in reversed(lines):
        entry = json.loads(line)
        last = entry["batchId"] if last is None else last
        if entry["batchId"] != last:
            # What was taken before is not looked at: there may be very much of it.
            break
        files.append(Path(unquote(urlsplit(entry["path"]).path)))
    return files[0].parent, max(int(file.stem) for file in files)


class KeepsTime(Protocol):
    """Knows how far event time has come; see `thalweg.spark.query.clock`."""

    def prepare(self) -> None:
        """Look around, before rows are laid down."""
        ...

    def reached_ms(self) -> int | None:
        """How far time has come with all that was laid down."""
        ...


class Feeder:
    """A thread that looks what a query has finished, and lays down what comes next.

    Where there is a clock, its marks are laid down after the rows that they follow. Spark may still
    take a mark one batch before those rows. A query with state does not mind: it drops by the time
    of the batch before. Of one without (not `eager`), the mark waits until they are finished.
    """

    def __init__(
        self,
        checkpoint: Path,
        intakes: Mapping[str, Intake],
        clock: Clock | None = None,
        timekeeper: KeepsTime | None = None,
        *,
        eager: bool = True,
        held: bool = False,
    ) -> None:
        self.error: str | None = None
        self._eager = eager
        self._held = held
        self._clock = clock
        self._timekeeper = timekeeper
        self._checkpoint = checkpoint
        self._intakes = intakes
        self._taken = TakenLots(checkpoint)
        self._upto: Offsets | None = None
        self._forgotten = 0
        self._rows_first_then: int | None = None
        self._paused = False
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def start(self) -> None:
        """Begin to feed: nothing at first, so that the query is warm when rows come."""
        if last_finished(self._checkpoint) < 0:
            for intake in self._intakes.values():
                intake.lay_nothing()
            if self._clock is not None:
                self._clock.advance(DAWN_MS)
        self._thread.start()

    @property
    def is_held(self) -> bool:
        """Whether it waits to be told where to begin."""
        return self._held

    def tell(self, time_ms: int | None) -> None:
        """Say how far time had come before."""
        with self._lock:
            if self._clock is not None:
                self._clock.advance(time_ms)

    def begin_at(self, starts: Offsets, clock_ms: int | None, *, rows_first: bool = False) -> None:
        """Let go of a feeder that was held, with other offsets to begin at.

        Of the first rows and the time, Spark takes what it finds first in a batch of its own; with
        `rows_first` that is not one without rows.
        """
        with self._lock:
            for stream, intake in self._intakes.items():
                intake.begin_at(parse_offset(starts.get(stream, {})))
            self._held = False
            if rows_first:
                # Reading them may take long, and may fail: that is for the thread.
                self._rows_first_then = clock_ms
            elif self._clock is not None:
                self._clock.advance(clock_ms)

    def close(self) -> None:
        """Feed no more."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def limit(self, upto: Offsets | None) -> None:
        """Lay down nothing beyond these offsets from here on; without any, nothing at all."""
        with self._lock:
            self._upto, self._paused = upto, upto is None

    def release(self) -> None:
        """Lay down whatever there is again."""
        with self._lock:
            self._upto, self._paused = None, False

    @property
    def is_unlimited(self) -> bool:
        """Whether it lays down whatever there is."""
        with self._lock:
            return not self._held and not self._paused and self._upto is None

    def is_idle_at(self, goal: Offsets | None) -> bool:
        """Whether all that was laid down is finished, and the goal reached, if there is one."""
        with self._lock:
            _, finished = self._finished()
            idle = all(i.last.number == finished[stream] for stream, i in self._intakes.items())
            ends = {stream: intake.last.end for stream, intake in self._intakes.items()}
            return idle and (goal is None or has_reached(ends, goal))

    def stand(self) -> Stand:
        """The last batch finished, and the offsets whose rows have all been worked on."""
        with self._lock:
            batch, finished = self._finished()
            lots = {stream: intake.last for stream, intake in self._intakes.items()}
            offsets = {
                stream: dict(lot.end if finished[stream] == lot.number else lot.start)
                for stream, lot in lots.items()
            }
            newest = [lot.newest_us for lot in lots.values() if lot.newest_us is not None]
            return Stand(
                batch=batch,
                offsets=offsets,
                watermark_ms=watermark_of(self._checkpoint, batch),
                newest_ms=max(newest) // 1000 if newest else None,
            )

    @property
    def newest_s(self) -> float | None:
        """The latest event time [Unix time] of the rows laid down."""
        newest = [i.last.newest_us for i in self._intakes.values() if i.last.newest_us is not None]
        return max(newest) / 1e6 if newest else None

    def rows(self, batch: int) -> dict[str, int]:
        """How many rows of each stream a finished batch was given."""
        rows = self._taken.rows(batch)
        return {stream: rows.get(i.label, 0) for stream, i in self._intakes.items()}

    def _feed(self) -> None:
        while not self._ending.wait(_POLL_S):
            try:
                with self._lock:
                    self._lay_next()
            except Exception as error:
                # Whatever it is, the query would wait for rows without end: so it is told.
                known = isinstance(error, ThalwegError)
                self.error = str(error) if known else f"{type(error).__name__}: {error}"
                return

    def _lay_next(self) -> None:
        if self._paused or self._held:
            return
        batch, finished = self._finished()
        if batch < 0:
            return
        if self._timekeeper is not None:
            if not self._eager and all(
                finished[stream] == intake.last.number for stream, intake in self._intakes.items()
            ):
                self._tell_time()
            self._timekeeper.prepare()
        for stream, intake in self._intakes.items():
            if finished[stream] < intake.last.number:
                continue
            upto: Any = None if self._upto is None else self._upto.get(stream, {})
            if intake.lay_next(upto):
                intake.forget(finished[stream])
        if self._rows_first_then is not None and self._clock is not None:
            self._clock.advance(self._rows_first_then)
            self._rows_first_then = None
        self._forget_marks(batch)
        if self._eager:
            self._tell_time()

    def _forget_marks(self, batch: int) -> None:
        """Remove marks that were taken long ago, now and then."""
        if self._clock is not None and batch >= self._forgotten + _FORGET_EVERY:
            self._forgotten = batch
            self._clock.forget(self._taken.finished(batch).get(self._clock.label, 0))

    def _tell_time(self) -> None:
        if self._timekeeper is not None and self._clock is not None:
            self._clock.advance(self._timekeeper.reached_ms())

    def _finished(self) -> tuple[int, dict[str, int]]:
        """The last batch finished, and the last lot of each stream by then; -1: none."""
        batch = last_finished(self._checkpoint)
        lots = self._taken.finished(batch)
        return batch, {stream: lots.get(i.label, -1) for stream, i in self._intakes.items()}
