"""What is taken of WAN links that several ways share, as on a tree or any other graph of links."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thalweg.estimate.constraints import ROUNDING
from thalweg.model.graph import Floats, Index
from thalweg.model.links import LinkWan
from thalweg.model.network import Network
from thalweg.model.tree import TreeWan


class Flows(NamedTuple):
    """What an instance exchanges with instances that have a node."""

    node: Index
    outward: npt.NDArray[np.bool_]
    bps: Floats
    edge: npt.NDArray[np.int64]


class SharedLinks:
    """Loads are added up link by link only when it is not plain that every link carries them."""

    def __init__(self, network: Network) -> None:
        self._net = network
        self._taken: dict[int, float] = {}
        self._pending: list[tuple[Flows, int]] = []
        # Every link has at least that much left.
        self._sure_bps = _least_available_bps(network) * (1 - ROUNDING)

    def carry(self, flows: Flows, node: int) -> bool:
        """Whether the links carry the flows, if their instance runs on the node."""
        return float(flows.bps.sum()) <= self._sure_bps or not self.find_full(flows, node)

    def find_full(self, flows: Flows, node: int) -> list[tuple[int, float, float]]:
        """(link, load, what is left) of every link that does not carry the flows."""
        for earlier, host in self._pending:
            for link, load in self._loads(earlier, host):
                self._taken[link] = self._taken.get(link, 0.0) + load
        self._pending.clear()
        loads = self._loads(flows, node)
        free = self._net.wan.link_available_bps(np.array([k for k, _ in loads], dtype=np.int64))
        left = [
            available - self._taken.get(link, 0.0)
            for (link, _), available in zip(loads, free.tolist(), strict=True)
        ]
        return [
            (link, load, rest)
            for (link, load), rest in zip(loads, left, strict=True)
            if load > 0 and load > rest * (1 + ROUNDING)
        ]

    def take(self, flows: Flows, node: int) -> None:
        """Note that the instance of these flows runs on the node."""
        apart = self._net.node_site[flows.node] != self._net.node_site[node]
        if apart.any():
            self._pending.append((flows, node))
            self._sure_bps -= float(flows.bps[apart].sum()) * (1 + ROUNDING)

    def _loads(self, flows: Flows, node: int) -> list[tuple[int, float]]:
        return link_loads(self._net, flows, node)


def link_loads(network: Network, flows: Flows, node: int) -> list[tuple[int, float]]:
    """What the flows put on each WAN link, if their instance runs on the node."""
    there = network.node_site[flows.node]
    here = np.full_like(there, network.node_site[node])
    start, end = np.where(flows.outward, here, there), np.where(flows.outward, there, here)
    apart = start != end
    links, loads = network.wan.link_loads(start[apart], end[apart], flows.bps[apart])
    return list(zip(links.tolist(), loads.tolist(), strict=True))


def _least_available_bps(network: Network) -> float:
    wan = network.wan
    if isinstance(wan, TreeWan):
        return float(wan.available[wan.parent >= 0].min(initial=np.inf))
    if isinstance(wan, LinkWan):
        return float(wan.available.min(initial=np.inf))
    return 0.0
