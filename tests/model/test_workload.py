from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.model import Tracks, Workload

PAIRS = [("rides", "f1"), ("rides", "f2"), ("fares", "f1")]


def refused(run: Callable[[], Any]) -> list[str]:
    with pytest.raises(InvalidInput) as error:
        run()
    return [defect.path for defect in error.value.defects]


steps_of_rates = st.dictionaries(
    st.integers(-5, 20).map(float),
    st.dictionaries(st.sampled_from(PAIRS), st.integers(0, 9).map(float)),
    min_size=1,
)


@given(steps_of_rates, st.floats(-10, 30))
def test_rates_hold_from_their_moment_to_the_next(
    steps: dict[float, dict[tuple[str, str], float]], now: float
) -> None:
    load = Workload.of(steps)
    passed = [moment for moment in steps if moment <= now]
    moment = max(passed) if passed else min(steps)
    every = {pair for rates in steps.values() for pair in rates}
    assert load.rates_at(now) == {pair: steps[moment].get(pair, 0.0) for pair in every}


@given(steps_of_rates)
def test_a_workload_is_walked_moment_by_moment(
    steps: dict[float, dict[tuple[str, str], float]],
) -> None:
    load = Workload.of(steps)
    assert len(load) == len(steps)
    walked = list(load)
    assert [moment for moment, _ in walked] == sorted(steps)
    for moment, rates in walked:
        assert all(rates[pair] == rate for pair, rate in steps[moment].items())


def make(**changes: Any) -> Workload:
    fields: dict[str, Any] = {
        "time_s": np.array([0.0, 1.0]),
        "births": PAIRS[:2],
        "rate": np.ones((2, 2)),
    }
    return Workload(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"time_s": np.array([1.0, 0.0])}, ["time_s"]),
        ({"time_s": np.array([1.0, 1.0])}, ["time_s"]),
        ({"time_s": np.array([0.0, math.nan])}, ["time_s"]),
        ({"time_s": np.array([0.0, math.inf])}, ["time_s"]),
        ({"rate": np.ones((2, 3))}, ["rate"]),
        ({"rate": np.full((2, 2), -1.0)}, ["rate"]),
        ({"rate": np.full((2, 2), math.inf)}, ["rate"]),
        ({"births": [PAIRS[0], PAIRS[0]]}, ["births"]),
        ({"births": [("a/b", "f1"), ("a", "")]}, ["births[0]", "births[1]"]),
    ],
)
def test_what_is_no_workload_is_refused(changes: dict[str, Any], paths: list[str]) -> None:
    assert refused(lambda: make(**changes)) == paths


def test_no_moment_at_all_is_refused() -> None:
    assert refused(lambda: Workload.of({})) == ["time_s"]


def test_no_source_at_all_has_no_rates() -> None:
    assert Workload.of({0.0: {}}).rates_at(5.0) == {}


def test_a_workload_is_frozen() -> None:
    load = make()
    with pytest.raises(ValueError, match="read-only"):
        load.rate[0, 0] = 5.0


def tracks(**changes: Any) -> Tracks:
    fields: dict[str, Any] = {
        "user": np.array([0, 0, 1]),
        "time_s": np.array([0.0, 1.0, 0.0]),
        "x_m": np.zeros(3),
        "y_m": np.zeros(3),
    }
    return Tracks(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"user": np.array([0, 1, 0])}, ["time_s"]),
        ({"time_s": np.array([1.0, 0.0, 0.0])}, ["time_s"]),
        ({"time_s": np.array([0.0, 0.0, 0.0])}, ["time_s"]),
        ({"x_m": np.zeros(2), "y_m": np.array([0.0, math.nan, 0.0])}, ["x_m", "y_m"]),
    ],
)
def test_tracks_go_user_by_user_forward_in_time(changes: dict[str, Any], paths: list[str]) -> None:
    assert refused(lambda: tracks(**changes)) == paths


def test_nobody_moving_is_a_track_too() -> None:
    none = np.empty(0)
    assert tracks(user=none.astype(int), time_s=none, x_m=none, y_m=none).user.size == 0
    with pytest.raises(ValueError, match="read-only"):
        tracks().x_m[0] = 1.0
