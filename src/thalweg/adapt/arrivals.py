"""Rates of sources from counts of arrivals: steady ones from long spans, new ones at once.

A rate that has been steady is the mean over a span of some seconds. Where the last interval differs
from what was before, only the last one counts. Where its second half differs from its first, the
rate has just changed: it has settled if the second half is as a half was that ended a quarter of an
interval earlier; else it is still changing, and what it will be is extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from thalweg.adapt.events import Arrived, Pair

SPAN_S = 6.0
INTERVAL_S = 2.0
_KEPT_S = 30.0
_SHARE_HALVES, _SHARE_INTERVALS, _SHARE_EARLY = 0.25, 0.15, 0.05
_SIGMAS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalRate:
    """A rate in events/s; `slope` is by how much it grows each second, 0 where it is settled."""

    rate: float
    slope: float = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether the rate stays, as far as can be seen."""
        return self.slope == 0.0

    def after(self, seconds: float) -> float:
        """The rate that is expected then."""
        return max(0.0, self.rate + self.slope * seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Counts of arrivals over the last seconds, oldest first."""

    counts: tuple[tuple[float, Mapping[Pair, int]], ...] = field(default=())

    def add(self, event: Arrived) -> Arrivals:
        """The counts with one more; a clock that went back begins anew."""
        counts = self.counts
        if counts and event.time_s <= counts[-1][0]:
            counts = ()
        kept = tuple(one for one in counts if event.time_s - one[0] <= _KEPT_S)
        return Arrivals(counts=(*kept, (event.time_s, dict(event.events))))

    def rates(self, interval_s: float = INTERVAL_S) -> dict[Pair, ArrivalRate] | None:
        """The rate of each source at each site; None until two counts are there."""
        if len(self.counts) < 2 or not self.counts[-1][1]:
            return None
        return {pair: self._rate(pair, interval_s) for pair in sorted(self.counts[-1][1])}

    def _rate(self, pair: Pair, interval_s: float) -> ArrivalRate:
        now_s, first_s = self.counts[-1][0], self.counts[0][0]

        def count(ago_s: float, until_s: float = 0.0) -> tuple[float, float]:
            """How many came in a span that begins so long ago, and how long it is."""
            begin_s, end_s = max(first_s, now_s - ago_s), max(first_s, now_s - until_s)
            return self._upto(pair, end_s) - self._upto(pair, begin_s), end_s - begin_s

        last, before = count(interval_s), count(2 * interval_s, interval_s)
        early, late = count(interval_s, interval_s / 2), count(interval_s / 2)
        if _differ(early, late, _SHARE_HALVES):
            earlier = count(0.75 * interval_s, 0.25 * interval_s)
            has_settled = not _differ(earlier, late, _SHARE_HALVES)
            slope = (_per_s(late) - _per_s(early)) / (interval_s / 2)
            return ArrivalRate(rate=_per_s(late), slope=0.0 if has_settled else slope)
        if _differ(before, last, _SHARE_INTERVALS):
            return ArrivalRate(rate=_per_s(late if _differ(early, late, _SHARE_EARLY) else last))
        # As far back as nothing has changed.
        span_s = 2 * interval_s
        while span_s + interval_s <= SPAN_S and not _differ(
            count(span_s + interval_s, span_s), count(span_s), _SHARE_INTERVALS
        ):
            span_s += interval_s
        return ArrivalRate(rate=_per_s(count(span_s)))

    def _upto(self, pair: Pair, at_s: float) -> float:
        """How many had come by then, spread evenly between two counts."""
        after_s, after = self.counts[-1][0], self.counts[-1][1].get(pair, 0)
        for time_s, events in reversed(self.counts):
            there = events.get(pair, 0)
            if time_s <= at_s:
                passed_s = after_s - time_s
                share = (at_s - time_s) / passed_s if passed_s > 0 else 0.0
                return there + (after - there) * share
            after_s, after = time_s, there
        return float(after)


def _per_s(counted: tuple[float, float]) -> float:
    return counted[0] / counted[1] if counted[1] > 0 else 0.0


def _differ(some: tuple[float, float], others: tuple[float, float], share: float) -> bool:
    """Whether two rates differ by more than this share of the larger, and more than by chance."""
    if some[1] <= 0 or others[1] <= 0:
        return False
    a, b = _per_s(some), _per_s(others)
    noise = _SIGMAS * math.sqrt(some[0] / some[1] ** 2 + others[0] / others[1] ** 2)
    return abs(a - b) > share * max(a, b) + noise
