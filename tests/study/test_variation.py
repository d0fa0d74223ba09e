"""NAME=VALUES of swept parameters, and networks with other links."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.model.links import LinkWan
from thalweg.model.mesh import CoordinateWan, MeshWan
from thalweg.model.tree import TreeWan
from thalweg.study.variation import MAX_VALUES, parse_variations, points


@given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 9))
def test_a_range_has_both_ends_and_every_step(start, length, step):
    text = f"rates={start}..{start + length}:{step}"
    if length % step:
        with pytest.raises(tw.InvalidInput, match="do not reach"):
            parse_variations([text])
    else:
        assert parse_variations([text])["rates"] == list(range(start, start + length + 1, step))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("rates=1..4", [1, 2, 3, 4]),
        ("rates=2", [2]),
        ("rates=1, 2,4", [1, 2, 4]),
        ("rates=0.5..2:0.5", [0.5, 1.0, 1.5, 2.0]),
        ("rates=.1...4:.1", [0.1, 0.2, 0.3, 0.4]),
        ("option.base=tsoo,atsoo", ["tsoo", "atsoo"]),
        ("option.flag=true,false", [True, False]),
    ],
)
def test_values_are_read(text, values):
    assert list(parse_variations([text]).values()) == [values]


def test_option_names_have_underscores():
    assert parse_variations(["option.time-limit-s=1,2"]) == {"option.time_limit_s": [1, 2]}


def test_everything_wrong_is_told_at_once():
    bad = [
        "rates",
        "rates=",
        "=1",
        "latency=4..1",
        "rates=1..2:0",
        "option.a=0.5..2",
        "option.b=1,,2",
        f"bandwidth=1..{MAX_VALUES + 1}",
    ]
    with pytest.raises(tw.InvalidInput) as refused:
        parse_variations(bad)
    assert len(refused.value.defects) == len(bad)


def test_the_last_parameter_changes_first():
    assert [tuple(p.values()) for p in points({"a": [1, 2], "b": ["x", "y"]})] == [
        (1, "x"), (1, "y"), (2, "x"), (2, "y"),
    ]  # fmt: skip
    assert list(points({})) == [{}]


def wans():
    figures = np.array([[0.0, 0.01, 0.02], [0.03, 0.0, 0.04], [0.05, 0.06, 0.0]])
    line = {"latency": np.array([0.01, 0.02]), "bandwidth": np.array([1e6, 2e6])}
    free = np.array([[1e6, 5e5], [2e6, 1e6]])
    yield MeshWan(latency=figures, bandwidth=figures * 1e8, available=figures * 5e7)
    yield CoordinateWan(
        position_s=np.array([[0.0], [0.01], [0.05]]), height_s=np.array([0.0, 0.01, 0.0]),
        capacity_bps=1e6, taken_links=np.array([1]), taken_bps=np.array([2e5]),
    )  # fmt: skip
    ends = {"a": np.array([0, 1], dtype=np.int32), "b": np.array([1, 2], dtype=np.int32)}
    yield LinkWan(site_count=3, available=free, **ends, **line)
    yield TreeWan(
        parent=np.array([-1, 0, 1], dtype=np.int32), latency=np.array([0.0, 0.01, 0.02]),
        bandwidth=np.array([0.0, 1e6, 2e6]),
        available=np.array([[0.0, 0.0], [1e6, 5e5], [2e6, 1e6]]),
    )  # fmt: skip


@pytest.mark.parametrize("wan", list(wans()), ids=lambda wan: type(wan).__name__)
def test_a_scaled_network_has_every_figure_as_many_times(wan):
    a, b = np.divmod(np.arange(9), 3)
    before = wan.latency_s(a, b)
    scaled = wan.scaled(latency=3.0, bandwidth=0.5)
    np.testing.assert_allclose(scaled.latency_s(a, b), 3.0 * before)
    np.testing.assert_allclose(scaled.bandwidth_bps(a, b), 0.5 * wan.bandwidth_bps(a, b))
    np.testing.assert_allclose(scaled.available_bps(a, b), 0.5 * wan.available_bps(a, b))
    np.testing.assert_allclose(wan.latency_s(a, b), before)
