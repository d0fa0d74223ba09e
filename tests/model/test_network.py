from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import random_network
from thalweg.errors import InvalidInput
from thalweg.model import LinkWan, MeshWan, Network, Tier

seeds = st.integers(0, 2**32 - 1)


def make(**changes: Any) -> Network:
    """Two edge sites with 2 and 1 nodes, one cloud with 1."""
    full = np.full((3, 3), 10.0)
    fields: dict[str, Any] = {
        "name": "net",
        "site_names": ("e0", "e1", "cloud"),
        "site_tier": np.array([0, 0, 2], dtype=np.uint8),
        "site_parent": np.array([2, 2, -1], dtype=np.int32),
        "site_edge_delay_s": np.array([0.1, 0.2, 0.0]),
        "node_site": np.array([0, 0, 1, 2], dtype=np.int32),
        "node_cpu_ips": np.array([1.0, 2.0, 3.0, 4.0]),
        "node_cpu_available_ips": np.array([0.5, 2.0, 3.0, 4.0]),
        "node_memory_bytes": np.array([10.0, 20.0, 30.0, 40.0]),
        "node_memory_available_bytes": np.array([9.0, 20.0, 30.0, 40.0]),
        "node_lan_latency_s": np.array([0.001, 0.002, 0.004, 0.0]),
        "node_lan_bandwidth_bps": np.array([100.0, 200.0, 300.0, math.inf]),
        "node_lan_available_bps": np.array([50.0, 200.0, 300.0, math.inf]),
        "node_operators": np.array([0, 1, 0, 2], dtype=np.int32),
        "wan": MeshWan(latency=full / 10, bandwidth=full * 20, available=full * 12),
    }
    return Network(**{**fields, **changes})


def refused(run: Callable[[], Any]) -> list[str]:
    with pytest.raises(InvalidInput) as error:
        run()
    return [defect.path for defect in error.value.defects]


def test_a_network_is_frozen_and_so_are_its_arrays() -> None:
    net = make()
    with pytest.raises(FrozenInstanceError):
        net.name = "other"  # type: ignore[misc]
    for name, array in vars(net).items():
        if isinstance(array, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
            assert not getattr(net, name).flags.writeable


def test_names_are_given_numbered_or_the_site_s_own() -> None:
    unnamed = make()
    assert [unnamed.node_name(k) for k in range(4)] == ["e0/0", "e0/1", "e1", "cloud"]
    named = make(node_names=("a", "b", "a", "vm"))
    assert [named.node_name(k) for k in range(4)] == ["e0/a", "e0/b", "e1/a", "cloud/vm"]


@given(seeds)
def test_every_node_is_found_by_its_name(seed: int) -> None:
    net = random_network(np.random.default_rng(seed))
    names = [net.node_name(k) for k in range(net.node_count)]
    assert len(set(names)) == net.node_count
    assert [net.node_index(name) for name in names] == list(range(net.node_count))


@pytest.mark.parametrize(
    "name",
    ["", "/", "e0", "e0/", "e0/2", "e0/-1", "e0/00", "e0/+1", "e0/1/1", "e0/٣", "e0/a", "cloud/",
     "cloud/1", "nowhere", "nowhere/0", "e0/999999999999999999", "E0/0", " e0/0"],
)  # fmt: skip
def test_no_other_name_is_a_node_s(name: str) -> None:
    with pytest.raises(KeyError):
        make().node_index(name)


@pytest.mark.parametrize("name", ["e0", "e0/0", "e0/c", "e1/b", "e0/"])
def test_where_nodes_have_names_numbers_are_none(name: str) -> None:
    with pytest.raises(KeyError):
        make(node_names=("a", "b", "a", "vm")).node_index(name)


def test_views_show_what_the_arrays_hold() -> None:
    net = make(
        site_area_m=np.array([[0.0, 0.0, 5.0, 5.0], [math.nan] * 4, [math.nan] * 4]),
    )
    node = net.node("e0/0")
    assert node == net.node(0)
    assert (node.name, node.cpu_ips, node.cpu_available_ips) == ("e0/0", 1.0, 0.5)
    assert (node.memory_bytes, node.memory_available_bytes) == (10.0, 9.0)
    assert (node.lan_latency_s, node.lan_bandwidth_bps, node.lan_available_bps) == (0.001, 100, 50)
    assert net.node("cloud").operators == 2
    site = net.site("e0")
    assert site == net.site(0)
    assert (site.name, site.tier, site.parent, site.edge_delay_s) == ("e0", "edge", "cloud", 0.1)
    assert site.area_m == (0.0, 0.0, 5.0, 5.0)
    assert [n.name for n in site.nodes] == ["e0/0", "e0/1"]
    assert net.site("cloud").parent is None
    assert net.site("e1").area_m is None
    link = net.link("e0", "cloud")
    assert (link.latency_s, link.bandwidth_bps, link.bandwidth_available_bps) == (1.0, 200.0, 120.0)
    assert math.isinf(net.link("e0", "e0").bandwidth_bps)


def test_a_way_that_does_not_exist_can_be_looked_at() -> None:
    nothing = np.empty(0, dtype=np.int32)
    wan = LinkWan(
        site_count=3, a=nothing, b=nothing, latency=np.empty(0), bandwidth=np.empty(0),
        available=np.empty((0, 2)),
    )  # fmt: skip
    link = make(wan=wan).link("e0", "cloud")
    assert (link.latency_s, link.bandwidth_bps) == (math.inf, 0.0)


@given(seeds)
def test_latency_and_room_between_nodes_are_lan_wan_lan(seed: int) -> None:
    net = random_network(np.random.default_rng(seed))
    nodes = np.arange(net.node_count)
    latency = net.latency_s(nodes[:, None], nodes[None, :])
    free = net.available_bps(nodes[:, None], nodes[None, :])
    for a in range(net.node_count):
        for b in range(net.node_count):
            ends = int(net.node_site[a]), int(net.node_site[b])
            lan = net.node_lan_latency_s[a] + net.node_lan_latency_s[b]
            narrow = min(net.node_lan_available_bps[a], net.node_lan_available_bps[b])
            if a == b:
                lan, narrow = 0.0, math.inf
            elif ends[0] != ends[1]:
                lan += net.wan.latency_s(*ends)
                narrow = min(narrow, float(net.wan.available_bps(*ends)))
            assert latency[a, b] == pytest.approx(lan) == net.latency_s(a, b)
            assert free[a, b] == narrow == net.available_bps(a, b)


@given(seeds)
def test_nodes_are_found_by_site_and_tier(seed: int) -> None:
    net = random_network(np.random.default_rng(seed))
    for site in range(net.site_count):
        expected = [n for n in range(net.node_count) if net.node_site[n] == site]
        assert net.nodes_in_site(site).tolist() == expected
    for tier in Tier:
        expected = [
            n for n in range(net.node_count) if net.site_tier[int(net.node_site[n])] == tier
        ]
        assert net.nodes_in_tier(tier).tolist() == expected
    assert net.cloud_nodes.tolist() == net.nodes_in_tier(Tier.CLOUD).tolist()


@given(seeds)
def test_the_nearest_cloud_is_that_of_looking_at_each_one_that_has_nodes(seed: int) -> None:
    net = random_network(np.random.default_rng(seed))
    for site in range(net.site_count):
        best, least = -1, math.inf
        for cloud in range(net.site_count):
            if net.site_tier[cloud] == Tier.CLOUD and net.nodes_in_site(cloud).size:
                latency = float(net.wan.latency_s(site, cloud))
                if latency < least:
                    best, least = cloud, latency
        assert net.nearest_cloud[site] == best


@given(seeds)
def test_memory_below_the_cloud_is_added_up(seed: int) -> None:
    net = random_network(np.random.default_rng(seed))
    expected = sum(
        float(net.node_memory_bytes[n])
        for n in range(net.node_count)
        if net.site_tier[net.node_site[n]] != Tier.CLOUD and np.isfinite(net.node_memory_bytes[n])
    )
    assert net.memory_below_cloud_bytes == pytest.approx(expected)


def test_every_figure_is_checked_and_all_defects_come_at_once() -> None:
    bad = np.array([1.0, -1.0, math.nan, 1.0])
    figures = [
        "node_cpu_ips",
        "node_cpu_available_ips",
        "node_memory_bytes",
        "node_memory_available_bytes",
        "node_lan_bandwidth_bps",
        "node_lan_available_bps",
        "node_lan_latency_s",
    ]
    assert refused(lambda: make(**dict.fromkeys(figures, bad))) == figures
    assert refused(lambda: make(**dict.fromkeys(figures, np.ones(3)))) == figures


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"name": "a/b"}, ["name"]),
        ({"site_names": ("e0", "e0", "cloud")}, ["sites[1].name"]),
        ({"site_names": ("e0", "../x", "cloud")}, ["sites[1].name"]),
        ({"site_tier": np.zeros(2, dtype=np.uint8)}, ["site_tier"]),
        ({"site_tier": np.array([0, 3, 2], dtype=np.uint8)}, ["site_tier"]),
        ({"site_tier": np.array([0, -1, 2])}, ["site_tier"]),
        ({"site_parent": np.zeros(2, dtype=np.int32)}, ["site_parent"]),
        ({"site_parent": np.array([1, 0, -1], dtype=np.int32)}, ["sites[0].parent"]),
        ({"site_parent": np.array([0, -1, -1], dtype=np.int32)}, ["sites[0].parent"]),
        (
            {"site_parent": np.array([3, -2, -1], dtype=np.int32)},
            ["sites[0].parent", "sites[1].parent"],
        ),
        ({"site_edge_delay_s": np.array([0.0, math.nan, 0.0])}, ["site_edge_delay_s"]),
        ({"site_edge_delay_s": np.array([0.0, -1.0, 0.0])}, ["site_edge_delay_s"]),
        ({"site_edge_delay_s": np.array([0.0, math.inf, 0.0])}, ["site_edge_delay_s"]),
        ({"site_area_m": np.zeros((3, 3))}, ["site_area_m"]),
        ({"node_site": np.array([0, 1, 0, 2], dtype=np.int32)}, ["node_site"]),
        ({"node_site": np.array([0, 0, 1, 3], dtype=np.int32)}, ["node_site"]),
        ({"node_site": np.array([-1, 0, 1, 2], dtype=np.int32)}, ["node_site"]),
        ({"node_cpu_available_ips": np.array([2.0, 2.0, 3.0, 4.0])}, ["node_cpu_available_ips"]),
        ({"node_memory_available_bytes": np.full(4, 1e9)}, ["node_memory_available_bytes"]),
        ({"node_lan_available_bps": np.full(4, 1e9)}, ["node_lan_available_bps"]),
        ({"node_lan_latency_s": np.array([math.inf, 0, 0, 0])}, ["node_lan_latency_s"]),
        ({"node_operators": np.array([0, -1, 0, 0])}, ["node_operators"]),
        ({"node_operators": np.array([0, 1])}, ["node_operators"]),
        ({"node_names": ("a", "b")}, ["node_names"]),
        ({"node_names": ("a", "a", "b", "c")}, ["node_names"]),
        ({"node_names": ("a", "b/c", "b", "c")}, ["node_names"]),
        ({"node_names": ("a", "b/c", "b", "c/d")}, ["node_names", "node_names"]),
    ],
)  # fmt: skip
def test_what_is_no_network_is_refused(changes: dict[str, Any], paths: list[str]) -> None:
    assert refused(lambda: make(**changes)) == paths


def test_every_name_of_a_large_site_is_looked_at() -> None:
    names = tuple(f"n{k}" for k in range(99))
    count = len(names) + 1
    figures = {
        name: np.ones(count)
        for name, array in vars(make()).items()
        if name.startswith("node_") and isinstance(array, np.ndarray)
    }
    whole = {name: np.zeros(count, dtype=np.int32) for name in ("node_site", "node_operators")}

    def large(last: str) -> Network:
        return make(**{**figures, **whole, "node_names": (*names, last)})

    assert large("n99").node_index("e0/n99") == 99
    assert refused(lambda: large("z/z")) == ["node_names"]
    assert refused(lambda: large("n50")) == ["node_names"]


def test_an_empty_network_is_refused() -> None:
    none = np.empty(0)
    whole = np.empty(0, dtype=np.int32)
    wan = MeshWan(latency=np.empty((0, 0)), bandwidth=np.empty((0, 0)), available=np.empty((0, 0)))
    empty = {
        name: none for name in vars(make()) if name.startswith("node_") and name != "node_names"
    }
    paths = refused(
        lambda: make(
            **{
                **empty,
                "site_names": (),
                "site_tier": whole,
                "site_parent": whole,
                "site_edge_delay_s": none,
                "node_site": whole,
                "node_operators": whole,
                "wan": wan,
            }
        )
    )
    assert paths == ["sites", "nodes"]


def test_the_links_must_be_for_as_many_sites() -> None:
    two = np.ones((2, 2))
    wan = MeshWan(latency=two, bandwidth=two, available=two)
    assert refused(lambda: make(wan=wan)) == ["wan"]


def test_whole_numbers_are_figures_too() -> None:
    whole = np.array([10, 20, 30, 40])
    net = make(node_cpu_ips=whole, node_cpu_available_ips=whole)
    assert net.node_cpu_available_ips.dtype == float
    assert net.node_cpu_available_ips.tolist() == [10.0, 20.0, 30.0, 40.0]


def test_other_figures_make_another_network() -> None:
    net = make()
    less = net.with_available(node_memory_available_bytes=np.array([1.0, 1.0, 1.0, 1.0]))
    assert less.node_memory_available_bytes.tolist() == [1.0] * 4
    assert net.node_memory_available_bytes.tolist() == [9.0, 20.0, 30.0, 40.0]
    assert refused(lambda: net.with_available(node_cpu_available_ips=np.full(4, -1.0))) == [
        "node_cpu_available_ips"
    ]


def test_held_bytes_count_every_buffer_once() -> None:
    cpu = np.arange(1.0, 5.0)
    net = make(node_cpu_ips=cpu, node_cpu_available_ips=cpu)
    apart = make(node_cpu_ips=cpu, node_cpu_available_ips=cpu.copy())
    assert apart.held_bytes - net.held_bytes == cpu.nbytes
    # 2 sites' arrays of 3: 1 + 4 + 8 bytes; 7 node figures of 8 bytes, two sharing one buffer;
    # node_site and node_operators of 4; three 3 × 3 matrices.
    assert net.held_bytes == 3 * (1 + 4 + 8) + 4 * (6 * 8 + 4 + 4) + 3 * 9 * 8


def test_a_number_that_stands_for_a_whole_matrix_is_held_once() -> None:
    same = np.broadcast_to(np.float64(1.0), (3, 3))
    net = make(wan=MeshWan(latency=same, bandwidth=same, available=same))
    assert make().held_bytes - net.held_bytes == 3 * 72 - 8


def test_a_network_says_what_it_is() -> None:
    assert repr(make()) == "<Network net: 4 nodes in 2 edge, 1 cloud sites>"
    assert [tier.label for tier in Tier] == ["edge", "fog", "cloud"]


def test_a_view_can_be_taken_of_every_site_and_node() -> None:
    for seed in range(20):
        net = random_network(np.random.default_rng(seed))
        sites = [net.site(name) for name in net.site_names]
        assert [n for s in sites for n in s.nodes] == [net.node(k) for k in range(net.node_count)]


def test_replacing_a_part_checks_the_whole() -> None:
    assert refused(lambda: replace(make(), site_names=("a", "b"))) != []
