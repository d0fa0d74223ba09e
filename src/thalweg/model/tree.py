"""Sites joined to their parents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.figures import freeze, less, require_figures, require_no_more
from thalweg.model.graph import Floats, Index
from thalweg.model.wan import Links, Sites


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeWan:
    """Sites joined to their parents; the root's parent is −1. Link 2c goes up from c, 2c+1 down."""

    parent: Index
    latency: Floats
    bandwidth: Floats
    available: Floats
    """Shape (n, 2): what is free upwards and downwards on the link from each site to its parent."""

    def __post_init__(self) -> None:
        defects = Defects()
        n = len(self.parent)
        require_figures(defects, "latency", self.latency, (n,), finite=True)
        good = require_figures(defects, "bandwidth", self.bandwidth, (n,))
        if require_figures(defects, "available", self.available, (n, 2)) and good:
            require_no_more(defects, "available", self.available, self.bandwidth[:, None])
        within = bool(((self.parent >= -1) & (self.parent < n)).all())
        defects.require(within, "parent", "an unknown site", "the index of a site, or −1")
        defects.raise_if_any()
        depth = tree_depth(self.parent)
        defects.require(
            bool((depth >= 0).all()) and int((self.parent < 0).sum()) == 1,
            "parent",
            "sites that no root leads to",
            "one tree over all sites",
        )
        defects.raise_if_any()
        object.__setattr__(self, "_depth", depth)
        freeze(self)

    @property
    def site_count(self) -> int:
        """How many sites it joins."""
        return len(self.parent)

    @property
    def depth(self) -> Index:
        """How many links lie between each site and the root."""
        depth: Index = self._depth  # type: ignore[attr-defined]
        return depth

    def _steps(
        self, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which end of each pair goes one link up: the deeper one, or both at the same depth."""
        apart = left != right
        return (
            apart & (self.depth[left] >= self.depth[right]),
            apart & (self.depth[right] >= self.depth[left]),
        )

    def _climb(
        self, a: Sites, b: Sites, start: float, up: Floats, down: Floats, add: bool
    ) -> Floats:
        """Fold the figures of the links on the way from a to b: added up, or the smallest."""
        left, right = (np.array(x, dtype=np.int64) for x in np.broadcast_arrays(a, b))
        fold = np.add if add else np.minimum
        if np.array_equal(self.parent[left], right):
            # One link up everywhere, the usual question in a star.
            return np.asarray(fold(start, up[left]))
        total = np.full(left.shape, start)
        while (left != right).any():
            climb_left, climb_right = self._steps(left, right)
            neutral = 0.0 if add else np.inf
            total = fold(total, np.where(climb_left, up[left], neutral))
            total = fold(total, np.where(climb_right, down[right], neutral))
            left = np.where(climb_left, self.parent[left], left)
            right = np.where(climb_right, self.parent[right], right)
        return total

    def latency_s(self, a: Sites, b: Sites) -> Floats:
        """One-way latency between sites."""
        return self._climb(a, b, 0.0, self.latency, self.latency, add=True)

    def bandwidth_bps(self, a: Sites, b: Sites) -> Floats:
        """Capacity of the narrowest link between sites."""
        return self._climb(a, b, np.inf, self.bandwidth, self.bandwidth, add=False)

    def available_bps(self, a: Sites, b: Sites) -> Floats:
        """What is free between sites, at the narrowest link."""
        up, down = self.available[:, 0], self.available[:, 1]
        return self._climb(a, b, np.inf, up, down, add=False)

    def route(self, a: int, b: int) -> Links:
        """The links up from a to the common ancestor, then down to b."""
        up: list[int] = []
        down: list[int] = []
        while a != b:
            if self.depth[a] >= self.depth[b]:
                up.append(2 * a)
                a = int(self.parent[a])
            else:
                down.append(2 * b + 1)
                b = int(self.parent[b])
        return np.array(up + down[::-1], dtype=np.int64)

    def link_loads(
        self, a: npt.NDArray[np.integer[Any]], b: npt.NDArray[np.integer[Any]], bps: Floats
    ) -> tuple[Links, Floats]:
        """The load on each link that the flows use."""
        left, right = np.array(a, dtype=np.int64), np.array(b, dtype=np.int64)
        load = np.zeros(2 * self.site_count)
        used = np.zeros(2 * self.site_count, dtype=bool)
        while (left != right).any():
            climb_left, climb_right = self._steps(left, right)
            for climbs, site, way in ((climb_left, left, 0), (climb_right, right, 1)):
                links = 2 * site[climbs] + way
                np.add.at(load, links, bps[climbs])
                used[links] = True
            left = np.where(climb_left, self.parent[left], left)
            right = np.where(climb_right, self.parent[right], right)
        links = np.flatnonzero(used)
        return links, load[links]

    def link_ends(self, link: int) -> tuple[int, int]:
        """The two sites of a directed link."""
        child, downwards = divmod(int(link), 2)
        parent = int(self.parent[child])
        return (parent, child) if downwards else (child, parent)

    def link_available_bps(self, links: npt.ArrayLike) -> Floats:
        """What is free on each of these links."""
        free: Floats = self.available.reshape(-1)[np.asarray(links)]
        return free

    def reserved(self, links: npt.ArrayLike, bps: npt.ArrayLike) -> TreeWan:
        """The same tree with less free on these links."""
        return replace(self, available=less(self.available, links, bps))

    def scaled(self, *, latency: float = 1.0, bandwidth: float = 1.0) -> TreeWan:
        """The same with every latency and every bandwidth times these factors."""
        return replace(
            self,
            latency=self.latency * latency,
            bandwidth=self.bandwidth * bandwidth,
            available=self.available * bandwidth,
        )


def tree_depth(parent: Index) -> Index:
    """How many links each site is below the root, whose parent is −1."""
    depth = np.where(parent < 0, 0, -1).astype(np.int32)
    for level in range(len(parent)):
        below = (depth < 0) & (depth[parent] == level) & (parent >= 0)
        if not below.any():
            break
        depth[below] = level + 1
    return depth
