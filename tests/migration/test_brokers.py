from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migration.random_trees import random_brokers
from thalweg.errors import InvalidInput
from thalweg.migration.brokers import Brokers
from thalweg.migration.connections import Connections
from thalweg.migration.fan import NOWHERE, Fan
from thalweg.migration.operators import MobileGraph
from thalweg.model.workload import Tracks
from thalweg.scenarios import broker_tree, fog_cloud, nearby_friends, small_taxi


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_ways_through_the_tree_are_those_of_all_pairs(seed: int, count: int) -> None:
    brokers = random_brokers(np.random.default_rng(seed), count)
    delay = np.where(np.eye(count, dtype=bool), 0.0, np.inf)
    wide = np.where(np.eye(count, dtype=bool), np.inf, 0.0)
    for k in range(1, count):
        above = brokers.parent[k]
        delay[k, above] = delay[above, k] = brokers.link_delay_s[k]
        wide[k, above] = wide[above, k] = brokers.link_bandwidth_bps[k]
    for k in range(count):
        delay = np.minimum(delay, delay[:, k : k + 1] + delay[k : k + 1, :])
        wide = np.maximum(wide, np.minimum(wide[:, k : k + 1], wide[k : k + 1, :]))
    everyone = np.arange(count, dtype=np.int32)
    assert brokers.delays_from(everyone) == pytest.approx(delay)
    assert brokers.bandwidths_from(everyone).tolist() == wide.tolist()
    assert brokers.diameter == int(brokers.hops_from(everyone).max())


def test_distances_are_between_areas() -> None:
    brokers = Brokers.of(broker_tree())
    south_west = brokers.number["broker-2-0"]
    far = brokers.distance_m(south_west)
    assert far[brokers.number["cloud"]] == 0.0
    assert far[brokers.number["broker-1-0"]] == 0.0
    assert far[brokers.number["broker-2-4"]] == pytest.approx(7_670 / 4)


def test_a_network_that_is_no_tree_over_a_map_is_refused() -> None:
    with pytest.raises(InvalidInput, match="area"):
        Brokers.of(fog_cloud(3))


def test_brokers_without_capacity_are_refused_only_if_all_are() -> None:
    network = broker_tree()
    nothing = np.zeros(network.node_count)
    with pytest.raises(InvalidInput, match="capacity"):
        Brokers.of(network.with_available(node_cpu_available_ips=nothing))
    one = nothing.copy()
    one[-1] = 1e9
    assert Brokers.of(network.with_available(node_cpu_available_ips=one)).capacity_ips[0] == 1e9


def tracks(*rows: tuple[int, float, float, float]) -> Tracks:
    user, time, x, y = (np.array(column) for column in zip(*rows, strict=True))
    return Tracks(user=user.astype(np.int64), time_s=time.astype(float), x_m=x + 0.0, y_m=y + 0.0)


def test_vehicles_are_connected_to_the_leaf_that_owns_their_position() -> None:
    brokers = Brokers.of(broker_tree())
    found = Connections.of(
        ["a", "b"],
        tracks((0, 0, 10, 10), (0, 1, 2_000, 10), (0, 2, 2_000, 900), (1, 1, -3, 10), (1, 2, 1, 1)),
        brokers,
    )
    names = [[brokers.names[leaf] if leaf >= 0 else "" for leaf in row] for row in found.leaf]
    assert names[1] == ["", "broker-2-0", "broker-2-0"]
    assert names[0][0] == "broker-2-0"
    assert len(set(names[0])) == 3
    assert found.at_the_rim == 1
    assert found.hand_overs().tolist() == [2, 0]


def test_a_vehicle_that_leaves_the_map_is_named_and_not_dropped() -> None:
    brokers = Brokers.of(broker_tree())
    with pytest.raises(InvalidInput, match=r"gone.*away at 1 s"):
        Connections.of(["gone"], tracks((0, 0, 10, 10), (0, 1, 9_000, 10)), brokers)


def test_a_vehicle_that_no_step_sees_is_named() -> None:
    brokers = Brokers.of(broker_tree())
    rows = tracks((0, 0, 1, 1), (0, 10, 2, 2), (0, 20, 2, 2), (1, 4, 1, 1))
    with pytest.raises(InvalidInput, match="brief"):
        Connections.of(["long", "brief"], rows, brokers, step_s=10.0)


def test_operators_of_an_application_know_what_they_carry() -> None:
    graph = MobileGraph.of(nearby_friends(200, 1_000))
    distance, friends = graph.operators
    assert graph.users == ("position", "consumer")
    assert (distance.immutable_bytes, distance.mutable_bytes) == (1_000, 5 * 200)
    assert friends.mutable_bytes == pytest.approx(10 * 100)
    assert graph.bytes_per_s.tolist() == [200.0, 100.0, 50.0]
    assert (distance.share, friends.share) == (0.5, 0.5)
    with pytest.raises(InvalidInput, match="friends"):
        graph.find("friend")


def test_users_of_any_application_are_its_sources_and_sinks() -> None:
    graph = MobileGraph.of(small_taxi())
    assert all(stream.events_per_s > 0 for stream in graph.streams)
    assert not set(graph.users) & {operator.name for operator in graph.operators}


def test_a_fan_must_make_sense() -> None:
    with pytest.raises(InvalidInput):
        Fan(weight=np.array([0.5]), hosts=np.zeros((1, 3), dtype=np.int32))
    fan = Fan.of([0.2, 0.5, 0.3], [[1, NOWHERE], [2, 2], [2, 2]])
    assert fan.weight.tolist() == [0.8, 0.2]
    narrow, left_out = fan.narrowed(1)
    assert narrow.is_certain
    assert left_out == pytest.approx(0.2)
    assert fan.probability(0, 2) == pytest.approx(0.8)


def test_brokers_whose_areas_overlap_are_named() -> None:
    network = broker_tree()
    assert network.site_area_m is not None
    area = network.site_area_m.copy()
    area[0] = [0.0, 0.0, 4_000.0, 800.0]
    wider = replace(network, site_area_m=area)
    with pytest.raises(InvalidInput, match="broker-2-0 and broker-2-1, which overlap"):
        Brokers.of(wider)


@given(st.integers(0, 20))
def test_brokers_hang_from_their_cloud_whatever_the_links_are_told_from(root: int) -> None:
    network = broker_tree()
    wanted = Brokers.of(network)
    wan = network.wan
    # The same links, told from another root: walk up from it and turn every link around.
    parent, latency, bandwidth = wan.parent.copy(), wan.latency.copy(), wan.bandwidth.copy()
    available = wan.available.copy()
    way = [root]
    while wan.parent[way[-1]] >= 0:
        way.append(int(wan.parent[way[-1]]))
    for below, above in pairwise(way):
        parent[above] = below
        latency[above], bandwidth[above] = wan.latency[below], wan.bandwidth[below]
        available[above] = wan.available[below][::-1]
    parent[root], latency[root] = -1, wan.latency[way[-1]]
    bandwidth[root], available[root] = wan.bandwidth[way[-1]], wan.available[way[-1]]
    turned = replace(wan, parent=parent, latency=latency, bandwidth=bandwidth, available=available)
    found = Brokers.of(replace(network, wan=turned))
    assert found.names == wanted.names
    assert found.parent.tolist() == wanted.parent.tolist()
    assert found.link_delay_s[1:].tolist() == wanted.link_delay_s[1:].tolist()
    assert found.link_bandwidth_bps[1:].tolist() == wanted.link_bandwidth_bps[1:].tolist()
    assert found.leaves.tolist() == wanted.leaves.tolist()
