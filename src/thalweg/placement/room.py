"""What is left of nodes and links while a strategy places one operator after the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.estimate.constraints import ROUNDING
from thalweg.model.graph import Floats
from thalweg.model.network import Network

Nodes = npt.NDArray[np.int64]


class Room:
    """Free CPU, memory and bandwidth; what was taken is kept apart, so a start costs nothing."""

    def __init__(self, network: Network) -> None:
        self._net = network
        self._cpu: dict[int, float] = {}
        self._memory: dict[int, float] = {}
        self._lan: dict[int, float] = {}
        self._wan: dict[int, float] = {}

    def cpu_free(self, nodes: Nodes) -> Floats:
        """Instructions/s left on each node; nodes ascending."""
        return _left(self._net.node_cpu_available_ips[nodes], nodes, self._cpu)

    def memory_free(self, nodes: Nodes) -> Floats:
        """Bytes left on each node; nodes ascending."""
        return _left(self._net.node_memory_available_bytes[nodes], nodes, self._memory)

    def carries(self, senders: Nodes, node: int, bps: Floats) -> bool:
        """Whether all flows from the senders to the node fit on every link together.

        A link that they put nothing on is no hindrance, however full it is.
        """
        return all(
            load == 0 or load <= free * (1 + ROUNDING)
            for load, free in self._link_loads(senders, node, bps)
        )

    def take(
        self, node: int, cpu_ips: float, memory_bytes: float, senders: Nodes, bps: Floats
    ) -> None:
        """Note that an operator runs on the node and gets these flows."""
        self._cpu[node] = self._cpu.get(node, 0.0) + cpu_ips
        self._memory[node] = self._memory.get(node, 0.0) + memory_bytes
        apart = senders != node
        for sender, flow in zip(senders[apart].tolist(), bps[apart].tolist(), strict=True):
            self._lan[sender] = self._lan.get(sender, 0.0) + flow
            self._lan[node] = self._lan.get(node, 0.0) + flow
        for link, flow in zip(*self._wan_loads(senders, node, bps), strict=True):
            self._wan[link] = self._wan.get(link, 0.0) + flow

    def _wan_loads(self, senders: Nodes, node: int, bps: Floats) -> tuple[list[int], list[float]]:
        start = self._net.node_site[senders]
        end = np.full(start.shape, self._net.node_site[node])
        links, loads = self._net.wan.link_loads(start, end, bps)
        return links.tolist(), loads.tolist()

    def _link_loads(self, senders: Nodes, node: int, bps: Floats) -> list[tuple[float, float]]:
        """(load, free) of every LAN and WAN link that the flows would use."""
        apart = senders != node
        ends = np.append(senders[apart], node)
        flows = np.append(bps[apart], bps[apart].sum())
        nodes, position = np.unique(ends, return_inverse=True)
        lan = np.bincount(position, weights=flows)
        pairs = list(
            zip(
                lan.tolist(),
                _left(self._net.node_lan_available_bps[nodes], nodes, self._lan),
                strict=True,
            )
        )
        links, loads = self._wan_loads(senders, node, bps)
        free = self._net.wan.link_available_bps(np.array(links, dtype=np.int64))
        pairs += [
            (load, float(room) - self._wan.get(link, 0.0))
            for link, load, room in zip(links, loads, free, strict=True)
        ]
        return pairs


def _left(free: Floats, nodes: Nodes, taken: dict[int, float]) -> Floats:
    """What is left of each node, given in ascending order, after what was taken."""
    left = np.array(free)
    if not (taken and nodes.size):
        return left
    ids = np.fromiter(taken.keys(), dtype=np.int64, count=len(taken))
    amounts = np.fromiter(taken.values(), dtype=float, count=len(taken))
    at = np.minimum(np.searchsorted(nodes, ids), nodes.size - 1)
    here = nodes[at] == ids
    left[at[here]] -= amounts[here]
    return left
