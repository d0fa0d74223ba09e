"""Fog sites around one cloud, with the figures of Ntumba et al. 2024, Table 6.

Two rows of that table stand in each other's place: fog nodes have 2,400–8,150 MIPS and 1–4 GB.
"""

from __future__ import annotations

import numpy as np

from thalweg.errors import Defects
from thalweg.model import Network, Tier, TreeWan
from thalweg.scenarios.parameters import (
    Range,
    require_amounts,
    require_count,
    require_ranges,
    require_seed,
)
from thalweg.scenarios.randomness import random_stream

MOST_FOGS = 100_000


def fog_cloud(
    fogs: int = 10,
    seed: int = 0,
    *,
    same_vm: bool = False,
    name: str = "fog-cloud",
    fog_mips: Range = (2_400.0, 8_150.0),
    fog_memory_bytes: Range = (1e9, 4e9),
    fog_latency_s: Range = (0.1, 0.3),
    fog_bandwidth_bps: Range = (100e6, 250e6),
    cloud_mips: float = 35_900.0,
    cloud_memory_bytes: float = 12e9,
    edge_delay_s: Range = (0.01, 0.1),
) -> Network:
    """Fog sites `fog-0…` of one node each, all linked to `cloud`, which is last.

    Every figure of a fog is uniform in its range: speed, memory, latency and bandwidth to the
    cloud, and the largest delay from a device of its area (`site_edge_delay_s`). With `same_vm`
    the cloud's node is a machine like the fogs': its speed and memory are drawn as theirs, and
    `cloud_mips` and `cloud_memory_bytes` are not used; the fogs stay as they are.

    >>> fog_cloud(fogs=3, seed=1)
    <Network fog-cloud: 4 nodes in 3 fog, 1 cloud sites>
    """
    defects = Defects()
    require_count(defects, "fogs", fogs, 1, MOST_FOGS)
    require_seed(defects, seed)
    defects.require(isinstance(same_vm, bool), "same_vm", same_vm, "true or false")
    require_ranges(
        defects,
        fog_mips=fog_mips,
        fog_memory_bytes=fog_memory_bytes,
        fog_latency_s=fog_latency_s,
        fog_bandwidth_bps=fog_bandwidth_bps,
        edge_delay_s=edge_delay_s,
    )
    require_amounts(defects, cloud_mips=cloud_mips, cloud_memory_bytes=cloud_memory_bytes)
    defects.raise_if_any()

    if same_vm:
        cloud_mips = random_stream(seed, "cloud", "mips").uniform(*fog_mips)
        cloud_memory_bytes = random_stream(seed, "cloud", "memory").uniform(*fog_memory_bytes)
    cpu_ips = 1e6 * np.append(random_stream(seed, "mips").uniform(*fog_mips, fogs), cloud_mips)
    memory_bytes = np.append(
        random_stream(seed, "memory").uniform(*fog_memory_bytes, fogs), cloud_memory_bytes
    )
    latency_s = np.append(random_stream(seed, "latency").uniform(*fog_latency_s, fogs), 0.0)
    bandwidth_bps = np.append(
        random_stream(seed, "bandwidth").uniform(*fog_bandwidth_bps, fogs), np.inf
    )
    delay_s = np.append(random_stream(seed, "edge-delay").uniform(*edge_delay_s, fogs), 0.0)
    parent = np.append(np.full(fogs, fogs, dtype=np.int32), np.int32(-1))
    free_lan = np.full(fogs + 1, np.inf)
    return Network(
        name=name,
        site_names=(*(f"fog-{k}" for k in range(fogs)), "cloud"),
        site_tier=np.append(np.full(fogs, Tier.FOG), Tier.CLOUD).astype(np.uint8),
        site_parent=parent,
        site_edge_delay_s=delay_s,
        node_site=np.arange(fogs + 1, dtype=np.int32),
        node_cpu_ips=cpu_ips,
        node_cpu_available_ips=cpu_ips,
        node_memory_bytes=memory_bytes,
        node_memory_available_bytes=memory_bytes,
        node_lan_latency_s=np.zeros(fogs + 1),
        node_lan_bandwidth_bps=free_lan,
        node_lan_available_bps=free_lan,
        node_operators=np.zeros(fogs + 1, dtype=np.int32),
        wan=TreeWan(
            parent=parent,
            latency=latency_s,
            bandwidth=bandwidth_bps,
            available=np.repeat(bandwidth_bps[:, None], 2, axis=1),
        ),
    )
