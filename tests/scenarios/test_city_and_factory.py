"""The urban and the industrial scenario, and the machines that they are made of."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.model import LinkWan, Network, TreeWan
from thalweg.scenarios import (
    DEVICE_CLASSES,
    DeviceClass,
    IndustrialFigures,
    UrbanFigures,
    industrial,
    urban,
)


def classes(network: Network, site: str) -> Counter[str]:
    sort = {(c.cpu_ips, c.memory_bytes): c.name for c in DEVICE_CLASSES.values()}
    return Counter(sort[node.cpu_ips, node.memory_bytes] for node in network.site(site).nodes)


@settings(max_examples=40, deadline=None)
@given(neighbourhoods=st.integers(1, 15), cloudlets=st.integers(1, 6), seed=st.integers(0, 999))
def test_a_city_has_the_machines_and_links_that_its_figures_say(neighbourhoods, cloudlets, seed):
    network = urban(neighbourhoods, seed, cloudlets=cloudlets)
    for k in range(neighbourhoods):
        site = network.site(f"neighbourhood-{k}")
        found = classes(network, site.name)
        assert site.tier == "edge"
        assert found["mini-pc"] == 1
        assert 6 <= found["single-board"] <= 12
        assert 1 <= found["gpu-board"] <= 3
        link = network.link(site.name, site.parent)
        assert 15e-3 <= link.latency_s <= 45e-3
        assert 20e6 <= link.bandwidth_bps <= 60e6
    for k in range(cloudlets):
        assert classes(network, f"cloudlet-{k}") == {"server": 2}
        assert network.site(f"cloudlet-{k}").tier == "fog"
    assert classes(network, "cloud") == {"cloud-vm": 4}
    every = np.arange(network.site_count)
    assert np.isfinite(network.wan.latency_s(every[:, None], every[None, :])).all()


def test_cloudlets_form_a_ring_of_metro_links():
    network = urban(5, cloudlets=5)
    assert isinstance(network.wan, LinkWan)
    for k in range(5):
        onward = network.link(f"cloudlet-{k}", f"cloudlet-{(k + 1) % 5}")
        assert 1e-3 <= onward.latency_s <= 4e-3
        assert onward.bandwidth_bps == 10e9
        assert network.site_index[f"cloudlet-{k}"] in network.wan.a
    assert len(network.wan.a) == 5 + 5 + 5


@pytest.mark.parametrize(("cloudlets", "metro_links"), [(1, 0), (2, 1), (3, 3)])
def test_few_cloudlets_have_no_double_links(cloudlets, metro_links):
    network = urban(3, cloudlets=cloudlets)
    if cloudlets == 1:
        assert isinstance(network.wan, TreeWan)
    else:
        assert len(network.wan.a) == 3 + cloudlets + metro_links


def test_neighbourhoods_are_spread_evenly_over_the_cloudlets():
    network = urban(12, cloudlets=3)
    serving = Counter(network.site(f"neighbourhood-{k}").parent for k in range(12))
    assert serving == {f"cloudlet-{k}": 4 for k in range(3)}


@settings(max_examples=40, deadline=None)
@given(premises=st.integers(1, 15), seed=st.integers(0, 999))
def test_a_factory_has_the_machines_and_links_that_its_figures_say(premises, seed):
    network = industrial(premises, seed)
    assert isinstance(network.wan, TreeWan)
    for k in range(premises):
        found = classes(network, f"floor-{k}")
        assert set(found) == {"single-board", "gpu-board"}
        assert 8 <= found["single-board"] <= 16
        assert 1 <= found["gpu-board"] <= 4
        assert classes(network, f"premises-{k}") == {"server": 1, "mini-pc": 1}
        floor, room = network.site(f"floor-{k}"), network.site(f"premises-{k}")
        assert (floor.tier, floor.parent) == ("edge", room.name)
        assert (room.tier, room.parent) == ("fog", "cloud")
        assert 0.5e-3 <= network.link(floor.name, room.name).latency_s <= 2e-3
        leased = network.link(room.name, "cloud")
        assert 10e-3 <= leased.latency_s <= 40e-3
        assert 50e6 <= leased.bandwidth_bps <= 200e6


@pytest.mark.parametrize("scenario", [urban, industrial])
def test_the_same_seed_gives_the_same_network_and_another_seed_another(scenario):
    first, again, other = scenario(seed=1), scenario(seed=1), scenario(seed=2)
    assert first.node_names == again.node_names
    assert first.node_lan_latency_s.tobytes() == again.node_lan_latency_s.tobytes()
    assert first.wan.latency.tobytes() == again.wan.latency.tobytes()
    assert (first.wan.latency != other.wan.latency).any()


def test_one_more_neighbourhood_or_floor_leaves_the_first_ones_as_they_are():
    for small, large, site in (
        (urban(3), urban(4), "neighbourhood-2"),
        (industrial(3), industrial(4), "floor-2"),
    ):
        assert small.site(site).nodes == large.site(site).nodes


@pytest.mark.parametrize(
    ("make", "paths"),
    [
        (lambda: urban(0, -1, cloudlets=True), ["neighbourhoods", "cloudlets", "seed"]),
        (lambda: urban(1_001), ["neighbourhoods"]),
        (lambda: industrial(0, 1.5), ["premises", "seed"]),
        (
            lambda: UrbanFigures(sensors=(3, 2), cloud_machines=0, mobile_latency_s=(1.0, 0.0)),
            ["sensors", "cloud_machines", "mobile_latency_s"],
        ),
        (lambda: UrbanFigures(cameras=(0.5, 2), metro_bandwidth_bps=0), ["cameras", "metro_band"]),
        (
            lambda: IndustrialFigures(machines=(0, 2), inspection_cameras=3, cloud_machines="4"),
            ["machines", "inspection_cameras", "cloud_machines"],
        ),
        (lambda: IndustrialFigures(lan_bandwidth_bps=-1.0), ["lan_bandwidth_bps"]),
        (lambda: DeviceClass(name="x", cpu_ips=0, memory_bytes=-1), ["cpu_ips", "memory_bytes"]),
    ],
)
def test_bad_parameters_are_refused_all_at_once(make, paths):
    with pytest.raises(InvalidInput) as error:
        make()
    found = [defect.path for defect in error.value.defects]
    assert len(found) == len(paths)
    assert all(path.startswith(start) for path, start in zip(found, paths, strict=True))


def test_device_classes_rise_in_speed_from_board_to_cloud():
    speeds = [sort.cpu_ips for sort in DEVICE_CLASSES.values()]
    assert list(DEVICE_CLASSES) == ["single-board", "gpu-board", "mini-pc", "server", "cloud-vm"]
    assert speeds == sorted(set(speeds))
