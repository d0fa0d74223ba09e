"""Means, tests and ranks against scipy and against slow, obvious versions."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from thalweg.study.statistics import (
    adjust_holm,
    friedman,
    mean_interval,
    paired_test,
    rank,
)

# Numbers with few digits, far apart from rounding, and with ties.
FIGURES = st.integers(-1_000, 1_000).map(lambda n: n / 8)
SAMPLES = st.lists(FIGURES, min_size=2, max_size=30)
CHANCES = st.floats(0, 1)


@given(SAMPLES)
def test_an_interval_is_students(values):
    found = mean_interval(values)
    assert found.n == len(values)
    assert found.mean == pytest.approx(sum(values) / len(values), abs=1e-9)
    error = scipy.stats.sem(values)
    if error == 0:
        assert found.low == found.high == found.mean
        return
    low, high = scipy.stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=error)
    assert found.low == pytest.approx(low, abs=1e-9)
    assert found.high == pytest.approx(high, abs=1e-9)


def test_one_value_has_no_interval_and_infinity_no_mean():
    assert (mean_interval([3.0]).mean, mean_interval([3.0]).low) == (3.0, None)
    endless = mean_interval([1.0, math.inf])
    assert (endless.mean, endless.low, endless.high) == (math.inf, None, None)


@given(st.lists(st.tuples(FIGURES, FIGURES), min_size=2, max_size=25))
def test_paired_tests_are_scipys(pairs):
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    found = paired_test(a, b)
    assert found.difference.mean == pytest.approx((a - b).mean(), abs=1e-9)
    if (a == b).all():
        assert found.t_p == found.wilcoxon_p == 1.0
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = scipy.stats.ttest_rel(a, b)
        signed = scipy.stats.wilcoxon(a, b)
    if np.ptp(a - b) == 0:
        assert found.t_p == 0.0
    else:
        assert found.t_p == pytest.approx(wanted.pvalue, rel=1e-9, abs=1e-15)
        interval = wanted.confidence_interval(0.95)
        assert found.difference.low == pytest.approx(interval.low, abs=1e-9)
        assert found.difference.high == pytest.approx(interval.high, abs=1e-9)
    # By default both leave out pairs without a difference.
    assert found.wilcoxon_p == pytest.approx(signed.pvalue, rel=1e-9)


def test_what_differs_by_rounding_is_the_same():
    a = [0.1 + 0.2, 1.0, 7.0]
    found = paired_test(a, [0.3, 1.0, 7.0])
    assert (found.difference.mean, found.t_p, found.wilcoxon_p) == (0.0, 1.0, 1.0)
    assert rank([0.1 + 0.2, 0.3, 0.2]) == [2.5, 2.5, 1.0]


def reject_by_holm(p_values, level):
    """Holm's procedure as it is told: the least p first, until one is not small enough."""
    rejected = [False] * len(p_values)
    waiting = list(range(len(p_values)))
    while waiting:
        least = min(waiting, key=lambda k: p_values[k])
        if p_values[least] * len(waiting) > level:
            break
        rejected[least] = True
        waiting.remove(least)
    return rejected


@given(st.lists(CHANCES, max_size=8), st.floats(0.001, 0.5))
def test_what_holm_rejects_has_an_adjusted_p_below_the_level(p_values, level):
    adjusted = adjust_holm(p_values)
    assert [p <= level for p in adjusted] == reject_by_holm(p_values, level)


@given(st.lists(FIGURES | st.just(math.inf), max_size=20))
def test_ranks_are_scipys(values):
    assert rank(values) == scipy.stats.rankdata(values).tolist()


@given(st.integers(3, 6), st.integers(2, 8), st.data())
def test_friedmans_test_is_scipys(columns, blocks, data):
    row = st.lists(st.integers(0, 4), min_size=columns, max_size=columns)
    table = data.draw(st.lists(row, min_size=blocks, max_size=blocks))
    found = friedman([rank(each) for each in table])
    assert found is not None
    if all(len(set(each)) == 1 for each in table):
        assert found == (0.0, 1.0)
        return
    wanted = scipy.stats.friedmanchisquare(*np.array(table, dtype=float).T)
    assert found[0] == pytest.approx(wanted.statistic, abs=1e-9)
    assert found[1] == pytest.approx(wanted.pvalue, abs=1e-9)


def test_friedmans_test_needs_two_blocks_of_three():
    assert friedman([[1.0, 2.0, 3.0]]) is None
    assert friedman([[1.0, 2.0], [1.0, 2.0]]) is None
