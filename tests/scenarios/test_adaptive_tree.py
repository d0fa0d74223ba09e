"""Quad-trees that follow the load, against one that looks at every leaf before every cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.scenarios import BrokerFigures, adaptive_brokers, broker_tree

AREA = (0.0, 0.0, 64.0, 32.0)


def leaf_areas(network):
    parents = set(network.site_parent.tolist())
    return {
        tuple(network.site_area_m[site].tolist())
        for site in range(network.site_count)
        if site not in parents
    }


def obvious_leaves(x, y, most_share, leaves, most_levels):
    """Leaves as (area, depth) in the order in which they were made."""
    made = [(AREA, 0)]

    def load(area):
        west, south, east, north = area
        in_x = (x >= west) & ((x < east) | ((east == 64) & (x >= 64))) | ((west == 0) & (x < 0))
        in_y = (y >= south) & ((y < north) | ((north == 32) & (y >= 32))) | ((south == 0) & (y < 0))
        return int((in_x & in_y).sum())

    order = [0]
    while True:
        may = [k for k in order if made[k][1] + 1 < most_levels and load(made[k][0]) > 0]
        may = [k for k in may if load(made[k][0]) > most_share * x.size]
        if not may or len(order) + 3 > leaves:
            return {made[k][0] for k in order}
        cut = max(may, key=lambda k: (load(made[k][0]), -k))
        (west, south, east, north), depth = made[cut]
        x_mid, y_mid = (west + east) / 2, (south + north) / 2
        order.remove(cut)
        for area in (
            (west, south, x_mid, y_mid),
            (x_mid, south, east, y_mid),
            (west, y_mid, x_mid, north),
            (x_mid, y_mid, east, north),
        ):
            order.append(len(made))
            made.append((area, depth + 1))


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 60),
    most_share=st.sampled_from([0.05, 0.2, 0.5, 1.0]),
    leaves=st.integers(1, 40),
    most_levels=st.integers(1, 6),
)
def test_the_fullest_leaf_is_cut_first(seed, count, most_share, leaves, most_levels):
    rng = np.random.default_rng(seed)
    # Whole numbers: many positions on the edges between areas, some outside.
    x, y = rng.integers(-2, 67, count).astype(float), rng.integers(-2, 35, count).astype(float)
    network = adaptive_brokers(
        x, y, most_share=most_share, leaves=leaves, most_levels=most_levels, area_m=AREA
    )
    assert leaf_areas(network) == obvious_leaves(x, y, most_share, leaves, most_levels)


@given(seed=st.integers(0, 2**32), leaves=st.integers(1, 60))
def test_parents_are_the_union_of_their_four_children(seed, leaves):
    rng = np.random.default_rng(seed)
    network = adaptive_brokers(
        rng.normal(20, 5, 80), rng.normal(9, 4, 80), leaves=leaves, area_m=AREA
    )
    assert (network.site_parent == network.wan.parent).all()
    assert network.site_names[-1] == "cloud"
    assert network.site_parent[-1] == -1
    for parent in set(network.site_parent.tolist()) - {-1}:
        children = network.site_area_m[network.site_parent == parent]
        whole = network.site_area_m[parent]
        assert len(children) == 4
        assert children[:, :2].min(axis=0).tolist() == whole[:2].tolist()
        assert children[:, 2:].max(axis=0).tolist() == whole[2:].tolist()
    assert len(leaf_areas(network)) <= leaves


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_even_positions_give_the_same_network_as_the_even_tree(levels):
    side = 2 ** (levels + 1)
    x, y = (part.ravel() for part in np.meshgrid(np.arange(side), np.arange(side)))
    x_m, y_m = (x + 0.5) * 7_670 / side, (y + 0.5) * 3_500 / side
    figures = BrokerFigures(capacity_growth=3.0, latency_growth=1.5)
    even = broker_tree(levels, figures=figures, name="same")
    made = adaptive_brokers(x_m, y_m, leaves=4 ** (levels - 1), figures=figures, name="same")
    assert made.site_names == even.site_names
    for name in ("site_parent", "site_area_m", "site_tier", "node_cpu_ips", "node_memory_bytes"):
        assert np.array_equal(getattr(made, name), getattr(even, name)), name
    assert np.array_equal(made.wan.latency, even.wan.latency)
    assert np.array_equal(made.wan.bandwidth, even.wan.bandwidth)


def test_figures_go_by_the_depth_below_the_cloud():
    figures = BrokerFigures(leaf_mips=10.0, capacity_growth=2.0, link_latency_s=1.0)
    # All in the south-western corner: three cuts, one below the other.
    network = adaptive_brokers([1.0], [1.0], leaves=10, area_m=AREA, figures=figures)
    assert np.bincount(network.wan.depth).tolist() == [1, 4, 4, 4]
    for name, height in (("broker-3-0", 0), ("broker-2-3", 1), ("broker-1-3", 2), ("cloud", 3)):
        assert network.node(name).cpu_ips == pytest.approx(10e6 * 2.0**height)
    assert network.link("broker-1-3", "cloud").latency_s == pytest.approx(4.0)
    assert network.site("broker-3-2").parent == "broker-2-0"


def test_without_a_limit_no_leaf_has_more_than_a_sixteenth():
    rng = np.random.default_rng(3)
    x, y = rng.exponential(9, 500), rng.exponential(5, 500)
    network = adaptive_brokers(x, y, area_m=AREA)
    x, y = np.minimum(x, 63.9), np.minimum(y, 31.9)
    loads = [
        np.count_nonzero((x >= west) & (x < east) & (y >= south) & (y < north))
        for west, south, east, north in leaf_areas(network)
    ]
    assert sum(loads) == 500
    assert max(loads) <= 500 / 16


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"leaves": 0}, ["leaves"]),
        ({"most_share": 0.0, "most_levels": 0}, ["most_share", "most_levels"]),
        ({"most_share": float("nan")}, ["most_share"]),
        ({"x_m": [1.0, 2.0]}, ["x_m, y_m"]),
        ({"x_m": [], "y_m": []}, ["x_m, y_m"]),
        ({"x_m": [float("inf")]}, ["x_m, y_m"]),
        ({"area_m": (0, 0, 0, 1)}, ["area_m"]),
        ({"area_m": (1e15, 0, 1e15 + 0.125, 1), "leaves": 40, "most_share": 0.1}, ["area_m"]),
    ],
)
def test_bad_trees_are_refused(given, paths):
    with pytest.raises(InvalidInput) as error:
        adaptive_brokers(**({"x_m": [1.0], "y_m": [1.0]} | given))
    assert [defect.path for defect in error.value.defects] == paths
