"""Ratios of counts that are measured again and again: what comes out for each unit that goes in.

A ratio is estimated from pairs (in, out), one for each batch, by Σ out / Σ in; newer pairs count
more. What was declared is the prior: worth as much as a fraction of an event, it stands alone as
long as nothing was counted and gives way with the first counts. The interval is that of a ratio
estimator: it follows from how far the batches differ from the common ratio, by Student's t as there
are few of them. A single batch says nothing of that: the ratio may be several times what it shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtrit

from thalweg.errors import Defects

PRIOR_EVENTS = 0.1
"""How many units of input, or of output, the declared figure counts as at most."""
HALF_LIFE_S = 10.0
PRECISE = 1.5
"""The most that the upper end of an interval is of the lower, where a figure is precise."""
_TWO_SIDED_95 = 0.975
_SINGLE_PAIR_FACTOR = 10.0
_FEWEST_PAIRS = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with the interval that it is in with 95 % confidence, and how much it rests on."""

    value: float
    low: float
    high: float
    count: float = 0.0
    """Events that were counted for it, older ones for less; 0: the figure is the declared one."""

    def __post_init__(self) -> None:
        defects = Defects()
        good = self.low <= self.value <= self.high
        defects.require(good, "value", (self.low, self.value, self.high), "low ≤ value ≤ high")
        defects.raise_if_any()

    @property
    def is_measured(self) -> bool:
        """Whether anything was counted for it."""
        return self.count > 0

    @property
    def is_precise(self) -> bool:
        """Whether it is known well enough for others to be compared with it."""
        return self.high <= PRECISE * self.low

    def differs_from(self, declared: float, share: float) -> bool:
        """Whether the whole interval is further from the declared figure than this share of it."""
        if not self.is_measured:
            return False
        return self.low > declared * (1.0 + share) or self.high < declared * (1.0 - share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Sums over pairs (in, out) up to `at_s`; a pair that is `HALF_LIFE_S` older counts half.

    >>> ratio = Ratio().add(200.0, 100.0, at_s=1.0).add(400.0, 200.0, at_s=2.0)
    >>> ratio.estimate(declared=30.0).value
    0.500...
    >>> Ratio().estimate(declared=30.0)
    Estimate(value=30.0, low=30.0, high=30.0, count=0.0)
    """

    at_s: float = -math.inf
    going_in: float = 0.0
    coming_out: float = 0.0
    in_in: float = 0.0
    in_out: float = 0.0
    out_out: float = 0.0
    pairs: float = 0.0

    def add(
        self, going_in: float, coming_out: float, at_s: float, *, half_life_s: float = HALF_LIFE_S
    ) -> Ratio:
        """The ratio with one more pair; an older pair than the newest counts as of that moment."""
        if going_in <= 0:
            return self
        newest_s = max(self.at_s, at_s)
        passed_s = newest_s - self.at_s if math.isfinite(self.at_s) else 0.0
        left = 2.0 ** (-passed_s / half_life_s)
        return Ratio(
            at_s=newest_s,
            going_in=left * self.going_in + going_in,
            coming_out=left * self.coming_out + coming_out,
            in_in=left * self.in_in + going_in * going_in,
            in_out=left * self.in_out + going_in * coming_out,
            out_out=left * self.out_out + coming_out * coming_out,
            pairs=left * self.pairs + 1.0,
        )

    def count_at(self, at_s: float) -> float:
        """How many units of input it rests on, seen from this moment."""
        passed_s = max(0.0, at_s - self.at_s)
        return self.going_in * 2.0 ** (-passed_s / HALF_LIFE_S) if self.going_in > 0 else 0.0

    def estimate(self, declared: float) -> Estimate:
        """The ratio, with what was declared as its prior."""
        if self.going_in <= 0:
            return Estimate(value=declared, low=declared, high=declared)
        # At most so many events on either side: a prior that is far too large, or far too small,
        # does not pull harder than one that is nearly right.
        prior_in = PRIOR_EVENTS * min(1.0, 1.0 / declared if declared > 0 else 1.0)
        value = (self.coming_out + declared * prior_in) / (self.going_in + prior_in)
        if self.pairs < _FEWEST_PAIRS:
            low, high = value / _SINGLE_PAIR_FACTOR, value * _SINGLE_PAIR_FACTOR
        else:
            half = float(stdtrit(self.pairs - 1.0, _TWO_SIDED_95)) * self._deviation(value)
            low, high = max(0.0, value - half), value + half
        return Estimate(value=value, low=low, high=high, count=self.going_in)

    def _deviation(self, ratio: float) -> float:
        """The standard deviation of the ratio, from how far single batches are off it."""
        residual = self.out_out - 2.0 * ratio * self.in_out + ratio * ratio * self.in_in
        freedom = self.pairs / (self.pairs - 1.0)
        return math.sqrt(max(0.0, residual) * freedom) / self.going_in
