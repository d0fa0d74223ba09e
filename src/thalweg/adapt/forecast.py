"""Short forecasts of rates, for one series or many at once.

A history is an array of steps × series at even distances, the newest step last; a forecast is an
array of steps ahead × series. Forecasts are never negative and never NaN. Every forecaster that
has seen too little for its method says that things stay as they are: the last value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from thalweg.errors import Defects
from thalweg.model.graph import Floats

_LARGEST = 1e30
# Far above any rate; what comes out of sums and differences of such numbers is finite.
_MOST_STEPS = 10_000_000


@runtime_checkable
class Forecaster(Protocol):
    """Predicts the next steps of every series from what was seen of it."""

    def forecast(self, history: Floats, ahead_steps: int) -> Floats:
        """The next `ahead_steps` values of each series: an array of steps ahead × series."""
        ...


@runtime_checkable
class RollingForecaster(Forecaster, Protocol):
    """A forecaster that is quicker for all origins together than for one after the other."""

    def roll(self, history: Floats, ahead_steps: int) -> Floats:
        """What `forecast` says after each step: an array of steps × steps ahead × series."""
        ...


def roll_forecasts(forecaster: Forecaster, history: Floats, ahead_steps: int) -> Floats:
    """What the forecaster would have said after each step of the history, not knowing the rest.

    The result has a forecast (steps ahead × series) for each step.
    """
    seen = require_history(history, ahead_steps)
    if isinstance(forecaster, RollingForecaster):
        return forecaster.roll(seen, ahead_steps)
    rows = [forecaster.forecast(seen[: step + 1], ahead_steps) for step in range(len(seen))]
    return np.stack(rows)


def require_history(history: Floats, ahead_steps: int) -> Floats:
    """The history as an array of steps × series; raises `InvalidInput` if it is none."""
    defects = Defects()
    seen = np.asarray(history, dtype=float)
    shaped = seen.ndim == 2 and seen.shape[0] > 0
    defects.require(shaped, "history", seen.shape, "an array of steps × series, at least one step")
    rule = f"numbers from 0 to {_LARGEST:g}"
    defects.require(bool(((seen >= 0) & (seen <= _LARGEST)).all()), "history", "others", rule)
    require_steps(defects, "ahead_steps", ahead_steps)
    defects.raise_if_any()
    return seen


def require_steps(defects: Defects, path: str, value: object) -> None:
    """Remember a defect unless the value is a number of steps."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    good = whole and 1 <= value <= _MOST_STEPS  # type: ignore[operator]
    defects.require(good, path, value, f"a whole number from 1 to {_MOST_STEPS:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LastValue:
    """Everything stays as it is; with `drift`, goes on as it went on average.

    The drift is the slope of the line through the first and the last step.

    >>> LastValue(drift=True).forecast(np.array([[1.0], [2.0], [5.0]]), 2)
    array([[7.],
           [9.]])
    """

    drift: bool = False

    def forecast(self, history: Floats, ahead_steps: int) -> Floats:
        """The next steps of each series."""
        seen = require_history(history, ahead_steps)
        slope = (seen[-1] - seen[0]) / max(len(seen) - 1, 1) if self.drift else 0.0
        ahead = np.arange(1, ahead_steps + 1)[:, None]
        return np.asarray(np.maximum(seen[-1] + ahead * slope, 0.0))

    def roll(self, history: Floats, ahead_steps: int) -> Floats:
        """The forecast after each step."""
        seen = require_history(history, ahead_steps)
        passed = np.maximum(np.arange(len(seen)), 1)[:, None]
        slope = (seen - seen[0]) / passed if self.drift else np.zeros_like(seen)
        ahead = np.arange(1, ahead_steps + 1)[:, None]
        return np.maximum(seen[:, None, :] + ahead * slope[:, None, :], 0.0)


@dataclass(frozen=True, slots=True)
class SeasonalNaive:
    """Everything is as it was one period ago; before a whole period was seen, the last value.

    >>> SeasonalNaive(2).forecast(np.array([[1.0], [5.0], [2.0]]), 3)[:, 0]
    array([5., 2., 5.])
    """

    period_steps: int

    def __post_init__(self) -> None:
        defects = Defects()
        require_steps(defects, "period_steps", self.period_steps)
        defects.raise_if_any()

    def forecast(self, history: Floats, ahead_steps: int) -> Floats:
        """The next steps of each series."""
        seen = require_history(history, ahead_steps)
        ahead = np.arange(ahead_steps)
        if len(seen) < self.period_steps:
            return np.repeat(seen[-1:], ahead_steps, axis=0)
        return np.asarray(seen[len(seen) - self.period_steps + ahead % self.period_steps])

    def roll(self, history: Floats, ahead_steps: int) -> Floats:
        """The forecast after each step."""
        seen = require_history(history, ahead_steps)
        step = np.arange(len(seen))[:, None]
        ahead = np.arange(ahead_steps)[None, :]
        row = step + 1 - self.period_steps + ahead % self.period_steps
        return np.asarray(seen[np.where(step + 1 < self.period_steps, step, row)])


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ForecastError:
    """How far forecasts were off, for each number of steps ahead, over all origins and series."""

    mae: Floats
    """Mean absolute error."""
    mape: Floats
    """Mean of |error| / actual, without the moments where nothing was there; NaN if all were."""
    smape: Floats
    """Mean of 2 |error| / (actual + forecast), 0 where both are 0: between 0 and 2."""
    origins: int
    """From how many moments was forecast; each has all its steps ahead within the series."""


def forecast_error(
    forecaster: Forecaster, series: Floats, ahead_steps: int, *, first_origin: int = 0
) -> ForecastError:
    """Forecast from every step from `first_origin` on, and compare with what came.

    At each step the forecaster sees the series up to that step and no further.
    """
    seen = require_history(series, ahead_steps)
    defects = Defects()
    last = len(seen) - ahead_steps - 1
    rule = f"a step from which {ahead_steps} more are known, at most {last}"
    defects.require(0 <= first_origin <= last, "first_origin", first_origin, rule)
    defects.raise_if_any()
    origin = np.arange(first_origin, last + 1)
    said = roll_forecasts(forecaster, seen, ahead_steps)[origin]
    came = seen[origin[:, None] + np.arange(1, ahead_steps + 1)]
    error = np.abs(said - came)
    there = came > 0
    relative = np.divide(error, came, out=np.zeros_like(error), where=there)
    both = said + came
    symmetric = np.divide(2.0 * error, both, out=np.zeros_like(error), where=both > 0)
    count = there.sum(axis=(0, 2)).astype(float)
    nothing = np.full(ahead_steps, np.nan)
    return ForecastError(
        mae=error.mean(axis=(0, 2)),
        mape=np.divide(relative.sum(axis=(0, 2)), count, out=nothing, where=count > 0),
        smape=symmetric.mean(axis=(0, 2)),
        origins=origin.size,
    )
