"""What a series of measurements says: does it rise, has it grown, does something leak?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy import stats

_MOST_ALIKE = 0.95
# What twice as much as is possible would give.
_PLAINLY = 0.5
# Until batches are as large as a rate needs them, a lag rises at any rate.
_AT_ONCE = 0.1
LEAST_POINTS = 6
LONGEST_WARM_UP_S = 600.0
"""As long as a monitor remembers batches: until then a run has more in memory every minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """How fast something rises, with the interval that holds the truth 19 times in 20."""

    per_s: float
    low_per_s: float
    high_per_s: float

    @property
    def may_be_level(self) -> bool:
        """Whether it falls or stays, as far as can be told."""
        return self.low_per_s <= 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The usual value in the first third of a time and in the last, and the most in the first."""

    first: float
    last: float
    most_at_first: float

    @property
    def share(self) -> float:
        """By which part of the first value it has grown; 0 where there was nothing."""
        return (self.last - self.first) / self.first if self.first else 0.0

    @property
    def leaked(self) -> float:
        """How much more is usual in the end than ever was at first; 0: none.

        What swings comes back to where it was; what leaks leaves all that it was behind.
        """
        return max(0.0, self.last - self.most_at_first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The mean of the first third of a time and of the last, and how far that may be off.

    What swings has other means in two thirds of a time although it is level; a share without
    its interval says as little as a slope without one.
    """

    first: float
    last: float
    reach: float
    """The true difference is no farther away than this 19 times in 20."""

    @property
    def shares(self) -> tuple[float, float, float]:
        """By which part of the first value it has grown: as measured, at least, at most."""
        if not self.first:
            return 0.0, 0.0, 0.0
        grown = self.last - self.first
        least, most = grown - self.reach, grown + self.reach
        return grown / self.first, least / self.first, most / self.first


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What happened at one rate."""

    asked_per_s: float
    born_per_s: float
    """What the feed really sent."""
    lag_rows: Slope | None
    lag_s: Slope | None
    """None where so few results came out that it cannot be told."""
    tolerance: float = 0.1
    """The share of what comes by which the lag may rise."""

    @property
    def keeps_up(self) -> bool:
        """Whether rows were worked on as fast as they came, within the tolerance, and were sent.

        At a rate of `k` times what is possible, the results fall behind by `1 - 1/k` seconds each
        second: a tenth is what 11 % too much gives. Less cannot be told from batches within 20 s.
        """
        if self.lag_rows is None or self.lag_s is None:
            return False
        sent = self.born_per_s >= 0.9 * self.asked_per_s
        rows = self.lag_rows.per_s <= self.tolerance * self.asked_per_s
        return sent and rows and self.lag_s.per_s <= self.tolerance

    @property
    def is_plain(self) -> bool:
        """Whether it is too much however the measurement was off, and however batches may grow."""
        return self.lag_s is not None and self.lag_s.low_per_s > max(_AT_ONCE, self.tolerance)

    @property
    def is_unsure(self) -> bool:
        """Whether it was too much by so little that a pause of some seconds may have been it."""
        return not self.keeps_up and (self.lag_s is None or self.lag_s.per_s <= _PLAINLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongings:
    """What a process has, by names that people understand."""

    processes: frozenset[str]
    threads: tuple[str, ...]
    open_files: tuple[str, ...]
    temp_files: frozenset[str]


def warm_up_of(seconds: float) -> float:
    """How much of a soak's begin is not judged: a third, and never more than ten minutes.

    One rule for all. Resident memory of a JVM steps up until as much heap is committed as its
    batches need before a collection; Python keeps what it once had; a monitor remembers ten
    minutes. All that is over by then, and what goes on after it is growth, whoever it is.
    """
    return min(seconds / 3.0, LONGEST_WARM_UP_S)


def fit_slope(at_s: Sequence[float], values: Sequence[float]) -> Slope:
    """The slope by least squares.

    Neighbours in a series resemble each other, so that it says less than its length promises. The
    interval is that of the number of independent points that a first-order process would have.

    Raises:
        ValueError: where there are too few points, or all are of one moment.
    """
    x, y = np.asarray(at_s, dtype=float), np.asarray(values, dtype=float)
    if x.size < LEAST_POINTS or x.size != y.size or np.ptp(x) == 0.0:
        raise ValueError(f"a slope needs {LEAST_POINTS} points at different times, not {x.size}")
    x = x - x.mean()
    per_s = float(x @ y / (x @ x))
    rest = y - y.mean() - per_s * x
    points = max(x.size * _independent_share(rest), 4.0)
    error = float(np.sqrt(rest @ rest / (points - 2.0) / (x @ x)))
    reach = float(stats.t.ppf(0.975, points - 2.0)) * error
    return Slope(per_s=per_s, low_per_s=per_s - reach, high_per_s=per_s + reach)


def find_growth(at_s: Sequence[float], values: Sequence[float]) -> Growth:
    """How the last third of a time differs from the first, by the median of each.

    Raises:
        ValueError: where one of them is empty.
    """
    first, last = _outer_thirds(at_s, values)
    return Growth(first=median(first), last=median(last), most_at_first=max(first))


def compare_thirds(at_s: Sequence[float], values: Sequence[float]) -> Change:
    """How the mean of the last third of a time differs from that of the first, by Welch's interval.

    As for a slope, each third has as many points as are independent of one another.

    Raises:
        ValueError: where one of them is empty.
    """
    thirds = [np.asarray(third, dtype=float) for third in _outer_thirds(at_s, values)]
    first, last = (float(third.mean()) for third in thirds)
    rest = np.concatenate([third - third.mean() for third in thirds])
    share = _independent_share(rest)
    points = [max(third.size * share, 2.0) for third in thirds]
    errors = [float(np.var(t)) / (n - 1.0) for t, n in zip(thirds, points, strict=True)]
    error = sum(errors)
    if error == 0.0:
        return Change(first=first, last=last, reach=0.0)
    freedom = error**2 / sum(e**2 / (n - 1.0) for e, n in zip(errors, points, strict=True))
    reach = float(stats.t.ppf(0.975, freedom)) * float(np.sqrt(error))
    return Change(first=first, last=last, reach=reach)


def _outer_thirds(
    at_s: Sequence[float], values: Sequence[float]
) -> tuple[list[float], list[float]]:
    begin_s, end_s = min(at_s, default=0.0), max(at_s, default=0.0)
    third_s = (end_s - begin_s) / 3.0
    pairs = list(zip(at_s, values, strict=True))
    first = [value for t, value in pairs if t < begin_s + third_s]
    last = [value for t, value in pairs if t > end_s - third_s]
    if not first or not last:
        raise ValueError(f"growth needs values in the first and the last third, not {len(pairs)}")
    return first, last


def _independent_share(rest: NDArray[np.float64]) -> float:
    """How many independent points a point of a series counts for, by how alike neighbours are."""
    squares = float(rest @ rest)
    alike = float(rest[1:] @ rest[:-1]) / squares if squares > 0.0 else 0.0
    alike = min(max(alike, 0.0), _MOST_ALIKE)
    return (1.0 - alike) / (1.0 + alike)


def find_maximum(steps: Sequence[Step]) -> float:
    """The highest rate that was kept up below the lowest one that was not; 0: none was."""
    failed = min((s.asked_per_s for s in steps if not s.keeps_up), default=float("inf"))
    return max((s.asked_per_s for s in steps if s.keeps_up and s.asked_per_s < failed), default=0.0)


def next_rate(steps: Sequence[Step], first_per_s: float, factor: float, close: float) -> float:
    """The next rate to try: up by a factor until one is too much, then between; 0: known enough.

    It is known enough when the two rates around the maximum differ by no more than `close` times.
    """
    if not steps:
        return first_per_s
    failed = [s.asked_per_s for s in steps if not s.keeps_up]
    if not failed:
        return factor * max(s.asked_per_s for s in steps)
    best, worst = find_maximum(steps), min(failed)
    if best == 0.0:
        return worst / factor
    return 0.0 if worst <= close * best else float(np.sqrt(best * worst))


def find_left_over(before: Belongings, after: Belongings) -> dict[str, list[str]]:
    """What is there now and was not before, by its sort; of equal names, the surplus."""
    return {
        "processes": sorted(after.processes - before.processes),
        "threads": _surplus(before.threads, after.threads),
        "open files": _surplus(before.open_files, after.open_files),
        "temp files": sorted(after.temp_files - before.temp_files),
    }


def _surplus(before: Collection[str], after: Collection[str]) -> list[str]:
    kept = list(before)
    found = []
    for name in sorted(after):
        if name in kept:
            kept.remove(name)
        else:
            found.append(name)
    return found


def judge_growth(at_s: Sequence[float], series: Sequence[Mapping[str, float]]) -> dict[str, Growth]:
    """The growth of each name in a series of figures; who is not there counts as nothing."""
    names = sorted({name for figures in series for name in figures})
    return {n: find_growth(at_s, [figures.get(n, 0.0) for figures in series]) for n in names}
