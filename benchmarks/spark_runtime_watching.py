"""What it costs to be watched: the same work at two sites at the same time, one of them watched.

Two passes one after the other differ on a busy machine by more than what is to be found out. At the
same time, whatever slows one down slows down the other.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.runner import Count, Row
from benchmarks.spark_runtime_backlog import FIRST_OPERATOR, Backlog
from benchmarks.spark_runtime_sites import (
    FOGS,
    PIPELINE,
    end_of_time_at,
    find_cpu_s,
    wait_for,
    wait_until_warm,
)
from thalweg.spark.log import Log
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.names import EDGES
from thalweg.spark.monitor import Monitor
from thalweg.spark.pipeline.reference import load_pipeline
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.sites import Sites

TARGET = 0.05
LOOK_EVERY_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same backlog with and without being watched, at the same time."""

    watched_cpu_s: float
    plain_cpu_s: float
    watched_s: float
    plain_s: float


class Watcher:
    """Asks sites for their records as a run does, and feeds a monitor with them.

    A site keeps the records of an ended query until somebody asks. The next query has the same
    epoch and counts its batches from 0 again, so a monitor that got both would take the new batches
    for old ones and drop them. What was left is thrown away here, before the first row is read.
    """

    def __init__(self, sites: Sites, names: Sequence[str]) -> None:
        self.cpu_s = 0.0
        """What the CPU has worked on that here; what it has at the sites is counted there."""
        self.read: dict[str, int] = {}
        """The rows that each operator is known to have read."""
        self._sites, self._names = sites, names
        self._monitor = Monitor(load_pipeline(PIPELINE).application)
        self._ending = threading.Event()
        for name in names:
            sites[name].records()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look every now and then, for the length of the block, and once more."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            thread.join()
            self._look()
            for (operator, _), rows in self._monitor.totals.rows_in.items():
                self.read[operator] = self.read.get(operator, 0) + rows

    def count(self, name: str, rides: int) -> Count:
        """The rides that were read, by all sites together, against those that there were."""
        return Count(name=name, expected=rides, counted=self.read.get(FIRST_OPERATOR, 0))

    def _run(self) -> None:
        while not self._ending.wait(LOOK_EVERY_S):
            begin_s = time.thread_time()
            self._look()
            self._monitor.figures()
            self.cpu_s += time.thread_time() - begin_s

    def _look(self) -> None:
        for name in self._names:
            for record in self._sites[name].records():
                self._monitor.take(record)


@dataclass(slots=True, kw_only=True)
class Comparison:
    """The whole application at both fogs, once watched and once not, in turns."""

    sites: Sites
    folder: Path
    backlog: Backlog
    pairs: list[Pair] = field(default_factory=list)
    counts: list[Count] = field(default_factory=list)

    def run(self, turns: int, *, warm_up: Backlog | None) -> None:
        """Let the fogs take turns in being watched."""
        for turn, backlog in enumerate(
            [*([warm_up] * 2 if warm_up else []), *[self.backlog] * turns]
        ):
            pair = self._take(turn, backlog)
            if backlog is self.backlog:
                self.pairs.append(pair)

    def _take(self, turn: int, backlog: Backlog) -> Pair:
        folder = self.folder / f"watching-{turn}"
        watched, plain = FOGS if turn % 2 == 0 else FOGS[::-1]
        logs = {name: folder / name / "log" for name in FOGS}
        queries = [
            QuerySpec(
                site=name,
                epoch=0,
                role="cloud",
                pipeline=PIPELINE,
                sites=FOGS,
                log=logs[name],
                checkpoint=folder / name / "checkpoint",
                trigger="100 ms",
                durable=False,
                rows_per_batch=backlog.rows_per_batch,
                watched=name == watched,
            )
            for name in FOGS
        ]
        for query in queries:
            found_log(query.log)
            self.sites[query.site].start(query)
        watcher = Watcher(self.sites, (watched,))
        try:
            wait_until_warm(self.sites, FOGS)
            with watcher.running():
                found = self._work_off(backlog, logs)
        finally:
            for query in queries:
                self.sites[query.site].stop(query.name)
            shutil.rmtree(folder, ignore_errors=True)
        self.counts.append(watcher.count(f"rides counted at {watched}, watched", backlog.rides))
        (watched_cpu_s, watched_s), (plain_cpu_s, plain_s) = found[watched], found[plain]
        return Pair(
            watched_cpu_s=watched_cpu_s + watcher.cpu_s,
            plain_cpu_s=plain_cpu_s,
            watched_s=watched_s,
            plain_s=plain_s,
        )

    def _work_off(self, backlog: Backlog, logs: dict[str, Path]) -> dict[str, tuple[float, float]]:
        """CPU and other seconds of each site for the same backlog."""
        cpu_s = {name: find_cpu_s(self.sites, (name,)) for name in FOGS}
        begins = {name: backlog.put_into_log(logs[name], EDGES) for name in FOGS}
        found: dict[str, tuple[float, float]] = {}

        def look() -> bool:
            for name in FOGS:
                end = None if name in found else end_of_time_at(Log(logs[name]))
                if end is not None:
                    used_s = find_cpu_s(self.sites, (name,)) - cpu_s[name]
                    found[name] = (used_s, end - begins[name])
            return len(found) == len(FOGS)

        wait_for(self.sites, look, "the backlog is not worked off")
        return found


def tell_watching(pairs: Sequence[Pair]) -> Iterator[Row]:
    """What it costs to count rows at every operator, and to ask for the counts."""
    measures = {
        "monitoring, CPU seconds more": [
            pair.watched_cpu_s / pair.plain_cpu_s - 1 for pair in pairs
        ],
        "monitoring, throughput less": [1 - pair.plain_s / pair.watched_s for pair in pairs],
    }
    for measure, costs in measures.items():
        yield Row(
            measure=measure,
            value=100 * median(costs),
            unit="%",
            target=100 * TARGET,
            note=f"{100 * min(costs):.1f} to {100 * max(costs):.1f} in {len(costs)} turns",
        )
