"""How fast a backlog is worked off: split over sites, in one place, and by plain Spark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.runner import Count, Row
from benchmarks.spark_runtime_backlog import Backlog
from benchmarks.spark_runtime_sites import (
    CLOUD,
    FOGS,
    ONE_PLACE,
    PIPELINE,
    STRATEGY,
    Cuts,
    deployed,
    describe_deployment,
    end_of_time_at,
    find_cpu_s,
    published_at,
    wait_for,
    wait_until_warm,
)
from benchmarks.spark_runtime_watching import Watcher
from thalweg.spark.log import Log
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.names import EDGES, SOURCES
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.sites import Sites

THROUGHPUT_TARGET = 0.9
SINK = "sinks/fare-board"
PLANNED, RAW = f"the cuts of {STRATEGY}", "all in the cloud"
WHOLE, PLAIN = "in one place", "in one place, plain Spark"
WAYS = (WHOLE, PLANNED, RAW, PLAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A backlog that was worked off once."""

    seconds: float
    cpu_s: float
    rows: int
    """Of the result."""
    fingerprint: int
    """The same for the same rows in any order."""


@dataclass(slots=True, kw_only=True)
class Race:
    """The same backlog for every way, again and again."""

    sites: Sites
    folder: Path
    cuts: Cuts
    backlog: Backlog
    passes: dict[str, list[Pass]] = field(default_factory=dict)
    counts: list[Count] = field(default_factory=list)
    _results: dict[int, int] = field(default_factory=dict)
    """Rides of a backlog → rows of the result: plain Spark does not say when it has all."""
    _taken: int = 0

    def run(self, turns: int, *, warm_up: Backlog | None) -> None:
        """Let all ways take turns; in every other turn, in the opposite order."""
        if warm_up is not None:
            for way in WAYS:
                self._take(way, warm_up)
        for turn in range(turns):
            for way in WAYS if turn % 2 == 0 else WAYS[::-1]:
                self.passes.setdefault(way, []).append(self._take(way, self.backlog))

    def count_results(self) -> list[Count]:
        """The rows of every pass against those of the first, where their content is the same."""
        first = self.passes[WHOLE][0]
        return [
            Count(
                name=f"rows of the result, {way}, turn {turn + 1}",
                expected=max(first.rows, 1),
                counted=each.rows if each.fingerprint == first.fingerprint else 0,
            )
            for way, passes in self.passes.items()
            for turn, each in enumerate(passes)
        ]

    def rows_per_s(self, way: str) -> list[float]:
        """Rides per second, in each turn."""
        return [self.backlog.rides / each.seconds for each in self.passes[way]]

    def _take(self, way: str, backlog: Backlog) -> Pass:
        # A place of its own for every pass: Spark tends a state for a while after its query's end.
        self._taken += 1
        folder = self.folder / f"pass-{self._taken}"
        try:
            if way == PLAIN:
                return self._take_plain(folder, backlog)
            if way == WHOLE:
                taken = self._take_whole(folder, backlog)
                self._results[backlog.rides] = taken.rows
                return taken
            cuts = dict.fromkeys(FOGS, ()) if way == RAW else self.cuts
            return self._take_split(way, folder, backlog, cuts)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _take_split(self, way: str, folder: Path, backlog: Backlog, cuts: Any) -> Pass:
        spec = describe_deployment(folder, rows_per_batch=backlog.rows_per_batch)
        names = (*FOGS, CLOUD)
        with deployed(spec, self.sites, cuts):
            watcher = Watcher(self.sites, names)
            with watcher.running():
                cpu_s = find_cpu_s(self.sites, names)
                begin = backlog.put_into_log(spec.log, SOURCES)
                end = self._await_end_of_time(spec.log)
                cpu_s = find_cpu_s(self.sites, names) - cpu_s
        self.counts.append(watcher.count(f"rides counted, {way}", backlog.rides))
        return _describe(spec.log, end - begin, cpu_s)

    def _take_whole(self, folder: Path, backlog: Backlog) -> Pass:
        query = _query(folder, "cloud", PIPELINE, sites=FOGS, rows_per_batch=backlog.rows_per_batch)
        with self._running(query):
            watcher = Watcher(self.sites, (ONE_PLACE,))
            with watcher.running():
                cpu_s = find_cpu_s(self.sites, (ONE_PLACE,))
                begin = backlog.put_into_log(query.log, EDGES)
                end = self._await_end_of_time(query.log)
                cpu_s = find_cpu_s(self.sites, (ONE_PLACE,)) - cpu_s
        self.counts.append(watcher.count(f"rides counted, {WHOLE}", backlog.rides))
        return _describe(query.log, end - begin, cpu_s)

    def _take_plain(self, folder: Path, backlog: Backlog) -> Pass:
        given = folder / "input"
        backlog.put_empty_file(given)
        function = "benchmarks.spark_runtime_plain:start_plain_query"
        options = {"application": PIPELINE, "input": str(given)}
        query = _query(folder, "own", function, options=options)
        with self._running(query):
            cpu_s = find_cpu_s(self.sites, (ONE_PLACE,))
            begin = backlog.put_files(given)
            end = self._await_rows(query.log, self._results[backlog.rides])
            cpu_s = find_cpu_s(self.sites, (ONE_PLACE,)) - cpu_s
        return _describe(query.log, end - begin, cpu_s)

    @contextmanager
    def _running(self, query: QuerySpec) -> Iterator[None]:
        site = self.sites[ONE_PLACE]
        found_log(query.log)
        site.start(query)
        try:
            wait_until_warm(self.sites, (ONE_PLACE,))
            yield
        finally:
            site.stop(query.name)

    def _await_end_of_time(self, path: Path) -> float:
        """When the last result was published: nothing comes after the end of time."""
        log = Log(path)
        end = wait_for(self.sites, lambda: end_of_time_at(log), "the backlog is not worked off")
        return end or 0.0

    def _await_rows(self, path: Path, rows: int) -> float:
        """When the last of so many results was published."""
        log = Log(path)

        def find_end() -> float | None:
            segments = list(log.segments(SINK))
            there = sum(segment.rows for segment in segments) >= rows
            return max(published_at(segment.folder) for segment in segments) if there else None

        return wait_for(self.sites, find_end, "the files are not worked off") or 0.0


def tell_throughput(race: Race) -> Iterator[Row]:
    """Rows per second of each way, and what splitting costs."""
    whole = race.rows_per_s(WHOLE)
    for way in (PLANNED, RAW):
        yield _ratio(
            f"throughput against one place, {way}", race.rows_per_s(way), whole, THROUGHPUT_TARGET
        )
    yield _ratio("throughput of one place against plain Spark", whole, race.rows_per_s(PLAIN), None)
    for way in WAYS:
        rates = race.rows_per_s(way)
        cpu_us = median(each.cpu_s / race.backlog.rides for each in race.passes[way]) * 1e6
        yield Row(
            measure=f"rides, {way}",
            value=median(rates),
            unit="rides/s",
            note=f"{min(rates):,.0f} to {max(rates):,.0f}; {cpu_us:.1f} CPU µs for each",
        )


def _ratio(
    measure: str, rates: Sequence[float], others: Sequence[float], target: float | None
) -> Row:
    ratios = [rate / other for rate, other in zip(rates, others, strict=True)]
    return Row(
        measure=measure,
        value=median(ratios),
        target=target,
        at_least=True,
        note=f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} turns",
    )


def _query(folder: Path, role: str, pipeline: str, **more: Any) -> QuerySpec:
    return QuerySpec(
        site=ONE_PLACE,
        epoch=0,
        role=role,
        pipeline=pipeline,
        log=folder / "log",
        checkpoint=folder / "checkpoints" / ONE_PLACE,
        trigger="100 ms",
        durable=False,
        **more,
    )


def _describe(log: Path, seconds: float, cpu_s: float) -> Pass:
    segments = list(Log(log).segments(SINK))
    hashes = sum(part.hash_sum for segment in segments for part in segment.parts)
    return Pass(
        seconds=seconds,
        cpu_s=cpu_s,
        rows=sum(segment.rows for segment in segments),
        fingerprint=hashes % 2**64,
    )
