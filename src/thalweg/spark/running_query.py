"""A streaming query that runs: where it stands, how it is doing, and how it ends."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from thalweg.errors import ThalwegError
from thalweg.spark.batch_publisher import BatchGate, BatchHeld
from thalweg.spark.checkpoint import Offsets, Stand, batch_under_way, has_reached, read_stand
from thalweg.spark.feeder import Feeder
from thalweg.spark.intake import Intake
from thalweg.spark.query_spec import QuerySpec, QueryStatus, rate_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_S = 0.01
_SHOWN_ERROR_LENGTH = 500
# The line after the indented ones of a traceback.
_TRACEBACK_END = re.compile(r"^(?:  .*\n)+(\S.*)$", re.MULTILINE)


class RunningQuery:
    """A streaming query, the spec that it was made from, and what it holds while it runs."""

    def __init__(
        self,
        spec: QuerySpec,
        query: StreamingQuery,
        held: ExitStack,
        published: Callable[[], dict[str, int]] = dict,
        intakes: Mapping[str, Intake] | None = None,
    ) -> None:
        self.spec = spec
        self._query = query
        self._held = held
        self._published = published
        self._gate = BatchGate(spec.checkpoint)
        self._stopped = False
        self._feeder = None
        if intakes is not None:
            self._feeder = Feeder(spec.checkpoint, intakes)
            self._feeder.start()

    @property
    def active(self) -> bool:
        """Whether the query runs, and is fed."""
        return bool(self._query.isActive) and not (self._feeder and self._feeder.error)

    @property
    def error(self) -> str | None:
        """Why the query ended, if it did not end because it was told to."""
        if self._feeder and self._feeder.error:
            return self._feeder.error
        error = None if self._stopped else self._query.exception()
        return None if error is None or BatchHeld.__name__ in str(error) else _first_words(error)

    def status(self) -> QueryStatus:
        """What the query is doing."""
        progress = self._progress()
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
            sink_rows=self._published(),
            state_rows=sum(o["numRowsTotal"] for o in progress.get("stateOperators", ())),
            batch_s=progress.get("batchDuration", 0) / 1000,
            watermark=progress.get("eventTime", {}).get("watermark"),
            error=error,
        )

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
            if not self.active:
                if self.error is None:
                    # Held at the gate: the batch begun last has done nothing.
                    return
                raise ThalwegError(f"the query failed: {self.error}")
            if time.monotonic() > deadline:
                stand = self._stand()
                raise ThalwegError(
                    f"not drained in time: finished batch {stand.batch} at {dict(stand.offsets)}"
                )
            time.sleep(_POLL_S)

    def _progress(self) -> dict[str, Any]:
        progress = self._query.lastProgress
        return json.loads(progress.json) if progress is not None else {}


def _first_words(error: object) -> str:
    r"""What went wrong, of a streaming error with its stacks in Python and Java.

    >>> _first_words("Job aborted.\nTraceback:\n  File 1\n    f()\nValueError: no\n\tat java")
    'ValueError: no'
    """
    text = str(error).strip()
    endings: list[str] = _TRACEBACK_END.findall(text)
    return (endings[-1] if endings else text.partition("\n")[0])[:_SHOWN_ERROR_LENGTH]
