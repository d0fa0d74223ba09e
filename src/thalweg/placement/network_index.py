"""Nodes that differ in nothing but their LAN latency, put together once for each network.

Of the nodes of one site with the same free CPU, memory and LAN bandwidth, the one with least LAN
latency is the best host for any operator: a search over nodes becomes one over groups of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index, distinct
from thalweg.model.network import Network, Tier

_Item = TypeVar("_Item", bound=np.generic)
_KNOWN: WeakKeyDictionary[Network, NetworkIndex] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkIndex:
    """Groups of nodes, by site; nodes of a group by LAN latency, then index."""

    order: Index
    """All nodes; those of group g are `order[group_first[g] : group_first[g + 1]]`."""
    group_first: Index
    group_site: Index
    group_lowest: Index
    """The lowest node index in each group."""
    group_cpu_ips: Floats
    """What each node of the group has free, as the network says."""
    group_memory_bytes: Floats
    group_lan_bps: Floats
    site_first_group: Index
    """Groups of site s are `site_first_group[s]` … `site_first_group[s + 1] − 1`."""
    site_is_cloud: npt.NDArray[np.bool_]
    by_cpu: Index
    """Nodes outside of clouds by free CPU, then index."""
    clouds_by_cpu: Index

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def group_count(self) -> int:
        """How many groups there are."""
        return int(self.group_site.size)

    @cached_property
    def sites(self) -> Index:
        """The sites that have nodes, ascending."""
        return distinct(self.group_site)

    @property
    def held_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(v.nbytes for v in vars(self).values() if isinstance(v, np.ndarray))


def index_network(network: Network) -> NetworkIndex:
    """The index of a network; made at the first call, then remembered as long as it lives."""
    known = _KNOWN.get(network)
    if known is None:
        known = _KNOWN[network] = _build(network)
    return known


def read_only(figures: npt.NDArray[_Item]) -> npt.NDArray[_Item]:
    """The figures side by side in memory and read-only: compiled code is made for such alone."""
    view = np.ascontiguousarray(figures).view()
    view.flags.writeable = False
    return view


def _build(network: Network) -> NetworkIndex:
    from thalweg.placement.compiled.grouping import group_nodes

    cpu = read_only(network.node_cpu_available_ips)
    memory = read_only(network.node_memory_available_bytes)
    lan = read_only(network.node_lan_available_bps)
    latency = read_only(network.node_lan_latency_s)
    order, starts = group_nodes(read_only(network.first_node), cpu, memory, lan, latency)
    shown = order[starts]
    group_site = network.node_site[shown]
    is_cloud = np.equal(network.site_tier, Tier.CLOUD)
    # With one of its options np.unique does not load masked arrays.
    values, _ = np.unique(cpu[shown], return_index=True)
    by_cpu = _sort_by_cpu(network.node_cpu_available_ips, values)
    cloudy = is_cloud[network.node_site[by_cpu]]
    return NetworkIndex(
        order=order,
        group_first=np.append(starts, np.int32(order.size)),
        group_site=group_site,
        group_lowest=np.minimum.reduceat(order, starts),
        group_cpu_ips=network.node_cpu_available_ips[shown],
        group_memory_bytes=network.node_memory_available_bytes[shown],
        group_lan_bps=network.node_lan_available_bps[shown],
        site_first_group=np.searchsorted(group_site, np.arange(network.site_count + 1)).astype(
            np.int32
        ),
        site_is_cloud=is_cloud,
        by_cpu=by_cpu[~cloudy],
        clouds_by_cpu=by_cpu[cloudy],
    )


def _sort_by_cpu(cpu: Floats, speeds: Floats) -> Index:
    """Nodes by CPU, then index; short numbers are sorted faster than figures."""
    if speeds.size > 2**16:
        return np.argsort(cpu, kind="stable").astype(np.int32)
    rank = np.searchsorted(speeds, cpu).astype(np.uint16)
    return np.argsort(rank, kind="stable").astype(np.int32)
