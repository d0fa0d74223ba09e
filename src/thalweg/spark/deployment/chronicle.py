"""What a run tells its timeline: put together from the tally, the monitor and the sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from thalweg.spark.deployment.plan import Cuts
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

    def tell_mark(self, at_s: float, mark: str, title: str, text: str) -> None:
        """Something happened."""
        if self.timeline is not None:
            self.timeline.write_mark(at_s, mark, title, text)

    def tell_frame(
        self, now_s: float, seen: Mapping[str, object], sites: Mapping[str, SiteStatus]
    ) -> None:
        """How the run is doing."""
        if self.timeline is None:
            return
        watcher = self.watcher
        self.timeline.write_frame(
            now_s,
            seen=seen,
            rates=self.tally.rates(),
            rows_out=sum(self.tally.rows_out.values()),
            sites=sites,
            measured=None if watcher is None else watcher.monitor.figures(now_s),
            cores=self.cores,
        )
