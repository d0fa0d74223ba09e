"""Numbered events to the gateways of a deployment, so many a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from campaign.hosting import TrialStuck
from campaign.numbered import SOURCE, make_events
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.log.disk import LogError

EVENTS_PER_S = 200
_STEP_S = 0.1


class Feed:
    """Sends events to the sites of their zones, in a thread.

    Event time goes with the events, not with the clock. What a log does not take is kept and sent
    again by the same gateway, as a device does: it knows the number under which it may have come.
    """

    def __init__(self, logs: Mapping[str, Path]) -> None:
        self._logs = dict(logs)
        self._sites = list(logs)
        self._gateways: dict[str, Gateway] = {}
        self._sent: list[pa.Table] = []
        self._count = 0
        self._unsent: tuple[pa.Table, int] | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    @property
    def count(self) -> int:
        """How many events have been sent."""
        return self._count

    @property
    def events(self) -> pa.Table:
        """All events that have been sent."""
        return pa.concat_tables(self._sent)

    def start(self) -> None:
        """Send from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more, and say that nothing else will come."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._unsent is not None:
            raise TrialStuck("the feed was stopped while the log could not be written")
        for gateway in self._gateways.values():
            gateway.close()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ending.is_set():
            self._send()
            due = max(due + _STEP_S, time.monotonic())
            self._ending.wait(due - time.monotonic())

    def _send(self) -> None:
        """The next events, or again those that a log would not take."""
        if self._unsent is None:
            count = round(EVENTS_PER_S * _STEP_S)
            begin_s = self._count / EVENTS_PER_S
            self._unsent = (make_events(self._count, count, begin_s, _STEP_S), 0)
        table, first = self._unsent
        for place in range(first, len(self._sites)):
            site = self._sites[place]
            here = pc.equal(pc.bit_wise_and(table["zone"], len(self._sites) - 1), place)
            try:
                self._gateway(site).send(table.filter(here))
            except (LogError, OSError):
                self._unsent = (table, place)
                return
        self._unsent = None
        self._sent.append(table)
        self._count += table.num_rows

    def _gateway(self, site: str) -> Gateway:
        if site not in self._gateways:
            self._gateways[site] = Gateway(self._logs[site], SOURCE, site, time="at", durable=False)
        return self._gateways[site]
