"""The two taxi applications: published sizes, ranges and limits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.model import Limits, Pin, Problem, TimeWindow
from thalweg.scenarios import TaxiFigures, fog_cloud, taxi_demand, taxi_fares
from thalweg.scenarios.taxi import DEMAND_FIGURES, FARES_FIGURES

BOTH = [
    pytest.param(taxi_fares, 9, (0.4, 1.0), (1.0, 1.8), 0.55, id="fares"),
    pytest.param(taxi_demand, 11, (0.8, 1.2), (1.0, 1.9), 0.45, id="demand"),
]


@pytest.mark.parametrize(("make", "count", "selectivity", "cost", "share"), BOTH)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**64 - 1))
def test_operators_have_the_published_figures(make, count, selectivity, cost, share, seed):
    app = make(seed)
    source, *transforms, sink = app.operators
    assert len(transforms) == count
    for operator in transforms:
        assert selectivity[0] <= operator.selectivity <= selectivity[1]
        assert cost[0] <= operator.memory_factor <= cost[1]
        assert operator.cpu_per_byte == operator.memory_factor
        assert (operator.cpu_per_event, operator.memory, operator.compression) == (0.0, 0.0, 1.0)
        assert operator.window == TimeWindow(1.0, 0.5)
        assert operator.replicable
        assert operator.pin is None
    assert (source.kind, source.pin) == ("source", Pin(tier="fog"))
    assert source.rate * source.event_size == pytest.approx(5_000 * share * 6_000)
    assert (sink.kind, sink.pin) == ("sink", Pin(tier="cloud"))
    assert app.limits == Limits(response_time_s=1.0, uplink_bps=1e9, uplink_least_bps=4e8)


@pytest.mark.parametrize("make", [taxi_fares, taxi_demand])
def test_at_least_two_branches_part_and_join_again(make):
    app = make()
    leaving, arriving = (
        Counter(getattr(stream, end) for stream in app.streams) for end in ("source", "target")
    )
    splitters = [name for name, count in leaving.items() if count > 1]
    mergers = [name for name, count in arriving.items() if count > 1]
    assert splitters and mergers
    assert app.path_count >= 2
    # The ends are single: what parts has joined again before the sink.
    assert len(app.sources) == len(app.sinks) == 1


@pytest.mark.parametrize("make", [taxi_fares, taxi_demand])
def test_rides_are_born_in_every_fog_area(make):
    app = make()
    births = Problem(application=app, network=fog_cloud(7)).births
    assert births.site.tolist() == list(range(7))
    assert births.rate.sum() == pytest.approx(app.operator("rides").rate)


@pytest.mark.parametrize("make", [taxi_fares, taxi_demand])
def test_the_same_seed_gives_the_same_figures_and_another_seed_others(make):
    assert make(3) == make(3)
    pairs = zip(make(3).operators, make(4).operators, strict=True)
    assert all(a.selectivity != b.selectivity for a, b in pairs if a.kind == "transform")


def test_selectivity_and_cost_are_uniform_and_independent():
    drawn = [o for seed in range(300) for o in taxi_fares(seed).operators if o.kind == "transform"]
    selectivity = np.array([operator.selectivity for operator in drawn])
    cost = np.array([operator.memory_factor for operator in drawn])
    for values, low, high in ((selectivity, 0.4, 1.0), (cost, 1.0, 1.8)):
        counts, _ = np.histogram(values, bins=10, range=(low, high))
        expected = len(drawn) / 10
        assert ((counts - expected) ** 2 / expected).sum() < 27.9
    assert abs(np.corrcoef(selectivity, cost)[0, 1]) < 0.06


def test_figures_and_limits_are_parameters():
    figures = replace(
        FARES_FIGURES, devices=100, event_bytes=600.0, mi_per_mb=2.0, window_length_s=4.0
    )
    app = taxi_fares(figures=figures, limits=Limits(response_time_s=2.0))
    assert app.operator("rides").rate == pytest.approx(100 * 0.55 * 10)
    assert app.operator("parse").cpu_per_byte == 2 * app.operator("parse").memory_factor
    assert app.operator("parse").window == TimeWindow(4.0, 0.5)
    assert app.limits == Limits(response_time_s=2.0)
    assert DEMAND_FIGURES.rate == pytest.approx(5_000 * 0.45 * 30)


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"selectivity": (1.0, 0.4), "share": 0.0}, ["selectivity", "share"]),
        ({"cost": (1.0, float("nan")), "devices": -1}, ["cost", "devices"]),
        ({"mi_per_mb": 0.0, "event_bytes": True}, ["event_bytes", "mi_per_mb"]),
    ],
)
def test_bad_figures_are_refused_all_at_once(given, paths):
    good = {"selectivity": (0.4, 1.0), "cost": (1.0, 1.8), "share": 0.5}
    with pytest.raises(InvalidInput) as error:
        TaxiFigures(**good | given)
    assert [defect.path for defect in error.value.defects] == paths


def test_a_bad_seed_and_a_slide_beyond_the_window_are_refused():
    with pytest.raises(InvalidInput, match="seed"):
        taxi_fares(-1)
    with pytest.raises(InvalidInput, match="slide"):
        taxi_demand(figures=replace(DEMAND_FIGURES, window_slide_s=2.0))
