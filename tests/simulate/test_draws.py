"""Random draws: as they should be distributed, and the same whoever asks for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from thalweg.simulate.compiled.draws import (
    DETERMINISTIC,
    EMPIRICAL,
    EXPONENTIAL,
    draw_factors,
    draw_uniforms,
)
from thalweg.simulate.seeds import Seeds

COUNT = 200_000
ONE = np.ones(1)
KEYS = [Seeds("0/0/0:count").key("service"), Seeds("12/7/x").key("gaps"), np.uint64(0)]


def exponentials(key, count=COUNT, first=0):
    return draw_factors(EXPONENTIAL, key, first, count, ONE)


@pytest.mark.parametrize("key", KEYS)
def test_the_ziggurat_is_exponential(key):
    drawn = exponentials(key)
    assert stats.kstest(drawn, "expon").pvalue > 1e-3
    # A scale that is 2 % off would be found out.
    assert stats.kstest(1.02 * drawn, "expon").pvalue < 1e-3


@pytest.mark.parametrize("key", KEYS)
def test_mean_variance_and_skewness_are_those_of_the_exponential(key):
    drawn = exponentials(key, 1_000_000)
    assert drawn.mean() == pytest.approx(1.0, abs=5e-3)
    assert drawn.var() == pytest.approx(1.0, abs=0.015)
    assert stats.skew(drawn) == pytest.approx(2.0, abs=0.1)


def test_the_tail_is_as_heavy_as_it_should_be_also_where_another_way_draws_it():
    """Beyond 7.697 the ziggurat begins again; about 450 of a million are there."""
    drawn = exponentials(KEYS[0], 4_000_000)
    for border in (0.1, 1.0, 3.0, 6.0, 7.6971, 8.5, 10.0):
        expected = drawn.size * np.exp(-border)
        assert abs(np.count_nonzero(drawn > border) - expected) < 5 * np.sqrt(expected)
    tail = drawn[drawn > 7.6971174701310497] - 7.6971174701310497
    assert stats.kstest(tail, "expon").pvalue > 1e-3


def test_every_layer_is_used_and_nothing_is_out_of_range():
    drawn = exponentials(KEYS[1])
    assert drawn.min() >= 0.0
    assert np.isfinite(drawn).all()
    expected = np.diff(-np.exp(-np.linspace(0.0, 5.0, 101))) * drawn.size
    found, _ = np.histogram(drawn, np.linspace(0.0, 5.0, 101))
    assert ((found - expected) ** 2 / expected).sum() < stats.chi2.ppf(0.999, 100)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("lag", [1, 2, 17])
def test_draws_do_not_depend_on_those_before(key, lag):
    for drawn in (exponentials(key), draw_uniforms(key, 0, COUNT)):
        correlation = np.corrcoef(drawn[:-lag], drawn[lag:])[0, 1]
        assert abs(correlation) < 4.5 / np.sqrt(COUNT)


@pytest.mark.parametrize("key", KEYS)
def test_uniforms_fill_their_range_evenly(key):
    drawn = draw_uniforms(key, 0, COUNT)
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    found, _ = np.histogram(drawn, 1000, (0.0, 1.0))
    assert stats.chisquare(found).pvalue > 1e-3
    # Pairs fill the square, too.
    square, _, _ = np.histogram2d(drawn[::2], drawn[1::2], 20, [[0, 1], [0, 1]])
    assert stats.chisquare(square.reshape(-1)).pvalue > 1e-3


def test_draws_of_different_keys_have_nothing_in_common():
    names = ["service", "selectivity", "routes", "gaps", "spans"]
    keys = [Seeds(f"0/{run}/0:queue").key(name) for run in range(3) for name in names]
    drawn = np.array([exponentials(key, 50_000) for key in keys])
    correlations = np.corrcoef(drawn)[np.triu_indices(len(keys), 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(50_000)
    assert len(set(keys)) == len(keys)


@given(
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.integers(0, 2**40),
    st.integers(0, 300),
    st.integers(0, 300),
)
def test_a_draw_has_a_number_and_does_not_depend_on_how_many_are_drawn(key, first, before, count):
    for kind, values in (
        (EXPONENTIAL, ONE),
        (EMPIRICAL, np.array([0.5, 0.7, 1.8])),
        (DETERMINISTIC, ONE),
    ):
        alone = draw_factors(kind, key, first + before, count, values)
        together = draw_factors(kind, key, first, before + count, values)
        assert np.array_equal(alone, together[before:])
    alone = draw_uniforms(key, first + before, count)
    assert np.array_equal(alone, draw_uniforms(key, first, before + count)[before:])


def test_empirical_draws_are_each_of_the_values_equally_often():
    values = np.array([0.25, 0.5, 1.0, 2.25])
    drawn = draw_factors(EMPIRICAL, KEYS[0], 0, COUNT, values)
    found = [np.count_nonzero(drawn == value) for value in values]
    assert sum(found) == COUNT
    assert stats.chisquare(found).pvalue > 1e-3


def test_deterministic_draws_are_all_one():
    assert np.array_equal(draw_factors(DETERMINISTIC, KEYS[0], 5, 100, ONE), np.ones(100))
