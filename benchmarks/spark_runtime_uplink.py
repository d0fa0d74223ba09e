"""Whether sites send what was planned: the traffic of a live run against the model's."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq

import thalweg as tw
from benchmarks.runner import Row
from benchmarks.spark_runtime_sites import (
    CLOUD,
    FOGS,
    PIPELINE,
    SOURCE,
    TIME,
    Cuts,
    deployed,
    describe_deployment,
    wait_for,
)
from thalweg.scenarios import fog_cloud
from thalweg.scenarios.rides import generate_rides
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.feed.rides import feed_rides, split_rides
from thalweg.spark.log import Log
from thalweg.spark.monitor import Monitor
from thalweg.spark.monitor.compare import Comparison, compare_planned, place_cuts
from thalweg.spark.pipeline.reference import load_pipeline
from thalweg.spark.profile.measure import profile
from thalweg.spark.site.sites import Sites

TARGET = 0.1
RIDES_PER_S = 3_000
LOOK_EVERY_S = 1.0
SINK = "sinks/fare-board"
LEAST_ROWS_PER_S = 1.0


def profile_application(folder: Path, sample_s: float) -> tw.Application:
    """The application with figures measured on rides as one fog gets them.

    How many rows leave a window depends on how many come in, so what is declared for the rides of
    all fogs together is not true of one of them.
    """
    rides = generate_rides(
        round(sample_s * RIDES_PER_S), seed=7, start=datetime.now(UTC), seconds=sample_s
    )
    folder.mkdir(parents=True)
    sample = folder / "rides.parquet"
    pq.write_table(split_rides(rides, FOGS)[FOGS[1]], sample)
    return profile(load_pipeline(PIPELINE), data=sample, repeat=1).application


def measure_uplink(
    sites: Sites,
    folder: Path,
    app: tw.Application,
    cut: Sequence[str],
    *,
    settle_s: float,
    span_s: float,
) -> tuple[list[Row], list[dict[str, object]]]:
    """Run for so long once results come: one fog sends all rows, the other its results."""
    cuts: Cuts = {FOGS[0]: (), FOGS[1]: tuple(cut)}
    net = fog_cloud(len(FOGS), seed=0)
    spec = describe_deployment(folder)
    gateways = {
        fog: Gateway(spec.log, SOURCE, fog, time=TIME, durable=False, founds=True) for fog in FOGS
    }
    monitor = Monitor(app, window_s=span_s)
    with deployed(spec, sites, cuts):
        feed = feed_rides(gateways, RIDES_PER_S)
        try:
            log = Log(spec.log)
            wait_for(sites, lambda: any(log.segments(SINK)), "no results come")
            end = time.monotonic() + settle_s + span_s
            while time.monotonic() < end:
                time.sleep(LOOK_EVERY_S)
                for name in (*FOGS, CLOUD):
                    for record in sites[name].records():
                        monitor.take(record)
            figures = monitor.figures()
        finally:
            feed.stop()
    if feed.error is not None:
        raise feed.error
    found = compare_planned(app, net, place_cuts(app, net, cuts), figures)
    lag_s = max(figures.lag_s.values(), default=None)
    lag = Row(measure="lag of the slowest site, when traffic was compared", value=lag_s, unit="s")
    return [*tell_differences(found, cuts), lag], [describe(each) for each in found]


def tell_differences(found: Sequence[Comparison], cuts: Cuts) -> Iterator[Row]:
    """The difference of every link, and the largest of all operators at work."""
    links = [each for each in found if each.kind == "link"]
    for link in links:
        yield Row(
            measure="uplink, measured against planned",
            value=_percent(link),
            unit="%",
            target=100 * TARGET,
            at={"site": link.site, "operators": len(cuts[link.site])},
            note=f"measured {link.measured:,.0f} B/s, planned {link.planned:,.0f} B/s",
        )
    at_work = [
        each
        for each in found
        if each.kind != "link" and max(each.planned, each.measured) >= LEAST_ROWS_PER_S
    ]
    for kind in ("rows in", "rows out"):
        of_kind = [each for each in at_work if each.kind == kind]
        if of_kind:
            worst = max(of_kind, key=lambda each: _percent(each) or 0.0)
            yield Row(
                measure=f"{kind} of an operator, measured against planned, largest",
                value=_percent(worst),
                unit="%",
                note=f"{worst.name} at {worst.site}: measured {worst.measured:,.1f}/s, planned "
                f"{worst.planned:,.1f}/s; of {len(of_kind)}",
            )


def _percent(each: Comparison) -> float | None:
    """How far apart they are, whichever is larger; None where nothing was planned."""
    return None if each.difference is None else 100 * abs(each.difference)


def describe(each: Comparison) -> dict[str, object]:
    """A comparison as it is saved."""
    return {
        "kind": each.kind,
        "name": each.name,
        "site": each.site,
        "planned": each.planned,
        "measured": each.measured,
    }
