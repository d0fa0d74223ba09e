"""What does it cost to split an application over sites, to watch it, and to move its cuts?

Two fogs and a cloud with a core each, and a site with two cores, run on the same two cores of this
machine. The same backlog of taxi rides is worked off by each in turns; then rides come live, while
the cut of a fog moves and while the traffic is compared with the plan. Links and moves of state are
measured as by `spark_link` and `spark_state`, with less of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import spark_link, spark_state
from benchmarks.runner import REGISTER, Benchmark, Result, Row, Settings
from benchmarks.spark_runtime_backlog import Backlog
from benchmarks.spark_runtime_moves import RIDES_PER_S as MOVE_RATE
from benchmarks.spark_runtime_moves import measure_moves
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
    rounds: int
    """Of eight moves each."""
    rest_s: float
    uplink_s: float
    state_megabytes: int
    state_moves: int


FULL = Size(
    rides=240_000,
    rows_per_batch=30_000,
    warm_up_rides=60_000,
    turns=3,
    rounds=1,
    rest_s=2.0,
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


def run(settings: Settings) -> Result:
    """Measure everything that sites do together, then state and links on their own."""
    size = QUICK if settings.quick else FULL
    with _work_folder() as folder:
        rows, details = _measure_runtime(settings, size, folder)
        rows += _measure_state(settings, size, folder / "state")
        settings.tell("links")
        # The rows that have a target; all others are for the benchmark that is about links alone.
        links = spark_link.run(replace(settings, quick=True))
        rows += [row for row in links.rows if row.target is not None]
    notes = [
        f"all sites, what feeds them and what measures them share the same {CORES} cores; of state "
        "and links, all cores of the machine",
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
        "rates of the sources, with figures profiled on a minute of other rides of one fog",
    ]
    return Result(rows=rows, notes=notes, details=details)


def _measure_runtime(
    settings: Settings, size: Size, folder: Path
) -> tuple[list[Row], list[dict[str, object]]]:
    """Throughput, monitoring, moves and traffic, on the same sites."""
    settings.tell("profiling the application")
    profiled = profile_application(folder / "profile")
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
        moves = measure_moves(sites, folder / "moves", size.rounds, size.rest_s)
        settings.tell("comparing traffic with the plan")
        uplink, details = measure_uplink(
            sites, folder / "uplink", profiled, cuts[FOGS[1]], size.uplink_s
        )
    return [*tell_throughput(race), *tell_watching(watching.pairs), *moves, *uplink], details


def _measure_state(settings: Settings, size: Size, folder: Path) -> list[Row]:
    """The pause at a move of keyed state, as `spark_state` measures it."""
    settings.tell(f"moving {size.state_megabytes} MB of state")
    with Sites() as sites:
        sites.start([SiteSpec(name=name, folder=folder / name) for name in ("fog-1", "fog-2")])
        course = spark_state.Course(
            sites=sites, folder=folder / "run", megabytes=size.state_megabytes
        )
        found = list(course.run(size.state_moves))
    return [
        replace(row, measure=f"move of state: {row.measure}")
        for row in found
        if row.target is not None
    ]


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
