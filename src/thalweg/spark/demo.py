"""Taxi rides on three fog sites and a cloud, all on this machine: a surge, a kill, nothing lost.

The rides of a small city come in at the fogs. Then there are three times as many, and the uplink is
too small for the cuts that run: they are moved. Then a site is killed, and goes on. In the end all
rides are worked on once more at a single site, and what came out is compared row by row.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from thalweg.errors import Defects, ThalwegError
from thalweg.estimate.evaluate import make_plan
from thalweg.model import Network, Plan, Problem
from thalweg.scenarios.fog_cloud import fog_cloud
from thalweg.spark.demo_summary import (
    DemoSummary,
    Durations,
    Kill,
    all_cloud_bytes,
    count_rides,
    hash_settings,
    judge_surge,
    longest_pause_s,
    sent_bytes,
)
from thalweg.spark.deployment import Deployment
from thalweg.spark.deployment.check import find_pipeline
from thalweg.spark.deployment.decisions import Adapter
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.one_place import (
    await_last_row,
    compare_with_one_place,
    ready_to_compare,
)
from thalweg.spark.deployment.plan import find_sites, placement_of
from thalweg.spark.deployment.status import describe_cuts, same_cuts
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.feed.rides import RideFeed, feed_rides, feed_trips
from thalweg.spark.log import Log

PIPELINE = "taxi-fares"
SOURCE, SINK = "rides", "fare-board"
SECONDS = 100.0
CALM_PER_S, SURGE_PER_S = 600.0, 1800.0
STRATEGY = "atsoo-both-ways"
WEIGHTS = {"compute_weight": 0.1, "network_weight": 0.9}
"""The operator of this city pays for the uplink; memory at the fogs is there anyway.

By these weights all-cloud is cheapest while it is calm, and windows at every fog while it is not.
"""
TRIGGER_S = 1.0
_SURGE_AT, _KILL_AT, _KILLED = 0.2, 0.7, "fog-1"
_LOOK_S = 0.05

Report = Callable[[str], None]
OnStart = Callable[[Path], None]


def demo_network() -> Network:
    """Three small fog sites with thin uplinks, and a cloud."""
    return fog_cloud(
        3,
        seed=1,
        name="demo-city",
        fog_mips=(800.0, 1200.0),
        fog_memory_bytes=(40e6, 60e6),
        fog_latency_s=(0.02, 0.04),
        fog_bandwidth_bps=(0.5e6, 0.5e6),
        cloud_mips=8000.0,
        edge_delay_s=(0.005, 0.01),
    )


def demo_settings() -> str:
    """The hash of what the demo shows."""
    return hash_settings(
        find_pipeline(PIPELINE).application,
        demo_network(),
        calm_per_s=CALM_PER_S,
        surge_per_s=SURGE_PER_S,
        surge_at=_SURGE_AT,
    )


def plan_demo(rate_per_s: float = CALM_PER_S) -> tuple[Plan, Plan]:
    """What the demo deploys first at this rate of all rides, and all-cloud beside it."""
    application, network = find_pipeline(PIPELINE).application, demo_network()
    fogs = [name for name in network.site_names if name != "cloud"]
    rates = {(SOURCE, fog): rate_per_s / len(fogs) for fog in fogs}
    problem = Problem(application=application, network=network, rates=rates)
    sites = find_sites(problem)
    adapter = Adapter(
        application=application, network=network, sites=sites, strategy=STRATEGY, options=WEIGHTS
    )
    nothing_at_fogs = placement_of(dict.fromkeys(fogs, ()), problem, sites)
    all_cloud = make_plan(problem, nothing_at_fogs, strategy="all-cloud", objective_name="usage")
    return adapter.plan(rates)[0], all_cloud


def run_demo(
    folder: Path | str,
    *,
    seconds: float = SECONDS,
    data: Path | str | None = None,
    seed: int = 0,
    report: Report = lambda _line: None,
    on_start: OnStart = lambda _folder: None,
) -> DemoSummary:
    """Run it, and say what came out; `data` is an official trip file to take the rides from.

    `on_start` is given the folder of the run as soon as there is one to look into.

    Raises:
        InvalidInput: for a time that is too short, or a file that cannot be read.
        ThalwegError: where the run fails or does not finish.
    """
    defects = Defects()
    defects.require(20.0 <= seconds <= 3600.0, "seconds", seconds, "from 20 to 3600 seconds")
    # The rides of a demo end with the end of time: what came after that would be late.
    free = not RunFolder(folder).exists
    defects.require(free, "folder", str(folder), "a folder without a run in it")
    defects.raise_if_any()
    stage = _Stage(Path(folder), seconds, data, seed, report)
    with ExitStack() as beside:
        stage.play(on_start, beside)
        report("comparing with a single-site run of the same rides …")
        return stage.summarise()


class _Stage:
    """The run with what happens to it."""

    def __init__(
        self, folder: Path, seconds: float, data: Path | str | None, seed: int, report: Report
    ) -> None:
        self._seconds, self._data, self._seed, self._report = seconds, data, seed, report
        self._feed: RideFeed | None = None
        network = demo_network()
        fogs = [name for name in network.site_names if name != "cloud"]
        rates = {(SOURCE, fog): CALM_PER_S / len(fogs) for fog in fogs}
        self.run = Deployment(
            PIPELINE,
            network,
            folder=folder,
            rates=rates,
            strategy=STRATEGY,
            options=WEIGHTS,
            trigger=f"{TRIGGER_S:g} s",
            feed=self._start_feed,
        )
        self.log = Log(self.run.prepared.spec.log)
        self._cuts: Mapping[str, tuple[str, ...]] = {}
        self._surge_s: float | None = None
        self._kill: Kill | None = None
        self._marks_s: dict[str, float] = {}

    def play(self, on_start: OnStart, beside: ExitStack) -> None:
        """From the first ride to the last result; what is opened `beside` it outlasts it."""
        self._mark("begin")
        self._report("starting four Spark sites: fog-0, fog-1, fog-2, cloud …")
        self.run.start(wait=False)
        try:
            on_start(self.run.folder.path)
            beside.enter_context(ready_to_compare(self.run.prepared.pipeline))
            self.run.await_deployment()
            self._mark("deployed")
            self._go()
        except BaseException:
            self.run.stop()
            raise
        self._mark("last result")

    def summarise(self) -> DemoSummary:
        """What came out of it; the sites end while the results are compared."""
        self.run.request_stop()
        try:
            compared = compare_with_one_place(self.run)
        finally:
            self.run.stop()
        self._mark("compared")
        decisions = self.run.folder.read_decisions()
        surge = None if self._surge_s is None else judge_surge(self._surge_s, decisions)
        since_s = None
        if surge is not None and surge.in_force_s is not None:
            since_s = surge.at_s + surge.in_force_s
        report = self.run.report
        return DemoSummary(
            settings=demo_settings(),
            strategy=STRATEGY,
            options=WEIGHTS,
            rides=count_rides(self.log, SOURCE),
            rows=compared.rows,
            lost=compared.missing,
            duplicated=compared.extra,
            sent_bytes=sent_bytes(self.log),
            all_cloud_bytes=all_cloud_bytes(self.log, SOURCE, TRIGGER_S),
            sent_since_bytes=None if since_s is None else sent_bytes(self.log, since_s),
            all_cloud_since_bytes=(
                None if since_s is None else all_cloud_bytes(self.log, SOURCE, TRIGGER_S, since_s)
            ),
            longest_pause_s=round(longest_pause_s(self.log, SINK), 3),
            surge=surge,
            kill=self._kill,
            durations=self._durations(),
            adaptations=tuple(c for c in report["changes"] if c["cause"] == "adapt"),
            restarts=len(report["restarts"]),
            report=report,
        )

    def _durations(self) -> Durations:
        moments = ("begin", "deployed", "last ride", "last result", "compared")
        at_s = [self._marks_s[name] for name in moments]
        passed = [round(b - a, 1) for a, b in pairwise(at_s)]
        setup, show, waiting, comparison = passed
        return Durations(setup=setup, show=show, waiting=waiting, comparison=comparison)

    def _mark(self, name: str) -> None:
        self._marks_s[name] = time.monotonic()

    def _go(self) -> None:
        self._report(f"deployed: {describe_cuts(self.run.cuts)}")
        begin = time.monotonic()
        announced = False
        while self._feed is None or self._feed.is_active:
            self._look()
            if self._surge_s is not None and not announced:
                announced = True
                self._report(f"surge: from {CALM_PER_S:g} to {SURGE_PER_S:g} rides/s")
            passed = (time.monotonic() - begin) / self._seconds
            if self._kill is None and passed >= _KILL_AT:
                self._strike(_KILLED)
            time.sleep(_LOOK_S)
        self._mark("last ride")
        self._report("no more rides; waiting for the last windows …")
        await_last_row(self.run, meanwhile=self._look)

    def _start_feed(self, gateways: Mapping[str, Gateway]) -> RideFeed:
        def rate_per_s(passed_s: float) -> float:
            if passed_s < _SURGE_AT * self._seconds:
                return CALM_PER_S
            if self._surge_s is None:
                # The rides of this rate are made now, and sent at once.
                self._surge_s = time.time()
            return SURGE_PER_S

        if self._data is None:
            feed = feed_rides(gateways, rate_per_s, self._seconds, self._seed, close=True)
        else:
            feed = feed_trips(gateways, self._data, rate_per_s, seconds=self._seconds)
        self._feed = feed
        return feed

    def _look(self) -> None:
        """Report what has changed, and raise what ended the run."""
        if not self.run.is_active:
            raise self.run.exception or ThalwegError("the run has ended")
        status = self.run.status
        if self._cuts and not same_cuts(self._cuts, self.run.cuts):
            if status.get("under_way") is None:
                reason = status.get("last_decision", {}).get("reason", "")
                self._report(f"moved to {describe_cuts(self.run.cuts)}: {reason}")
                self._cuts = self.run.cuts
        else:
            self._cuts = self.run.cuts
        self._look_after_the_killed(status)

    def _look_after_the_killed(self, status: Mapping[str, object]) -> None:
        """Note when the site that was killed is shown as down, and when it is back."""
        kill = self._kill
        if kill is None or kill.back_s is not None:
            return
        sites = status.get("sites")
        told = sites.get(kill.site, {}) if isinstance(sites, Mapping) else {}
        state, after_s = told.get("state"), round(time.time() - kill.at_s, 3)
        if kill.seen_down_s is None and state in ("down", "restarting"):
            self._kill = replace(kill, seen_down_s=after_s)
            self._report(f"{kill.site} is seen down after {after_s:.1f} s")
        elif kill.seen_down_s is not None and state == "up":
            self._kill = replace(kill, back_s=after_s)
            self._report(f"{kill.site} is back after {after_s:.1f} s, and goes on where it was")

    def _strike(self, site: str) -> None:
        pid = self.run.status.get("sites", {}).get(site, {}).get("pid")
        if pid is None:
            return
        self._report(f"kill -9 of {site} (process {pid})")
        self._kill = Kill(site=site, at_s=time.time())
        os.kill(pid, signal.SIGKILL)
