"""Fog sites around one cloud, with the figures of Ntumba et al. 2024, Table 6.

Two rows of that table stand in each other's place: fog nodes have 2,400–8,150 MIPS and 1–4 GB.
"""

from __future__ import annotations

import numpy as np

from thalweg.errors import Defects
from thalweg.model import Network
from thalweg.model.graph import Floats
from thalweg.scenarios.parameters import (
    Range,
    require_amounts,
    require_count,
    require_ranges,
    require_seed,
)
from thalweg.scenarios.randomness import random_stream
from thalweg.scenarios.tree_network import tree_network

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

    def draw(figure: str, bounds: Range, cloud: float) -> Floats:
        return np.append(random_stream(seed, figure).uniform(*bounds, fogs), cloud)

    if same_vm:
        cloud_mips = random_stream(seed, "cloud", "mips").uniform(*fog_mips)
        cloud_memory_bytes = random_stream(seed, "cloud", "memory").uniform(*fog_memory_bytes)
    return tree_network(
        name,
        [*(f"fog-{k}" for k in range(fogs)), "cloud"],
        parent=np.append(np.full(fogs, fogs), -1).astype(np.int32),
        cpu_ips=1e6 * draw("mips", fog_mips, cloud_mips),
        memory_bytes=draw("memory", fog_memory_bytes, cloud_memory_bytes),
        latency_s=draw("latency", fog_latency_s, 0.0),
        bandwidth_bps=draw("bandwidth", fog_bandwidth_bps, np.inf),
        edge_delay_s=draw("edge-delay", edge_delay_s, 0.0),
    )
