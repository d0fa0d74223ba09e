"""What is known of a run, and where it is written: states, figures, decisions, marks, status."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from thalweg.spark.deployment.chronicle import Chronicle
from thalweg.spark.deployment.parts import RunParts
from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.deployment.site_states import RunStates
from thalweg.spark.deployment.status import (
    count_changes,
    describe_site,
    nest_rates,
    same_cuts,
)
from thalweg.spark.deployment.tally import Rates
from thalweg.spark.log.segment import Segment
from thalweg.spark.monitor.record import Record, arrival_of
from thalweg.spark.site.site import SiteStatus

_NOT_IN_REPORT = ("pid", "heartbeat_s", "rates", "last_decision", "note", "changes", "under_way")


class RunRecord:
    """One run as its status, its timeline and its decisions report it.

    Whoever runs it says what time it is. That is the time of day, which is shown; how long
    something takes is measured by a clock that only goes forward.
    """

    def __init__(self, parts: RunParts, now_s: float) -> None:
        self._parts = parts
        self.chronicle = parts.chronicle or Chronicle(tally=parts.tally)
        self._began_s = now_s
        self._given_s, self._given_at_s = now_s, parts.clock()
        self.states = RunStates()
        self.seen: dict[str, Any] = {}
        """Of figures, what `thalweg.spark.deployment.timeline` writes into a frame."""
        self.characteristics: dict[str, Any] = {}
        """Every figure of an operator that was measured, also after the end."""
        self.note = ""
        self.state = "running"
        self.decision: dict[str, Any] = {}
        self.changes: list[dict[str, Any]] = []
        self.restarts: list[dict[str, Any]] = []
        self._sites: Mapping[str, SiteStatus] = {}
        self._idle_s: dict[str, float] = {}
        """When each site said last that it has nothing to do."""

    # Time

    def take_time(self, now_s: float) -> None:
        """Learn what time it is."""
        self._given_s, self._given_at_s = now_s, self._parts.clock()

    def now_s(self) -> float:
        """The time of day, however long ago it was given."""
        return self._given_s + self._parts.clock() - self._given_at_s

    # What is learnt

    def move_to(self, states: RunStates) -> None:
        """Learn other states, and publish them at once."""
        if states is not self.states:
            self.states = states
            self.publish()

    def count(self, now_s: float) -> list[Record]:
        """Count what has come; gives the records of what has arrived, which the monitor takes."""
        return self._take_arrivals(self._parts.tally.update(self._parts.clock()), now_s)

    def count_arrivals(self, now_s: float) -> list[Record]:
        """The same of rows of sources alone, which is quick."""
        return self._take_arrivals(self._parts.tally.count_arrivals(), now_s)

    def _take_arrivals(self, segments: Sequence[Segment], now_s: float) -> list[Record]:
        arrived = [arrival_of(segment, now_s) for segment in segments]
        if self._parts.watcher is not None:
            self._parts.watcher.take(arrived)
        return arrived

    def take_sites(self, sites: Mapping[str, SiteStatus], now_s: float) -> None:
        """Learn how the sites are doing."""
        self._sites = sites
        for name, site in sites.items():
            self.states = self.states.see(name, now_s)
            if site.is_idle:
                self._idle_s[name] = now_s

    def end(self, now_s: float) -> None:
        """All sites have ended, and nothing is measured any more."""
        self.take_time(now_s)
        self._sites = {}
        self.seen = {}
        self.states = self.states.end(now_s)
        self.chronicle.tell_frame(now_s, self.seen, {}, self.states, self._idle_s)

    # What is written

    def publish(self) -> None:
        """Write down how the run is doing now: a frame and the status."""
        now_s = self.now_s()
        self.chronicle.tell_frame(now_s, self.seen, self._sites, self.states, self._idle_s)
        self.write_status()

    def write_status(self) -> None:
        """Write the status; what cannot be written must not end a run."""
        told = self.status(self.state, self.now_s())
        if self._parts.publish is not None:
            self._parts.publish(told)
            return
        with suppress(OSError):
            self._parts.folder.write_status(told)

    def report_repairs(self, repairs: Sequence[str] | None) -> None:
        """Write down what was damaged and could be repaired."""
        for what in repairs or ():
            self.chronicle.tell_mark(self.now_s(), "repair", "damage was mended", what)
            self.write_decision(self.now_s(), "repair", f"mended: {what}", self._parts.runtime.cuts)

    def write_decision(
        self,
        at_s: float,
        cause: str,
        reason: str,
        before: Cuts,
        *,
        plan: str | None = None,
        steps: Sequence[str] = (),
        seconds: float = 0.0,
        rates: Rates | None = None,
        figures: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write down what was decided at this time, and in force so many seconds later."""
        after = self._parts.runtime.cuts
        rates = self._parts.tally.rates() if rates is None else rates
        self.decision = {
            "at_s": round(at_s, 3),
            "begin_s": round(at_s, 3),
            "end_s": round(at_s + seconds, 3),
            "code": self._parts.about.get("code"),
            "cause": cause,
            "changed": not same_cuts(before, after),
            "reason": reason,
            "from": {site: list(cut) for site, cut in before.items()},
            "to": {site: list(cut) for site, cut in after.items()},
            "plan": plan,
            "steps": list(steps),
            "seconds": round(seconds, 3),
            "rates": None if rates is None else nest_rates(rates),
            "figures": self.seen.get("figures", {}) if figures is None else dict(figures),
        }
        self._parts.folder.write_decision(self.decision)
        return self.decision

    # What is reported

    def status(self, state: str, now_s: float, error: str | None = None) -> dict[str, Any]:
        """How the run is doing, as plain data."""
        rates = self._parts.tally.rates()
        names = sorted({*self._sites, *self.states.sites})
        sites = {n: describe_site(self._sites.get(n), self.states.life_of(n)) for n in names}
        under_way = self.states.under_way
        return {
            "state": state,
            "pid": os.getpid(),
            "began_s": self._began_s,
            "heartbeat_s": now_s,
            **self._parts.about,
            "cuts": {site: list(cut) for site, cut in self._parts.runtime.cuts.items()},
            "sites": sites,
            "under_way": None if under_way is None else under_way.to_dict(),
            "rates": None if rates is None else nest_rates(rates),
            "figures": self.seen.get("figures", {}),
            "estimated": self.seen.get("estimated", {}),
            "measured": self.seen.get("measured", {}),
            "deviations": self.seen.get("deviations", []),
            "characteristics": self.characteristics,
            **self._parts.tally.to_dict(),
            **count_changes(self.changes, self.restarts),
            "last_decision": self.decision,
            "note": self.note,
            "error": error,
        }

    def report(self, state: str, now_s: float, error: str | None = None) -> dict[str, Any]:
        """What came out of the run, as plain data."""
        self.count(now_s)
        told = self.status(state, now_s, error)
        for name in _NOT_IN_REPORT:
            told.pop(name)
        told["seconds"] = round(now_s - self._began_s, 3)
        told["changes"] = self.changes
        told["restarts"] = self.restarts
        if self._parts.watcher is not None:
            told["planned_and_measured"] = self._parts.watcher.comparison
        return told
