"""Feeds the intakes of a query: the next lot of a stream as soon as the last one is finished."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from thalweg.errors import ThalwegError
from thalweg.spark.checkpoint import Offsets, Stand, has_reached, last_finished, last_number
from thalweg.spark.intake import Intake

_POLL_S = 0.02
_KEPT_RECORDS = 20


class TakenLots:
    """Which lots a query has taken, as of each of its batches.

    Spark's file source writes down which files it took each time that it finds new ones, but
    Spark's offsets do not say which source they are of. So a batch that begins records the last
    lots that its sources took; once it is finished, so are those lots.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._records = checkpoint.with_name(checkpoint.name + ".taken")

    def record(self, batch: int) -> None:
        """Write down what the sources have taken; for a batch before it does anything else."""
        lots = {}
        sources = self._checkpoint / "sources"
        for source in sources.iterdir() if sources.is_dir() else ():
            folder, lot = _last_taken(source)
            if folder is not None:
                lots[folder.parent.name] = lot
        self._records.mkdir(exist_ok=True)
        draft = self._records / f".{batch}"
        draft.write_text(json.dumps(lots))
        draft.rename(self._records / str(batch))
        (self._records / str(batch - _KEPT_RECORDS)).unlink(missing_ok=True)

    def finished(self, batch: int) -> dict[str, int]:
        """The last lot taken by the end of this batch, by the name of the intake's folder."""
        if batch < 0:
            return {}
        lots: dict[str, int] = json.loads((self._records / str(batch)).read_bytes())
        return lots


def _last_taken(source: Path) -> tuple[Path | None, int]:
    """The folder that a file source reads, and the last lot that it took from there."""
    number = last_number(source)
    if number < 0:
        return None, -1
    plain, compact = source / str(number), source / f"{number}.compact"
    # Every tenth file has all entries up to then.
    _, *lines = (plain if plain.exists() else compact).read_text().split("\n")
    files = [Path(unquote(urlsplit(json.loads(line)["path"]).path)) for line in lines]
    return files[0].parent, max(int(file.stem) for file in files)


class Feeder:
    """A thread that looks what a query has finished, and lays down what comes next."""

    def __init__(self, checkpoint: Path, intakes: Mapping[str, Intake]) -> None:
        self.error: str | None = None
        self._checkpoint = checkpoint
        self._intakes = intakes
        self._taken = TakenLots(checkpoint)
        self._upto: Offsets | None = None
        self._paused = False
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def start(self) -> None:
        """Begin to feed."""
        self._thread.start()

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
            return Stand(batch=batch, offsets=offsets)

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
        if self._paused:
            return
        _, finished = self._finished()
        for stream, intake in self._intakes.items():
            if finished[stream] < intake.last.number:
                continue
            upto: Any = None if self._upto is None else self._upto.get(stream, {})
            if intake.lay_next(upto):
                intake.forget(finished[stream])

    def _finished(self) -> tuple[int, dict[str, int]]:
        """The last batch finished, and the last lot of each stream by then; -1: none."""
        batch = last_finished(self._checkpoint)
        lots = self._taken.finished(batch)
        return batch, {stream: lots.get(i.label, -1) for stream, i in self._intakes.items()}
