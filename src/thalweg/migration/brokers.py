"""Brokers in a tree over a map: what lies between them, and what they can host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.migration.compiled.trees import fold_from, narrowest_from
from thalweg.migration.leaves import LeafIndex
from thalweg.model import Network, TreeWan
from thalweg.model.figures import freeze, sum_at
from thalweg.model.graph import Floats, Index
from thalweg.model.network import Tier
from thalweg.model.tree import tree_depth

_SMALL = 2_048
"""Brokers whose delays to each other are all kept."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Brokers:
    """The sites of a tree, numbered from the root down: a parent comes before its children.

    The delay between two brokers is that of the links on the way between them.

    >>> from thalweg.scenarios import broker_tree
    >>> brokers = Brokers.of(broker_tree())
    >>> brokers.names[:3], brokers.count, brokers.leaves.size
    (('cloud', 'broker-1-0', 'broker-1-1'), 21, 16)
    >>> brokers.delays_from(np.array([5]))[0, [0, 1, 5, 6]].tolist()
    [0.015, 0.005, 0.0, 0.01]
    """

    names: tuple[str, ...]
    parent: Index
    """The broker above, −1 for the root."""
    link_delay_s: Floats
    """Of the link to the broker above."""
    link_bandwidth_bps: Floats
    capacity_ips: Floats
    """Instructions per second of all nodes of the broker that nobody uses yet."""
    speed_ips: Floats
    """Instructions per second of its fastest node: how fast one operator can be there."""
    area_m: Floats
    """West, south, east, north; NaN where a broker has no area."""

    def __post_init__(self) -> None:
        freeze(self)

    @classmethod
    def of(cls, network: Network) -> Brokers:
        """The brokers of a network whose sites form a tree, with an area for every leaf."""
        wan, areas = network.wan, network.site_area_m
        if not isinstance(wan, TreeWan) or areas is None:
            raise InvalidInput(_not_a_tree(network))
        parent, link = _hang(wan.parent, _find_root(network))
        order = np.argsort(tree_depth(parent), kind="stable")
        number = np.empty(order.size, dtype=np.int32)
        number[order] = np.arange(order.size, dtype=np.int32)
        above = parent[order]
        count = network.site_count
        capacity = sum_at(network.node_site, network.node_cpu_available_ips, count)
        speed = np.zeros(count)
        np.maximum.at(speed, network.node_site, network.node_cpu_available_ips)
        brokers = cls(
            names=tuple(network.site_names[site] for site in order),
            parent=np.where(above < 0, -1, number[above]).astype(np.int32),
            link_delay_s=wan.latency[link[order]],
            link_bandwidth_bps=wan.bandwidth[link[order]],
            capacity_ips=capacity[order],
            speed_ips=speed[order],
            area_m=areas[order],
        )
        brokers._require_hosts()
        # Areas that overlap are the network's fault: tell it here.
        _ = brokers.leaf_index
        return brokers

    def _require_hosts(self) -> None:
        defects = Defects()
        without = np.flatnonzero(np.isnan(self.area_m[self.leaves]).any(axis=1))
        for leaf in self.leaves[without][:5]:
            defects.add(
                f"sites[{self.names[leaf]}].area",
                "none",
                "an area for every leaf of the tree",
                f"{without.size} leaves are without" if without.size > 1 else "",
            )
        defects.require(
            bool((self.capacity_ips > 0).any()),
            "sites",
            "no broker has capacity",
            "at least one site with a node that has free CPU",
        )
        defects.raise_if_any()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.names)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each broker by name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def leaves(self) -> Index:
        """The brokers below which there are none, ascending."""
        inner = np.zeros(len(self.names), dtype=bool)
        inner[self.parent[1:]] = True
        return np.flatnonzero(~inner).astype(np.int32)

    @cached_property
    def leaf_index(self) -> LeafIndex:
        """Finds the leaf of a position; gives places in `leaves`."""

        names = [self.names[leaf] for leaf in self.leaves]
        return LeafIndex(self.area_m[self.leaves], names)

    @cached_property
    def diameter(self) -> int:
        """The most hops between two brokers."""
        one = np.ones(self.count)
        far = int(np.argmax(self._fold(np.zeros(1, dtype=np.int32), one)[0]))
        return int(self._fold(np.array([far], dtype=np.int32), one).max())

    def delays_from(self, origins: Index) -> Floats:
        """Delay from each of these brokers to every broker, a row for each."""
        return self._fold(origins, self.link_delay_s)

    def hops_from(self, origins: Index) -> Floats:
        """Links between each of these brokers and every broker, a row for each."""
        return self._fold(origins, np.ones(self.count))

    def bandwidths_from(self, origins: Index) -> Floats:
        """Bandwidth of the narrowest link from each of these to every broker; ∞ to itself."""
        found = np.empty((len(origins), self.count))
        narrowest_from(np.asarray(origins, np.int32), self.parent, self.link_bandwidth_bps, found)
        return found

    def _fold(self, origins: Index, link: Floats) -> Floats:
        found = np.empty((len(origins), self.count))
        fold_from(np.asarray(origins, np.int32), self.parent, link, found)
        return found

    @cached_property
    def delay_s(self) -> Floats:
        """Between all brokers; only for trees whose square fits into memory."""
        delays = self.delays_from(np.arange(self.count, dtype=np.int32))
        delays.flags.writeable = False
        return delays

    def rows_from(self, hosts: Index) -> tuple[Index, Floats]:
        """For each broker the row of `delays` that is its own; only those of `hosts` are sure.

        Of small trees all rows are kept; of large ones only those that are needed are made.
        """
        if self.count <= _SMALL:
            return self._own_rows, self.delay_s
        needed = np.unique(hosts[hosts >= 0]).astype(np.int32)
        row_of = np.zeros(self.count, dtype=np.int32)
        row_of[needed] = np.arange(needed.size, dtype=np.int32)
        return row_of, self.delays_from(needed)

    @cached_property
    def _own_rows(self) -> Index:
        return np.arange(self.count, dtype=np.int32)

    def distance_m(self, broker: int) -> Floats:
        """How far the area of each broker is from that of one; 0 where they touch or overlap.

        A broker without an area owns those of all below it.
        """
        west, south, east, north = self._whole_areas.T
        w, s, e, n = self._whole_areas[broker]
        apart_x = np.maximum(np.maximum(west - e, w - east), 0.0)
        apart_y = np.maximum(np.maximum(south - n, s - north), 0.0)
        return np.asarray(np.hypot(apart_x, apart_y))

    @cached_property
    def _whole_areas(self) -> Floats:
        whole = self.area_m.copy()
        for broker in range(self.count - 1, 0, -1):
            above = int(self.parent[broker])
            low = np.fmin(whole[above, :2], whole[broker, :2])
            high = np.fmax(whole[above, 2:], whole[broker, 2:])
            whole[above] = np.concatenate([low, high])
        return whole


def _find_root(network: Network) -> int:
    """The site above all others: the only one without a parent, else the only cloud.

    Where neither says it, the one that the network's tree of links begins with.
    """
    named = network.site_parent >= 0
    highest = np.flatnonzero(~named)
    if named.any() and highest.size == 1:
        return int(highest[0])
    clouds = np.flatnonzero(network.site_tier == Tier.CLOUD)
    if clouds.size == 1:
        return int(clouds[0])
    return int(np.flatnonzero(cast(TreeWan, network.wan).parent < 0)[0])


def _hang(parent: Index, root: int) -> tuple[Index, Index]:
    """The same tree with another root, and for each site the link to the one above.

    A link is named by the site that it was stored with; the root's is that of the old root, which
    has none.
    """
    turned, link = parent.copy(), np.arange(parent.size, dtype=np.int32)
    old = int(np.flatnonzero(parent < 0)[0])
    site, below = root, -1
    while site >= 0:
        turned[site], link[site] = below, old if below < 0 else below
        site, below = int(parent[site]), site
    return turned, link


def _not_a_tree(network: Network) -> Iterator[Defect]:
    if not isinstance(network.wan, TreeWan):
        hint = "give every site but one a parent, and links between children and parents only"
        yield Defect(path="network", value=network.name, rule="a tree of sites", hint=hint)
    if network.site_area_m is None:
        hint = "area: {west: 0 m, south: 0 m, east: 500 m, north: 500 m}"
        yield Defect(path="sites", value="no areas", rule="an area for every leaf", hint=hint)
