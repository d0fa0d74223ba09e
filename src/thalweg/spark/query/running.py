"""A streaming query that runs: where it stands, how it is doing, and how it ends."""

from __future__ import annotations

import re
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from thalweg.errors import NotInTime, ThalwegError
from thalweg.spark.monitor.counting import Counting, RowCounts
from thalweg.spark.monitor.record import Published, Record, record_of
from thalweg.spark.query.checkpoint import (
    Offsets,
    Stand,
    batch_under_way,
    has_reached,
    last_finished,
    read_stand,
)
from thalweg.spark.query.cpu import BatchCpu
from thalweg.spark.query.feeder import Feeder
from thalweg.spark.query.progress import last_progress, progress_after
from thalweg.spark.query.publisher import BatchGate, BatchHeld, PublishedRows
from thalweg.spark.query.spec import QuerySpec, QueryStatus, rate_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_S = 0.01
_READY_S = 30.0
_NEXT_BATCH_S = 2.0
_SHOWN_ERROR_LENGTH = 500
# The line after the indented ones of a traceback.
_TRACEBACK_END = re.compile(r"^(?:  .*\n)+(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What can be done for a query that has failed, or hangs."""

    restart: Callable[[], StreamingQuery]
    set_aside: Callable[[Callable[[], bool]], int] | None = None
    """Takes bad rows out of its way, unless it becomes unwanted; gives how many."""


class RunningQuery:
    """A streaming query, the spec that it was made from, and what it holds while it runs."""

    def __init__(
        self,
        spec: QuerySpec,
        query: StreamingQuery,
        held: ExitStack,
        published: PublishedRows | None = None,
        feeder: Feeder | None = None,
        repair: Repair | None = None,
        counting: Counting | None = None,
        cpu: BatchCpu | None = None,
    ) -> None:
        self.spec = spec
        self._counting = counting
        self._cpu = cpu
        self._query = query
        self._held = held
        self._published = published
        self._gate = BatchGate(spec.checkpoint)
        self._stopped = False
        self._repair = repair
        self._repair_lock = threading.Lock()
        self._in_repair = False
        self._beyond_repair: StreamingQuery | None = None
        # What ran before is told by then.
        self._told = last_finished(spec.checkpoint)
        self._untold: list[Record] = []
        self._feeder = feeder
        if feeder is not None:
            feeder.start()
            if not feeder.is_held:
                feeder.tell(spec.clock_ms)

    @property
    def newest_ms(self) -> int | None:
        """The latest event time that it has been given."""
        newest_s = None if self._feeder is None else self._feeder.newest_s
        return None if newest_s is None else round(newest_s * 1000)

    @property
    def is_held(self) -> bool:
        """Whether it is ready and waits to be released."""
        return self._feeder is not None and self._feeder.is_held

    def get_ready(self, batches: int = 1, timeout_s: float = _READY_S) -> None:
        """Wait until so many of its first batches, without rows, are finished; at most so long."""
        last = batches - 1
        begin_s = idle_s = time.monotonic()
        while (finished := last_finished(self.spec.checkpoint)) < last and self.active:
            now_s = time.monotonic()
            if finished < 0 or batch_under_way(self.spec.checkpoint) is not None:
                idle_s = now_s
            # Should Spark see no need of another batch, it is not waited for.
            if now_s - begin_s > timeout_s or now_s - idle_s > _NEXT_BATCH_S:
                return
            time.sleep(_POLL_S)

    def release(self, spec: QuerySpec) -> bool:
        """Let a query that was held take rows as this spec says, if it was made for it."""
        made_for = replace(spec, start=self.spec.start, clock_ms=self.spec.clock_ms)
        if self._feeder is None or not self._feeder.is_held or made_for != self.spec:
            return False
        self.spec = spec
        # A window that was carried here may be one that has ended: time has to go first.
        self._feeder.begin_at(spec.start or {}, spec.clock_ms, rows_first=not spec.carried)
        return True

    @property
    def active(self) -> bool:
        """Whether the query runs, and is fed; also while it is being mended."""
        runs = self._in_repair or bool(self._query.isActive)
        return runs and not (self._feeder and self._feeder.error)

    @property
    def error(self) -> str | None:
        """Why the query ended, if it did not end because it was told to."""
        if self._feeder and self._feeder.error:
            return self._feeder.error
        error = None if self._stopped or self._in_repair else self._query.exception()
        return None if error is None or BatchHeld.__name__ in str(error) else first_words(error)

    def status(self) -> QueryStatus:
        """What the query is doing."""
        progress = last_progress(self._query)
        stand = self._stand()
        error = self.error
        ended = "failed" if error else "stopped"
        return QueryStatus(
            name=self.spec.name,
            id=str(self._query.id),
            site=self.spec.site,
            epoch=self.spec.epoch,
            role=self.spec.role,
            state="running" if self.active else ended,
            batch=stand.batch,
            input_rows_per_s=rate_of(progress.get("inputRowsPerSecond")),
            processed_rows_per_s=rate_of(progress.get("processedRowsPerSecond")),
            offsets=stand.offsets,
            sink_rows=self._published() if self._published else {},
            state_rows=sum(o["numRowsTotal"] for o in progress.get("stateOperators", ())),
            batch_s=progress.get("batchDuration", 0) / 1000,
            watermark=progress.get("eventTime", {}).get("watermark"),
            error=error,
            # While it is to stop before the end of its streams, rows may wait beyond that.
            is_idle=self.is_idle and (self._feeder is None or self._feeder.is_unlimited),
        )

    def records(self) -> list[Record]:
        """What its batches did that were finished since this was last asked; see `record_of`."""
        finished = last_finished(self.spec.checkpoint)
        newest_s = None if self._feeder is None else self._feeder.newest_s
        told, self._untold = self._untold, []
        batches = {
            int(batch["batchId"]): batch
            for batch in progress_after(self._query, self._told)
            if self._told < int(batch["batchId"]) <= finished
        }
        cpu_s = self._cpu.take(str(self._query.runId), list(batches)) if self._cpu else {}
        for number, batch in batches.items():
            self._told = number
            published = self._published.figures(number) if self._published else {}
            told.append(
                record_of(
                    batch,
                    self.spec,
                    published,
                    counts=self._count(batch, published),
                    newest_s=newest_s,
                    cpu_s=cpu_s.get(number),
                )
            )
        return told

    def _count(
        self, progress: Mapping[str, Any], published: Mapping[str, Published]
    ) -> RowCounts | None:
        if self._counting is None or self._feeder is None:
            return None
        rows = {stream: put.rows for stream, put in published.items()}
        return self._counting.count(progress, self._feeder.rows(int(progress["batchId"])), rows)

    def mend(self) -> bool:
        """Take the rows out of the way on which a failed query failed, and start it again.

        Gives whether it runs. It does not where no row is to blame, or none may be set aside.
        """
        with self._repair_lock:
            if self.error is None:
                # It runs, or was told to end.
                return self.active
            unfed = self._feeder is not None and self._feeder.error is not None
            repair = self._repair
            if repair is None or repair.set_aside is None or unfed:
                return False
            if self._beyond_repair is self._query:
                return False
            failed, self._in_repair = self._query, True
            try:
                # Its error is known a little before its end.
                while failed.isActive:
                    time.sleep(_POLL_S)
                if repair.set_aside(lambda: self._stopped) and not self._stopped:
                    self._start_again(repair)
            except Exception:
                # What counts is why the query failed.
                traceback.print_exc()
            finally:
                self._in_repair = False
            if self._query is failed:
                self._beyond_repair = failed
            return self._query is not failed

    def start_over(self) -> bool:
        """Have Spark make a running query anew, from its checkpoint; whether that was done.

        Spark waits for its next batch by the clock on the wall: where that is set back, it waits
        until the clock is there again. What the batch under way has done is done again.
        """
        with self._repair_lock:
            if self._repair is None or self._stopped or not self.active:
                return False
            self._in_repair = True
            try:
                self._query.stop()
                self._start_again(self._repair)
            finally:
                self._in_repair = False
        return True

    def _start_again(self, repair: Repair) -> None:
        # What it did is not known to the one that follows; that it goes on counts more.
        with suppress(Exception):
            self._untold += self.records()
        self._query = repair.restart()

    def drain(self, upto: Offsets | None, timeout_s: float) -> Stand:
        """End the query once it has reached these offsets; see `Site.drain`.

        Raises:
            ThalwegError: where it fails, or does not get there in time; then it goes on.
        """
        deadline = time.monotonic() + timeout_s
        try:
            if self._feeder is not None:
                self._feeder.limit(upto)
            self._wait(deadline, lambda: self._has_reached(upto))
            self._gate.close()
            self._wait(deadline, lambda: batch_under_way(self.spec.checkpoint) is None)
        except ThalwegError:
            self._gate.open()
            if self._feeder is not None:
                self._feeder.release()
            raise
        return self.stop()

    def stop(self) -> Stand:
        """End the query at once, and say where it stands."""
        self._stopped = True
        # Who mends it looks whether it is stopped, and ends soon.
        with self._repair_lock:
            self._gate.close()
            self._query.stop()
            stand = self._stand()
            self.close()
        return stand

    def close(self) -> None:
        """Let go of what the ended query held."""
        if self._feeder is not None:
            self._feeder.close()
        self._held.close()

    @property
    def is_idle(self) -> bool:
        """Whether it has worked on all that it was given, and no batch is under way."""
        fed = self._feeder is None or self._feeder.is_idle_at(None)
        return fed and batch_under_way(self.spec.checkpoint) is None

    @property
    def rows_taken(self) -> int:
        """How many rows its last batches were given, as far as that is remembered."""
        if self._feeder is None:
            return 0
        last = last_finished(self.spec.checkpoint)
        return sum(sum(self._feeder.rows(batch).values()) for batch in range(last + 1))

    def _stand(self) -> Stand:
        """Where the query stands; what no batch has touched is where it was to begin."""
        if self._feeder is not None:
            return self._feeder.stand()
        stand = read_stand(self.spec.checkpoint)
        touched = {name: offset for name, offset in stand.offsets.items() if offset is not None}
        return Stand(batch=stand.batch, offsets={**(self.spec.start or {}), **touched})

    def _has_reached(self, goal: Offsets | None) -> bool:
        if self._feeder is not None:
            return self._feeder.is_idle_at(goal)
        return goal is None or has_reached(self._stand().offsets, goal)

    def _wait(self, deadline: float, happened: Callable[[], bool]) -> None:
        while not happened():
            if not self.active and not self.mend():
                if self.error is None:
                    # Held at the gate: the batch begun last has done nothing.
                    return
                raise ThalwegError(f"the query failed: {self.error}")
            if time.monotonic() > deadline:
                stand = self._stand()
                raise NotInTime(
                    f"not drained in time: finished batch {stand.batch} at {dict(stand.offsets)}"
                )
            time.sleep(_POLL_S)


def first_words(error: object) -> str:
    r"""What went wrong, of a streaming error with its stacks in Python and Java.

    >>> first_words("Job aborted.\nTraceback:\n  File 1\n    f()\nValueError: no\n\tat java")
    'ValueError: no'
    """
    text = str(error).strip()
    endings: list[str] = _TRACEBACK_END.findall(text)
    return (endings[-1] if endings else text.partition("\n")[0])[:_SHOWN_ERROR_LENGTH]
