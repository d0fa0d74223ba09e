"""Broker trees over a map: areas, figures by level, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.model import Network, TreeWan
from thalweg.scenarios import BrokerFigures, broker_tree, flat_brokers


def leaves(network: Network) -> list[int]:
    parents = set(network.site_parent.tolist())
    return [site for site in range(network.site_count) if site not in parents]


def owners(network: Network, x: float, y: float) -> list[int]:
    found = []
    for site in leaves(network):
        west, south, east, north = network.site_area_m[site]
        if west <= x < east and south <= y < north:
            found.append(site)
    return found


def test_the_default_is_one_cloud_over_four_over_sixteen_brokers():
    network = broker_tree()
    depth = network.wan.depth
    assert isinstance(network.wan, TreeWan)
    assert np.bincount(depth).tolist() == [1, 4, 16]
    assert network.site("cloud").area_m == (0.0, 0.0, 7_670.0, 3_500.0)
    assert network.site("cloud").tier == "cloud"
    assert {network.site(k).tier for k in range(20)} == {"fog"}


def test_the_flat_one_has_forty_leaves_below_the_cloud():
    network = flat_brokers()
    assert np.bincount(network.wan.depth).tolist() == [1, 40]
    widths = network.site_area_m[:40, 2] - network.site_area_m[:40, 0]
    heights = network.site_area_m[:40, 3] - network.site_area_m[:40, 1]
    assert widths == pytest.approx(767.0)
    assert heights == pytest.approx(875.0)


trees = st.one_of(
    st.builds(broker_tree, levels=st.integers(1, 4), fan_out=st.integers(1, 9)),
    st.builds(flat_brokers, leaves=st.integers(1, 60)),
)


@settings(max_examples=40, deadline=None)
@given(network=trees, seed=st.integers(0, 2**32))
def test_every_point_of_the_area_belongs_to_exactly_one_leaf(network, seed):
    rng = np.random.default_rng(seed)
    for x, y in zip(rng.uniform(0, 7_670, 40), rng.uniform(0, 3_500, 40), strict=True):
        assert len(owners(network, x, y)) == 1
    # Points right on the inner edges, where a gap or an overlap would be.
    for west, south, *_ in network.site_area_m[leaves(network)][:40]:
        assert len(owners(network, west, south)) == 1


@settings(max_examples=40, deadline=None)
@given(network=trees)
def test_a_parent_owns_exactly_the_union_of_its_children(network):
    assert (network.site_parent == network.wan.parent).all()
    for site in set(network.site_parent.tolist()) - {-1}:
        children = network.site_area_m[network.site_parent == site]
        whole = network.site_area_m[site]
        assert children[:, :2].min(axis=0).tolist() == whole[:2].tolist()
        assert children[:, 2:].max(axis=0).tolist() == whole[2:].tolist()
        covered = ((children[:, 2] - children[:, 0]) * (children[:, 3] - children[:, 1])).sum()
        assert covered == pytest.approx((whole[2] - whole[0]) * (whole[3] - whole[1]))


def test_speed_memory_latency_and_bandwidth_grow_with_the_level():
    figures = BrokerFigures(
        leaf_mips=100.0,
        leaf_memory_bytes=1e6,
        capacity_growth=3.0,
        link_latency_s=0.01,
        latency_growth=1.5,
        link_bandwidth_bps=1e6,
        bandwidth_growth=2.0,
    )
    network = broker_tree(levels=4, fan_out=2, figures=figures)
    for name, height in (("broker-3-7", 0), ("broker-2-3", 1), ("broker-1-1", 2), ("cloud", 3)):
        node = network.node(name)
        assert node.cpu_ips == pytest.approx(100e6 * 3.0**height)
        assert node.memory_bytes == pytest.approx(1e6 * 3.0**height)
    for child, parent, height in (
        ("broker-3-7", "broker-2-3", 0),
        ("broker-2-3", "broker-1-1", 1),
        ("broker-1-1", "cloud", 2),
    ):
        assert network.site(child).parent == parent
        link = network.link(child, parent)
        assert link.latency_s == pytest.approx(0.01 * 1.5**height)
        assert link.bandwidth_bps == pytest.approx(1e6 * 2.0**height)


def test_a_tree_of_one_level_is_the_cloud_alone():
    network = broker_tree(levels=1)
    assert network.site_names == ("cloud",)
    assert network.site("cloud").area_m == (0.0, 0.0, 7_670.0, 3_500.0)


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"levels": 0}, ["levels"]),
        ({"levels": True, "fan_out": 0}, ["levels", "fan_out"]),
        ({"levels": 30, "fan_out": 4}, ["levels, fan_out"]),
        ({"area_m": (0, 0, 0, 1)}, ["area_m"]),
        ({"area_m": (0, 1, 1, 0)}, ["area_m"]),
        ({"area_m": (0, 0, 1)}, ["area_m"]),
        ({"area_m": (0, 0, float("inf"), 1)}, ["area_m"]),
        ({"area_m": ("a", 0, 1, 1)}, ["area_m"]),
        ({"area_m": (1e15, 0, 1e15 + 0.125, 1), "levels": 4}, ["area_m"]),
    ],
)
def test_bad_trees_are_refused(given, paths):
    with pytest.raises(InvalidInput) as error:
        broker_tree(**given)
    assert [defect.path for defect in error.value.defects] == paths


def test_bad_leaves_and_figures_are_refused():
    with pytest.raises(InvalidInput, match="leaves"):
        flat_brokers(0)
    with pytest.raises(InvalidInput) as error:
        BrokerFigures(leaf_mips=0.0, latency_growth=1e9, link_latency_s=float("nan"))
    paths = {defect.path for defect in error.value.defects}
    assert paths == {"leaf_mips", "latency_growth", "link_latency_s"}
