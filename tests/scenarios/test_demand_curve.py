"""Generated demand has the figures that were measured, and those are what the data say."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from tools.calibrate_demand import TARGET, measure, write

from thalweg.errors import InvalidInput
from thalweg.files.workload_curve import read_demand_curve
from thalweg.model import DemandCurve
from thalweg.scenarios import demand_figures, taxi_demand_curve

TAXIS = Path(__file__).parents[3] / "shared/data/nab/nyc_taxi_30min_2014-07_2015-01.csv"
LONG = 7 * 600


@pytest.fixture(scope="module")
def real() -> DemandCurve:
    if not TAXIS.exists():
        pytest.skip(f"needs the taxi passengers at {TAXIS}")
    return read_demand_curve(TAXIS)


def deviation_of(curve: DemandCurve) -> np.ndarray:
    """How far each half hour is from its mean, in standard deviations; days × half hours."""
    figures = demand_figures()
    by_day = curve.value.reshape(-1, 48)
    return (by_day / figures.profile[np.arange(len(by_day)) % 7] - 1) / figures.spread


def by_hour(curve: DemandCurve) -> np.ndarray:
    return curve.value.reshape(-1, 24, 2).sum(axis=2).mean(axis=0)


def test_figures_are_those_of_weeks_in_half_hours() -> None:
    figures = demand_figures()
    assert figures.profile.shape == (7, 48)
    assert figures.spread.shape == (48,)
    assert 0 < figures.odd_days < 1
    # Nights are quiet, and Saturday's is not.
    assert (figures.profile[:, 8] < figures.profile[:, 38]).all()
    assert figures.profile[5, 2] > 2 * figures.profile[1, 2]


def test_long_curves_have_the_measured_profile_spread_and_correlation() -> None:
    figures = demand_figures()
    curve = taxi_demand_curve(LONG, seed=3)
    weeks = curve.value.reshape(-1, 7, 48)
    assert weeks.mean(axis=0) == pytest.approx(figures.profile, rel=0.03)
    deviation = deviation_of(curve)
    assert deviation.std(axis=0) == pytest.approx(np.ones(48), abs=0.05)
    flat = deviation.reshape(-1)
    for lag, wanted in zip((1, 2), figures.correlation, strict=True):
        found = np.corrcoef(flat[:-lag], flat[lag:])[0, 1]
        assert found == pytest.approx(wanted, abs=0.01)


def test_the_same_seed_gives_the_same_curve_and_more_days_begin_with_it() -> None:
    for anomalies in (False, True):
        short, long = (taxi_demand_curve(d, seed=5, anomalies=anomalies) for d in (9, 30))
        assert np.array_equal(short.value, long.value[: len(short)])
    assert not np.array_equal(
        taxi_demand_curve(2, seed=1).value, taxi_demand_curve(2, seed=2).value
    )
    assert (np.diff(taxi_demand_curve(2).time_s) == 1800).all()


def test_odd_days_come_only_when_asked_for_and_as_often_as_measured() -> None:
    figures = demand_figures()
    usual, odd = (taxi_demand_curve(LONG, seed=2, anomalies=a).value for a in (False, True))
    factor = (odd.reshape(-1, 48) / usual.reshape(-1, 48))[:, 0]
    is_odd = ~np.isclose(factor, 1)
    assert is_odd.mean() == pytest.approx(figures.odd_days, rel=0.15)
    assert set(np.round(factor[is_odd], 3)) == set(figures.odd_factors)
    assert np.array_equal(odd.reshape(-1, 48)[~is_odd], usual.reshape(-1, 48)[~is_odd])


@pytest.mark.parametrize(("days", "seed"), [(0, 0), (-1, 0), (1.5, 0), (1, -1), (10**6, 0)])
def test_wrong_parameters_are_refused(days: int, seed: int) -> None:
    with pytest.raises(InvalidInput):
        taxi_demand_curve(days, seed)


def test_measuring_a_generated_curve_finds_the_figures_again() -> None:
    made = taxi_demand_curve(LONG, seed=7)
    monday = datetime(2024, 1, 1)
    found = measure(DemandCurve(time_s=made.time_s, value=made.value, start=monday))
    figures = demand_figures()
    assert np.array(found["profile"]) == pytest.approx(figures.profile, rel=0.03)
    assert np.array(found["spread"]) == pytest.approx(figures.spread, rel=0.06)
    assert found["correlation"] == pytest.approx(figures.correlation, abs=0.02)
    assert found["odd_days"] < 0.002


def test_measuring_finds_the_days_that_are_far_off() -> None:
    made = taxi_demand_curve(28, seed=7)
    value = made.value.copy()
    value[48 * 9 : 48 * 10] *= 0.4
    value[48 * 20 : 48 * 21] *= 1.8
    found = measure(DemandCurve(time_s=made.time_s, value=value, start=datetime(2024, 1, 1)))
    assert found["odd_days"] == pytest.approx(2 / 28, abs=1e-4)
    assert found["odd_factors"] == pytest.approx([0.4, 1.8], rel=0.2)


@pytest.mark.data
def test_the_figures_are_what_the_command_measures(real: DemandCurve) -> None:
    assert write(measure(real)) == TARGET.read_text(encoding="utf-8")
    assert json.loads(TARGET.read_text())["profile"] == demand_figures().profile.tolist()


@pytest.mark.data
@pytest.mark.parametrize("seed", range(3))
def test_generated_curves_are_like_the_real_one(real: DemandCurve, seed: int) -> None:
    """Mean within 4 %, spread within 4 %, every hour's mean within 7 %, neighbours within 0.01."""
    made = taxi_demand_curve(len(real) // 48, seed)
    assert made.value.mean() == pytest.approx(real.value.mean(), rel=0.04)
    assert made.value.std() == pytest.approx(real.value.std(), rel=0.04)
    assert by_hour(made) == pytest.approx(by_hour(real), rel=0.07)
    correlation = [np.corrcoef(c.value[1:], c.value[:-1])[0, 1] for c in (made, real)]
    assert correlation[0] == pytest.approx(correlation[1], abs=0.01)
