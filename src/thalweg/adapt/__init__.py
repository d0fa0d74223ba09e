"""Keeps a deployment right while rates change: forecasts, when to adapt, and replays of both."""

from thalweg.adapt.forecast import (
    Forecaster,
    ForecastError,
    LastValue,
    SeasonalNaive,
    forecast_error,
    roll_forecasts,
)
from thalweg.adapt.observation import Excess, Observation
from thalweg.adapt.record import Replay, Step
from thalweg.adapt.replay import replay
from thalweg.adapt.smoothing import ExponentialSmoothing
from thalweg.adapt.trigger import Decision, Trigger, TriggerState, decide

__all__ = [
    "Decision",
    "Excess",
    "ExponentialSmoothing",
    "ForecastError",
    "Forecaster",
    "LastValue",
    "Observation",
    "Replay",
    "SeasonalNaive",
    "Step",
    "Trigger",
    "TriggerState",
    "decide",
    "forecast_error",
    "replay",
    "roll_forecasts",
]
