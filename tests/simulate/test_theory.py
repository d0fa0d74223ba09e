"""What queueing theory says about single queues, rows of them, splits and joins."""

from __future__ import annotations

import math

import pytest
from scipy.stats import t

from benchmarks.simulator_theory import REPLICATIONS, predict_all


@pytest.fixture(scope="module")
def predictions():
    return list(predict_all(seconds=60.0, replications=REPLICATIONS))


def widening(comparisons: int) -> float:
    """How much wider an interval has to be to hold for so many comparisons together."""
    freedom = REPLICATIONS - 1
    plain = t.ppf(0.975, freedom)
    return float(t.ppf(1.0 - 0.05 / (2 * comparisons), freedom) / plain)


def test_theory_is_within_intervals_that_hold_for_all_figures_together(predictions):
    assert len(predictions) >= 30
    wide = widening(len(predictions))
    outside = [each for each in predictions if each.distance > wide]
    assert outside == []


def test_most_figures_are_within_the_plain_interval(predictions):
    inside = sum(each.inside for each in predictions)
    assert inside >= 0.85 * len(predictions)


def test_every_case_has_an_interval_that_says_something(predictions):
    for each in predictions:
        assert 0 < each.half_interval < 0.25 * each.predicted, each
    cases = {each.case.partition(" at ")[0] for each in predictions}
    assert {"M/M/1", "M/D/1", "D/M/1"} <= cases


def test_a_theory_that_is_a_tenth_off_would_be_found_out(predictions):
    wide = widening(len(predictions))
    single = [each for each in predictions if each.case.endswith("/1 at 0.6")]
    assert len(single) == 6
    for each in single:
        for wrong in (0.9 * each.predicted, 1.1 * each.predicted):
            assert abs(each.measured - wrong) > wide * each.half_interval, each


def test_the_wrong_queue_would_be_found_out(predictions):
    """Half the waiting time of M/M/1 is that of M/D/1: far outside."""
    waits = {each.case: each for each in predictions if each.figure.startswith("waiting time")}
    memoryless, fixed = waits["M/M/1 at 0.9"], waits["M/D/1 at 0.9"]
    assert fixed.predicted == pytest.approx(memoryless.predicted / 2)
    assert abs(memoryless.measured - fixed.predicted) > 4 * memoryless.half_interval
    assert math.isclose(memoryless.measured, 2 * fixed.measured, rel_tol=0.1)
