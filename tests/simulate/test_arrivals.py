"""When events are born."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from thalweg.errors import InvalidInput
from thalweg.simulate.arrivals import OnOff, Periodic, Poisson, Trace
from thalweg.simulate.seeds import Seeds
from thalweg.simulate.service import Empirical

SEEDS = Seeds("4/2")
END_S = 20.0
ALL = [
    Poisson(),
    Periodic(),
    OnOff(on_s=0.5, off_s=1.5),
    OnOff(on_s=0.1, off_s=0.01),
    Trace(time_s=np.linspace(0.0, 25.0, 101)),
]


def births(process, steps, seeds=SEEDS):
    """Births with a piece for each (time, rate)."""
    begun = process.begin(seeds)
    return [begun.before(until_s, rate) for until_s, rate in steps]


@pytest.mark.parametrize("process", ALL, ids=repr)
@given(st.lists(st.floats(0.0, END_S), max_size=12), st.sampled_from([0.3, 5.0, 77.0, 3000.0]))
def test_births_are_the_same_whatever_the_pieces(process, cuts, rate):
    whole = births(process, [(END_S, rate)])[0]
    ends = [*sorted(cuts), END_S]
    parts = births(process, [(end, rate) for end in ends])
    together = np.concatenate(parts)
    assert together.size == whole.size
    np.testing.assert_allclose(together, whole, rtol=0, atol=1e-11)
    begin_s = 0.0
    for part, end_s in zip(parts, ends, strict=True):
        assert (part >= begin_s - 1e-11).all()
        assert (part < end_s).all()
        assert (np.diff(part) >= 0).all()
        begin_s = end_s


@given(st.floats(0.1, 1000.0), st.integers(1, 40))
def test_a_cut_at_a_birth_loses_and_repeats_nothing(rate, number):
    for process in (Poisson(), Periodic()):
        seconds = 60.0 / rate
        whole = births(process, [(seconds, rate)])[0]
        cut_s = float(whole[min(number, whole.size - 1)])
        first, second = births(process, [(cut_s, rate), (seconds, rate)])
        assert first.size + second.size == whole.size
        assert (first < cut_s).all()


@pytest.mark.parametrize("process", [Poisson(), Periodic(), OnOff(on_s=0.2, off_s=0.3)], ids=repr)
@given(
    st.lists(st.tuples(st.floats(0.1, 5.0), st.sampled_from([0.0, 10.0, 200.0])), min_size=1),
    st.integers(1, 5),
)
def test_rates_that_change_do_not_make_births_depend_on_pieces(process, spans, pieces):
    ends = np.cumsum([span for span, _ in spans])
    plain = births(process, [(e, rate) for e, (_, rate) in zip(ends, spans, strict=True)])
    steps, begin_s = [], 0.0
    for end_s, (_, rate) in zip(ends, spans, strict=True):
        cuts = np.linspace(begin_s, end_s, pieces + 1)[1:-1]
        steps += [(float(cut), rate) for cut in cuts] + [(float(end_s), rate)]
        begin_s = end_s
    cut = births(process, steps)
    np.testing.assert_allclose(np.concatenate(cut), np.concatenate(plain), rtol=0, atol=1e-10)


@pytest.mark.parametrize("process", ALL[:4], ids=repr)
def test_without_a_rate_nobody_is_born(process):
    silent, loud, again = births(process, [(50.0, 0.0), (100.0, 300.0), (150.0, 0.0)])
    assert silent.size == again.size == 0
    assert loud.min() >= 50.0
    assert loud.max() < 100.0
    assert loud.size > 3000


def test_poisson_gaps_are_exponential_and_counts_are_poisson():
    times = births(Poisson(), [(2000.0, 50.0)])[0]
    assert stats.kstest(np.diff(times) * 50.0, "expon").pvalue > 1e-3
    counts, _ = np.histogram(times, np.arange(0.0, 2001.0))
    assert counts.mean() == pytest.approx(50.0, abs=4 * np.sqrt(50 / 2000))
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.15)


def test_a_new_rate_holds_from_its_moment_on():
    before, after = births(Poisson(), [(100.0, 100.0), (200.0, 400.0)])
    assert before.size == pytest.approx(10_000, abs=450)
    assert after.size == pytest.approx(40_000, abs=900)
    assert stats.kstest(np.diff(after) * 400.0, "expon").pvalue > 1e-3


def test_periodic_gaps_are_exact_and_the_first_one_is_a_part_of_a_gap():
    for seed in range(30):
        times = births(Periodic(), [(3.0, 8.0)], Seeds(str(seed)))[0]
        assert 0.0 <= times[0] < 1 / 8
        np.testing.assert_allclose(np.diff(times), 1 / 8, rtol=1e-12)
        assert times.size == 24
    firsts = [births(Periodic(), [(1.0, 8.0)], Seeds(str(seed)))[0][0] for seed in range(500)]
    assert stats.kstest(np.array(firsts) * 8.0, "uniform").pvalue > 1e-3


def test_what_has_passed_of_a_gap_has_passed():
    """A clock that ticks once a second, three times as fast from 10 s on: the gap is shared."""
    first, second = births(Periodic(), [(10.0, 1.0), (20.0, 3.0)])
    part = first[0]
    assert second[0] - 10.0 == pytest.approx(part / 3)
    np.testing.assert_allclose(np.diff(second), 1 / 3, rtol=1e-12)


@pytest.mark.parametrize(("on_s", "off_s"), [(0.5, 1.5), (2.0, 0.5), (0.01, 0.03)])
def test_bursts_have_the_mean_rate_of_the_source(on_s, off_s):
    seconds = 4000.0 * (on_s + off_s)
    found = [
        births(OnOff(on_s=on_s, off_s=off_s), [(seconds, 40.0)], Seeds(str(seed)))[0].size
        for seed in range(5)
    ]
    assert np.mean(found) / seconds == pytest.approx(40.0, rel=0.06)


def test_bursts_are_more_uneven_than_a_poisson_process():
    times = births(OnOff(on_s=0.5, off_s=1.5), [(2000.0, 50.0)])[0]
    counts, _ = np.histogram(times, np.arange(0.0, 2001.0))
    assert counts.var() / counts.mean() > 10
    assert np.count_nonzero(counts == 0) > 200


def test_a_trace_is_followed_whatever_the_rate():
    times = [0.0, 0.5, 0.5, 2.0, 7.0]
    process = Trace(time_s=times)
    assert np.concatenate(births(process, [(1.0, 0.0), (7.0, 1e6)])).tolist() == times[:4]
    assert births(Trace(), [(10.0, 5.0)])[0].size == 0
    # A second source begins at the beginning again.
    assert births(process, [(10.0, 1.0)])[0].tolist() == times


def test_a_trace_does_not_change_with_the_list_it_was_made_of():
    times = np.array([1.0, 2.0])
    process = Trace(time_s=times)
    times[0] = 1.5
    assert births(process, [(10.0, 1.0)])[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "times", [[1.0, 0.5], [-1.0], [np.nan], [np.inf], [[1.0, 2.0]], 3.0], ids=repr
)
def test_a_trace_that_is_no_rising_list_is_refused(times):
    with pytest.raises(InvalidInput, match="time_s"):
        Trace(time_s=times)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e-9])
def test_bursts_without_a_length_are_refused_and_both_are_told(value):
    with pytest.raises(InvalidInput) as refused:
        OnOff(on_s=value, off_s=value)
    assert [defect.path for defect in refused.value.defects] == ["on_s", "off_s"]


@pytest.mark.parametrize("values", [[], [0.0, 0.0], [-1.0, 2.0], [np.nan], [np.inf], [[1.0]]])
def test_services_that_are_no_times_are_refused(values):
    with pytest.raises(InvalidInput, match="values"):
        Empirical(values)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OnOff(on_s="1 s", off_s="2 s"),
        lambda: Trace(time_s=["soon"]),
        lambda: Empirical(["long"]),
    ],
)
def test_what_is_no_number_is_refused_as_bad_input(make):
    with pytest.raises(InvalidInput):
        make()


def test_bursts_are_the_same_to_the_last_bit_whatever_the_pieces():
    process = OnOff(on_s=0.3, off_s=0.7)
    whole = process.begin(Seeds("bursts")).before(50.0, 40.0)
    births = process.begin(Seeds("bursts"))
    pieces = [births.before(until_s, 40.0) for until_s in np.linspace(0.0, 50.0, 700)[1:]]
    np.testing.assert_array_equal(whole, np.concatenate(pieces))
