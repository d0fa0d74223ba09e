"""What does it cost to split an application over sites, to watch it, and to move its cuts?

Two fogs and a cloud with a core each, and a site with two cores, run on the same two cores of this
machine. The same backlog of taxi rides is worked off by each in turns; then rides come live, while
the cut of a fog moves and while the traffic is compared with the plan. Moves of state are measured
as by `spark_state`, with less of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import spark_state
from benchmarks.runner import REGISTER, Benchmark, Result, Settings
from benchmarks.spark_runtime_backlog import Backlog
from benchmarks.spark_runtime_moves import RIDES_PER_S as MOVE_RATE
from benchmarks.spark_runtime_moves import ROUND, SHORT_ROUND, measure_moves
from benchmarks.spark_runtime_sites import (
    CORES,
    FOGS,
    STRATEGY,
    plan_application,
    running_sites,
    same_cores,
)
from benchmarks.spark_runtime_throughput import Race, tell_throughput
from benchmarks.spark_runtime_uplink import RIDES_PER_S as UPLINK_RATE
from benchmarks.spark_runtime_uplink import measure_uplink, profile_application
from benchmarks.spark_runtime_watching import Comparison, tell_watching
from thalweg.spark.site.site import SiteSpec
from thalweg.spark.site.sites import Sites


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    rides: int
    rows_per_batch: int
    warm_up_rides: int
    turns: int
    route: tuple[tuple[str, ...], ...]
    """The cuts to which a fog moves, one after the other."""
    rest_s: float
    sample_s: float
    """Of rides, to profile the application."""
    settle_s: float
    """The first results come from queries that are not warm yet, and are behind."""
    uplink_s: float
    state_megabytes: int
    state_moves: int
    state_steady_s: float = spark_state.STEADY_S


FULL = Size(
    rides=240_000,
    rows_per_batch=30_000,
    warm_up_rides=60_000,
    turns=3,
    route=ROUND,
    rest_s=2.0,
    sample_s=60.0,
    settle_s=10.0,
    uplink_s=90.0,
    state_megabytes=100,
    state_moves=2,
)
QUICK = replace(
    FULL,
    rides=60_000,
    rows_per_batch=15_000,
    warm_up_rides=9_000,
    turns=1,
    rest_s=0.5,
    uplink_s=30.0,
    state_megabytes=1,
)
SMOKE = replace(
    QUICK,
    rides=6_000,
    rows_per_batch=3_000,
    warm_up_rides=0,
    route=SHORT_ROUND,
    rest_s=0.0,
    sample_s=5.0,
    settle_s=0.0,
    uplink_s=3.0,
    state_moves=1,
    state_steady_s=1.0,
)


def run(settings: Settings) -> Result:
    """Measure everything that sites do together, then state on its own."""
    size = settings.pick(full=FULL, quick=QUICK, smoke=SMOKE)
    with _work_folder() as folder:
        result = _measure_runtime(settings, size, folder)
        state = _measure_state(settings, size, folder / "state")
    notes = [
        f"all sites, what feeds them and what measures them share the same {CORES} cores; moves of "
        "state have all cores of the machine",
        f"a backlog of {size.rides:,} rides in batches of at most {size.rows_per_batch:,}, from "
        "the moment when it is there, with all queries warm, to the last result; all ways gave the "
        "same results to the row, or the run would have failed",
        "one place is the cloud's query with all rides sent to it, on the same log; plain Spark "
        "has no log to read from, reads Parquet files, and guesses time by the newest row",
        f"cuts of {STRATEGY}; all but plain Spark are watched: rows are counted at every operator, "
        "and a monitor asks for the counts",
        "monitoring: the whole application at two sites at the same time, each with a core, one of "
        "them watched, in turns",
        f"cuts move at {MOVE_RATE:,} rides/s with a trigger of 100 ms; a pause is the time from "
        "the last output of an epoch to the first rows, or later time, that the next one tells; a "
        "micro-batch is the usual time between two outputs of the slower of the two epochs",
        f"traffic at {UPLINK_RATE:,} rides/s over {size.uplink_s:g} s; planned at the measured "
        f"rates of the sources, with figures profiled on {size.sample_s:g} s of other rides of one "
        "fog",
    ]
    return Result(
        rows=[*result.rows, *state.rows],
        notes=notes,
        details=result.details,
        counts=[*result.counts, *state.counts],
    )


def _measure_runtime(settings: Settings, size: Size, folder: Path) -> Result:
    """Throughput, monitoring, moves and traffic, on the same sites."""
    settings.tell("profiling the application")
    profiled = profile_application(folder / "profile", size.sample_s)
    _, _, cuts = plan_application()
    settings.tell("starting four sites")
    with same_cores(), running_sites(folder) as sites:
        settings.tell("working off a backlog")
        backlog = _write_backlog(folder / "backlog", size.rides, size.rows_per_batch)
        small = size.warm_up_rides
        warm_up = _write_backlog(folder / "warm-up", small, size.rows_per_batch) if small else None
        race = Race(sites=sites, folder=folder, cuts=cuts, backlog=backlog)
        race.run(size.turns, warm_up=warm_up)
        settings.tell("watching, and not watching")
        watching = Comparison(sites=sites, folder=folder, backlog=backlog)
        watching.run(size.turns + 1, warm_up=warm_up)
        settings.tell("moving a cut")
        moves = measure_moves(sites, folder / "moves", size.route, size.rest_s)
        settings.tell("comparing traffic with the plan")
        uplink, details = measure_uplink(
            sites,
            folder / "uplink",
            profiled,
            cuts[FOGS[1]],
            settle_s=size.settle_s,
            span_s=size.uplink_s,
        )
    return Result(
        rows=[*tell_throughput(race), *tell_watching(watching.pairs), *moves, *uplink],
        details=details,
        counts=[*race.count_results(), *race.counts, *watching.counts],
    )


def _measure_state(settings: Settings, size: Size, folder: Path) -> Result:
    """The pause at a move of keyed state, as `spark_state` measures it."""
    settings.tell(f"moving {size.state_megabytes} MB of state")
    with Sites() as sites:
        sites.start([SiteSpec(name=name, folder=folder / name) for name in ("fog-1", "fog-2")])
        course = spark_state.Course(
            sites=sites,
            folder=folder / "run",
            megabytes=size.state_megabytes,
            steady_s=size.state_steady_s,
        )
        found = list(course.run(size.state_moves))
    # All other rows are for the benchmark that is about state alone.
    rows = [
        replace(row, measure=f"move of state: {row.measure}")
        for row in found
        if row.target is not None
    ]
    return Result(rows=rows, counts=course.counts)


def _write_backlog(folder: Path, rides: int, rows_per_batch: int) -> Backlog:
    backlog = Backlog(folder=folder, rides=rides, rows_per_batch=rows_per_batch)
    backlog.write()
    return backlog


@contextmanager
def _work_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="thalweg-runtime-") as folder:
        yield Path(folder)


REGISTER.add(
    Benchmark(
        name="spark_runtime",
        question=(
            "What does it cost to split an application over sites, to watch it, and to move its "
            "cuts?"
        ),
        run=run,
    )
)
