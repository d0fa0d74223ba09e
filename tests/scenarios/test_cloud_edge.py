"""Federated clouds and edge sites: sizes, ranges, randomness, memory, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.model import Tier
from thalweg.scenarios import cloud_edge
from thalweg.scenarios.cloud_edge import MOST_NODES, MOST_SITES

sizes = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 7)).filter(
    lambda size: size[0] + size[1] > 0
)


@settings(max_examples=60, deadline=None)
@given(size=sizes, seed=st.integers(0, 2**64 - 1))
def test_sites_nodes_and_figures_are_as_asked_for(size, seed):
    clouds, sites, devices = size
    network = cloud_edge(clouds, sites, devices, seed)
    assert network.node_count == clouds + sites * devices
    assert network.site_names == (
        *(f"edge-{k}" for k in range(sites)),
        *(f"cloud-{k}" for k in range(clouds)),
    )
    for k, name in enumerate(network.site_names):
        site = network.site(name)
        if k < sites:
            assert site.tier == "edge"
            assert [node.cpu_ips for node in site.nodes] == [
                4.74e6 if m % 2 == 0 else 5.02e6 for m in range(devices)
            ]
            for node in site.nodes:
                assert node.memory_bytes == node.memory_available_bytes == 1e9
                assert 0.015e-3 <= node.lan_latency_s <= 0.8e-3
                assert node.lan_bandwidth_bps == node.lan_available_bps == 100e6
        else:
            (node,) = site.nodes
            assert site.tier == "cloud"
            assert (node.cpu_ips, node.memory_bytes) == (304.51e6, 1e12)
            assert (node.lan_latency_s, node.lan_bandwidth_bps) == (0.0, np.inf)


@settings(max_examples=40, deadline=None)
@given(size=sizes, seed=st.integers(0, 99))
def test_wan_latency_is_symmetric_within_its_range_and_zero_within_a_site(size, seed):
    wan = cloud_edge(*size, seed).wan
    every = np.arange(wan.site_count)
    latency = wan.latency_s(every[:, None], every[None, :])
    assert (latency == latency.T).all()
    apart = ~np.eye(wan.site_count, dtype=bool)
    assert (np.diag(latency) == 0).all()
    assert ((latency[apart] >= 65e-3) & (latency[apart] <= 85e-3)).all()
    assert (wan.bandwidth_bps(every[:, None], every[None, :])[apart] == 1e9).all()
    assert (wan.available_bps(every[:, None], every[None, :])[apart] == 1e9).all()


def test_latencies_are_uniform_over_their_ranges():
    network = cloud_edge(100, 100, 100, seed=3)
    lan = network.node_lan_latency_s[:10_000]
    wan = network.wan.latency[np.tril_indices(200, -1)]
    for values, low, high in ((lan, 0.015e-3, 0.8e-3), (wan, 65e-3, 85e-3)):
        counts, _ = np.histogram(values, bins=10, range=(low, high))
        expected = values.size / 10
        assert counts.sum() == values.size
        # Ten bins, 9 degrees of freedom: beyond 27.9 with a chance of 0.1 %, and the seed is fixed.
        assert ((counts - expected) ** 2 / expected).sum() < 27.9


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_ones():
    first, again, other = cloud_edge(3, 4, 5, 1), cloud_edge(3, 4, 5, 1), cloud_edge(3, 4, 5, 2)
    assert first.node_lan_latency_s.tobytes() == again.node_lan_latency_s.tobytes()
    assert first.wan.latency.tobytes() == again.wan.latency.tobytes()
    assert (first.node_lan_latency_s[:20] != other.node_lan_latency_s[:20]).all()
    apart = ~np.eye(7, dtype=bool)
    assert (first.wan.latency[apart] != other.wan.latency[apart]).all()


def test_more_clouds_leave_devices_and_the_links_of_the_others_as_they_are():
    small, large = cloud_edge(2, 4, 5, 1), cloud_edge(6, 4, 5, 1)
    assert (small.node_lan_latency_s[:20] == large.node_lan_latency_s[:20]).all()
    assert (small.wan.latency == large.wan.latency[:6, :6]).all()


def test_more_sites_leave_the_sites_before_them_as_they_are():
    small, large = cloud_edge(2, 4, 5, 1), cloud_edge(2, 7, 5, 1)
    assert (small.node_lan_latency_s[:20] == large.node_lan_latency_s[:20]).all()
    assert (small.wan.latency[:4, :4] == large.wan.latency[:4, :4]).all()
    assert (small.wan.latency[4:, 4:] == large.wan.latency[7:, 7:]).all()


def test_every_figure_is_a_parameter():
    network = cloud_edge(
        1,
        2,
        3,
        name="mine",
        cloud_mips=3_045.1,
        cloud_memory_bytes=5e12,
        device_mips=(1.0, 2.0, 3.0),
        device_memory_bytes=2e9,
        lan_latency_s=(0.001, 0.001),
        lan_bandwidth_bps=7e6,
        wan_latency_s=(0.5, 0.5),
        wan_bandwidth_bps=9e6,
    )
    device, cloud = network.node("edge-1/2"), network.node("cloud-0")
    assert network.name == "mine"
    assert (device.cpu_ips, device.memory_bytes) == (3e6, 2e9)
    assert (device.lan_latency_s, device.lan_bandwidth_bps) == (0.001, 7e6)
    assert (cloud.cpu_ips, cloud.memory_bytes) == (3_045.1e6, 5e12)
    link = network.link("edge-0", "cloud-0")
    assert (link.latency_s, link.bandwidth_bps) == (0.5, 9e6)


def test_the_largest_network_of_the_evaluation_takes_at_most_100_bytes_per_node():
    network = cloud_edge(500, 500, 500)
    assert network.node_count == 250_500
    assert network.held_bytes / network.node_count <= 100
    # What is counted is what is held: no array hides behind a buffer that is not counted.
    held = {
        array.__array_interface__["data"][0]: array.nbytes
        for holder in (network, network.wan)
        for array in vars(holder).values()
        if isinstance(array, np.ndarray) and 0 not in array.strides
    }
    assert abs(sum(held.values()) - network.held_bytes) <= 64


def test_reserving_on_one_wan_link_changes_that_link_alone():
    # All links share one number until one of them is taken.
    network = cloud_edge(1, 2, 1)
    (link,) = network.wan.route(0, 2).tolist()
    left = network.wan.reserved([link], [4e8])
    assert left.available_bps(0, 2) == 6e8
    assert left.available_bps(2, 0) == left.available_bps(1, 2) == 1e9
    assert network.wan.available_bps(0, 2) == 1e9


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"clouds": 0, "sites": 0}, ["clouds, sites"]),
        ({"clouds": -1}, ["clouds"]),
        ({"sites": True}, ["sites"]),
        ({"sites": 2.0}, ["sites"]),
        ({"devices_per_site": 0}, ["devices_per_site"]),
        ({"devices_per_site": "10"}, ["devices_per_site"]),
        ({"clouds": MOST_SITES, "sites": 1}, ["clouds, sites"]),
        ({"sites": MOST_SITES + 1}, ["sites"]),
        ({"sites": 1_001, "devices_per_site": 5_000}, ["sites, devices_per_site"]),
        ({"devices_per_site": MOST_NODES + 1}, ["devices_per_site"]),
        ({"seed": -1}, ["seed"]),
        ({"seed": None}, ["seed"]),
        ({"cloud_mips": 0.0, "wan_latency_s": (2.0, 1.0)}, ["cloud_mips", "wan_latency_s"]),
        ({"lan_latency_s": (0.0, float("nan"))}, ["lan_latency_s"]),
        ({"lan_latency_s": (-1.0, 0.0)}, ["lan_latency_s"]),
        ({"lan_latency_s": 0.5}, ["lan_latency_s"]),
        ({"lan_bandwidth_bps": float("inf")}, ["lan_bandwidth_bps"]),
        ({"device_mips": ()}, ["device_mips"]),
        ({"device_mips": 4.74}, ["device_mips"]),
        ({"device_mips": (1.0, -2.0, True)}, ["device_mips[1]", "device_mips[2]"]),
        ({"name": "../etc"}, ["name"]),
        (
            {"clouds": -1, "sites": 1.5, "devices_per_site": False, "seed": -5},
            ["clouds", "sites", "devices_per_site", "seed"],
        ),
    ],
)
def test_bad_parameters_are_refused_all_at_once(given, paths):
    with pytest.raises(InvalidInput) as error:
        cloud_edge(**{"clouds": 1, "sites": 1, "devices_per_site": 1} | given)
    assert [defect.path for defect in error.value.defects] == paths


def test_a_network_of_clouds_alone_and_one_of_edge_sites_alone_can_be_had():
    assert (cloud_edge(3, 0, 0).site_tier == Tier.CLOUD).all()
    assert (cloud_edge(0, 3, 2).site_tier == Tier.EDGE).all()
