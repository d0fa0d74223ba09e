"""A run of the demo's city whose sites are played: all of it is real but Spark.

Rides come in through gateways, the tally counts them, the trigger sees the surge, the strategy
plans, and the loop moves cuts; a site dies when told to.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thalweg.spark.demo import demo_network
from thalweg.spark.deployment import Deployment
from thalweg.spark.feed.rides import feed_rides
from thalweg.spark.site.site import SiteEvent, SiteStatus

SITES = ("fog-0", "fog-1", "fog-2", "cloud")
CALM_PER_S, SURGE_PER_S = 300.0, 3000.0


class PlayedSites:
    """Sites that are there, go where they are told, and put out records of what they do."""

    def __init__(self) -> None:
        self.cuts: dict[str, tuple[str, ...]] = {}
        self.dead: set[str] = set()
        self.events: list[SiteEvent] = []
        self.restart_s = 0.3
        self.move_s = 0.0
        self._batch = 0

    def kill(self, site: str) -> None:
        self.dead.add(site)
        self.events.append(SiteEvent(site=site, kind="died", detail="signal 9"))

    def go_to(self, cuts: Mapping[str, tuple[str, ...]]) -> Sequence[object]:
        time.sleep(self.move_s)
        self.cuts.update({site: tuple(cut) for site, cut in cuts.items()})
        return ["moved"]

    def restart(self, site: str, query: str | None = None) -> None:
        time.sleep(self.restart_s)
        self.dead.discard(site)

    def is_alive(self, site: str) -> bool:
        return site not in self.dead

    def next_event(self, timeout_s: float) -> SiteEvent | None:
        if not self.events:
            time.sleep(min(timeout_s, 0.05))
        return self.events.pop(0) if self.events else None

    def records(self) -> list[Mapping[str, Any]]:
        self._batch += 1
        now_s = time.time()
        return [
            {
                "site": fog,
                "role": "fog",
                "epoch": 0,
                "batch": self._batch,
                "at_s": now_s,
                "batch_s": 0.1,
                "rows": {"rides": 100, **dict.fromkeys(cut, 90)},
                "rows_in": dict.fromkeys(cut, 100),
                "bytes": {"edges/parse+clean": 4000},
                "watermark_s": now_s - 0.5,
                "lag_s": 0.5,
            }
            for fog, cut in self.cuts.items()
        ]

    def status(self) -> dict[str, SiteStatus]:
        return {
            name: SiteStatus(
                name=name,
                alive=name not in self.dead,
                pid=os.getpid(),
                silent_s=0.0,
                queries=(),
            )
            for name in SITES
        }

    def stop(self) -> None:
        pass


class PlayedRun:
    """The run with its sites, and the rate at which rides come in."""

    def __init__(self, folder: Path, *, interval: str = "200 ms", **wishes: Any) -> None:
        self.sites = PlayedSites()
        self.rate_per_s = CALM_PER_S
        rates = {("rides", fog): CALM_PER_S / 3 for fog in SITES[:3]}
        self.deployment = Deployment(
            "taxi-fares",
            demo_network(),
            folder=folder,
            rates=rates,
            interval=interval,
            feed=lambda gateways: feed_rides(gateways, lambda _: self.rate_per_s),
            open_sites=self._open,
            **wishes,
        )

    @contextmanager
    def _open(self, *_: Any) -> Iterator[PlayedSites]:
        yield self.sites

    def __enter__(self) -> PlayedRun:
        self.deployment.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.deployment.stop()
