"""Sites that die, and how they are started again: several at a time, and also during a change.

Nothing here waits for a site: a restart is an operation, and `advance` sees what came of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from thalweg.errors import InvalidInput
from thalweg.spark.deployment.operations import Operation
from thalweg.spark.deployment.outage import DiskOutage
from thalweg.spark.deployment.parts import RunParts
from thalweg.spark.deployment.run_record import RunRecord
from thalweg.spark.deployment.site_states import DOWN, UP, Activity
from thalweg.spark.log.disk import LogError
from thalweg.spark.site.channel import SiteError
from thalweg.spark.site.site import SiteEvent

_UNHEARD, _HALTED = "unheard", "halted"
_BEGINS = {"unheard": _UNHEARD, "silent": _UNHEARD, "query-halted": _HALTED}
_ENDS = {"heard": _UNHEARD, "query-resumed": _HALTED}
Reason = tuple[str, str | None]
"""Why a site does not work, and which query of it; None: all that it runs."""


@dataclass(slots=True, kw_only=True)
class Restart:
    """A site, or a query of it, that is being started again."""

    site: str
    query: str | None
    event: str
    began_s: float
    operation: Operation
    deferred: list[SiteEvent] = field(default_factory=list)
    """What was heard of the site meanwhile."""

    @property
    def what(self) -> str:
        """What is being started again, for people."""
        return describe_subject(self.site, self.query)


def describe_subject(site: str, query: str | None) -> str:
    """A site, or a query of it, for people."""
    return site if query is None else f"the query {query} of {site}"


class Recovery:
    """Learns what sites do unasked, and starts again what has died."""

    def __init__(self, parts: RunParts, record: RunRecord, outage: DiskOutage) -> None:
        self._parts, self._record, self._outage = parts, record, outage
        self._restarts: dict[str, Restart] = {}
        self.counts: Counter[str] = Counter()
        """How often each site was started again."""
        self._reasons: dict[str, dict[Reason, str]] = {}
        """Why a site whose process is there does not work: each reason passes by itself."""

    def attend(self, event: SiteEvent) -> None:
        """Learn what a site did unasked, and start again what has died."""
        site = event.site
        if event.kind in ("died", "query-failed"):
            self._learn_failure(event)
        elif event.kind in _BEGINS:
            if event.kind == "silent":
                self._record.note = f"{site}: {event.detail}"
            self._reasons.setdefault(site, {})[_BEGINS[event.kind], event.query] = event.detail
            self._show(site)
        elif event.kind in _ENDS:
            self._reasons.get(site, {}).pop((_ENDS[event.kind], event.query), None)
            self._show(site)
        else:
            self._record.note = f"{site}: {event.detail}"

    def _learn_failure(self, event: SiteEvent) -> None:
        site, running = event.site, self._restarts.get(event.site)
        if event.kind == "query-failed":
            # What is tried with it has ended; the next one may be halted again.
            self._reasons.get(site, {}).pop((_HALTED, event.query), None)
        else:
            self._reasons.pop(site, None)
        if running is not None:
            # It may be of the process before, or of the one that is being started.
            running.deferred.append(event)
        elif event.kind == "query-failed":
            self.begin(site, event.detail, event.query)
        elif not self._parts.runtime.is_alive(site):
            # One that was started again meanwhile is alive when its death is told here.
            self.begin(site, event.detail)

    def _show(self, site: str) -> None:
        """Have a site down while there is a reason, and up when there is none any more.

        While it is started again it is shown as that; what is left of the reasons counts after it.
        """
        if site in self._restarts:
            return
        record, reasons = self._record, self._reasons.get(site)
        state = record.states.life_of(site).state
        if reasons and state == UP:
            why = next(iter(reasons.values()))
            record.move_to(record.states.lose(site, record.now_s(), why))
        elif not reasons and state == DOWN and self._parts.runtime.is_alive(site):
            record.move_to(record.states.regain(site, record.now_s()))

    def begin(self, site: str, cause: str, query: str | None = None) -> None:
        """Start a site again, or a query of it.

        Raises:
            DeploymentFailed: where that was done too often, or the run is to end meanwhile.
        """
        record, now_s = self._record, self._record.now_s()
        event = f"restart-{site}-{now_s:.3f}"
        what = describe_subject(site, query)
        record.chronicle.tell_mark(
            now_s, "failure", f"{what} died", cause, event=event, phase="begin"
        )
        record.move_to(record.states.lose(site, now_s, cause))
        self._try(site, cause, query, event)

    def advance(self) -> bool:
        """See which restarts have ended, and do what is to be done then; whether any had."""
        ended = [restart for restart in self._restarts.values() if restart.operation.done()]
        for restart in ended:
            del self._restarts[restart.site]
            self._end(restart)
        return bool(ended)

    def _try(self, site: str, cause: str, query: str | None, event: str) -> None:
        self._outage.wait_out()
        if query is None:
            # The next process has none of the reasons of this one.
            self._reasons.pop(site, None)
        record, began_s = self._record, self._parts.clock()
        self._parts.budget.spend(site, began_s, cause)
        self.counts[site] += 1
        now_s = record.now_s()
        record.restarts.append({"site": site, "at_s": round(now_s, 3), "cause": cause})
        what = f"{describe_subject(site, query)} is started again"
        record.move_to(
            record.states.begin_restart(
                Activity(kind="restart", event=event, what=what, began_at_s=now_s, site=site)
            )
        )
        operation = self._parts.operations.begin(
            f"restart of {site}", lambda: self._parts.runtime.restart(site, query)
        )
        self._restarts[site] = Restart(
            site=site, query=query, event=event, began_s=began_s, operation=operation
        )

    def _end(self, restart: Restart) -> None:
        try:
            repairs = restart.operation.result()
        except SiteError as error:
            self._again(restart, str(error), None)
        except (InvalidInput, LogError, OSError) as error:
            if not self._outage.wait_out(error):
                raise
            self._again(restart, str(error), restart.query)
        else:
            self._succeed(restart, repairs)

    def _again(self, restart: Restart, cause: str, query: str | None) -> None:
        record, now_s = self._record, self._record.now_s()
        title = f"{restart.what} did not start"
        record.chronicle.tell_mark(now_s, "failure", title, cause, event=restart.event)
        record.move_to(record.states.end_restart(restart.site, now_s, why=cause))
        self._try(restart.site, cause, query, restart.event)
        # The process that they are of may be the one before the next.
        self._restarts[restart.site].deferred = restart.deferred

    def _succeed(self, restart: Restart, repairs: object) -> None:
        record, now_s = self._record, self._record.now_s()
        record.report_repairs(repairs)  # type: ignore[arg-type]
        seconds = self._parts.clock() - restart.began_s
        told = f"started again in {seconds:.1f} s, from where its checkpoints are"
        title = f"{restart.what} is back"
        record.chronicle.tell_mark(now_s, "restart", title, told, event=restart.event, phase="end")
        record.move_to(record.states.end_restart(restart.site, now_s))
        for event in restart.deferred:
            self.attend(event)
        self._show(restart.site)


Attend = Callable[[], None]
"""Has what sites did unasked attended to."""
