"""Exponential smoothing: simple, Holt's with a (damped) trend, Holt–Winters with a season.

The additive forms, with level l, trend b, season s of period m, damping φ and weights α, β, γ:

- l_t = α (y_t − s_{t−m}) + (1 − α) (l_{t−1} + φ b_{t−1})
- b_t = β (l_t − l_{t−1}) + (1 − β) φ b_{t−1}
- s_t = γ (y_t − l_t) + (1 − γ) s_{t−m}
- forecast h steps ahead = l_t + (φ + φ² + … + φ^h) b_t + s of the same phase

They start with the first value as level; with a trend, with the second value and the step to it;
with a season, after one whole period, with its mean, no trend, and what each step differs from
the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from thalweg.adapt.forecast import require_history, require_steps
from thalweg.errors import Defects
from thalweg.model.graph import Floats

_LEVEL_GRID = (0.1, 0.3, 0.5, 0.7, 0.9)
_TREND_GRID = (0.05, 0.2, 0.4)
_SEASON_GRID = (0.05, 0.2, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialSmoothing:
    """Recent values count more than old ones.

    A weight of None is fitted, for each series by itself: of a small grid of weights, those with
    the least sum of absolute one-step errors so far; ties: the smaller level, trend, season
    weight. With `has_trend` the last steps' slope goes on, each further step by `damping` less.
    With `period_steps` there is a season. Until a whole period was seen (without a season: until
    the second step), the forecast is the last value.

    >>> line = np.arange(4.0)[:, None]
    >>> ExponentialSmoothing(has_trend=True, damping=1.0).forecast(line, 2)
    array([[4.],
           [5.]])
    """

    period_steps: int | None = None
    has_trend: bool = False
    damping: float = 0.95
    level_weight: float | None = None
    trend_weight: float | None = None
    season_weight: float | None = None

    def __post_init__(self) -> None:
        defects = Defects()
        if self.period_steps is not None:
            require_steps(defects, "period_steps", self.period_steps)
        for path in ("level_weight", "trend_weight", "season_weight", "damping"):
            value = getattr(self, path)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            good = (number and 0 <= value <= 1) or (value is None and path != "damping")
            defects.require(good, path, value, "a number from 0 to 1")
        needless = self.trend_weight is not None and not self.has_trend
        defects.require(not needless, "trend_weight", self.trend_weight, "none without has_trend")
        needless = self.season_weight is not None and self.period_steps is None
        rule = "none without period_steps"
        defects.require(not needless, "season_weight", self.season_weight, rule)
        defects.raise_if_any()

    def forecast(self, history: Floats, ahead_steps: int) -> Floats:
        """The next steps of each series."""
        seen = require_history(history, ahead_steps)
        return np.asarray(self._smooth(seen, ahead_steps, first_origin=len(seen) - 1)[0])

    def roll(self, history: Floats, ahead_steps: int) -> Floats:
        """The forecast after each step, all in one pass."""
        return self._smooth(require_history(history, ahead_steps), ahead_steps, first_origin=0)

    def _weights(self) -> tuple[Floats, Floats, Floats]:
        """Every combination of weights that is tried, each as a column."""
        level = _LEVEL_GRID if self.level_weight is None else (self.level_weight,)
        trend = _TREND_GRID if self.trend_weight is None else (self.trend_weight,)
        season = _SEASON_GRID if self.season_weight is None else (self.season_weight,)
        grid = product(
            level, trend if self.has_trend else (0.0,), season if self.period_steps else (0.0,)
        )
        columns = np.array(list(grid)).T[:, :, None]
        return columns[0], columns[1], columns[2]

    def _smooth(self, seen: Floats, ahead_steps: int, first_origin: int) -> Floats:
        """Forecasts from `first_origin` on: one pass in time, all weights and series at once."""
        steps, series = seen.shape
        said = np.repeat(seen[first_origin:, None, :], ahead_steps, axis=1)
        period = self.period_steps or 1
        start = period - 1 if self.period_steps else int(self.has_trend)
        if steps <= start:
            return said
        alpha, beta, gamma = self._weights()
        shape = (alpha.shape[0], series)
        level = np.broadcast_to(
            seen[:period].mean(axis=0) if self.period_steps else seen[start], shape
        )
        slope = seen[1] - seen[0] if self.has_trend and not self.period_steps else np.zeros(series)
        trend = np.broadcast_to(slope, shape)
        season = np.zeros((period, *shape))
        if self.period_steps:
            season += (seen[:period] - level[0])[:, None, :]
        error = np.zeros(shape)
        grown = np.cumsum(self.damping ** np.arange(1, ahead_steps + 1))[:, None]
        every, ahead = np.arange(series), np.arange(1, ahead_steps + 1)
        for step in range(start, steps):
            if step > start:
                phase = step % period
                value, old, coming = seen[step], season[phase], level + self.damping * trend
                error += np.abs(value - coming - old)
                newer = alpha * (value - old) + (1.0 - alpha) * coming
                trend = beta * (newer - level) + (1.0 - beta) * self.damping * trend
                level = newer
                season[phase] = gamma * (value - level) + (1.0 - gamma) * old
            if step >= first_origin:
                best = error.argmin(axis=0)
                seasonal = season[((step + ahead) % period)[:, None], best, every]
                said[step - first_origin] = (
                    level[best, every] + grown * trend[best, every] + seasonal
                )
        return np.maximum(said, 0.0)
