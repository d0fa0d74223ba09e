"""The change of cuts that is under way: attempts, until all of its steps are taken.

Nothing here waits for a site: an attempt is an operation, and `advance` sees what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thalweg.errors import InvalidInput
from thalweg.model import Plan
from thalweg.spark.deployment.operations import Operation
from thalweg.spark.deployment.outage import DiskOutage
from thalweg.spark.deployment.parts import RunParts
from thalweg.spark.deployment.patience import StepPatience
from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.deployment.recovery import Attend, Recovery
from thalweg.spark.deployment.run_record import RunRecord
from thalweg.spark.deployment.site_states import Activity
from thalweg.spark.deployment.status import describe_cuts
from thalweg.spark.deployment.tally import Rates
from thalweg.spark.log.disk import LogError
from thalweg.spark.site.channel import SiteError


@dataclass(slots=True, kw_only=True)
class Change:
    """A change of cuts, and what was known when it was decided."""

    cause: str
    reason: str
    cuts: Cuts
    before: Cuts
    at_s: float
    """When it was decided [Unix time]."""
    began_s: float
    """The same by a clock that only goes forward."""
    on_end: Callable[[Change, Exception | None], None]
    """Called when all steps are taken, or with what has kept them from being taken."""
    plan: Plan | None = None
    plan_file: str | None = None
    rates: Rates | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[str] = ()
    seconds: float = 0.0

    @property
    def event(self) -> str:
        """The name of the event that its begin and its end are marked with."""
        return f"change-{self.at_s:.3f}"


class Changer:
    """Carries out one change at a time."""

    def __init__(
        self,
        parts: RunParts,
        record: RunRecord,
        outage: DiskOutage,
        recovery: Recovery,
        attend: Attend,
    ) -> None:
        self._parts, self._record, self._outage = parts, record, outage
        self._recovery, self._attend = recovery, attend
        self._change: Change | None = None
        self._operation: Operation | None = None
        self._waits_for: str | None = None
        self._patience = StepPatience(most=parts.budget.most)
        self._counts: Mapping[str, int] = {}

    def begin(self, change: Change) -> None:
        """Begin a change; there must be none under way."""
        what = f"to {describe_cuts(change.cuts)}"
        activity = Activity(kind="change", event=change.event, what=what, began_at_s=change.at_s)
        states = self._record.states.begin_change(activity)
        self._change, self._waits_for = change, None
        self._patience = StepPatience(most=self._parts.budget.most)
        self._record.chronicle.tell_mark(
            change.at_s,
            "change",
            f"cuts are changed {what}",
            change.reason,
            event=change.event,
            phase="begin",
        )
        self._record.move_to(states)

    def advance(self) -> bool:
        """Begin the next attempt, or see what came of the last; whether there was either."""
        change = self._change
        if change is None:
            return False
        if self._operation is None:
            if self._waits_for in self._record.states.restarts:
                return False
            self._counts = dict(self._recovery.counts)
            self._operation = self._parts.operations.begin(
                "change of cuts", lambda: self._parts.runtime.go_to(change.cuts)
            )
        if not self._operation.done():
            return False
        operation, self._operation = self._operation, None
        try:
            steps = operation.result()
        except SiteError as error:
            # A hand-over goes on where it was, once the site is there again.
            self._bear(error)
        except (InvalidInput, LogError, OSError) as error:
            # A site refuses what it is told where its log has gone.
            if not self._outage.wait_out(error):
                self._end(change, error)
        else:
            change.steps = [str(step) for step in steps]
            self._end(change, None)
        return True

    def _bear(self, error: SiteError) -> None:
        """Find out what the next attempt has to wait for."""
        site = error.site
        if site in self._record.states.restarts:
            self._waits_for = site
        elif self._recovery.counts[site] > self._counts.get(site, 0):
            # It died during the attempt, and is back by now.
            self._waits_for = None
        elif self._patience.is_to_restart(error, self._parts.runtime.is_alive(site)):
            self._recovery.begin(site, str(error))
            self._waits_for = site
        else:
            # It is well, and at it: others, on whom it may be waiting, may need something.
            self._record.note = f"waits for {site}: {error.command}: {error.reason}"
            self._outage.require_wanted(self._record.note)
            self._attend()

    def _end(self, change: Change, error: Exception | None) -> None:
        change.seconds = self._parts.clock() - change.began_s
        self._change = None
        self._record.states = self._record.states.end_change()
        change.on_end(change, error)
