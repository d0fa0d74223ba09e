"""What the parts of the benchmark of the runtime share: the application, its sites, their loads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil

import thalweg as tw
from thalweg.errors import ThalwegError
from thalweg.model import Plan
from thalweg.scenarios import fog_cloud
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.deployment.hand_over import Step
from thalweg.spark.deployment.logs import open_logs
from thalweg.spark.deployment.plan import cuts_of, find_sites
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log import Log
from thalweg.spark.pipeline.reference import load_pipeline
from thalweg.spark.query.clock import END_OF_TIME_MS, SINK_CLOCK
from thalweg.spark.site.site import SiteSpec
from thalweg.spark.site.sites import Sites
from thalweg.strategy import find_strategy

Cuts = dict[str, tuple[str, ...]]

PIPELINE = "thalweg.spark.examples.taxi:taxi_fares"
SOURCE, TIME, DELAY_S = "rides", "pickup_time", 2.0
FOGS = ("fog-0", "fog-1")
CLOUD, ONE_PLACE = "cloud", "one"
CORES = 2
MASTERS = {**dict.fromkeys((*FOGS, CLOUD), "local[1]"), ONE_PLACE: f"local[{CORES}]"}
STRATEGY = "atsoo-both-ways"
PATIENCE_S = 300.0
POLL_S = 0.1

Answer = TypeVar("Answer")


def plan_application() -> tuple[tw.Problem, Plan, Cuts]:
    """The application on two fogs and a cloud, and where the strategy puts its operators."""
    application = load_pipeline(PIPELINE).application
    problem = tw.Problem(application=application, network=fog_cloud(len(FOGS), seed=0))
    plan = find_strategy(STRATEGY)(problem)
    return problem, plan, cuts_of(plan.placement, problem, find_sites(problem))


@contextmanager
def same_cores() -> Iterator[None]:
    """Keep this process, and all that it starts in the block, on as many cores as one place has."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:CORES])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def running_sites(folder: Path) -> Iterator[Sites]:
    """The fogs, the cloud, and a site that is large enough to do all of their work."""
    with Sites() as sites:
        sites.start(
            [
                SiteSpec(name=name, folder=folder / "sites" / name, master=master)
                for name, master in MASTERS.items()
            ]
        )
        yield sites


def describe_deployment(folder: Path, fogs: tuple[str, ...] = FOGS, **more: Any) -> DeploymentSpec:
    """The application in a folder of its own; nobody waits for the disk."""
    wishes: dict[str, Any] = {"trigger": "100 ms", "durable": False, **more}
    return DeploymentSpec(pipeline=PIPELINE, folder=folder, fogs=fogs, cloud=CLOUD, **wishes)


@contextmanager
def deployed(
    spec: DeploymentSpec,
    sites: Sites,
    cuts: Mapping[str, tuple[str, ...]],
    on_step: Callable[[Step], None] | None = None,
) -> Iterator[Coordinator]:
    """The deployment at these cuts, warm; it is stopped at the end of the block."""
    open_logs(spec)
    with Coordinator(spec, sites, Log(spec.log), on_step=on_step) as coordinator:
        coordinator.go_to(cuts)
        try:
            wait_until_warm(sites, (*spec.fogs, spec.cloud))
            yield coordinator
        except BaseException:
            # What went wrong first is what counts.
            with suppress(ThalwegError):
                coordinator.stop()
            raise
        coordinator.stop()


def wait_until_warm(sites: Sites, names: Sequence[str]) -> None:
    """Wait until every query has finished its first batch, which has no rows."""
    wait_for(
        sites,
        lambda: all(query.batch >= 0 for name in names for query in sites[name].status().queries),
        "the queries do not begin",
    )


def wait_for(sites: Sites, happened: Callable[[], Answer], otherwise: str) -> Answer:
    """What `happened` gives, as soon as it is something.

    Raises:
        RuntimeError: where a site dies or a query fails in the meantime, or nothing happens.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (found := happened()):
        event = sites.next_event()
        if event is not None and event.kind in ("died", "query-failed"):
            raise RuntimeError(f"{event.site}: {event.detail}")
        if time.monotonic() > deadline:
            raise RuntimeError(otherwise)
        time.sleep(POLL_S)
    return found


def find_cpu_s(sites: Sites, names: Sequence[str]) -> float:
    """What the CPU has worked on these sites: their drivers, their JVMs and their workers."""
    total = 0.0
    for name in names:
        with suppress(psutil.NoSuchProcess):
            driver = psutil.Process(sites[name].pid)
            for process in (driver, *driver.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    times = process.cpu_times()
                    total += times.user + times.system
    return total


def end_of_time_at(log: Log) -> float | None:
    """When the last result was published, if it was: nothing comes after the end of time."""
    for segment in log.segments(SINK_CLOCK):
        if (segment.latest_us or 0) >= END_OF_TIME_MS * 1000:
            return published_at(segment.folder)
    return None


def published_at(folder: Path) -> float:
    """When a segment of the log was moved into its place [Unix time]."""
    return folder.stat().st_ctime
