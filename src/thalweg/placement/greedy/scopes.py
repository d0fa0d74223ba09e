"""Where a strategy looks for a node, and the ways that lead there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Floats, Index, concatenated_ranges
from thalweg.model.network import Network, Tier
from thalweg.model.operator import Pin
from thalweg.placement.compiled.pools import ANYWHERE, IN_TIER, OUTSIDE_CLOUDS
from thalweg.placement.compiled.question import Rows
from thalweg.placement.network_index import NetworkIndex, index_network

MOST_FIGURES = 2**22
_FIRST_ROWS = 16


class Scope:
    """Some sites with all their nodes, or one node; columns count its sites.

    `where` says the same as the sites in one number, for compiled code.

    The figures of ways between its sites and others are asked for once and remembered.
    """

    def __init__(
        self,
        name: str,
        network: Network,
        index: NetworkIndex,
        sites: Index,
        where: int = ANYWHERE,
        node: int = -1,
    ) -> None:
        self.name = name
        self.where = where
        self.network, self.index = network, index
        self.sites = sites
        self.node = node
        self._used = 0
        self._latency_s = np.empty((0, sites.size))
        self._available_bps = np.empty((0, sites.size))

    @cached_property
    def column(self) -> Index:
        """The column of each site; −1 for sites that are not in the scope."""
        column = np.full(self.network.site_count, -1, dtype=np.int32)
        column[self.sites] = np.arange(self.sites.size, dtype=np.int32)
        return column

    @cached_property
    def no_priority(self) -> Index:
        """The same priority for all sites."""
        return np.zeros(self.sites.size, dtype=np.int32)

    @cached_property
    def _slot(self) -> Index:
        """The row of ways from each site, and of ways to it; negative where there is none."""
        return np.full((2, self.network.site_count), -1, dtype=np.int32)

    @cached_property
    def groups(self) -> Index:
        """The groups of its sites."""
        if self.node >= 0:
            return np.empty(0, dtype=np.int32)
        if self.sites.size == self.index.sites.size:
            return np.arange(self.index.group_count, dtype=np.int32)
        return self.groups_in(self.sites)

    def groups_in(self, sites: npt.NDArray[np.integer]) -> Index:
        """The groups of some sites, site by site."""
        first = self.index.site_first_group
        return concatenated_ranges(first[sites], first[np.add(sites, 1)]).astype(np.int32)

    @cached_property
    def rows(self) -> Rows:
        """The figures known so far, for compiled code."""
        return Rows(self._slot, self._latency_s, self._available_bps)

    def new_verdicts(self) -> npt.NDArray[np.int8]:
        """Room for a verdict on the WAN of each site."""
        return np.zeros(self.sites.size, dtype=np.int8)

    def parts(self, edges: int) -> Iterator[Scope]:
        """The scope, or smaller ones that make it up where edges × sites would be too many."""
        width = max(MOST_FIGURES // max(edges, 1), 1)
        if width >= self.sites.size:
            yield self
            return
        for first in range(0, self.sites.size, width):
            sites = self.sites[first : first + width]
            yield Scope(self.name, self.network, self.index, sites, self.where)

    def fetch(self, sites: npt.NDArray[np.int64], to_them: npt.NDArray[np.int64]) -> None:
        """Remember the ways from these sites, or to them, to or from all sites of the scope.

        Where there is no more place, all that was known is forgotten instead, and whoever asked has
        to ask again: for these, and for all others that are needed together with them.
        """
        most = max(MOST_FIGURES, _FIRST_ROWS * self.sites.size)
        if self._used and (self._used + sites.size) * self.sites.size > most:
            self._slot[:] = -1
            self._used = 0
            return
        self._make_place(self._used + sites.size)
        for way in (0, 1):
            wanted = sites[to_them == way]
            if wanted.size:
                rows = slice(self._used, self._used + wanted.size)
                self._latency_s[rows] = self._look_up("latency_s", wanted, way)
                self._available_bps[rows] = self._look_up("available_bps", wanted, way)
                self._slot[way, wanted] = np.arange(rows.start, rows.stop, dtype=np.int32)
                self._used = rows.stop

    def fetch_early(self, sites: npt.NDArray[np.integer]) -> None:
        """Remember the ways from these sites, if they are few: together that costs less."""
        if sites.size <= _FIRST_ROWS:
            missing = sites[self._slot[0, sites] < 0].astype(np.int64)
            if missing.size:
                self.fetch(missing, np.zeros_like(missing))

    def _look_up(self, figure: str, others: npt.NDArray[np.int64], way: int) -> Floats:
        ask = getattr(self.network.wan, figure)
        if others.size == 1:  # Rows one by one are the rule, and cheaper without a grid.
            other = int(others[0])
            found: Floats = ask(self.sites, other) if way else ask(other, self.sites)
            return found
        there, here = others[:, None], self.sites[None, :]
        grid: Floats = ask(here, there) if way else ask(there, here)
        return grid

    def _make_place(self, count: int) -> None:
        if count <= len(self._latency_s):
            return
        size = max(count, 2 * len(self._latency_s), _FIRST_ROWS)
        for name in ("_latency_s", "_available_bps"):
            grown = np.empty((size, self.sites.size))
            grown[: self._used] = getattr(self, name)[: self._used]
            setattr(self, name, grown)
        self.__dict__.pop("rows", None)

    def latency_from_s(self, site: int) -> Floats:
        """The latency from a site to each of the scope's."""
        while self._slot[0, site] < 0:
            self.fetch(np.array([site]), np.array([0]))
        found: Floats = self._latency_s[self._slot[0, site]]
        return found


class Scopes:
    """The scopes of one run, made when they are first asked for."""

    def __init__(self, network: Network) -> None:
        self.network, self.index = network, index_network(network)
        self._known: dict[str, Scope] = {}

    def everywhere(self) -> Scope:
        """All sites with nodes."""
        return self._find("the network", lambda: self.index.sites)

    def clouds(self) -> Scope:
        """The clouds."""
        return self._find("cloud", lambda: self._in_tier(Tier.CLOUD), IN_TIER - Tier.CLOUD)

    def outside(self) -> Scope:
        """All sites that are no clouds."""

        def sites() -> Index:
            return self.index.sites[~self.index.site_is_cloud[self.index.sites]]

        return self._find("the edge", sites, OUTSIDE_CLOUDS)

    def these(self, name: str, sites: Index) -> Scope:
        """Some sites, ascending, by a name of their own."""
        return self._find(name, lambda: sites)

    def site(self, site: int) -> Scope:
        """One site."""
        name = f"site {self.network.site_names[site]}"
        return self._find(name, lambda: np.array([site], dtype=np.int32), site)

    def allowed(self, pin: Pin) -> Scope:
        """What a pin allows."""
        net = self.network
        if pin.node is not None:
            node = net.node_index(pin.node)
            return self._find(str(pin), lambda: net.node_site[node : node + 1], ANYWHERE, node)
        if pin.site is not None:
            return self.site(net.site_index[pin.site])
        tier = Tier[str(pin.tier).upper()]
        return self._find(str(pin), lambda: self._in_tier(tier), IN_TIER - tier)

    def _in_tier(self, tier: Tier) -> Index:
        sites = self.index.sites
        found: Index = sites[self.network.site_tier[sites] == tier]
        return found

    def _find(
        self, name: str, sites: Callable[[], Index], where: int = ANYWHERE, node: int = -1
    ) -> Scope:
        if name not in self._known:
            self._known[name] = Scope(name, self.network, self.index, sites(), int(where), node)
        return self._known[name]
