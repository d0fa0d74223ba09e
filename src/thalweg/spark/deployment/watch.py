"""What a run's monitor is told and asked: records in, planned against measured out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from thalweg.errors import InvalidInput
from thalweg.model import Application, Network, TimeWindow
from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.monitor import Monitor
from thalweg.spark.monitor.compare import Comparison, compare_planned, place_cuts
from thalweg.spark.monitor.figures import Figures

# Windows are put out in bursts: figures are taken over several of them.
_LEAST_S = 15.0
_MOST_S = 60.0
_SETTLE_S = 5.0
# Batches put windows out some time after they end: by turns early and late.
_SLIDES = 4.0


class Watcher:
    """Feeds a monitor, and compares what it measured with what was planned.

    A comparison is made over the time since cuts last changed, less what they need to settle.
    """

    def __init__(self, monitor: Monitor, application: Application, network: Network) -> None:
        self.monitor = monitor
        self._application, self._network = application, network
        slides = (o.window.slide for o in application.operators if isinstance(o.window, TimeWindow))
        longest_s = _SLIDES * max(slides, default=0.0)
        self._links_span_s = min(max(monitor.window_s, longest_s), _MOST_S)
        self._changed_s: float | None = None
        self.comparison: list[dict[str, Any]] = []
        """The last one made while rows came in."""

    def changed(self, now_s: float) -> None:
        """Remember that cuts have changed."""
        self._changed_s = now_s

    def look(self, records: Sequence[Mapping[str, Any]], cuts: Cuts, now_s: float) -> None:
        """Take records in, and compare, if it has been quiet for long enough."""
        self.take(records)
        begin_s = self._changed_s
        if begin_s is None or now_s - begin_s < _SETTLE_S + _LEAST_S:
            return
        window_s = min(now_s - begin_s - _SETTLE_S, _MOST_S)
        figures = self.monitor.figures(now_s, window_s=window_s)
        if sum(figures.sources.values()) <= 0:
            return
        placement = place_cuts(self._application, self._network, cuts)
        rows = compare_planned(self._application, self._network, placement, figures)
        self.comparison = [describe_comparison(row) for row in rows]

    def link_figures(self, now_s: float) -> Figures:
        """Figures over long enough to hold what windows put out in bursts, since cuts changed."""
        since_s = math.inf if self._changed_s is None else now_s - self._changed_s
        window_s = min(self._links_span_s, max(self.monitor.window_s, since_s))
        return self.monitor.figures(now_s, window_s=window_s)

    def take(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take records in."""
        for record in records:
            # A record that cannot be right must not end a run.
            with suppress(InvalidInput):
                self.monitor.take(record)

    def close(self) -> None:
        """Keep what was measured."""
        self.monitor.save()


def describe_comparison(row: Comparison) -> dict[str, Any]:
    """A comparison as plain data."""
    return {
        "kind": row.kind,
        "name": row.name,
        "site": row.site,
        "planned": round(row.planned, 3),
        "measured": round(row.measured, 3),
        "difference": None if row.difference is None else round(row.difference, 4),
    }
