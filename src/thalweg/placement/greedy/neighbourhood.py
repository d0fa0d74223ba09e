"""The sites around senders, by latency."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np

from thalweg.model.graph import Index
from thalweg.placement.greedy.scopes import Scope


class Neighbourhood:
    """Nearest sites by WAN latency. Ties: the lower site."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._is_cloud = scope.index.site_is_cloud[scope.sites]
        self._first_group = scope.index.site_first_group.tolist()
        self._nearest = cache(self._find_nearest)

    def _find_nearest(self, site: int) -> tuple[int, ...]:
        """The site itself, the nearest other site that is no cloud, and the nearest cloud."""
        latency_s = self.scope.latency_from_s(site)
        found = [site]
        for wanted in (~self._is_cloud & (self.scope.sites != site), self._is_cloud):
            columns = np.flatnonzero(wanted)
            if columns.size:
                nearest = columns[np.argmin(latency_s[columns])]
                found.append(int(self.scope.sites[nearest]))
        return tuple(found)

    def groups_around(self, senders: Iterable[int], sinks: Iterable[int]) -> Index:
        """The groups of the senders' sites, of the nearest to each of them, and of the sinks'."""
        sites = {near for site in senders for near in self._nearest(site)}
        first = self._first_group
        return np.array(
            [g for site in sorted(sites.union(sinks)) for g in range(first[site], first[site + 1])],
            dtype=np.int32,
        )

    def rounds(self, senders: Iterable[int]) -> Index:
        """For each site in which round it is looked at: how many nearer ones each sender has.

        Clouds and other sites are counted apart; the sender for which it is nearest decides.
        """
        rounds = np.full(self.scope.sites.size, self.scope.sites.size, dtype=np.int32)
        for site in senders:
            latency_s = self.scope.latency_from_s(site)
            own = self.scope.sites == site
            rounds[own] = 0
            for among in (~self._is_cloud & ~own, self._is_cloud):
                columns = np.flatnonzero(among)
                order = columns[np.argsort(latency_s[columns], kind="stable")]
                rank = np.arange(order.size, dtype=np.int32)
                rounds[order] = np.minimum(rounds[order], rank)
        return rounds
