"""The demo deployment with its cuts kept, a feed whose rate can be set, and samples of both."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from campaign.load.census import (
    FolderFigures,
    ProcessCensus,
    ProcessFigures,
    count_temp_files,
    least_live_heaps,
    take_folder,
)
from campaign.load.lag import Lag, LagGauge
from thalweg.errors import ThalwegError
from thalweg.spark.demo import CALM_PER_S, PIPELINE, demo_network
from thalweg.spark.deployment import Deployment
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.feed.rides import RideFeed, feed_rides
from thalweg.spark.java import find_java

_SOURCE, _CLOUD = "rides", "cloud"
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How the run was at one moment."""

    at_s: float
    """Since the rig was made."""
    phase: str
    asked_per_s: float
    lag: Lag
    processes: tuple[ProcessFigures, ...]
    folder: Mapping[str, FolderFigures]
    """By kind; without the log."""
    segments: int
    log_bytes: int
    temp_files: int

    @property
    def memory_bytes(self) -> dict[str, float]:
        """Resident memory by role, and of all."""
        by_role = Counter[str]()
        for process in self.processes:
            by_role[process.role] += process.resident_bytes
        return {**by_role, "all processes": float(by_role.total())}

    @property
    def counts(self) -> dict[str, float]:
        """What must not become more: processes, threads, open files and files of each kind."""
        return {
            "processes": len(self.processes),
            "threads": sum(process.threads for process in self.processes),
            "open files": sum(process.open_files for process in self.processes),
            "temp files": self.temp_files,
            **{f"files: {kind}": figures.files for kind, figures in self.folder.items()},
        }

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self) | {"lag": {**asdict(self.lag), "rows": self.lag.rows}}


class Dial:
    """A rate that can be set while a feed runs."""

    def __init__(self, per_s: float) -> None:
        self.per_s = per_s

    def __call__(self, _passed_s: float) -> float:
        """The rate now, whatever the time: what a feed asks."""
        return self.per_s


class Rig:
    """A run of the demo's deployment in a folder of its own; use it as a context manager."""

    def __init__(self, folder: Path, samples: IO[str], seed: int = 0) -> None:
        network = demo_network()
        fogs = [name for name in network.site_names if name != _CLOUD]
        rates = {(_SOURCE, fog): CALM_PER_S / len(fogs) for fog in fogs}
        self.run = Deployment(
            PIPELINE, network, folder=folder, rates=rates, adapt=None, feed=self._start_feed
        )
        self.dial = Dial(CALM_PER_S)
        self.census = ProcessCensus()
        spec = self.run.prepared.spec
        self._gauge = LagGauge(spec.log, spec.folder / "checkpoints", _SOURCE, spec.cloud)
        self._samples, self._seed = samples, seed
        self._began_s = time.monotonic()
        self._feed: RideFeed | None = None
        self._gateways: Mapping[str, Gateway] = {}

    def __enter__(self) -> Rig:
        self.run.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.run.stop()

    @property
    def now_s(self) -> float:
        """Seconds since the rig was made."""
        return time.monotonic() - self._began_s

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    def finish(self) -> None:
        """Send nothing else, and say so: time comes to its end, and every window closes."""
        if self._feed is not None:
            self._feed.stop()
        for gateway in self._gateways.values():
            gateway.close()

    def read_lag(self) -> Lag:
        """How far the run is behind now.

        Raises:
            ThalwegError: where the run or its feed has ended.
        """
        if not self.run.is_active:
            raise self.run.exception or ThalwegError("the run has ended")
        if self._feed is not None and self._feed.error is not None:
            raise ThalwegError(f"the feed has ended: {self._feed.error}")
        return self._gauge.read()

    def sample(self, phase: str) -> Sample:
        """All of it now; also written down."""
        lag = self.read_lag()
        found = Sample(
            at_s=round(self.now_s, 3),
            phase=phase,
            asked_per_s=self.dial.per_s,
            lag=lag,
            processes=self.census.take(self._site_pids()),
            folder=take_folder(self.run.folder.path),
            segments=self._gauge.segments,
            log_bytes=self._gauge.log_bytes,
            temp_files=count_temp_files(),
        )
        self._samples.write(json.dumps(found.to_dict(), allow_nan=False) + "\n")
        self._samples.flush()
        return found

    def live_heaps(self) -> dict[str, int]:
        """What is reachable in the heap of every site's JVM; whoever does not tell is left out."""
        java = find_java().path
        processes = self.census.take(self._site_pids())
        jvms = {p.role: p.pid for p in processes if p.role.endswith(" jvm")}
        return least_live_heaps(jvms, java, self.wait)

    def _site_pids(self) -> dict[str, int]:
        sites = self.run.status.get("sites", {})
        return {name: site["pid"] for name, site in sites.items() if site.get("pid")}

    def _start_feed(self, gateways: Mapping[str, Gateway]) -> RideFeed:
        self._gateways = gateways
        self._feed = feed_rides(gateways, self.dial, seed=self._seed)
        return self._feed
