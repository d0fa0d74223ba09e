"""Which sites a page shows on their own, and which together: a browser draws hundreds, not all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.model.network import Network, Tier

MOST_SITES = 120
"""Networks with no more sites than this are shown site by site."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Grouping:
    """What stands for each site: the site itself, or a group of its tier.

    >>> from thalweg.scenarios import fog_cloud
    >>> Grouping.of(fog_cloud(3)).names
    ('fog-0', 'fog-1', 'fog-2', 'cloud')
    >>> Grouping.of(fog_cloud(400), in_use=[7]).names
    ('399 fog sites', 'fog-7', 'cloud')
    """

    network: Network
    alone: npt.NDArray[np.int64]
    """The sites that are shown on their own, ascending."""

    @classmethod
    def of(cls, network: Network, in_use: Iterable[int] = (), most: int = MOST_SITES) -> Grouping:
        """All sites, if they are few; else those that come first in `in_use`, the rest by tier.

        A group of one is that site.
        """
        count = network.site_count
        if count <= most:
            return cls(network=network, alone=np.arange(count))
        chosen = list(dict.fromkeys(in_use))[:most]
        rest = np.setdiff1d(np.arange(count), np.array(chosen, dtype=np.int64))
        for tier in Tier:
            members = rest[network.site_tier[rest] == tier]
            chosen += members.tolist() if members.size == 1 else []
        return cls(network=network, alone=np.unique(np.array(chosen, dtype=np.int64)))

    @cached_property
    def grouped(self) -> dict[Tier, npt.NDArray[np.int64]]:
        """The sites that stand in a group, by tier; tiers without any are left out."""
        rest = np.setdiff1d(np.arange(self.network.site_count), self.alone)
        tiers = {tier: rest[self.network.site_tier[rest] == tier] for tier in Tier}
        return {tier: members for tier, members in tiers.items() if members.size}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What is shown: groups first, then sites in the network's order."""
        groups = [_group_name(tier, members.size) for tier, members in self.grouped.items()]
        return (*groups, *(self.network.site_names[k] for k in self.alone.tolist()))

    @cached_property
    def shown(self) -> npt.NDArray[np.int64]:
        """For every site the position in `names` of what stands for it."""
        position = np.zeros(self.network.site_count, dtype=np.int64)
        for number, members in enumerate(self.grouped.values()):
            position[members] = number
        position[self.alone] = len(self.grouped) + np.arange(self.alone.size)
        return position

    def name_of(self, site: int) -> str:
        """The name of what stands for a site."""
        return self.names[int(self.shown[site])]

    def ends_of(self, link: int) -> str:
        """The two ends of a directed link, as "a>b"; empty where one group stands for both."""
        start, end = self.network.wan.link_ends(link)
        a, b = self.name_of(start), self.name_of(end)
        return "" if a == b else f"{a}>{b}"

    def members(self, name: str) -> npt.NDArray[np.int64]:
        """The sites that a shown name stands for; `KeyError` where it stands for none."""
        if name not in self.names:
            raise KeyError(name)
        return np.flatnonzero(self.shown == self.names.index(name))

    @property
    def left_out(self) -> str:
        """A sentence on what is shown together; empty where nothing is."""
        if not self.grouped:
            return ""
        together = sum(members.size for members in self.grouped.values())
        return (
            f"{self.network.node_count:,} nodes in {self.network.site_count:,} sites; "
            f"{together:,} of them, where least of this runs, are shown together by tier."
        )


def _group_name(tier: Tier, count: int) -> str:
    return f"{count:,} {tier.label} sites"
