"""Taxi rides on three fog sites and a cloud, all on this machine: a surge, a kill, nothing lost.

The rides of a small city come in at the fogs. Then there are three times as many, and the uplink is
too small for the cuts that run: they are moved. Then a site is killed, and goes on. In the end all
rides are worked on once more in one place, and what came out is compared row by row.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thalweg.errors import Defects, ThalwegError
from thalweg.model import Network
from thalweg.scenarios.fog_cloud import fog_cloud
from thalweg.spark.deployment import Deployment
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.one_place import await_last_row, compare_with_one_place
from thalweg.spark.deployment.status import describe_cuts, same_cuts
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.feed.rides import RideFeed, feed_rides, feed_trips
from thalweg.spark.log import Log
from thalweg.spark.log.names import EDGES, source_stream

PIPELINE = "taxi-fares"
SINK = "fare-board"
SECONDS = 100.0
CALM_PER_S, SURGE_PER_S = 600.0, 1800.0
_SURGE_AT, _KILL_AT = 0.2, 0.7
_FINISH_S = 120.0
_LOOK_S = 0.2
_HEAP_MB = 768

Tell = Callable[[str], None]
OnStart = Callable[[Path], None]


@dataclass(frozen=True, kw_only=True)
class DemoSummary:
    """What came out of the demo; `lost` and `doubled` are rows of the result, against one place."""

    seconds: float
    rides: int
    rows: int
    lost: int
    doubled: int
    sent_bytes: int
    all_cloud_bytes: int
    adaptations: tuple[Mapping[str, Any], ...]
    restarts: int
    report: Mapping[str, Any] = field(repr=False)

    @property
    def saved(self) -> float:
        """The share of the uplink's bytes that was saved against sending everything up."""
        return 1.0 - self.sent_bytes / self.all_cloud_bytes if self.all_cloud_bytes else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        names = ("seconds", "rides", "rows", "lost", "doubled", "sent_bytes", "all_cloud_bytes")
        return {
            **{name: getattr(self, name) for name in names},
            "saved": self.saved,
            "adaptations": [dict(change) for change in self.adaptations],
            "restarts": self.restarts,
            "report": dict(self.report),
        }


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


def run_demo(
    folder: Path | str,
    *,
    seconds: float = SECONDS,
    data: Path | str | None = None,
    seed: int = 0,
    tell: Tell = lambda _line: None,
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
    began_s = time.monotonic()
    stage = _Stage(Path(folder), seconds, data, seed, tell)
    stage.play(on_start)
    tell("comparing with a run of the same rides in one place …")
    compared = compare_with_one_place(stage.run)
    rides, raw_bytes, sent_bytes = _count_traffic(stage.log)
    report = stage.run.report
    return DemoSummary(
        seconds=round(time.monotonic() - began_s, 1),
        rides=rides,
        rows=compared.rows,
        lost=compared.missing,
        doubled=compared.extra,
        sent_bytes=sent_bytes,
        all_cloud_bytes=raw_bytes,
        adaptations=tuple(c for c in report["changes"] if c["cause"] == "adapt"),
        restarts=len(report["restarts"]),
        report=report,
    )


class _Stage:
    """The run with what happens to it."""

    def __init__(
        self, folder: Path, seconds: float, data: Path | str | None, seed: int, tell: Tell
    ) -> None:
        self._seconds, self._data, self._seed, self._tell = seconds, data, seed, tell
        self._feed: RideFeed | None = None
        network = demo_network()
        fogs = [name for name in network.site_names if name != "cloud"]
        rates = {("rides", fog): CALM_PER_S / len(fogs) for fog in fogs}
        self.run = Deployment(PIPELINE, network, folder=folder, rates=rates, feed=self._start_feed)
        self.log = Log(self.run.prepared.spec.log)
        self._cuts: Mapping[str, tuple[str, ...]] = {}
        self._restarts = 0

    def play(self, on_start: OnStart) -> None:
        """From the first ride to the last result."""
        self._tell("starting four Spark sites: fog-0, fog-1, fog-2, cloud …")
        self.run.start(wait=False)
        try:
            on_start(self.run.folder.path)
            self.run.await_deployment()
            self._go()
        finally:
            self.run.stop()

    def _go(self) -> None:
        self._tell(f"deployed: {describe_cuts(self.run.cuts)}")
        begin = time.monotonic()
        surged = killed = False
        while self._feed is None or self._feed.is_active:
            self._look()
            passed = (time.monotonic() - begin) / self._seconds
            if not surged and passed >= _SURGE_AT:
                surged = True
                self._tell(f"surge: from {CALM_PER_S:g} to {SURGE_PER_S:g} rides/s")
            if not killed and passed >= _KILL_AT:
                killed = self._kill("fog-1")
            time.sleep(_LOOK_S)
        self._tell("no more rides; waiting for the last windows …")
        await_last_row(self.run, meanwhile=self._look)

    def _start_feed(self, gateways: Mapping[str, Gateway]) -> RideFeed:
        def rate_per_s(passed_s: float) -> float:
            return SURGE_PER_S if passed_s >= _SURGE_AT * self._seconds else CALM_PER_S

        if self._data is None:
            feed = feed_rides(gateways, rate_per_s, self._seconds, self._seed, close=True)
        else:
            feed = feed_trips(gateways, self._data, rate_per_s, seconds=self._seconds)
        self._feed = feed
        return feed

    def _look(self) -> None:
        """Tell what has changed, and raise what ended the run."""
        if not self.run.is_active:
            raise self.run.exception or ThalwegError("the run has ended")
        status = self.run.status
        if self._cuts and not same_cuts(self._cuts, self.run.cuts):
            reason = status.get("last_decision", {}).get("reason", "")
            self._tell(f"moved to {describe_cuts(self.run.cuts)}: {reason}")
        self._cuts = self.run.cuts
        if status.get("restarts", 0) > self._restarts:
            self._restarts = status["restarts"]
            self._tell("the site is back, and goes on where it was")

    def _kill(self, site: str) -> bool:
        pid = self.run.status.get("sites", {}).get(site, {}).get("pid")
        if pid is None:
            return False
        self._tell(f"kill -9 of {site} (process {pid})")
        os.kill(pid, signal.SIGKILL)
        return True


def _count_traffic(log: Log) -> tuple[int, int, int]:
    """Rides that came in, their bytes, and the bytes that went up."""
    born = list(log.segments(source_stream("rides")))
    edges = [stream for stream in log.streams(EDGES) if "+" in stream]
    sent = sum(segment.data_bytes for stream in edges for segment in log.segments(stream))
    return sum(s.rows for s in born), sum(s.data_bytes for s in born), sent
