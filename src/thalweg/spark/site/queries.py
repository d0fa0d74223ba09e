"""The queries of a site: begun, ended, asked how they do, and looked after while they run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from thalweg.errors import ThalwegError
from thalweg.spark.query.checkpoint import Stand
from thalweg.spark.query.queries import start_query
from thalweg.spark.query.running import RunningQuery
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.channel import NO_QUERY
from thalweg.spark.site.links import SiteLinks
from thalweg.spark.site.wall_clock import WallClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Less than that, Spark waits no longer than a slow batch would take.
_CLOCK_STEP_S = 1.0

FAILED, HALTED, RESUMED = "query-failed", "query-halted", "query-resumed"
ReportQuery = Callable[[str, str, str | None], None]
"""Takes what became of a query (one of these), its name, and why."""


class SiteQueries:
    """What runs at a site; commands come from many threads."""

    def __init__(self, links: SiteLinks, report: ReportQuery) -> None:
        self._links = links
        self._report = report
        self._running: dict[str, RunningQuery] = {}
        self._untold: list[dict[str, Any]] = []
        self._told: set[str] = set()
        self._in_repair: set[str] = set()
        self._lock = threading.Lock()
        self._wall = WallClock()

    # Begun and ended

    def start(self, session: SparkSession, query: QuerySpec, *, held: bool = False) -> RunningQuery:
        """Have a query run, which may run already; held, it waits for the word to take rows."""
        self._links.connect(query)
        with self._lock:
            running = self._running.get(query.name)
            if running is not None and running.active:
                if running.spec == query or running.release(query):
                    # Its link may have failed, and has been begun anew.
                    self._told.discard(query.name)
                    return running
                if not running.is_held:
                    raise ThalwegError(f"another query {query.name} is running already")
            self._running.pop(query.name, None)
            self._told.discard(query.name)
        if running is not None:
            # It failed, or it was made ready for something else and has taken nothing.
            running.stop()
        started = start_query(session, query, held=held)
        with self._lock:
            self._running[query.name] = started
        return started

    def end(self, name: str, end: Callable[[RunningQuery], Stand]) -> Stand:
        """End a query this way; what it did last is told when that is asked for next.

        Raises:
            ThalwegError: where no such query runs.
        """
        with self._lock:
            running = self._running.get(name)
        if running is None:
            raise ThalwegError(f"{NO_QUERY} {name}; known: {', '.join(self._running)}")
        with self._lock:
            told_before = name in self._told
            self._told.add(name)
        try:
            stand = end(running)
        except BaseException:
            with self._lock:
                if not told_before:
                    self._told.discard(name)
            raise
        # A server may have forgotten it.
        untold: list[dict[str, Any]] = []
        with suppress(Exception):
            untold = running.records()
        with self._lock:
            self._untold += untold
            self._running.pop(name, None)
        return stand

    def stop_all(self) -> None:
        """End all of them after their batches under way, as far as they do."""
        for query in self._listed():
            with suppress(Exception):
                query.stop()

    # Asked

    def newest_ms(self, query: str) -> int | None:
        """The time of the newest row that a query has seen."""
        with self._lock:
            running = self._running.get(query)
        return None if running is None else running.newest_ms

    def records(self) -> list[dict[str, Any]]:
        """What was not told yet of the batches of all of them."""
        with self._lock:
            running = list(self._running.values())
            untold, self._untold = self._untold, []
        return [*untold, *(record for query in running for record in query.records())]

    def status(self) -> list[dict[str, Any]]:
        """How each of them is doing, as plain data."""
        return [asdict(query.status()) for query in self._listed()]

    def _listed(self) -> list[RunningQuery]:
        with self._lock:
            return list(self._running.values())

    # Looked after

    def look_after(self) -> None:
        """Mend what has failed, tell what cannot be mended, wake what a clock has put to sleep."""
        back_s = self._wall.went_back_s()
        if back_s > _CLOCK_STEP_S:
            # Those that are being ended, too: they would never get to where they are to end.
            for query in self._listed():
                self._start_over(query, back_s)
        with self._lock:
            queries = {n: q for n, q in self._running.items() if n not in self._told}
        for name, query in queries.items():
            with suppress(Exception):
                link_error = None if query.is_held else self._links.error_of(query.spec)
                if link_error:
                    self._tell_failure(query, link_error)
                elif not query.active and name not in self._in_repair:
                    self._in_repair.add(name)
                    threading.Thread(target=self._mend, args=(query,), daemon=True).start()

    def _mend(self, query: RunningQuery) -> None:
        """Have a query go on that has failed, or tell that it has."""
        name, error, failed = query.spec.name, query.error, False
        try:
            if error is not None:
                # To find the rows that are to blame may take long.
                self._report(HALTED, name, error)
            if query.mend():
                sys.stderr.write(f"{name} goes on without rows that made it fail\n")
            else:
                failed = self._tell_failure(query, query.error)
        finally:
            if error is not None and not failed:
                # One that is being ended is somebody else's, and halted no longer.
                self._report(RESUMED, name, None)
            self._in_repair.discard(query.spec.name)

    def _start_over(self, query: RunningQuery, back_s: float) -> None:
        """Have a query go on that would wait until the clock is where it was."""

        def start_over() -> None:
            if query.start_over():
                sys.stderr.write(
                    f"{query.spec.name} was made anew: the clock was set back by {back_s:.1f} s\n"
                )

        threading.Thread(target=start_over, daemon=True).start()

    def _tell_failure(self, query: RunningQuery, error: str | None) -> bool:
        """Say that a query has failed, unless it was told before, or is being ended; whether so."""
        name = query.spec.name
        with self._lock:
            if name in self._told or self._running.get(name) is not query:
                return False
            self._told.add(name)
        self._report(FAILED, name, error)
        return True
