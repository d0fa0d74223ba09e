from __future__ import annotations

import gc
import weakref
from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.problems import random_network
from placement.tied_problems import tied_network
from thalweg.model import Network, Tier
from thalweg.placement import network_index
from thalweg.placement.network_index import index_network
from thalweg.scenarios import cloud_edge


def kind_of(net: Network, node: int) -> tuple[int, float, float, float]:
    return (
        int(net.node_site[node]),
        float(net.node_cpu_available_ips[node]),
        float(net.node_memory_available_bytes[node]),
        float(net.node_lan_available_bps[node]),
    )


def expected_groups(net: Network) -> list[list[int]]:
    """Nodes of one kind together, by LAN latency, then index."""
    nodes = sorted(
        range(net.node_count),
        key=lambda n: (kind_of(net, n), float(net.node_lan_latency_s[n]), n),
    )
    return [list(group) for _, group in groupby(nodes, key=lambda n: kind_of(net, n))]


def assert_index_is_right(net: Network) -> None:
    index = index_network(net)
    bounds = index.group_first.tolist()
    assert bounds[0] == 0
    assert bounds[-1] == net.node_count
    found = [index.order[a:b].tolist() for a, b in pairwise(bounds)]
    assert sorted(found) == sorted(expected_groups(net))
    for group, nodes in enumerate(found):
        figures = (
            int(index.group_site[group]),
            float(index.group_cpu_ips[group]),
            float(index.group_memory_bytes[group]),
            float(index.group_lan_bps[group]),
        )
        assert figures == kind_of(net, nodes[0])
        assert index.group_lowest[group] == min(nodes)
    for site in range(net.site_count):
        first, end = index.site_first_group[site : site + 2].tolist()
        assert set(index.group_site[first:end].tolist()) <= {site}
        assert sorted(n for g in found[first:end] for n in g) == net.nodes_in_site(site).tolist()
    cloud = net.site_tier[net.node_site] == Tier.CLOUD
    ranked = sorted(range(net.node_count), key=lambda n: (float(net.node_cpu_available_ips[n]), n))
    assert index.by_cpu.tolist() == [n for n in ranked if not cloud[n]]
    assert index.clouds_by_cpu.tolist() == [n for n in ranked if cloud[n]]


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32 - 1))
def test_nodes_of_one_kind_are_together_by_lan_latency_then_index(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert_index_is_right(tied_network(rng, most_nodes=30))
    assert_index_is_right(random_network(rng))


@pytest.mark.parametrize("kinds", [8, 9, 40])
def test_sites_with_many_kinds_of_nodes_are_grouped_too(kinds: int) -> None:
    net = cloud_edge(1, 2, 60, device_mips=[1.0 + k for k in range(kinds)])
    assert_index_is_right(net)
    assert index_network(net).group_count == 2 * kinds + 1


def test_figures_that_are_not_side_by_side_in_memory_are_read_too() -> None:
    net = cloud_edge(2, 3, 10, seed=4)
    spread = np.repeat(net.node_lan_latency_s, 2)[::2]
    same = np.broadcast_to(np.float64(7e6), net.node_count)
    other = net.with_available(
        node_lan_latency_s=spread, node_cpu_ips=same, node_cpu_available_ips=same
    )
    assert not other.node_cpu_available_ips.flags.c_contiguous
    assert_index_is_right(other)


def test_more_speeds_than_short_numbers_are_ranked_too() -> None:
    speeds = np.arange(2**16 + 5, dtype=float)[::-1].copy()
    ranked = network_index._sort_by_cpu(speeds, np.sort(speeds))
    assert ranked.tolist() == list(range(speeds.size))[::-1]


def test_an_index_is_made_once_and_lives_as_long_as_its_network() -> None:
    net = cloud_edge(1, 2, 4)
    index = index_network(net)
    assert index_network(net) is index
    other = net.with_available(node_cpu_available_ips=net.node_cpu_ips * 0.5)
    assert index_network(other) is not index
    kept = weakref.ref(index)
    del net, index
    gc.collect()
    assert kept() is None


def test_network_and_index_take_less_than_100_bytes_for_each_node() -> None:
    net = cloud_edge(50, 50, 500)
    assert (net.held_bytes + index_network(net).held_bytes) / net.node_count < 100
