"""Fogs around a cloud: figures of the published table, the second experiment's cloud, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.model import TreeWan
from thalweg.scenarios import fog_cloud


@settings(max_examples=50, deadline=None)
@given(fogs=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_every_figure_is_in_the_table_s_range(fogs, seed):
    network = fog_cloud(fogs, seed)
    assert network.site_names == (*(f"fog-{k}" for k in range(fogs)), "cloud")
    for k in range(fogs):
        site, link = network.site(f"fog-{k}"), network.link(f"fog-{k}", "cloud")
        (node,) = site.nodes
        assert (site.tier, site.parent) == ("fog", "cloud")
        assert 2_400e6 <= node.cpu_ips <= 8_150e6
        assert 1e9 <= node.memory_bytes <= 4e9
        assert 0.1 <= link.latency_s <= 0.3
        assert 100e6 <= link.bandwidth_bps == link.bandwidth_available_bps <= 250e6
        assert 0.01 <= site.edge_delay_s <= 0.1
    cloud = network.site("cloud")
    assert (cloud.tier, cloud.parent, cloud.edge_delay_s) == ("cloud", None, 0.0)
    assert (cloud.nodes[0].cpu_ips, cloud.nodes[0].memory_bytes) == (35_900e6, 12e9)


def test_a_message_between_fogs_goes_through_the_cloud():
    network = fog_cloud(3, 5)
    assert isinstance(network.wan, TreeWan)
    between, first, second = (
        network.link(a, b) for a, b in (("fog-0", "fog-2"), ("fog-0", "cloud"), ("cloud", "fog-2"))
    )
    assert between.latency_s == pytest.approx(first.latency_s + second.latency_s)
    assert between.bandwidth_bps == min(first.bandwidth_bps, second.bandwidth_bps)


def test_figures_spread_over_their_ranges_and_are_independent():
    network = fog_cloud(10_000, 1)
    figures = np.stack(
        [
            network.node_cpu_ips[:-1],
            network.node_memory_bytes[:-1],
            network.wan.latency[:-1],
            network.wan.bandwidth[:-1],
            network.site_edge_delay_s[:-1],
        ]
    )
    bounds = [(2_400e6, 8_150e6), (1e9, 4e9), (0.1, 0.3), (100e6, 250e6), (0.01, 0.1)]
    for values, (low, high) in zip(figures, bounds, strict=True):
        counts, _ = np.histogram(values, bins=10, range=(low, high))
        assert ((counts - 1_000) ** 2 / 1_000).sum() < 27.9
    off_diagonal = np.corrcoef(figures)[~np.eye(5, dtype=bool)]
    assert np.abs(off_diagonal).max() < 0.05


def test_the_same_seed_gives_the_same_network_and_more_fogs_keep_the_first_ones():
    first, again, more, other = fog_cloud(5, 1), fog_cloud(5, 1), fog_cloud(9, 1), fog_cloud(5, 2)
    for column in ("node_cpu_ips", "node_memory_bytes", "site_edge_delay_s"):
        values = getattr(first, column)
        assert values.tobytes() == getattr(again, column).tobytes()
        assert (values[:5] == getattr(more, column)[:5]).all()
        assert (values[:5] != getattr(other, column)[:5]).all()
    assert (first.wan.latency[:5] == more.wan.latency[:5]).all()


def test_with_the_same_vm_the_cloud_is_a_machine_like_the_fogs_which_stay_as_they_are():
    clouds = []
    for seed in range(50):
        usual, same = fog_cloud(4, seed), fog_cloud(4, seed, same_vm=True)
        assert (usual.node_cpu_ips[:4] == same.node_cpu_ips[:4]).all()
        assert (usual.wan.latency == same.wan.latency).all()
        cloud = same.node("cloud")
        assert 2_400e6 <= cloud.cpu_ips <= 8_150e6
        assert 1e9 <= cloud.memory_bytes <= 4e9
        clouds.append(cloud.cpu_ips)
    assert len(set(clouds)) == 50


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"fogs": 0}, ["fogs"]),
        ({"fogs": True}, ["fogs"]),
        ({"fogs": 100_001}, ["fogs"]),
        ({"same_vm": 1, "cloud_mips": -1.0}, ["same_vm", "cloud_mips"]),
        ({"fog_mips": (8_150.0, 2_400.0), "seed": "x"}, ["seed", "fog_mips"]),
        ({"edge_delay_s": (0.1,)}, ["edge_delay_s"]),
        ({"fog_memory_bytes": (True, 2.0)}, ["fog_memory_bytes"]),
    ],
)
def test_bad_parameters_are_refused_all_at_once(given, paths):
    with pytest.raises(InvalidInput) as error:
        fog_cloud(**given)
    assert [defect.path for defect in error.value.defects] == paths
