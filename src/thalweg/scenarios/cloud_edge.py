"""Federated clouds and many edge sites, each a LAN of small devices behind a gateway.

The figures are those of section 5 of da Silva Veith et al., Latency-Aware Strategies for Deploying
Data Stream Processing Applications on Large Cloud-Edge Infrastructure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.errors import Defects
from thalweg.model import MeshWan, Network, Tier
from thalweg.model.graph import Floats
from thalweg.scenarios.parameters import (
    Range,
    require_amounts,
    require_count,
    require_ranges,
    require_seed,
)
from thalweg.scenarios.randomness import random_stream

MOST_NODES = 5_000_000
MOST_SITES = 5_000
"""Edge sites and clouds together: their latencies are a matrix."""


def cloud_edge(
    clouds: int,
    sites: int,
    devices_per_site: int,
    seed: int = 0,
    *,
    name: str | None = None,
    cloud_mips: float = 304.51,
    cloud_memory_bytes: float = 1e12,
    device_mips: Sequence[float] = (4.74, 5.02),
    device_memory_bytes: float = 1e9,
    lan_latency_s: Range = (0.015e-3, 0.8e-3),
    lan_bandwidth_bps: float = 100e6,
    wan_latency_s: Range = (65e-3, 85e-3),
    wan_bandwidth_bps: float = 1e9,
) -> Network:
    """Edge sites `edge-0…` with their devices, then clouds `cloud-0…` of one node each.

    Latencies are uniform in their ranges: one for each device's LAN link, one for each pair of
    sites, the same both ways. A cloud has no LAN hop: latency 0, bandwidth infinite. Devices take
    turns through `device_mips`, so with the two default speeds half of each site has either; the
    first is the one more where the number is odd. The authors' simulator files give clouds
    3,045.1 MIPS where the paper has 304.51.

    More clouds or more sites leave the devices of the sites before them as they are.

    >>> network = cloud_edge(clouds=2, sites=3, devices_per_site=4, seed=7)
    >>> network
    <Network cloud-edge-2x3x4: 14 nodes in 3 edge, 2 cloud sites>
    >>> network.node_name(5), network.node_name(13)
    ('edge-1/1', 'cloud-1')
    """
    defects = Defects()
    _require_sizes(defects, clouds, sites, devices_per_site)
    require_seed(defects, seed)
    require_amounts(
        defects,
        cloud_mips=cloud_mips,
        cloud_memory_bytes=cloud_memory_bytes,
        device_memory_bytes=device_memory_bytes,
        lan_bandwidth_bps=lan_bandwidth_bps,
        wan_bandwidth_bps=wan_bandwidth_bps,
    )
    require_ranges(defects, lan_latency_s=lan_latency_s, wan_latency_s=wan_latency_s)
    _require_speeds(defects, device_mips)
    defects.raise_if_any()

    devices = sites * devices_per_site
    speeds = np.resize(np.array(device_mips, dtype=float), devices_per_site) * 1e6
    lan_s = random_stream(seed, "lan").uniform(*lan_latency_s, size=devices)
    return _network(
        name or f"cloud-edge-{clouds}x{sites}x{devices_per_site}",
        (sites, devices_per_site, clouds),
        cpu_ips=_column(np.tile(speeds, sites), clouds, cloud_mips * 1e6),
        memory_bytes=_column(np.full(devices, device_memory_bytes), clouds, cloud_memory_bytes),
        lan_latency_s=_column(lan_s, clouds, 0.0),
        lan_bandwidth_bps=_column(np.full(devices, lan_bandwidth_bps), clouds, np.inf),
        wan_latency_s=_wan_latency_s(sites, clouds, wan_latency_s, seed),
        wan_bandwidth_bps=wan_bandwidth_bps,
    )


def _network(
    name: str,
    size: tuple[int, int, int],
    *,
    cpu_ips: Floats,
    memory_bytes: Floats,
    lan_latency_s: Floats,
    lan_bandwidth_bps: Floats,
    wan_latency_s: Floats,
    wan_bandwidth_bps: float,
) -> Network:
    """Capacity and what is available share their arrays: nothing is taken yet."""
    sites, devices_per_site, clouds = size
    places = sites + clouds
    # One number stands for every link: three matrices would need more than 100 bytes per node.
    wan_bps = np.broadcast_to(np.float64(wan_bandwidth_bps), (places, places))
    return Network(
        name=name,
        site_names=(
            *(f"edge-{k}" for k in range(sites)),
            *(f"cloud-{k}" for k in range(clouds)),
        ),
        site_tier=np.repeat(np.array([Tier.EDGE, Tier.CLOUD], dtype=np.uint8), [sites, clouds]),
        site_parent=np.full(places, -1, dtype=np.int32),
        site_edge_delay_s=np.zeros(places),
        node_site=np.repeat(
            np.arange(places, dtype=np.int32),
            np.repeat([devices_per_site, 1], [sites, clouds]),
        ),
        node_cpu_ips=cpu_ips,
        node_cpu_available_ips=cpu_ips,
        node_memory_bytes=memory_bytes,
        node_memory_available_bytes=memory_bytes,
        node_lan_latency_s=lan_latency_s,
        node_lan_bandwidth_bps=lan_bandwidth_bps,
        node_lan_available_bps=lan_bandwidth_bps,
        node_operators=np.zeros(cpu_ips.size, dtype=np.int32),
        wan=MeshWan(latency=wan_latency_s, bandwidth=wan_bps, available=wan_bps),
    )


def _require_sizes(defects: Defects, clouds: int, sites: int, devices_per_site: int) -> None:
    good = [
        require_count(defects, "clouds", clouds, 0, MOST_SITES),
        require_count(defects, "sites", sites, 0, MOST_SITES),
        require_count(defects, "devices_per_site", devices_per_site, 0, MOST_NODES),
    ]
    if not all(good):
        return
    defects.require(
        1 <= clouds + sites <= MOST_SITES,
        "clouds, sites",
        (clouds, sites),
        f"from 1 to {MOST_SITES:,} of them in all",
        "the latencies between them are held as a matrix" if clouds + sites else "",
    )
    defects.require(
        sites == 0 or devices_per_site > 0,
        "devices_per_site",
        devices_per_site,
        "at least 1 device where there are edge sites",
    )
    nodes = clouds + sites * devices_per_site
    defects.require(
        nodes <= MOST_NODES,
        "sites, devices_per_site",
        (sites, devices_per_site),
        f"at most {MOST_NODES:,} nodes in all, not {nodes:,}",
    )


def _require_speeds(defects: Defects, device_mips: object) -> None:
    if not isinstance(device_mips, Sequence) or isinstance(device_mips, str) or not device_mips:
        defects.add("device_mips", device_mips, "a list of at least one speed")
        return
    require_amounts(defects, **{f"device_mips[{k}]": mips for k, mips in enumerate(device_mips)})


def _column(devices: Floats, clouds: int, cloud: float) -> Floats:
    """One figure for every node: the devices', then the clouds'."""
    return np.concatenate([devices, np.full(clouds, cloud)])


def _wan_latency_s(sites: int, clouds: int, bounds: Range, seed: int) -> Floats:
    latency = np.zeros((sites + clouds, sites + clouds))
    _fill_below_diagonal(latency[:sites, :sites], bounds, random_stream(seed, "wan", "edge"))
    _fill_below_diagonal(latency[sites:, sites:], bounds, random_stream(seed, "wan", "cloud"))
    latency[sites:, :sites] = random_stream(seed, "wan", "edge-cloud").uniform(
        *bounds, size=(clouds, sites)
    )
    latency += latency.T
    return latency


def _fill_below_diagonal(block: Floats, bounds: Range, rng: np.random.Generator) -> None:
    """Row by row, so that a further site adds a row and changes none."""
    for row in range(1, len(block)):
        block[row, :row] = rng.uniform(*bounds, size=row)
