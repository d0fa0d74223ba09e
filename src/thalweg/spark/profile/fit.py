"""Lines through what was measured: what each event adds, apart from what a run costs at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured figure, and the range that half of its measurements or more are in."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Measured:
        """The same figure in another unit."""
        return Measured(self.value * factor, self.low * factor, self.high * factor)

    def to_dict(self) -> dict[str, float]:
        """The figure as plain data."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line: what each event adds, and what there is without any."""

    slope: float
    fixed: float


def measured_from(values: Sequence[float]) -> Measured:
    """The median of the values, with their quartiles.

    >>> measured_from([5.0, 1.0, 2.0, 3.0, 4.0])
    Measured(value=3.0, low=2.0, high=4.0)
    """
    low, middle, high = np.quantile(np.asarray(values, dtype=float), (0.25, 0.5, 0.75)).tolist()
    return Measured(middle, low, high)


def fit_line(events: Sequence[float], amounts: Sequence[float]) -> Line:
    """The line with the least squares; through the origin where all have equally many events.

    >>> fit_line([10, 20, 30], [7, 12, 17])
    Line(slope=0.5, fixed=2.0)
    """
    x, y = np.asarray(events, dtype=float), np.asarray(amounts, dtype=float)
    away = x - x.mean()
    square = float(away @ away)
    if square == 0.0:
        return Line(float(y.mean() / x.mean()) if x.mean() else 0.0, 0.0)
    slope = float(away @ y) / square
    return Line(slope, float(y.mean() - slope * x.mean()))


def fit_ratio(events: Sequence[float], amounts: Sequence[float]) -> Measured:
    """What each event adds, with the least and the most between two sizes that follow each other.

    Where more events add nothing, as with one row whatever comes in, it is the plain ratio of the
    largest sample.

    >>> fit_ratio([100, 200, 300], [60, 110, 160])
    Measured(value=0.5, low=0.5, high=0.5)
    >>> fit_ratio([100, 200], [1, 1])
    Measured(value=0.005, low=0.005, high=0.005)
    """
    slope = fit_line(events, amounts).slope
    if slope <= 0.0:
        ratio = amounts[-1] / events[-1] if events[-1] else 0.0
        return Measured(ratio, ratio, ratio)
    pairs = list(zip(events, amounts, strict=True))
    between = [
        max(0.0, (more[1] - less[1]) / (more[0] - less[0]))
        for less, more in pairwise(pairs)
        if more[0] != less[0]
    ] or [slope]
    return Measured(slope, min(*between, slope), max(*between, slope))


def rounded(value: float) -> float:
    """The value with as many digits as a measurement is good for.

    >>> rounded(0.123456), rounded(98765.4)
    (0.1235, 98770.0)
    """
    return float(f"{value:.{_DIGITS}g}")
