"""Positions as they are born: rows enter the log when the clock of the tracks says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from thalweg.errors import ThalwegError
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.mobility.course import SOURCE, Course

GATE = "vehicles"
_SEND_EVERY_S = 0.1


class FeedFailed(ThalwegError):
    """The rows have stopped coming: their log cannot be written to any more."""


class TrackClock:
    """What time it is in the tracks; stands still at their first moment until it is started."""

    def __init__(self, first_s: float, speedup: float) -> None:
        self._first_s = first_s
        self._speedup = speedup
        self._started: float | None = None

    def start(self) -> None:
        """Let time go on."""
        self._started = time.monotonic()

    @property
    def now_s(self) -> float:
        """Seconds, as in the tracks."""
        if self._started is None:
            return self._first_s
        return self._first_s + (time.monotonic() - self._started) * self._speedup

    def seconds_until(self, moment_s: float) -> float:
        """How long to wait for a moment of the tracks; 0 where it is past."""
        return max(0.0, (moment_s - self.now_s) / self._speedup)


class PositionFeed:
    """Sends each row of a course once, as soon as its time has come, whatever else goes on."""

    def __init__(self, course: Course, clock: TrackClock) -> None:
        self._course = course
        self._clock = clock
        self._gateway = Gateway(
            course.spec.log, SOURCE, GATE, durable=course.spec.durable, founds=True
        )
        self._time_s = course.time_s
        self._sent = 0
        self._ending = threading.Event()
        self._failure: Exception | None = None

    def send_due(self) -> None:
        """Send all rows whose time has come and that were not sent yet."""
        due = int(np.searchsorted(self._time_s, self._clock.now_s, side="right"))
        if due > self._sent:
            self._gateway.send(self._course.rows.slice(self._sent, due - self._sent))
            self._sent = due

    @property
    def done(self) -> bool:
        """Whether all rows are in the log.

        Raises:
            FeedFailed: where they will never be.
        """
        if self._failure is not None:
            raise FeedFailed(f"no more positions: {self._failure}") from self._failure
        return self._sent == len(self._time_s)

    def wait_until(self, moment_s: float) -> None:
        """Wait for a moment of the tracks.

        Raises:
            FeedFailed: where rows have stopped coming.
        """
        while (wait_s := self._clock.seconds_until(moment_s)) > 0:
            _ = self.done
            time.sleep(min(wait_s, _SEND_EVERY_S))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start the clock, and send rows as their time comes for the length of the block."""
        thread = threading.Thread(target=self._send, name="positions", daemon=True)
        self._clock.start()
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            thread.join()

    def _send(self) -> None:
        try:
            while not self.done and not self._ending.wait(_SEND_EVERY_S):
                self.send_due()
        except Exception as error:
            # Whoever waits for rows is told, whatever it is.
            self._failure = error
