from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.model import DemandCurve, spread_curve

PAIRS = [("rides", "f0"), ("rides", "f1"), ("fares", "f0")]


def curve(*values: float) -> DemandCurve:
    return DemandCurve(time_s=np.arange(len(values)) * 60.0, value=np.array(values))


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=5),
    st.lists(st.floats(0.01, 100), min_size=3, max_size=3),
    st.floats(0, 10),
)
def test_pairs_share_the_curve_by_their_shares(
    values: list[float], shares: list[float], scale: float
) -> None:
    load = spread_curve(curve(*values), dict(zip(PAIRS, shares, strict=True)), scale=scale)
    assert load.births == tuple(PAIRS)
    for row, value in enumerate(values):
        for column, share in enumerate(shares):
            expected = value * scale * share / sum(shares)
            assert load.rate[row, column] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("births", "scale", "paths"),
    [
        ({}, 1.0, ["births"]),
        ({PAIRS[0]: 0.0}, 1.0, ["births"]),
        ({PAIRS[0]: -1.0}, 1.0, ["births"]),
        ({PAIRS[0]: math.nan}, -1.0, ["births", "scale"]),
        ({PAIRS[0]: 1.0}, math.nan, ["scale"]),
        ({PAIRS[0]: 1.0}, math.inf, ["scale"]),
    ],
)
def test_shares_that_mean_nothing_are_refused(births: Any, scale: float, paths: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        spread_curve(curve(1.0), births, scale=scale)
    assert [defect.path for defect in error.value.defects] == paths


@pytest.mark.parametrize(
    ("time_s", "value", "paths"),
    [
        ([], [], ["time_s"]),
        ([1.0, 0.0], [1.0, 1.0], ["time_s"]),
        ([0.0, 0.0], [1.0, -1.0], ["time_s", "value"]),
        ([0.0], [math.inf], ["value"]),
        ([0.0], [math.nan], ["value"]),
        ([0.0, math.inf], [1.0, 1.0], ["time_s"]),
        ([0.0, 1.0], [1.0], ["value"]),
    ],
)
def test_what_is_no_curve_is_refused(
    time_s: list[float], value: list[float], paths: list[str]
) -> None:
    with pytest.raises(InvalidInput) as error:
        DemandCurve(time_s=np.array(time_s), value=np.array(value))
    assert [defect.path for defect in error.value.defects] == paths


def test_a_curve_is_frozen() -> None:
    with pytest.raises(ValueError, match="read-only"):
        curve(1.0).value[0] = 2.0
