"""Rates from counts of arrivals: steady, after a jump, and while they change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.adapt.arrivals import Arrivals
from thalweg.adapt.events import Arrived

PAIR = ("rides", "fog-0")


def counted(rate_at, until_s, step_s=0.5, rng=None):
    """Counts every half second of a source with this rate at each moment."""
    arrivals, total, time_s = Arrivals(), 0.0, 0.0
    while time_s <= until_s + 1e-9:
        arrivals = arrivals.add(Arrived(time_s=time_s, events={PAIR: int(total)}))
        mean = rate_at(time_s + step_s / 2) * step_s
        total += mean if rng is None else rng.poisson(mean)
        time_s += step_s
    return arrivals


@given(st.floats(1.0, 1e5), st.integers(0, 50))
def test_a_steady_rate_is_the_mean_over_some_seconds(rate, seed):
    arrivals = counted(lambda _: rate, 10.0, rng=np.random.default_rng(seed))
    found = arrivals.rates(2.0)[PAIR]
    assert found.is_settled
    # At least an interval was counted, so chance alone explains no more than this.
    assert abs(found.rate - rate) <= 6 * np.sqrt(rate / 2.0) + 1.0


def test_a_jump_counts_as_soon_as_an_interval_is_all_new():
    arrivals = counted(lambda t: 200.0 if t < 10.0 else 600.0, 12.0)
    found = arrivals.rates(2.0)[PAIR]
    assert found.is_settled
    assert found.rate == pytest.approx(600.0, rel=0.01)


def test_a_rate_that_still_rises_is_told_apart_and_extrapolated():
    arrivals = counted(lambda t: 200.0 if t < 10.5 else 200.0 + 800.0 * (t - 10.5), 12.0)
    found = arrivals.rates(2.0)[PAIR]
    assert not found.is_settled
    # The mean over the last second.
    assert found.rate == pytest.approx(1000.0, rel=0.01)
    assert found.slope == pytest.approx(700.0, rel=0.01)
    assert found.after(2.0) > found.rate
    assert found.after(-1e6) == 0.0


@pytest.mark.parametrize("ago_s", [0.25, 0.5, 0.75, 1.0])
def test_a_jump_that_the_last_two_halves_do_not_agree_about_is_not_settled(ago_s):
    arrivals = counted(lambda t: 2e3 if t < 12.0 - ago_s else 6e3, 12.0, step_s=0.25)
    assert not arrivals.rates(2.0)[PAIR].is_settled


@pytest.mark.parametrize("ago_s", [1.5, 1.75, 2.0])
def test_a_jump_is_settled_once_they_agree(ago_s):
    arrivals = counted(lambda t: 2e3 if t < 12.0 - ago_s else 6e3, 12.0, step_s=0.25)
    found = arrivals.rates(2.0)[PAIR]
    assert found.is_settled
    assert found.rate == pytest.approx(6e3, rel=0.01)


@pytest.mark.parametrize("rise_s", [6.0, 10.0, 20.0])
def test_a_ramp_is_not_settled_though_each_interval_differs_little(rise_s):
    """To five times the rate; a slower rise is not told from a steady rate at once."""
    for now_s in np.arange(14.0, 10.0 + rise_s - 0.1, 0.5):
        arrivals = counted(lambda t: np.interp(t, [10.0, 10.0 + rise_s], [2e4, 1e5]), now_s, 0.25)
        found = arrivals.rates(2.0)[PAIR]
        grows_by = 8e4 / rise_s
        if grows_by * 2.0 > 0.2 * found.rate:
            assert found.slope == pytest.approx(grows_by, rel=0.15)


@given(st.floats(0.2, 5.0), st.floats(0.0, 5.0), st.integers(500, 5000), st.floats(15.0, 29.0))
def test_events_that_come_in_lumps_have_a_steady_rate(every_s, phase_s, events, until_s):
    """A gateway puts in so many at once; the counts are taken every quarter of a second."""
    arrivals = Arrivals()
    for time_s in np.arange(0.0, until_s, 0.25):
        lumps = max(0, int((time_s + phase_s) // every_s))
        arrivals = arrivals.add(Arrived(time_s=time_s, events={PAIR: lumps * events}))
    found = arrivals.rates(2.0)[PAIR]
    # A lump is seen up to a quarter of a second late.
    assert found.rate == pytest.approx(events / every_s, rel=0.5 / min(every_s, 2.0))
    if every_s >= 3.0:
        assert found.is_settled


def test_lumps_that_stop_are_silence():
    arrivals = Arrivals()
    for time_s in np.arange(0.0, 28.0, 0.25):
        lumps = int(min(time_s, 18.0) // 3.0)
        arrivals = arrivals.add(Arrived(time_s=time_s, events={PAIR: 900 * lumps}))
        if 12.0 < time_s < 21.0:
            assert arrivals.rates(2.0)[PAIR].rate == pytest.approx(300.0, rel=0.1)
    assert arrivals.rates(2.0)[PAIR].rate == 0.0


def test_nothing_is_known_of_a_single_count_and_a_clock_that_went_back_begins_anew():
    one = Arrivals().add(Arrived(time_s=5.0, events={PAIR: 10}))
    assert one.rates() is None
    again = counted(lambda _: 100.0, 8.0).add(Arrived(time_s=1.0, events={PAIR: 900}))
    assert again.rates() is None


def test_what_is_long_ago_is_forgotten():
    arrivals = counted(lambda _: 10.0, 200.0)
    assert arrivals.counts[0][0] >= 170.0
