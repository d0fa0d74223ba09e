from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migration.test_mobility import BROKERS, SIDE_M, drives
from thalweg.migration.brokers import Brokers
from thalweg.migration.connections import Connections
from thalweg.migration.fan import NOWHERE
from thalweg.migration.predictors.dead_reckoning import DeadReckoning
from thalweg.model.workload import Tracks
from thalweg.scenarios import flat_brokers


def shares_of_disc(brokers: Brokers, x_m: float, y_m: float, radius_m: float) -> dict[int, float]:
    """What share of a disc is nearest to each leaf, on a fine grid."""
    line = (np.arange(401) + 0.5) / 401 * 2 - 1
    x, y = (axis.ravel() for axis in np.meshgrid(line, line))
    inside = np.hypot(x, y) < 1
    place, _ = brokers.leaf_index.nearest(x_m + radius_m * x[inside], y_m + radius_m * y[inside])
    leaves, count = np.unique(brokers.leaves[place], return_counts=True)
    return dict(zip(leaves.tolist(), (count / count.sum()).tolist(), strict=True))


def with_a_hole(brokers: Brokers) -> Brokers:
    """The same brokers, one of whose leaves owns but a small part of its area."""
    area_m = brokers.area_m.copy()
    area_m[brokers.leaves[5], 2:] = area_m[brokers.leaves[5], :2] + 10.0
    return replace(brokers, area_m=area_m)


@pytest.mark.parametrize("points", [32, 5000])
@pytest.mark.parametrize(
    "brokers",
    [BROKERS, with_a_hole(BROKERS), Brokers.of(flat_brokers(7, area_m=(0, 0, SIDE_M, SIDE_M)))],
    ids=["tiles", "hole", "uneven"],
)
def test_a_leaf_is_as_likely_as_its_share_of_the_disc(brokers: Brokers, points: int) -> None:
    connections = replace(drives(3), leaf=np.where(drives(3).there, brokers.leaves[0], NOWHERE))
    one = DeadReckoning(
        connections, brokers, window_s=4.0, radius_m=30.0, growth_ms=5.0, points=points
    )
    worst = 0.0
    for vehicle, tick in ((0, 10), (0, 25), (0, 38), (2, int(np.argmax(connections.there[2])) + 1)):
        fan = one.predict(vehicle, tick, 6, 4)
        x, y = connections.x_m[vehicle], connections.y_m[vehicle]
        back = next(b for b in (4, 3, 2, 1) if tick >= b and connections.there[vehicle, tick - b])
        for step in range(1, 6):
            ahead_s = 4.0 * step
            expected = shares_of_disc(
                brokers,
                x[tick] + ahead_s * (x[tick] - x[tick - back]) / back,
                y[tick] + ahead_s * (y[tick] - y[tick - back]) / back,
                30.0 + 5.0 * ahead_s,
            )
            found = fan.distribution(step)
            worst = max(
                worst,
                *(abs(found.get(leaf, 0.0) - share) for leaf, share in expected.items()),
                *(share - expected.get(leaf, 0.0) for leaf, share in found.items()),
            )
    assert worst < (0.08 if points == 32 else 0.008)


def test_without_any_doubt_it_is_a_straight_line() -> None:
    ticks = np.arange(40.0)
    user = np.zeros(40, np.int64)
    tracks = Tracks(user=user, time_s=ticks, x_m=3.0 + 9.0 * ticks, y_m=20.0 + 4.0 * ticks)
    connections = Connections.of(["car"], tracks, BROKERS)
    sure = DeadReckoning(connections, BROKERS, radius_m=0.0, growth_ms=0.0)
    fan = sure.predict(0, 6, 30)
    assert fan.is_certain
    assert fan.hosts[0].tolist() == connections.leaf[0, 6:36].tolist()
    at_first = sure.predict(0, 0, 30)
    assert at_first.hosts.tolist() == [[int(connections.leaf[0, 0])] * 30]


@given(st.integers(0, 10**6), st.integers(0, 39))
def test_who_leaves_the_map_goes_to_the_nearest_leaf(seed: int, tick: int) -> None:
    connections = drives(seed)
    vehicle = int(np.flatnonzero(connections.there[:, tick])[0])
    fan = DeadReckoning(connections, BROKERS, growth_ms=1e3).predict(vehicle, tick, 5, 10)
    slow = DeadReckoning(connections, BROKERS, growth_ms=1e3)
    # The same without the short cut for areas that fill a rectangle.
    slow._bounds_m = np.array([-np.inf, -np.inf, np.inf, np.inf])
    other = slow.predict(vehicle, tick, 5, 10)
    assert np.array_equal(fan.hosts, other.hosts)
    assert np.array_equal(fan.weight, other.weight)
