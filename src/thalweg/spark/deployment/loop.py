"""The life of a run: deploy, look, decide, move, mend what dies, do what is asked.

It has no thread of its own, and whoever runs it says what time it is. That is the time of day,
which is shown; how long something takes is told by a clock that only goes forward.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from thalweg.errors import InvalidInput, ThalwegError
from thalweg.model import Plan
from thalweg.spark.deployment.chronicle import Chronicle
from thalweg.spark.deployment.control import (
    MOVE,
    ROLLBACK,
    STOP,
    Refused,
    Request,
    answer,
    forget_answers,
    take_one,
)
from thalweg.spark.deployment.decisions import AdapterState, Verdict, expected_of, figures_of
from thalweg.spark.deployment.folder import HistoryEntry
from thalweg.spark.deployment.outage import DiskOutage
from thalweg.spark.deployment.parts import Decides, RunParts
from thalweg.spark.deployment.patience import StepPatience
from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.deployment.rollback import shorten_history
from thalweg.spark.deployment.status import (
    count_changes,
    describe_cuts,
    describe_site,
    nest_rates,
    same_cuts,
)
from thalweg.spark.log.disk import LogError
from thalweg.spark.monitor.record import arrival_of
from thalweg.spark.site.channel import SiteError
from thalweg.spark.site.site import SiteEvent, SiteStatus


class DeploymentLoop:
    """One run, from the moment that its sites are there."""

    def __init__(self, parts: RunParts, now_s: float) -> None:
        self._parts = parts
        self._chronicle = parts.chronicle or Chronicle(tally=parts.tally)
        self._began_s = now_s
        self._remembered = AdapterState()
        self._history = parts.folder.read_history()
        self._sites: Mapping[str, SiteStatus] = {}
        self._seen: dict[str, object] = {}
        self._decision: dict[str, Any] = {}
        self._note = ""
        self._changing = False
        self._glancing = threading.Lock()
        self._told_s, self._told_at_s = now_s, parts.clock()
        self._state = "running"
        self._outage = DiskOutage(parts, self._chronicle, self._now_s, self._say_outage)
        self.changes: list[dict[str, Any]] = []
        self.restarts: list[dict[str, Any]] = []
        self.stopping = False

    @property
    def cuts(self) -> dict[str, tuple[str, ...]]:
        """What runs at every fog."""
        return dict(self._parts.runtime.cuts)

    def _take_time(self, now_s: float) -> None:
        self._told_s, self._told_at_s = now_s, self._parts.clock()

    def _now_s(self) -> float:
        """What time it is, however long something takes that was begun at a time that was told."""
        return self._told_s + self._parts.clock() - self._told_at_s

    def begin(self, plan: Plan, cuts: Cuts, now_s: float) -> None:
        """Deploy these cuts where nothing ran before; else go on with what ran."""
        self._take_time(now_s)
        forget_answers(self._parts.folder)
        self._tell_mended(self._parts.mended, now_s)
        running = self.cuts
        missing = {fog: cut for fog, cut in cuts.items() if fog not in running}
        if running and not missing:
            reason = "resumed: what ran before goes on"
            self._write_decision(now_s, "resume", reason, running)
            if self._parts.watcher is not None:
                self._parts.watcher.changed(now_s)
            self._chronicle.tell_cuts(now_s, "resume", reason, self.cuts, None)
        else:
            reason = "first deployment"
            if not plan.feasible:
                reason += f"; the plan is not feasible: {plan.violations[0]}"
            self._change(now_s, "first", reason, {**cuts, **running}, plan)
        while (request := take_one(self._parts.folder)) is not None:
            self._obey(request, now_s, is_heard=False)
        # Last: a rollback that was cut off goes on to where the history says.
        self._keep_what_runs(now_s)

    def turn(self, now_s: float, timeout_s: float = 0.0) -> None:
        """Do what was asked, then what the sites need, waiting at most this long for an event."""
        self._take_time(now_s)
        self._outage.outlast(lambda: self._turn(now_s, timeout_s))

    def look(self, now_s: float) -> None:
        """See how the run is doing, and change its cuts if that is better."""
        self._take_time(now_s)
        self._outage.outlast(lambda: self._look(now_s))

    def _turn(self, now_s: float, timeout_s: float) -> None:
        while (request := take_one(self._parts.folder)) is not None:
            self._obey(request, now_s)
        event = self._parts.runtime.next_event(timeout_s)
        while event is not None:
            self._attend(event, now_s)
            event = self._parts.runtime.next_event(0.0)

    def _look(self, now_s: float) -> None:
        self._count(now_s)
        if self._parts.watcher is not None:
            self._parts.watcher.look(self._parts.runtime.records(), self.cuts, now_s)
        # A site that is too busy to answer, or dead, tells so elsewhere.
        with suppress(SiteError):
            self._sites = self._parts.runtime.status()
        if self._parts.adapter is None:
            self._chronicle.tell_frame(now_s, self._seen, self._sites)
            return
        verdict = self._decide(self._parts.adapter)
        self._seen = figures_of(verdict.seen) or self._seen
        self._chronicle.tell_frame(now_s, self._seen, self._sites)
        if verdict.cuts is None:
            self._write_decision(now_s, "look", verdict.reason, self.cuts)
        else:
            self._change(now_s, "adapt", verdict.reason, verdict.cuts, verdict.plan)

    def _count(self, now_s: float) -> None:
        """Count what has come; what was born is told once, so the monitor has to hear of it now."""
        born = self._parts.tally.update(self._parts.clock())
        if self._parts.watcher is not None:
            self._parts.watcher.take(arrival_of(segment, now_s) for segment in born)

    def _decide(self, adapter: Decides) -> Verdict:
        """What to do; whatever keeps that from being found does not keep the run from going on."""
        try:
            verdict, self._remembered = adapter.look(
                self._remembered, self._parts.clock(), self.cuts, self._parts.tally.rates()
            )
            if verdict.cuts is not None:
                self._parts.require_cuts(verdict.cuts)
        except ThalwegError as error:
            return Verdict(reason=f"kept: nothing better can be planned: {error}")
        return verdict

    # Changing cuts

    def _change(self, now_s: float, cause: str, reason: str, cuts: Cuts, plan: Plan | None) -> None:
        before = self.cuts
        self._parts.require_cuts(cuts)
        name = None if plan is None else self._parts.folder.keep_plan(plan.to_json())
        begin_s = self._parts.clock()
        self._changing = True
        try:
            steps = self._go_to(cuts, now_s)
        finally:
            # A glance that is under way ends first: it counts in the same tally.
            with self._glancing:
                self._changing = False
        seconds = self._parts.clock() - begin_s
        if self._parts.watcher is not None:
            self._parts.watcher.changed(now_s + seconds)
        self._write_decision(now_s, cause, reason, before, plan=name, steps=steps, seconds=seconds)
        self._decision["expected"] = expected_of(plan)
        self.changes.append(self._decision)
        self._chronicle.tell_cuts(now_s + seconds, cause, reason, self.cuts, name)
        if cause != ROLLBACK:
            self._keep_history(self.cuts, reason, now_s, name)

    def _go_to(self, cuts: Cuts, now_s: float) -> list[str]:
        patience = StepPatience(most=self._parts.budget.most)
        while True:
            try:
                return [str(step) for step in self._parts.runtime.go_to(cuts)]
            except SiteError as error:
                # A hand-over goes on where it was, once the site is there again.
                if patience.is_to_restart(error, self._parts.runtime.is_alive(error.site)):
                    self._mend(error.site, str(error), now_s)
                else:
                    self._wait_on(error, now_s)
            except (InvalidInput, LogError, OSError) as error:
                # A site refuses what it is told where its log has gone.
                if not self._outage.wait_out(error):
                    raise

    def _wait_on(self, late: SiteError, now_s: float) -> None:
        """A site is well, and at it: look after the others, on whom it may be waiting."""
        self._note = f"waits for {late.site}: {late.command}: {late.reason}"
        self._outage.require_wanted(self._note)
        while (event := self._parts.runtime.next_event(0.0)) is not None:
            self._attend(event, now_s)

    def _keep_history(self, cuts: Cuts, reason: str, now_s: float, plan: str | None) -> None:
        entry = HistoryEntry(cuts=dict(cuts), reason=reason, at_s=now_s, plan=plan)
        self._history.append(entry)
        self._parts.folder.write_history(self._history)

    def _keep_what_runs(self, now_s: float) -> None:
        """Have cuts in the history that came about by themselves: by a change that was cut off."""
        if not self._history or not same_cuts(self._history[-1].cuts, self.cuts):
            self._keep_history(self.cuts, "found running", now_s, None)

    def _write_decision(
        self,
        now_s: float,
        cause: str,
        reason: str,
        before: Cuts,
        *,
        plan: str | None = None,
        steps: Sequence[str] = (),
        seconds: float = 0.0,
    ) -> None:
        after = self.cuts
        rates = self._parts.tally.rates()
        self._decision = {
            "at_s": round(now_s, 3),
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
            "figures": self._seen,
        }
        self._parts.folder.write_decision(self._decision)

    # What is asked

    def _obey(self, request: Request, now_s: float, *, is_heard: bool = True) -> None:
        """Do what was asked, and say what came of it; `is_heard`: to somebody who waits for it."""
        try:
            text = self._carry_out(request, now_s)
        except (InvalidInput, Refused) as error:
            self._keep_what_runs(now_s)
            if not is_heard:
                self._write_decision(now_s, request.kind, f"refused: {error}", self.cuts)
            answer(self._parts.folder, request, str(error), done=False)
        else:
            answer(self._parts.folder, request, text, done=True)

    def _carry_out(self, request: Request, now_s: float) -> str:
        if request.kind == STOP:
            self.stopping = True
            return "stopping"
        if request.kind == ROLLBACK:
            return self._roll_back(request, now_s)
        wanted = {**self.cuts, **request.cuts}
        self._change(now_s, MOVE, "moved by hand", wanted, None)
        self._hold("cuts were set by hand")
        return f"moved to {describe_cuts(self.cuts)}"

    def _roll_back(self, request: Request, now_s: float) -> str:
        """Back to the cuts before the last change.

        Where it goes is in the history before anything moves. So one that is cut off goes on to
        the same cuts, and no other goes to those that it has left.
        """
        kept = shorten_history(self._history, request)
        target = kept[-1]
        self._parts.require_cuts(target.cuts)
        self._parts.folder.write_history(kept)
        self._history = kept
        reason = f"rolled back to the cuts before, of: {target.reason}"
        self._change(now_s, ROLLBACK, reason, target.cuts, None)
        self._hold("cuts were rolled back")
        return f"rolled back to {describe_cuts(self.cuts)}"

    def _hold(self, by: str) -> None:
        if self._parts.adapter is not None:
            steady_s = self._parts.clock()
            self._remembered = self._parts.adapter.hold(self._remembered, steady_s, by)

    # What dies

    def _attend(self, event: SiteEvent, now_s: float) -> None:
        if event.kind == "died":
            # One that was mended while cuts changed is alive when its death is told here.
            if not self._parts.runtime.is_alive(event.site):
                self._mend(event.site, event.detail, now_s)
        elif event.kind == "query-failed":
            self._mend(event.site, event.detail, now_s, event.query)
        else:
            self._note = f"{event.site}: {event.detail}"

    def _mend(self, site: str, cause: str, now_s: float, query: str | None = None) -> None:
        while True:
            self._outage.wait_out()
            self._parts.budget.spend(site, self._parts.clock(), cause)
            self.restarts.append({"site": site, "at_s": round(now_s, 3), "cause": cause})
            what = site if query is None else f"the query {query} of {site}"
            self._chronicle.tell_mark(now_s, "failure", f"{what} died", cause)
            begin_s = self._parts.clock()
            try:
                self._tell_mended(self._parts.runtime.restart(site, query), now_s)
                seconds = self._parts.clock() - begin_s
                told = f"started again in {seconds:.1f} s, from where its checkpoints are"
                self._chronicle.tell_mark(now_s + seconds, "restart", f"{what} is back", told)
                return
            except SiteError as error:
                cause, query = str(error), None
            except (InvalidInput, LogError, OSError) as error:
                if not self._outage.wait_out(error):
                    raise
                cause = str(error)

    def _say_outage(self, note: str, waiting: bool) -> None:
        self._note, self._state = note, "waiting" if waiting else "running"
        if waiting:
            self._write_status()

    def _write_status(self) -> None:
        with suppress(OSError):
            self._parts.folder.write_status(self.status(self._state, self._now_s()))

    def _tell_mended(self, mended: Sequence[str], now_s: float) -> None:
        """Write down what was damaged and could be mended."""
        for what in mended or ():
            self._chronicle.tell_mark(now_s, "repair", "damage was mended", what)
            self._write_decision(now_s, "repair", f"mended: {what}", self.cuts)

    def stop(self) -> None:
        """End every query after its batch under way."""
        try:
            self._parts.runtime.stop()
        except SiteError as error:
            # Its checkpoint is where the next start goes on.
            self._note = f"{error.site} did not end in order: {error.reason}"

    # What is told

    def glance(self, now_s: float) -> None:
        """Write down how a run is doing while its cuts change, from another thread.

        A change may take long, and nothing else is looked at meanwhile. Sites are not asked: they
        are busy.
        """
        with self._glancing:
            if not self._changing:
                return
            with suppress(LogError, OSError):
                self._count(now_s)
            adapter, rates = self._parts.adapter, self._parts.tally.rates()
            if adapter is not None and rates is not None:
                with suppress(ThalwegError):
                    steady_s = self._parts.clock()
                    self._seen = figures_of(adapter.observe(steady_s, self.cuts, rates))
            self._chronicle.tell_frame(now_s, self._seen, self._sites)
            # Whoever looks in takes a run that says nothing for one that hangs.
            self._write_status()

    def status(self, state: str, now_s: float, error: str | None = None) -> dict[str, Any]:
        """How the run is doing, as plain data."""
        rates = self._parts.tally.rates()
        return {
            "state": state,
            "pid": os.getpid(),
            "began_s": self._began_s,
            "heartbeat_s": now_s,
            **self._parts.about,
            "cuts": {site: list(cut) for site, cut in self.cuts.items()},
            "sites": {name: describe_site(site) for name, site in self._sites.items()},
            "rates": None if rates is None else nest_rates(rates),
            "figures": self._seen,
            **self._parts.tally.to_dict(),
            **count_changes(self.changes, self.restarts),
            "last_decision": self._decision,
            "note": self._note,
            "error": error,
        }

    def report(self, state: str, now_s: float, error: str | None = None) -> dict[str, Any]:
        """What came out of the run, as plain data."""
        self._count(now_s)
        told = self.status(state, now_s, error)
        for name in ("pid", "heartbeat_s", "sites", "rates", "last_decision", "note", "changes"):
            told.pop(name)
        told["seconds"] = round(now_s - self._began_s, 3)
        told["changes"] = self.changes
        told["restarts"] = self.restarts
        if self._parts.watcher is not None:
            told["planned_and_measured"] = self._parts.watcher.comparison
        return told
