"""Ratios of counts, against the plain sums over all pairs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.adapt.ratio import HALF_LIFE_S, PRIOR_EVENTS, Estimate, Ratio
from thalweg.errors import InvalidInput

pairs = st.lists(
    st.tuples(st.floats(1.0, 1e4), st.floats(0.0, 1e5), st.floats(0.0, 30.0)),
    min_size=1,
    max_size=20,
)


def plain_ratio(given, declared):
    """Σ out / Σ in over all pairs, each by its age, with the prior added as a pair of its own."""
    newest = max(at_s for _, _, at_s in given)
    weights = [2.0 ** (-(newest - at_s) / HALF_LIFE_S) for _, _, at_s in given]
    prior = PRIOR_EVENTS if declared <= 1 else PRIOR_EVENTS / declared
    going_in = sum(w * x for w, (x, _, _) in zip(weights, given, strict=True)) + prior
    coming_out = sum(w * y for w, (_, y, _) in zip(weights, given, strict=True))
    return (coming_out + prior * declared) / going_in


@given(pairs, st.floats(1e-6, 1e6))
def test_a_ratio_is_that_of_the_weighted_sums(given_pairs, declared):
    in_order = sorted(given_pairs, key=lambda pair: pair[2])
    ratio = Ratio()
    for going_in, coming_out, at_s in in_order:
        ratio = ratio.add(going_in, coming_out, at_s)
    found = ratio.estimate(declared)
    assert found.value == pytest.approx(plain_ratio(in_order, declared), rel=1e-9)
    assert found.low <= found.value <= found.high
    assert found.is_measured


@pytest.mark.parametrize("factor", [1 / 1000, 1 / 30, 30.0, 1000.0])
def test_what_was_declared_gives_way_with_the_first_counts(factor):
    true = 46.6
    found = Ratio().add(100.0, 100.0 * true, 1.0).estimate(true * factor)
    assert found.value == pytest.approx(true, rel=0.01)


def test_without_counts_the_declared_figure_stands_and_is_not_measured():
    found = Ratio().add(0.0, 5.0, 1.0).estimate(0.3)
    assert (found.value, found.low, found.high) == (0.3, 0.3, 0.3)
    assert not found.is_measured
    assert not found.differs_from(100.0, 0.2)


def test_the_interval_is_as_wide_as_batches_differ():
    even, uneven = Ratio(), Ratio()
    for second in range(10):
        even = even.add(100.0, 50.0, second)
        uneven = uneven.add(100.0, 20.0 if second % 2 else 80.0, second)
    narrow, wide = even.estimate(0.5), uneven.estimate(0.5)
    assert narrow.high - narrow.low < 0.01
    assert wide.high - wide.low > 0.1
    assert narrow.differs_from(0.3, 0.2)
    assert not wide.differs_from(0.45, 0.2)


def test_new_counts_displace_old_ones():
    ratio = Ratio().add(1000.0, 1000.0, 0.0)
    for second in range(1, 61):
        ratio = ratio.add(100.0, 200.0, second)
    assert ratio.estimate(1.0).value == pytest.approx(2.0, rel=0.02)


def test_an_estimate_is_within_its_interval():
    with pytest.raises(InvalidInput, match="low ≤ value ≤ high"):
        Estimate(value=2.0, low=0.0, high=1.0)
    assert math.isfinite(Estimate(value=1.0, low=0.0, high=1.0).value)
