"""Nodes of one site that differ in nothing but LAN latency, and the nearest of them first."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Index
from thalweg.model.network import Network
from thalweg.placement.network_index import index_network


class Groups(NamedTuple):
    """Group g has the nodes order[first[g]] … order[first[g + 1] − 1], by LAN latency, index."""

    order: Index
    first: npt.NDArray[np.integer[Any]]
    site: Index

    def within(self, sites: npt.NDArray[np.bool_]) -> Groups:
        """The groups of some sites."""
        keep = sites[self.site]
        sizes = np.diff(self.first)
        first = np.concatenate([[0], np.cumsum(sizes[keep])])
        return Groups(self.order[np.repeat(keep, sizes)], first, self.site[keep])


# Networks are frozen, so what was found for one stays true as long as it lives.
_KNOWN: WeakKeyDictionary[Network, Groups] = WeakKeyDictionary()


def group_nodes(network: Network, *, sharing: bool) -> Groups:
    """Groups of equal site, free CPU, memory and LAN bandwidth, in the order of sites.

    With `sharing` also of equal total CPU and as many operators of others, on which the response
    time depends.
    """
    if not sharing:
        index = index_network(network)
        return Groups(index.order, index.group_first, index.group_site)
    if network not in _KNOWN:
        _KNOWN[network] = _group_finely(network)
    return _KNOWN[network]


def _group_finely(network: Network) -> Groups:
    keys: list[npt.NDArray[Any]] = [
        network.node_site,
        network.node_cpu_available_ips,
        network.node_memory_available_bytes,
        network.node_lan_available_bps,
        network.node_cpu_ips,
        network.node_operators,
    ]
    order = np.lexsort((network.node_lan_latency_s, *reversed(keys))).astype(np.int32)
    begins = np.zeros(order.size, dtype=bool)
    begins[:1] = True
    for key in keys:
        ordered = key[order]
        begins[1:] |= ordered[1:] != ordered[:-1]
    first = np.append(np.flatnonzero(begins), order.size)
    return Groups(order, first, network.node_site[order[first[:-1]]])
