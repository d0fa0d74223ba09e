"""Every forecaster against the plain recursion of its formula, one series at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from thalweg.adapt import (
    ExponentialSmoothing,
    LastValue,
    SeasonalNaive,
    forecast_error,
    roll_forecasts,
)
from thalweg.errors import InvalidInput

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
TRENDS = (0.05, 0.2, 0.4)
SEASONS = (0.05, 0.2, 0.5)


def histories(most_steps=30):
    shape = st.tuples(st.integers(1, most_steps), st.integers(1, 3))
    return shape.flatmap(
        lambda s: arrays(float, s, elements=st.floats(0, 1e6, allow_subnormal=False))
    )


def last_value(series, ahead, drift):
    slope = (series[-1] - series[0]) / (len(series) - 1) if drift and len(series) > 1 else 0.0
    return [max(series[-1] + (h + 1) * slope, 0.0) for h in range(ahead)]


def seasonal_naive(series, ahead, period):
    if len(series) < period:
        return [series[-1]] * ahead
    said = list(series)
    for _ in range(ahead):
        said.append(said[-period])
    return said[-ahead:]


def smooth(series, ahead, alpha, beta, gamma, phi, *, has_trend, period):
    """One series with given weights: its forecast, and the sum of its one-step errors."""
    start = period - 1 if period else int(has_trend)
    if len(series) <= start:
        return [series[-1]] * ahead, 0.0
    if period:
        level, trend = sum(series[:period]) / period, 0.0
        season = {t: series[t] - level for t in range(period)}
    else:
        level, trend, season = series[start], 0.0, {}
        if has_trend:
            trend = series[1] - series[0]
    error = 0.0
    for t in range(start + 1, len(series)):
        old = season[t - period] if period else 0.0
        error += abs(series[t] - (level + phi * trend + old))
        before = level
        level = alpha * (series[t] - old) + (1 - alpha) * (level + phi * trend)
        if has_trend:
            trend = beta * (level - before) + (1 - beta) * phi * trend
        if period:
            season[t] = gamma * (series[t] - level) + (1 - gamma) * old
    said = []
    for h in range(1, ahead + 1):
        value = level + sum(phi**k for k in range(1, h + 1)) * trend
        if period:
            value += season[len(series) - 1 + h - period * math.ceil(h / period)]
        said.append(max(value, 0.0))
    return said, error


@given(histories(), st.integers(1, 5), st.booleans())
def test_last_value_and_drift_follow_their_formula(history, ahead, drift):
    said = LastValue(drift=drift).forecast(history, ahead)
    for k in range(history.shape[1]):
        expected = last_value(history[:, k].tolist(), ahead, drift)
        np.testing.assert_allclose(said[:, k], expected, rtol=1e-9, atol=1e-6)


@given(histories(), st.integers(1, 9), st.integers(1, 6))
def test_seasonal_naive_repeats_the_last_period(history, ahead, period):
    said = SeasonalNaive(period).forecast(history, ahead)
    for k in range(history.shape[1]):
        assert said[:, k].tolist() == seasonal_naive(history[:, k].tolist(), ahead, period)


@given(
    histories(),
    st.integers(1, 7),
    st.booleans(),
    st.none() | st.integers(1, 5),
    st.tuples(*[st.floats(0, 1)] * 4),
)
def test_smoothing_with_given_weights_follows_the_recursion(
    history, ahead, has_trend, period, weights
):
    alpha, beta, gamma, phi = weights
    forecaster = ExponentialSmoothing(
        level_weight=alpha,
        has_trend=has_trend,
        trend_weight=beta if has_trend else None,
        period_steps=period,
        season_weight=gamma if period else None,
        damping=phi,
    )
    said = forecaster.forecast(history, ahead)
    for k in range(history.shape[1]):
        series = history[:, k].tolist()
        expected, _ = smooth(
            series, ahead, alpha, beta, gamma, phi, has_trend=has_trend, period=period
        )
        np.testing.assert_allclose(said[:, k], expected, rtol=1e-7, atol=1e-3)


@given(histories(20), st.booleans(), st.none() | st.integers(2, 4))
def test_fitted_weights_have_the_least_one_step_error_of_the_grid(history, has_trend, period):
    forecaster = ExponentialSmoothing(has_trend=has_trend, period_steps=period, damping=0.9)
    said = forecaster.forecast(history, 3)
    for k in range(history.shape[1]):
        tried = [
            smooth(history[:, k].tolist(), 3, a, b, c, 0.9, has_trend=has_trend, period=period)
            for a in LEVELS
            for b in (TRENDS if has_trend else (0.0,))
            for c in (SEASONS if period else (0.0,))
        ]
        least = min(error for _, error in tried)
        # Weights whose errors differ by rounding alone are as good as each other.
        good = [f for f, error in tried if error <= least * (1 + 1e-9) + 1e-6]
        assert any(np.allclose(said[:, k], f, rtol=1e-7, atol=1e-3) for f in good)


FORECASTERS = [
    LastValue(),
    LastValue(drift=True),
    SeasonalNaive(3),
    ExponentialSmoothing(),
    ExponentialSmoothing(has_trend=True, damping=1.0),
    ExponentialSmoothing(period_steps=3),
    ExponentialSmoothing(has_trend=True, period_steps=4),
]


@pytest.mark.parametrize("forecaster", FORECASTERS, ids=repr)
@given(history=histories(15), ahead=st.integers(1, 4))
def test_rolling_is_forecasting_after_each_step_without_knowing_the_rest(
    forecaster, history, ahead
):
    rolled = roll_forecasts(forecaster, history, ahead)
    assert rolled.shape == (len(history), ahead, history.shape[1])
    for step in range(len(history)):
        alone = forecaster.forecast(history[: step + 1], ahead)
        np.testing.assert_allclose(rolled[step], alone, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("forecaster", FORECASTERS, ids=repr)
@given(
    history=arrays(
        float,
        st.tuples(st.integers(1, 12), st.integers(0, 2)),
        elements=st.sampled_from([0.0, 1e-300, 1.0, 1e15, 1e30]),
    )
)
def test_no_forecast_is_negative_or_not_a_number(forecaster, history):
    said = forecaster.forecast(history, 50)
    assert said.shape == (50, history.shape[1])
    assert np.isfinite(said).all()
    assert (said >= 0).all()


@pytest.mark.parametrize("forecaster", FORECASTERS, ids=repr)
def test_after_a_single_step_the_forecast_is_the_last_value(forecaster):
    assert (forecaster.forecast(np.array([[3.0, 0.0]]), 4) == [3.0, 0.0]).all()


def test_a_forecaster_of_ones_own_needs_one_method():
    class Nothing:
        def forecast(self, history, ahead_steps):
            return np.zeros((ahead_steps, history.shape[1])) + len(history)

    rolled = roll_forecasts(Nothing(), np.ones((3, 2)), 1)
    assert rolled[:, 0, 0].tolist() == [1.0, 2.0, 3.0]


def test_errors_are_those_of_every_origin_by_steps_ahead():
    series = np.array([[4.0, 0.0], [2.0, 0.0], [8.0, 1.0], [8.0, 0.0]])
    found = forecast_error(LastValue(), series, 2)
    # Origins 0 and 1. One ahead: |4−2|, |2−8|, |0−0|, |0−1|; two ahead: |4−8|, |2−8|, |0−1|, 0.
    assert found.origins == 2
    assert found.mae.tolist() == [(2 + 6 + 0 + 1) / 4, (4 + 6 + 1 + 0) / 4]
    np.testing.assert_allclose(found.mape, [(2 / 2 + 6 / 8 + 1) / 3, (4 / 8 + 6 / 8 + 1) / 3])
    one_ahead = (2 * 2 / 6 + 2 * 6 / 10 + 0 + 2) / 4
    np.testing.assert_allclose(found.smape[0], one_ahead)
    assert forecast_error(LastValue(), series, 2, first_origin=1).origins == 1


def test_without_anything_to_divide_by_the_relative_error_is_not_a_number():
    found = forecast_error(LastValue(), np.zeros((3, 1)), 1)
    assert math.isnan(found.mape[0])
    assert found.smape[0] == found.mae[0] == 0.0


def test_a_season_is_learned_better_than_by_the_last_value():
    step = np.arange(400)
    rng = np.random.default_rng(0)
    series = (50 + 30 * np.sin(step * 2 * np.pi / 24) + rng.normal(0, 2, 400))[:, None]
    last, naive, winters = (
        forecast_error(f, series, 6, first_origin=100).mae[-1]
        for f in (LastValue(), SeasonalNaive(24), ExponentialSmoothing(period_steps=24))
    )
    assert winters < naive < last / 3


@pytest.mark.parametrize(
    ("make", "paths"),
    [
        (lambda: SeasonalNaive(0), ["period_steps"]),
        (lambda: SeasonalNaive(True), ["period_steps"]),
        (lambda: LastValue().forecast(np.zeros((0, 1)), 1), ["history"]),
        (lambda: LastValue().forecast(np.zeros(3), 0), ["history", "ahead_steps"]),
        (lambda: LastValue().forecast(np.array([[math.nan]]), 1), ["history"]),
        (lambda: LastValue().forecast(np.array([[-1.0]]), 1), ["history"]),
        (
            lambda: ExponentialSmoothing(level_weight=2.0, trend_weight=0.1, damping=-1.0),
            ["level_weight", "damping", "trend_weight"],
        ),
        (lambda: ExponentialSmoothing(season_weight=0.1), ["season_weight"]),
        (lambda: forecast_error(LastValue(), np.ones((3, 1)), 3), ["first_origin"]),
    ],
)
def test_what_cannot_be_forecast_is_told(make, paths):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert [defect.path for defect in caught.value.defects] == paths
