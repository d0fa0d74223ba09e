"""Feeds the query of a keyed operator: one lot of rows after the other, each once committed."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import ThalwegError
from thalweg.spark.keyed.log import STATES, KeyedLog, standby_stream
from thalweg.spark.log.epoch import last_batch_of
from thalweg.spark.log.founding import while_there
from thalweg.spark.log.names import EpochPlace
from thalweg.spark.log.plan import Reading
from thalweg.spark.log.reader import LogError, Offset, Segment
from thalweg.spark.log.segment import read_batches
from thalweg.spark.query.intake import be_no_older

LOT = "_lot"
_BEGIN = -(1 << 40)
_POLL_S = 0.01
_FOLLOW_EVERY_S = 0.3


def rows_folder(folder: Path) -> Path:
    """Where the lots of a query are laid down, one Parquet file each."""
    return folder / "rows"


class KeyedFeeder:
    """A thread that looks what is committed, and lays down what comes next.

    As long as the epoch that it follows runs, it tells the query now and then to take in what is
    new. From its end on, lots continue where the last commit ended, whoever made it.
    """

    def __init__(
        self,
        commits: KeyedLog,
        *,
        writer: EpochPlace,
        follows: tuple[str, int] | None,
        stream: str,
        site: str | None,
        start: Offset,
        rows: int | None,
        folder: Path,
    ) -> None:
        self.error: str | None = None
        self._commits = commits
        self._place = writer
        self._follows = follows
        self._reading = Reading(log=commits.log, stream=stream, site=site)
        self._offset = start
        self._rows = rows
        self._folder = folder
        self._standby = follows is not None
        self._found_beginning = False
        self._told = last_batch_of(self._standby_place)
        self._told_at: float | None = None
        self._told_of: tuple[EpochPlace, int] | None = None
        self._next = 0
        self._laid = -1
        self._newest_ns = 0
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

    def look(self) -> bool:
        """Lay down what the query is to work on next, if anything; False: there will be no more."""
        log, place = self._commits.log, self._place
        if log.find_fence(place.site, place.epoch, kind=STATES) is not None:
            return False
        if self._follows is not None and self._standby:
            site, epoch = self._follows
            self._standby = log.find_fence(site, epoch, kind=STATES) is None
        if self._standby:
            self._stand_by()
        else:
            self._lay_next()
        return True

    def _feed(self) -> None:
        try:
            while not self._ending.wait(_POLL_S) and self.look():
                pass
        except Exception as error:
            # Whatever it is, the query would wait for rows without end: so it is told.
            known = isinstance(error, ThalwegError)
            self.error = str(error) if known else f"{type(error).__name__}: {error}"

    @property
    def _standby_place(self) -> EpochPlace:
        place, stream = self._place, standby_stream(self._commits.operator.name)
        return EpochPlace(root=place.root, stream=stream, site=place.site, epoch=place.epoch)

    def _stand_by(self) -> None:
        """Tell the query to take in what is new, if it has done so with all that was."""
        now = time.monotonic()
        if self._told_at is not None and now < self._told_at + _FOLLOW_EVERY_S:
            return
        if last_batch_of(self._standby_place) < self._told:
            return
        newest = self._commits.last_commit(self._place.epoch)
        if self._told_at is None or newest != self._told_of:
            self._file(-1 - self._told).unlink(missing_ok=True)
            self._told, self._told_of, self._told_at = self._told + 1, newest, now
            self._lay(-1 - self._told, self._commits.operator.rows.empty_table())

    def _find_beginning(self) -> None:
        last = self._commits.last_commit(self._place.epoch)
        if last is not None:
            place, batch = last
            self._offset = self._commits.read_offset(place, batch)
            self._next = batch + 1 if place.epoch == self._place.epoch else 0

    def _lay_next(self) -> None:
        begins = not self._found_beginning
        if begins:
            with while_there(self._commits.log.root):
                self._find_beginning()
            self._found_beginning = True
        if self._laid == self._next:
            if not self._place.segment(self._laid).is_dir():
                return
            self._file(self._laid).unlink(missing_ok=True)
            (self._folder / f"{self._laid}.json").unlink(missing_ok=True)
            self._next += 1
        end = self._reading.next_offset(self._offset, rows=self._rows)
        if end != self._offset:
            rows = self._read(self._reading.between(self._offset, end))
            (self._folder / f"{self._next}.json").write_text(json.dumps(end))
            self._lay(self._next, rows)
            self._offset, self._laid = end, self._next
        elif begins:
            # What the epoch before has left to publish must not wait for new rows.
            self._lay(_BEGIN, self._commits.operator.rows.empty_table())

    def _read(self, segments: list[Segment]) -> pa.Table:
        schema = self._commits.operator.rows
        files = [file for segment in segments for file in segment.files]
        tables = [pa.Table.from_batches(list(read_batches(file))) for file in files]
        try:
            return pa.concat_tables([t.select(schema.names).cast(schema) for t in tables])
        except (KeyError, ValueError, pa.ArrowNotImplementedError) as error:
            raise LogError(
                f"cannot read {self._reading.stream}: its columns are not those of "
                f"{self._commits.operator.name}: {error}"
            ) from error

    def _lay(self, lot: int, rows: pa.Table) -> None:
        if lot < 0:
            # Spark makes no batch of no rows.
            nothing = [pa.nulls(1, field.type) for field in rows.schema]
            rows = pa.Table.from_arrays(nothing, schema=rows.schema)
        rows = rows.append_column(LOT, pa.array([lot] * rows.num_rows, pa.int64()))
        # Spark does not look at what begins with a dot.
        draft = self._file(lot).with_name(f".{lot}")
        pq.write_table(rows, draft, compression="none", use_dictionary=False)
        self._newest_ns = be_no_older(draft, self._newest_ns)
        draft.rename(self._file(lot))

    def _file(self, lot: int) -> Path:
        return rows_folder(self._folder) / f"{lot}.parquet"
