"""The life of a run: deploy, watch, decide, change, recover what dies, do what is requested.

It has no thread of its own, and whoever runs it says what time it is. What takes long is done by
operations (see `thalweg.spark.deployment.operations`), and the run is watched meanwhile. One change
is under way at a time, and while one is, or a site is started again, nothing else is decided:
requests wait for their turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from thalweg.adapt.events import Arrived, Event, Situation
from thalweg.adapt.state import ControllerState
from thalweg.errors import InvalidInput, ThalwegError
from thalweg.model import Plan
from thalweg.spark.deployment.changes import Change, Changer
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
from thalweg.spark.deployment.decisions import Verdict, expected_of, seen_of
from thalweg.spark.deployment.folder import HistoryEntry
from thalweg.spark.deployment.measurements import batches_of, measure_links
from thalweg.spark.deployment.outage import DiskOutage
from thalweg.spark.deployment.parts import Decides, RunParts
from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.deployment.recovery import Recovery
from thalweg.spark.deployment.rollback import shorten_history
from thalweg.spark.deployment.run_record import RunRecord
from thalweg.spark.deployment.status import describe_cuts, same_cuts
from thalweg.spark.site.channel import SiteError

# While something is under way, its end is noticed about as soon.
_BUSY_TURN_S = 0.02
# Of an interval, from one count of arrivals to the next.
_COUNTS_SHARE = 0.125
AfterChange = Callable[[Exception | None], None]


class DeploymentLoop:
    """One run, from the moment that its sites are there."""

    def __init__(self, parts: RunParts, now_s: float) -> None:
        self._parts = parts
        self._record = record = RunRecord(parts, now_s)
        self._remembered = ControllerState()
        self._history = parts.folder.read_history()
        self._outage = DiskOutage(parts, record.chronicle, record.now_s, self._say_outage)
        self._recovery = Recovery(parts, record, self._outage)
        self._changer = Changer(parts, record, self._outage, self._recovery, self._attend)
        self._is_starting = False
        self._counted_s = -math.inf
        self._again_s: float | None = None
        self.stopping = False

    @property
    def cuts(self) -> dict[str, tuple[str, ...]]:
        """The operators that run at every fog."""
        return dict(self._parts.runtime.cuts)

    @property
    def is_idle(self) -> bool:
        """Whether no change and no restart is under way."""
        return self._record.states.is_idle

    @property
    def is_deployed(self) -> bool:
        """Whether the first deployment has ended, and what was requested before it."""
        return not self._is_starting

    @property
    def restarts(self) -> list[dict[str, Any]]:
        """Every restart so far: its site, its time and its cause."""
        return self._record.restarts

    def begin(self, plan: Plan, cuts: Cuts, now_s: float) -> None:
        """Deploy these cuts where nothing ran before; else go on with what ran.

        The run is deployed as soon as `is_deployed`; until then it has to be turned.
        """
        record = self._record
        record.take_time(now_s)
        forget_answers(self._parts.folder)
        record.report_repairs(self._parts.mended)
        running = self.cuts
        missing = {fog: cut for fog, cut in cuts.items() if fog not in running}
        self._is_starting, record.state = True, "starting"
        if running and not missing:
            reason = "resumed: what ran before goes on"
            self._write_decision(now_s, "resume", reason, running)
            if self._parts.watcher is not None:
                self._parts.watcher.changed(now_s)
            record.chronicle.tell_cuts(now_s, "resume", reason, self.cuts, None)
        else:
            reason = "first deployment"
            if not plan.feasible:
                reason += f"; the plan is not feasible: {plan.violations[0]}"
            self._begin_change("first", reason, {**cuts, **running}, plan)
        self._advance()

    def turn(self, now_s: float, timeout_s: float = 0.0) -> None:
        """Do what is requested and what the sites need, waiting at most this long for an event."""
        self._record.take_time(now_s)
        self._outage.outlast(lambda: self._turn(timeout_s))
        self._outage.outlast(lambda: self._count_arrivals(now_s))

    @property
    def is_due(self) -> bool:
        """Whether a cycle is due before its time: rates have jumped since the last one."""
        adapter = self._parts.adapter
        if adapter is None or not self.is_idle:
            return False
        return adapter.controller.is_due(self._remembered, self._parts.clock())

    def look(self, now_s: float) -> float | None:
        """One monitoring cycle: see how the run is doing, and change its cuts if that is better.

        While something is under way, the run is only watched. Gives in how many seconds to look
        again, where that is sooner than the next cycle.
        """
        self._record.take_time(now_s)
        self._again_s = None
        self._outage.outlast(lambda: self._look(now_s))
        return self._again_s

    def stop(self) -> None:
        """End every query after its batch under way."""
        try:
            self._parts.runtime.stop()
        except SiteError as error:
            # Its checkpoint is where the next start goes on.
            self._record.note = f"{error.site} did not end in order: {error.reason}"

    def end(self, now_s: float) -> None:
        """Learn that all sites have ended."""
        self._record.end(now_s)

    def status(self, state: str, now_s: float, error: str | None = None) -> dict[str, Any]:
        """How the run is doing, as plain data."""
        return self._record.status(state, now_s, error)

    def report(self, state: str, now_s: float, error: str | None = None) -> dict[str, Any]:
        """What came out of the run, as plain data."""
        return self._record.report(state, now_s, error)

    # What happens

    def _turn(self, timeout_s: float) -> None:
        self._advance()
        self._attend(timeout_s if self.is_idle else min(timeout_s, _BUSY_TURN_S))
        self._advance()

    def _advance(self) -> None:
        """Do all that can be done without waiting: for what is under way, then for requests."""
        while True:
            has_recovered = self._recovery.advance()
            if self._changer.advance() or has_recovered:
                continue
            if self._record.states.change is not None:
                return
            request = None if self.stopping else take_one(self._parts.folder)
            if request is None:
                break
            self._handle(request)
        if self._is_starting:
            # Last: a rollback that was cut off goes on to where the history says.
            self._keep_what_runs()
            self._is_starting, self._record.state = False, "running"

    def _attend(self, timeout_s: float = 0.0) -> None:
        """Attend to what sites did unasked, waiting at most this long for something."""
        event = self._parts.runtime.next_event(timeout_s)
        while event is not None:
            self._recovery.attend(event)
            event = self._parts.runtime.next_event(0.0)

    def _look(self, now_s: float) -> None:
        self._watch(now_s)
        adapter = self._parts.adapter
        if adapter is None or not self.is_idle or self._is_starting or self.stopping:
            self._observe()
            self._record.publish()
            return
        verdict = self._decide(adapter)
        self._again_s = verdict.again_s
        self._see(adapter, verdict.situation)
        if verdict.cuts is None:
            self._write_decision(now_s, "look", verdict.reason, self.cuts)
            self._record.publish()
        else:
            self._begin_change("adapt", verdict.reason, verdict.cuts, verdict.plan)
            self._advance()

    def _watch(self, now_s: float) -> None:
        """Count what has come, and ask the sites what they did and how they are doing."""
        self._learn_arrivals(lambda: self._record.count(now_s))
        records = self._parts.runtime.records()
        watcher = self._parts.watcher
        if watcher is not None and self._record.states.change is None:
            watcher.look(records, self.cuts, now_s)
        elif watcher is not None:
            watcher.take(records)
        self._learn(batches_of(records, self.cuts, self._parts.speed_ips()))
        self._learn_links(now_s)
        self._record.take_sites(self._parts.runtime.status(), now_s)

    def _count_arrivals(self, now_s: float) -> None:
        """Count what arrives more often than a cycle comes: by that, rates are seen to change."""
        adapter = self._parts.adapter
        if adapter is None:
            return
        passed_s = self._parts.clock() - self._counted_s
        if passed_s >= _COUNTS_SHARE * adapter.controller.interval_s:
            self._learn_arrivals(lambda: self._record.count_arrivals(now_s))

    def _learn_arrivals(self, count: Callable[[], Sequence[Mapping[str, Any]]]) -> None:
        """Have the controller learn what has arrived by now."""
        # Before counting: to ask sites may take long, and rates are counts by time.
        self._counted_s = self._parts.clock()
        records = count()
        arrived = Arrived(time_s=self._counted_s, events=dict(self._parts.tally.rows_in))
        self._learn([arrived, *batches_of(records, self.cuts, self._parts.speed_ips())])
        adapter = self._parts.adapter
        if adapter is not None:
            self._parts.tally.take_rates(adapter.controller.rates(self._remembered))

    def _learn(self, events: Iterable[Event]) -> None:
        if self._parts.adapter is not None:
            self._remembered = self._parts.adapter.learn(self._remembered, events)

    def _learn_links(self, now_s: float) -> None:
        """Have the controller learn what links carry."""
        watcher = self._parts.watcher
        if watcher is None:
            return
        links = measure_links(watcher.link_figures(now_s), self.cuts, self._parts.clock())
        if links is not None:
            self._learn([links])

    def _see(self, adapter: Decides, situation: Situation | None) -> None:
        record = self._record
        record.seen = seen_of(adapter, self._remembered, situation, record.now_s())
        if situation is not None:
            record.characteristics = adapter.controller.measured(self._remembered).to_dict()

    def _decide(self, adapter: Decides) -> Verdict:
        """What to do; whatever keeps that from being found does not keep the run from going on."""
        try:
            verdict, self._remembered = adapter.look(
                self._remembered, self._parts.clock(), self.cuts
            )
            if verdict.cuts is not None:
                self._parts.require_cuts(verdict.cuts)
        except ThalwegError as error:
            return Verdict(reason=f"kept: nothing better can be planned: {error}")
        return verdict

    def _observe(self) -> None:
        """Learn the figures of the cuts that run, and decide nothing."""
        adapter = self._parts.adapter
        if adapter is None:
            return
        try:
            seen = adapter.observe(self._remembered, self._parts.clock(), self.cuts)
        except ThalwegError:
            return
        self._see(adapter, seen)

    def _say_outage(self, note: str, waiting: bool) -> None:
        otherwise = "starting" if self._is_starting else "running"
        self._record.note, self._record.state = note, "waiting" if waiting else otherwise
        self._record.write_status()

    # Changing cuts

    def _begin_change(
        self,
        cause: str,
        reason: str,
        cuts: Cuts,
        plan: Plan | None,
        after: AfterChange | None = None,
    ) -> None:
        """Begin to go to these cuts; `after` is called when they run, or cannot.

        Raises:
            InvalidInput: where the sites cannot run them.
        """
        self._parts.require_cuts(cuts)
        # Before anything is remembered: the disk may be full, and then no change begins.
        file = None if plan is None else self._parts.folder.keep_plan(plan.to_json())
        if self._parts.adapter is not None:
            begin_s = self._parts.clock()
            self._remembered = self._parts.adapter.begin_change(self._remembered, begin_s)
        self._changer.begin(
            Change(
                cause=cause,
                reason=reason,
                cuts=cuts,
                before=self.cuts,
                at_s=self._record.now_s(),
                began_s=self._parts.clock(),
                on_end=partial(self._end_change, after=after or _raise),
                plan=plan,
                plan_file=file,
                rates=self._parts.tally.rates(),
                figures=self._record.seen.get("figures", {}),
            )
        )

    def _end_change(self, change: Change, error: Exception | None, *, after: AfterChange) -> None:
        record, end_s = self._record, change.at_s + change.seconds
        if self._parts.adapter is not None:
            self._remembered = self._parts.adapter.end_change(
                self._remembered, self._parts.clock(), done=error is None
            )
        try:
            if error is None:
                self._learn_what_runs(change, end_s)
        finally:
            what = "cuts did not get there" if error else "cuts are in force"
            text = str(error) if error else describe_cuts(self.cuts)
            record.chronicle.tell_mark(end_s, "change", what, text, event=change.event, phase="end")
        record.publish()
        after(error)

    def _learn_what_runs(self, change: Change, end_s: float) -> None:
        """Write down a change whose cuts are in force."""
        record = self._record
        if self._parts.watcher is not None:
            self._parts.watcher.changed(end_s)
        decision = self._write_decision(
            change.at_s,
            change.cause,
            change.reason,
            change.before,
            plan=change.plan_file,
            steps=change.steps,
            seconds=change.seconds,
            rates=change.rates,
            figures=change.figures,
        )
        decision["expected"] = expected_of(change.plan)
        record.changes.append(decision)
        record.chronicle.tell_cuts(end_s, change.cause, change.reason, self.cuts, change.plan_file)
        if change.cause != ROLLBACK:
            self._keep_history(self.cuts, change.reason, change.at_s, change.plan_file)

    def _write_decision(self, *told: Any, **more: Any) -> dict[str, Any]:
        return self._record.write_decision(*told, **more)

    def _keep_history(self, cuts: Cuts, reason: str, at_s: float, plan: str | None) -> None:
        entry = HistoryEntry(cuts=dict(cuts), reason=reason, at_s=at_s, plan=plan)
        self._history.append(entry)
        self._parts.folder.write_history(self._history)

    def _keep_what_runs(self) -> None:
        """Have cuts in the history that came about by themselves: by a change that was cut off."""
        if not self._history or not same_cuts(self._history[-1].cuts, self.cuts):
            self._keep_history(self.cuts, "found running", self._record.now_s(), None)

    # Requests

    def _handle(self, request: Request) -> None:
        """Do what is requested, and answer when that is done."""
        after = partial(self._answer, request, is_waited_for=not self._is_starting)
        try:
            if request.kind == STOP:
                self.stopping = True
                after(None)
            elif request.kind == ROLLBACK:
                self._roll_back(request, after)
            else:
                wanted = {**self.cuts, **request.cuts}
                self._begin_change(MOVE, "moved by hand", wanted, None, after)
        except (InvalidInput, Refused) as error:
            after(error)

    def _answer(self, request: Request, error: Exception | None, *, is_waited_for: bool) -> None:
        """Say what came of a request; one that nobody waits for, where people look."""
        if error is None:
            answer(self._parts.folder, request, self._grant(request), done=True)
            return
        if not isinstance(error, (InvalidInput, Refused)):
            raise error
        self._keep_what_runs()
        if not is_waited_for:
            now_s = self._record.now_s()
            self._write_decision(now_s, request.kind, f"refused: {error}", self.cuts)
        answer(self._parts.folder, request, str(error), done=False)

    def _grant(self, request: Request) -> str:
        """What people are told of a request that was done."""
        if request.kind == STOP:
            return "stopping"
        is_move = request.kind == MOVE
        self._hold("cuts were set by hand" if is_move else "cuts were rolled back")
        return f"{'moved' if is_move else 'rolled back'} to {describe_cuts(self.cuts)}"

    def _roll_back(self, request: Request, after: AfterChange) -> None:
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
        self._begin_change(ROLLBACK, reason, target.cuts, None, after)

    def _hold(self, by: str) -> None:
        if self._parts.adapter is not None:
            steady_s = self._parts.clock()
            self._remembered = self._parts.adapter.hold(self._remembered, steady_s, by)


def _raise(error: Exception | None) -> None:
    if error is not None:
        raise error
