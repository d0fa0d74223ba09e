"""What a run tells its timeline: put together from the tally, the monitor and the sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.deployment.site_states import RunStates
from thalweg.spark.deployment.tally import Rates, Tally
from thalweg.spark.deployment.timeline import Timeline
from thalweg.spark.deployment.watch import Watcher
from thalweg.spark.site.site import SiteStatus


@dataclass(frozen=True, kw_only=True)
class Chronicle:
    """Writes down what happens to a run; without a timeline, nothing."""

    tally: Tally
    timeline: Timeline | None = None
    watcher: Watcher | None = None
    cores: Mapping[str, int] = field(default_factory=dict)
    """Of the sites on this machine."""
    planned_rates: Rates | None = None
    """What is planned with as long as nothing was measured."""

    def tell_cuts(self, at_s: float, cause: str, reason: str, cuts: Cuts, plan: str | None) -> None:
        """From now on these cuts run."""
        if self.timeline is not None:
            rates = self.tally.rates() or self.planned_rates
            self.timeline.write_cuts(at_s, cause, reason, cuts, plan=plan, rates=rates)

    def tell_mark(
        self,
        at_s: float,
        mark: str,
        title: str,
        text: str,
        *,
        event: str | None = None,
        phase: str | None = None,
    ) -> None:
        """Something happened, or began or ended; see `Timeline.write_mark`."""
        if self.timeline is not None:
            self.timeline.write_mark(at_s, mark, title, text, event=event, phase=phase)

    def tell_frame(
        self,
        now_s: float,
        seen: Mapping[str, object],
        sites: Mapping[str, SiteStatus],
        states: RunStates,
        idle_s: Mapping[str, float],
    ) -> None:
        """How the run is doing; one that has ended does not measure anything."""
        if self.timeline is None:
            return
        is_measured = self.watcher is not None and not states.has_ended
        self.timeline.write_frame(
            now_s,
            seen=seen,
            rates=None if states.has_ended else self.tally.rates(),
            rows_out=sum(self.tally.rows_out.values()),
            sites=sites,
            measured=self.watcher.monitor.figures(now_s) if self.watcher and is_measured else None,
            cores=self.cores,
            states=states,
            idle_s=idle_s,
        )
