"""Devices split over areas, and the events that they put out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.model import Problem
from thalweg.scenarios import device_rates, fog_cloud, split_devices, taxi_fares


@settings(max_examples=100, deadline=None)
@given(areas=st.integers(1, 50), devices=st.integers(0, 10**9), seed=st.integers(0, 2**32))
def test_every_device_is_in_exactly_one_area(areas, devices, seed):
    counts = split_devices(areas, devices, np.random.default_rng(seed))
    assert counts.shape == (areas,)
    assert (counts >= 0).all()
    assert counts.sum() == devices


@settings(max_examples=50, deadline=None)
@given(areas=st.integers(1, 20), devices=st.integers(0, 10**6), seed=st.integers(0, 2**32))
def test_counts_are_uniform_draws_scaled_and_rounded_by_less_than_one(areas, devices, seed):
    counts = split_devices(areas, devices, np.random.default_rng(seed))
    drawn = 1.0 - np.random.default_rng(seed).random(areas)
    assert (np.abs(counts - devices * drawn / drawn.sum()) < 1 + 1e-6).all()


def test_rates_are_devices_times_what_each_sends():
    rates = device_rates(10, 75_000, np.random.default_rng(4), event_bytes=300.0)
    counts = split_devices(10, 75_000, np.random.default_rng(4))
    assert rates == {("rides", f"fog-{k}"): count * 20.0 for k, count in enumerate(counts)}
    assert sum(rates.values()) * 300.0 == pytest.approx(75_000 * 6_000.0)


def test_two_applications_share_the_devices_of_each_area():
    fares = device_rates(10, 5_000, np.random.default_rng(1), share=0.55)
    demand = device_rates(10, 5_000, np.random.default_rng(1), share=0.45)
    whole = device_rates(10, 5_000, np.random.default_rng(1))
    for area, rate in whole.items():
        assert fares[area] + demand[area] == pytest.approx(rate)
        assert fares[area] == pytest.approx(0.55 * rate)


def test_a_problem_takes_the_rates():
    rates = device_rates(10, 5_000, np.random.default_rng(1), share=0.55)
    problem = Problem(application=taxi_fares(), network=fog_cloud(10), rates=rates)
    assert problem.births.rate.sum() == pytest.approx(taxi_fares().operator("rides").rate)
    assert problem.births.rate.tolist() == pytest.approx(list(rates.values()))


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"fogs": 0, "devices": -1}, ["areas", "devices"]),
        ({"devices": 2.5}, ["devices"]),
        ({"share": 1.1, "event_bytes": 0.0}, ["share", "event_bytes"]),
        ({"device_bytes_per_s": float("nan")}, ["device_bytes_per_s"]),
    ],
)
def test_bad_parameters_are_refused_all_at_once(given, paths):
    with pytest.raises(InvalidInput) as error:
        device_rates(**{"fogs": 3, "devices": 5, "rng": np.random.default_rng(0)} | given)
    assert [defect.path for defect in error.value.defects] == paths
