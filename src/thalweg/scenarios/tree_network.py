"""Networks of one machine per site whose sites form a tree below a cloud."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.model import Network, Tier, TreeWan
from thalweg.model.graph import Floats, Index


def tree_network(
    name: str,
    site_names: Sequence[str],
    *,
    parent: Index,
    cpu_ips: Floats,
    memory_bytes: Floats,
    latency_s: Floats,
    bandwidth_bps: Floats,
    edge_delay_s: Floats | None = None,
    area_m: Floats | None = None,
) -> Network:
    """One unnamed node in each site; the last site is the root and a cloud, all others are fog.

    `latency_s` and `bandwidth_bps` are those of the link from each site to its parent; the
    root's are not used. Nodes have no LAN hop.
    """
    count = len(site_names)
    latency_s, bandwidth_bps = latency_s.copy(), bandwidth_bps.copy()
    latency_s[-1], bandwidth_bps[-1] = 0.0, np.inf
    free_lan = np.full(count, np.inf)
    return Network(
        name=name,
        site_names=tuple(site_names),
        site_tier=np.append(np.full(count - 1, Tier.FOG), Tier.CLOUD).astype(np.uint8),
        site_parent=parent,
        site_edge_delay_s=np.zeros(count) if edge_delay_s is None else edge_delay_s,
        site_area_m=area_m,
        node_site=np.arange(count, dtype=np.int32),
        node_cpu_ips=cpu_ips,
        node_cpu_available_ips=cpu_ips,
        node_memory_bytes=memory_bytes,
        node_memory_available_bytes=memory_bytes,
        node_lan_latency_s=np.zeros(count),
        node_lan_bandwidth_bps=free_lan,
        node_lan_available_bps=free_lan,
        node_operators=np.zeros(count, dtype=np.int32),
        wan=TreeWan(
            parent=parent,
            latency=latency_s,
            bandwidth=bandwidth_bps,
            available=np.repeat(bandwidth_bps[:, None], 2, axis=1),
        ),
    )
