from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migration.test_mobility import BROKERS, drives
from thalweg.errors import InvalidInput
from thalweg.files.routes_reader import load_routes
from thalweg.files.tracks_reader import load_tracks
from thalweg.migration.brokers import Brokers
from thalweg.migration.connections import Connections
from thalweg.migration.fan import NOWHERE
from thalweg.migration.hit_rate import STAYS, hit_rates
from thalweg.migration.mobility import Predictor, predictor
from thalweg.migration.predictors.learned import Transitions
from thalweg.scenarios import broker_tree

LUXEMBOURG = Path(__file__).parents[3] / "shared/data/sumo_luxembourg"


def slow_rate(
    asked: Predictor, connections: Connections, ahead: int, every: int
) -> tuple[int, float, float, int, float]:
    hits, given_, moved = [], [], []
    for vehicle in range(connections.vehicles):
        row = connections.leaf[vehicle].tolist()
        for tick in range(0, connections.steps - ahead, every):
            if row[tick] != NOWHERE and row[tick + ahead] != NOWHERE:
                shares = asked.predict(vehicle, tick, 2, ahead).distribution(1)
                best = min(shares, key=lambda host: (-round(shares[host], 9), host))
                hits.append(best == row[tick + ahead])
                given_.append(shares.get(row[tick + ahead], 0.0))
                moved.append(row[tick] != row[tick + ahead])
    away = [hit for hit, gone in zip(hits, moved, strict=True) if gone]
    return (
        len(hits),
        float(np.mean(hits)) if hits else math.nan,
        float(np.mean(given_)) if hits else math.nan,
        len(away),
        float(np.mean(away)) if away else math.nan,
    )


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_rates_are_counted(seed: int) -> None:
    connections = drives(seed)
    # An odd number of points: no two leaves can be as likely but for rounding.
    asked = [
        predictor("perfect", connections, BROKERS),
        predictor("dead-reckoning", connections, BROKERS, points=1),
    ]
    rates = hit_rates(asked, connections, ahead_s=(7, 3), every_s=2)
    assert [(rate.predictor, rate.ahead_s) for rate in rates] == [
        (name, ahead_s) for name in (STAYS, "perfect", "dead-reckoning") for ahead_s in (3.0, 7.0)
    ]
    for one, pair in zip(asked, (rates[2:4], rates[4:6]), strict=True):
        for rate in pair:
            found = (rate.moments, rate.hits, rate.probability, rate.moved, rate.hits_moved)
            expected = slow_rate(one, connections, int(rate.ahead_s), 2)
            assert found == pytest.approx(expected, nan_ok=True)
    for stays, perfect in zip(rates[:2], rates[2:4], strict=True):
        assert perfect.hits == perfect.probability == 1.0
        assert stays.hits == pytest.approx(1.0 - stays.moved / stays.moments)


def test_only_the_vehicles_asked_for_are_judged() -> None:
    connections = drives(5)
    whole = hit_rates([], connections, ahead_s=(5,), every_s=1)[0]
    parts = [
        hit_rates([], connections, ahead_s=(5,), every_s=1, vehicles=[name])[0]
        for name in connections.names
    ]
    assert sum(part.moments for part in parts) == whole.moments
    assert sum(part.moved for part in parts) == whole.moved


def test_times_between_ticks_and_strangers_are_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        hit_rates([], drives(5), ahead_s=(0.5, 5, 0), every_s=-1, vehicles=["nobody"])
    assert [d.path for d in caught.value.defects] == ["every_s", "ahead_s", "ahead_s", "vehicles"]


@pytest.mark.data
@pytest.mark.skipif(not LUXEMBOURG.exists(), reason="the trace of Luxembourg is not here")
def test_in_luxembourg_who_knows_more_is_right_more_often() -> None:
    vehicles = load_tracks(LUXEMBOURG / "fcd_compact.parquet")
    routes = load_routes(LUXEMBOURG / "planned_routes.parquet")
    brokers = Brokers.of(broker_tree(levels=4))
    connections = Connections.of(vehicles.names, vehicles.tracks, brokers)
    past, held_out = vehicles.names[1::2], vehicles.names[::8]
    transitions = Transitions.of(connections, brokers, vehicles=past)
    asked = [
        predictor("learned", connections, brokers, transitions=transitions, order=1),
        predictor("learned", connections, brokers, transitions=transitions),
        predictor("navigation", connections, brokers, routes=routes, vehicles=vehicles),
    ]
    rates = hit_rates(asked, connections, ahead_s=(60,), every_s=20, vehicles=held_out)
    stays, order_1, order_2, navigation = (rate.hits for rate in rates)
    assert stays < order_1 < order_2 < navigation < 1.0
    asked = [predictor("dead-reckoning", connections, brokers)]
    soon = hit_rates(asked, connections, ahead_s=(5,), every_s=20, vehicles=held_out)
    assert soon[0].hits < soon[1].hits
