from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.migration.brokers import Brokers
from thalweg.migration.connections import Connections
from thalweg.migration.fan import NOWHERE
from thalweg.migration.mobility import KNOWLEDGE, Predictor, predictor
from thalweg.migration.predictors.learned import Transitions
from thalweg.migration.predictors.navigation import live_pace
from thalweg.model.planned_routes import PlannedRoutes
from thalweg.model.vehicles import VehicleTracks
from thalweg.model.workload import Tracks
from thalweg.scenarios import broker_tree

SIDE_M = 400.0
BROKERS = Brokers.of(broker_tree(levels=3, area_m=(0.0, 0.0, SIDE_M, SIDE_M)))


def random_tracks(rng: np.random.Generator, vehicles: int = 6, ticks: int = 40) -> Tracks:
    """Vehicles that turn now and then and stay on the map; each is there for some of the time."""
    user, time_s, x_m, y_m = [], [], [], []
    for vehicle in range(vehicles):
        first = int(rng.integers(0, ticks // 2)) if vehicle else 0
        last = int(rng.integers(first + 1, ticks)) if vehicle else ticks - 1
        turns = np.cumsum(rng.normal(0, 0.3, last - first + 1))
        speed = rng.uniform(5, 25)
        way = np.cumsum(np.stack([np.cos(turns), np.sin(turns)]) * speed, axis=1)
        place = np.clip(way + rng.uniform(0, SIDE_M, (2, 1)), 0, SIDE_M - 1e-3)
        user += [vehicle] * (last - first + 1)
        time_s += list(range(first, last + 1))
        x_m += place[0].tolist()
        y_m += place[1].tolist()
    return Tracks(
        user=np.array(user),
        time_s=np.array(time_s, dtype=float),
        x_m=np.array(x_m),
        y_m=np.array(y_m),
    )


def drives(seed: int, brokers: Brokers = BROKERS, **sizes: int) -> Connections:
    tracks = random_tracks(np.random.default_rng(seed), **sizes)
    names = [f"v{k}" for k in range(int(tracks.user.max()) + 1)]
    return Connections.of(names, tracks, brokers)


def straight_route(pace: float = 0.5) -> tuple[Connections, PlannedRoutes, VehicleTracks]:
    """One vehicle along y = 50 over two roads of 180 m, planned at 10 m/s, driven at `pace`."""
    routes = PlannedRoutes(
        names=("car",),
        depart_s=np.zeros(1),
        first_step=np.array([0, 2]),
        edge=np.array([0, 1], dtype=np.int32),
        exit_s=np.array([18.0, 36.0]),
        edge_names=("west", "east"),
        length_m=np.full(2, 180.0),
        first_corner=np.array([0, 2, 4]),
        corner_x_m=np.array([10.0, 190.0, 190.0, 370.0]),
        corner_y_m=np.full(4, 50.0),
    )
    along_m = np.arange(int(36 / pace) + 1) * 10.0 * pace
    vehicles = VehicleTracks(
        names=("car",),
        tracks=Tracks(
            user=np.zeros(along_m.size, dtype=np.int64),
            time_s=np.arange(along_m.size, dtype=float),
            x_m=10.0 + along_m,
            y_m=np.full(along_m.size, 50.0),
        ),
        edge=(along_m >= 180.0).astype(np.int32),
        edge_names=("west", "east"),
        pos_m=along_m % 180.0 + np.where(along_m == 360.0, 180.0, 0.0),
    )
    return Connections.of(vehicles.names, vehicles.tracks, BROKERS), routes, vehicles


def leaf_at(x_m: np.ndarray[Any, Any]) -> list[int]:
    place, _ = BROKERS.leaf_index.nearest(x_m, np.full(x_m.size, 50.0))
    return [int(leaf) for leaf in BROKERS.leaves[place]]


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5), st.data())
def test_perfect_knows_the_trace_and_nothing_beyond(
    seed: int, steps: int, stride: int, data: st.DataObject
) -> None:
    connections = drives(seed)
    vehicle = data.draw(st.integers(0, connections.vehicles - 1))
    tick = data.draw(st.integers(0, connections.steps - 1))
    fan = predictor("perfect", connections, BROKERS).predict(vehicle, tick, steps, stride)
    moments = [tick + k * stride for k in range(steps)]
    assert fan.is_certain
    assert fan.hosts[0].tolist() == [
        int(connections.leaf[vehicle, at]) if at < connections.steps else NOWHERE for at in moments
    ]


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5), st.data())
def test_a_prediction_begins_with_now_stays_in_leaves_and_knows_no_future(
    seed: int, steps: int, stride: int, data: st.DataObject
) -> None:
    connections = drives(seed)
    transitions = Transitions.of(drives(seed + 1), BROKERS)
    vehicle = data.draw(st.integers(0, connections.vehicles - 1))
    tick = data.draw(st.integers(0, connections.steps - 1))
    later = np.arange(connections.steps) > tick
    other = replace(
        connections,
        x_m=np.where(later, 1.0, connections.x_m),
        y_m=np.where(later, 1.0, connections.y_m),
        leaf=np.where(later, BROKERS.leaves[0], connections.leaf),
    )
    for name in ("dead-reckoning", "learned"):
        fans = [
            predictor(
                name, of, BROKERS, transitions=transitions if name == "learned" else None
            ).predict(vehicle, tick, steps, stride)
            for of in (connections, other)
        ]
        now = int(connections.leaf[vehicle, tick])
        assert fans[0].hosts.shape[1] == steps
        assert (fans[0].hosts[:, 0] == now).all()
        known = {NOWHERE} if now == NOWHERE else set(BROKERS.leaves.tolist())
        assert set(fans[0].hosts.ravel().tolist()) <= known
        assert np.array_equal(fans[0].hosts, fans[1].hosts)
        assert np.array_equal(fans[0].weight, fans[1].weight)
        assert (np.diff(fans[0].weight) <= 0).all()
        assert len(np.unique(fans[0].hosts, axis=0)) == len(fans[0].hosts)


def test_navigation_goes_on_from_where_a_vehicle_is_in_planned_times() -> None:
    connections, routes, vehicles = straight_route(pace=0.5)
    planned = predictor(
        "navigation", connections, BROKERS, routes=routes, vehicles=vehicles, pace="planned"
    )
    for tick, steps, stride in ((0, 12, 1), (7, 20, 2), (40, 15, 3), (72, 3, 1)):
        fan = planned.predict(0, tick, steps, stride)
        # A little on, so that no moment falls onto the edge of an area.
        x_m = 10.0 + 5.0 * tick + 10.0 * stride * np.arange(steps) + 1e-6
        assert fan.is_certain
        assert fan.hosts[0].tolist() == leaf_at(np.minimum(x_m, 370.0))


def test_navigation_keeps_the_pace_of_the_last_minute() -> None:
    connections, routes, vehicles = straight_route(pace=0.5)
    live = predictor("navigation", connections, BROKERS, routes=routes, vehicles=vehicles)
    for tick, steps, stride in ((0, 12, 1), (7, 20, 1), (40, 10, 3)):
        # All that drive are as late, and at the first tick nobody is known to be.
        x_m = 10.0 + 5.0 * tick + (5.0 if tick else 10.0) * stride * np.arange(steps) + 1e-6
        fan = live.predict(0, tick, steps, stride)
        assert fan.hosts[0].tolist() == leaf_at(np.minimum(x_m, 370.0))


def test_navigation_tells_the_end_of_a_trip_if_asked() -> None:
    connections, routes, vehicles = straight_route(pace=1.0)
    known = {"routes": routes, "vehicles": vehicles}
    stays = predictor("navigation", connections, BROKERS, **known).predict(0, 30, 12)
    ends = predictor("navigation", connections, BROKERS, **known, ends=True).predict(0, 30, 12)
    last = leaf_at(np.array([369.0]))[0]
    assert stays.hosts[0].tolist() == [last] * 12
    assert ends.hosts[0].tolist() == [last] * 7 + [NOWHERE] * 5


def test_the_pace_is_measured_up_to_now_only() -> None:
    clock_s = np.array([[0.0, 1.0, 2.0, 2.0, 2.0], [0.0, 0.0, 0.0, 4.0, 8.0]])
    leaf = np.array([[0, 0, 0, 0, 0], [-1, -1, 0, 0, 0]], dtype=np.int32)
    pace = live_pace(clock_s, leaf, 2.0, 2)
    assert pace[:, 0].tolist() == [1.0, 1.0]
    assert pace[0, 2] == pytest.approx((2.0 + 15.0 * 0.5) / (4.0 + 15.0))
    others = (0.0 + 8.0) / (4.0 + 4.0)
    assert pace[0, 4] == pytest.approx((0.0 + 15.0 * others) / 19.0)
    assert pace[1, 4] == pytest.approx((8.0 + 15.0 * others) / 19.0)


def test_all_that_is_missing_is_told_at_once() -> None:
    connections, routes, vehicles = straight_route()
    with pytest.raises(InvalidInput) as caught:
        predictor("navigation", connections, BROKERS, windows=3)
    assert [defect.path for defect in caught.value.defects] == ["windows", "routes", "vehicles"]
    without = replace(vehicles, edge=None, pos_m=None)
    with pytest.raises(InvalidInput) as caught:
        predictor("navigation", connections, BROKERS, routes=routes, vehicles=without)
    assert len(caught.value.defects) == 2
    with pytest.raises(InvalidInput, match="transitions"):
        predictor("learned", connections, BROKERS)
    with pytest.raises(InvalidInput, match='did you mean "navigation"'):
        predictor("navigaton", connections, BROKERS)
    with pytest.raises(InvalidInput, match=r"radius_m.*\n.*growth_ms.*\n.*window_s.*\n.*points"):
        predictor(
            "dead-reckoning",
            connections,
            BROKERS,
            radius_m=-1.0,
            growth_ms=np.inf,
            window_s=0.0,
            points=0,
        )
    with pytest.raises(InvalidInput, match="none for v0, v1, v2, v3, v4 and 1 more"):
        predictor("navigation", drives(1), BROKERS, routes=routes, vehicles=vehicles)


def test_every_name_has_a_predictor() -> None:
    connections, routes, vehicles = straight_route()
    transitions = Transitions.of(connections, BROKERS)
    known = {"routes": routes, "vehicles": vehicles, "transitions": transitions}
    made: list[Predictor] = [predictor(n, connections, BROKERS, **known) for n in KNOWLEDGE]
    assert tuple(one.name for one in made) == KNOWLEDGE
