"""Rates of sources from counts of arrivals: steady ones from long spans, new ones at once.

A rate that has been steady is the mean over a span of some seconds. Where the last interval differs
from what was before, only the last one counts. Where its second half differs from its first, the
rate has just changed: it has settled if the second half is as a half was that ended a quarter of an
interval earlier; else it is still changing, and what it will be is extrapolated. A ramp is one that
has grown evenly over two intervals, at a site or at all sites together.

Gateways may put in many events at once, every few seconds: those have come since the ones before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from thalweg.adapt.events import Arrived, Pair

SPAN_S = 6.0
INTERVAL_S = 2.0
_KEPT_S = 30.0
_SHARE_HALVES, _SHARE_INTERVALS, _SHARE_EARLY = 0.25, 0.15, 0.05
_SHARE_RAMP, _GOES_ON = 0.2, 0.5
_SIGMAS, _SIGMAS_RAMP = 3.0, 4.0
# How many times the longest of so many last gaps it may take until the next events.
_LATE, _GAPS = 1.5, 3
Course = tuple[list[float], list[float]]
"""Moments, and how many events had come by then."""


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
        found = {pair: self._rate(pair, interval_s) for pair in sorted(self.counts[-1][1])}
        for source in {source for source, _ in found}:
            found |= self._join_ramp(source, found, interval_s)
        return found

    def _join_ramp(
        self, source: str, found: Mapping[Pair, ArrivalRate], interval_s: float
    ) -> dict[Pair, ArrivalRate]:
        """The rates of a source at the sites that grow as it does at all sites together.

        Of many sites, each may seem level by chance while their sum is surely not.
        """
        pairs = [pair for pair in found if pair[0] == source]
        total = math.fsum(found[pair].rate for pair in pairs)
        summed = Arrivals(
            counts=tuple(
                (time_s, {(source, ""): sum(events.get(pair, 0) for pair in pairs)})
                for time_s, events in self.counts
            )
        )
        slope = _find_slope(summed._course((source, "")), interval_s)
        if len(pairs) < 2 or not slope or total <= 0:
            return {}
        joined = {}
        for pair in pairs:
            share = slope * found[pair].rate / total
            own = _line(self._course(pair), interval_s).slope
            if found[pair].is_settled and own * share > 0 and abs(own) > abs(share) / 2:
                joined[pair] = ArrivalRate(rate=found[pair].rate, slope=share)
        return joined

    def _rate(self, pair: Pair, interval_s: float) -> ArrivalRate:
        times_s, counts = self._course(pair)
        now_s, first_s = times_s[-1], times_s[0]

        def count(ago_s: float, until_s: float = 0.0) -> tuple[float, float]:
            """How many came in a span that begins so long ago, and how long it is."""
            begin_s, end_s = max(first_s, now_s - ago_s), max(first_s, now_s - until_s)
            begin, end = np.interp([begin_s, end_s], times_s, counts).tolist()
            return end - begin, end_s - begin_s

        last, before = count(interval_s), count(2 * interval_s, interval_s)
        early, late = count(interval_s, interval_s / 2), count(interval_s / 2)
        if _differ(early, late, _SHARE_HALVES):
            earlier = count(0.75 * interval_s, 0.25 * interval_s)
            has_settled = not _differ(earlier, late, _SHARE_HALVES)
            slope = (_per_s(late) - _per_s(early)) / (interval_s / 2)
            return ArrivalRate(rate=_per_s(late), slope=0.0 if has_settled else slope)
        slope = _find_slope((times_s, counts), interval_s)
        if slope:
            return ArrivalRate(rate=_per_s(late), slope=slope)
        if _differ(before, last, _SHARE_INTERVALS):
            return ArrivalRate(rate=_per_s(late if _differ(early, late, _SHARE_EARLY) else last))
        # As far back as nothing has changed.
        span_s = 2 * interval_s
        while span_s + interval_s <= SPAN_S and not _differ(
            count(span_s + interval_s, span_s), count(span_s), _SHARE_INTERVALS
        ):
            span_s += interval_s
        return ArrivalRate(rate=_per_s(count(span_s)))

    def _course(self, pair: Pair) -> Course:
        """How many had come by when, by the moments at which some did; up to now where none do."""
        now_s = self.counts[-1][0]
        times_s, counts = [self.counts[0][0]], [float(self.counts[0][1].get(pair, 0))]
        before_s = times_s[0]
        for time_s, events in self.counts[1:]:
            count = float(events.get(pair, 0))
            if count != counts[-1]:
                if time_s - times_s[-1] > SPAN_S:
                    # After so long a silence, they have come just now.
                    times_s.append(before_s)
                    counts.append(counts[-1])
                times_s.append(time_s)
                counts.append(count)
            before_s = time_s
        gaps_s = np.diff(times_s[1:])[-_GAPS:]
        if len(gaps_s) == 0 or now_s - times_s[-1] > _LATE * gaps_s.max():
            times_s.append(now_s)
            counts.append(counts[-1])
        return times_s, counts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A straight line through the rates of eight quarters of an interval."""

    slope: float = 0.0
    recent: float = 0.0
    """The slope of the last four."""
    mean: float = 0.0
    sigma: float = math.inf
    """Of the slope, by chance and by what the line does not explain."""
    is_better: bool = False
    """Whether it explains the rates better than one jump does."""


def _line(course: Course, interval_s: float) -> _Line:
    times_s, counts = course
    quarter_s = interval_s / 4
    if times_s[-1] - times_s[0] < 8 * quarter_s:
        return _Line()
    at_s = times_s[-1] - quarter_s * np.arange(8, -1, -1)
    rates = np.diff(np.interp(at_s, times_s, counts)) / quarter_s
    middle_s = quarter_s * (np.arange(8) - 3.5)
    mean, spread = float(rates.mean()), float(middle_s @ middle_s)
    slope = float(middle_s @ rates) / spread
    off = rates - mean - slope * middle_s
    variance = max(mean / quarter_s, float(off @ off) / 6)
    recent = float(np.polyfit(middle_s[4:], rates[4:], 1)[0])
    jumps = (float(rates[:k].var() * k + rates[k:].var() * (8 - k)) for k in range(1, 8))
    return _Line(
        slope=slope,
        recent=recent,
        mean=mean,
        sigma=math.sqrt(variance / spread),
        is_better=float(off @ off) < min(jumps),
    )


def _find_slope(course: Course, interval_s: float) -> float:
    """By how much a rate grows each second, over the last two intervals; 0 where it does not.

    That of a straight line which is surely not level, explains more than a jump would, and goes on
    in the last interval.
    """
    line = _line(course, interval_s)
    is_sure = abs(line.slope) > _SIGMAS_RAMP * line.sigma
    is_much = abs(line.slope) * 2 * interval_s > _SHARE_RAMP * max(line.mean, 0.0)
    goes_on = line.recent * line.slope > 0 and abs(line.recent) > _GOES_ON * abs(line.slope)
    return line.slope if is_sure and is_much and goes_on and line.is_better else 0.0


def _per_s(counted: tuple[float, float]) -> float:
    return counted[0] / counted[1] if counted[1] > 0 else 0.0


def _differ(some: tuple[float, float], others: tuple[float, float], share: float) -> bool:
    """Whether two rates differ by more than this share of the larger, and more than by chance."""
    if some[1] <= 0 or others[1] <= 0:
        return False
    a, b = _per_s(some), _per_s(others)
    noise = _SIGMAS * math.sqrt(some[0] / some[1] ** 2 + others[0] / others[1] ** 2)
    return abs(a - b) > share * max(a, b) + noise
