"""The 27 networks of Table 3 of da Silva Veith et al., by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from thalweg.errors import Defect, InvalidInput, nearest
from thalweg.model import Network
from thalweg.scenarios.cloud_edge import cloud_edge

Group = Literal["regular", "large", "extra-large"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The size of one network: so many clouds, edge sites, and devices in each edge site."""

    group: Group
    clouds: int
    sites: int
    devices_per_site: int

    @property
    def name(self) -> str:
        """Group and sizes: clouds × sites × devices per site."""
        return f"{self.group}-{self.clouds}x{self.sites}x{self.devices_per_site}"

    @property
    def node_count(self) -> int:
        """How many nodes there are; a cloud is one."""
        return self.clouds + self.sites * self.devices_per_site


# Edge sites × devices per site; each comes with 10, 100 and 500 clouds.
_EDGES: Mapping[Group, tuple[tuple[int, int], ...]] = {
    "regular": ((10, 10), (10, 100), (100, 10), (10, 500), (500, 10)),
    "large": ((100, 100), (100, 500), (500, 100)),
    "extra-large": ((500, 500),),
}


def _in_table_order(group: Group) -> list[Topology]:
    shapes = [
        Topology(group=group, clouds=clouds, sites=sites, devices_per_site=devices)
        for sites, devices in _EDGES[group]
        for clouds in (10, 100, 500)
    ]
    return sorted(shapes, key=lambda shape: (shape.node_count, shape.sites))


TOPOLOGIES: Mapping[str, Topology] = MappingProxyType(
    {shape.name: shape for group in _EDGES for shape in _in_table_order(group)}
)
"""`regular` (15, up to 5,500 nodes), `large` (9, to 50,500) and `extra-large` (3, to 250,500)."""


def topology(name: str, seed: int = 0, *, cloud_mips: float = 304.51) -> Network:
    """The network of that name; its other figures are `cloud_edge`'s.

    >>> topology("regular-10x10x10", seed=1)
    <Network regular-10x10x10: 110 nodes in 10 edge, 10 cloud sites>
    """
    shape = TOPOLOGIES.get(name) if isinstance(name, str) else None
    if shape is None:
        rule, hint = "the name of a topology", nearest(str(name), TOPOLOGIES)
        raise InvalidInput([Defect(path="topology", value=name, rule=rule, hint=hint)])
    return cloud_edge(
        shape.clouds,
        shape.sites,
        shape.devices_per_site,
        seed,
        name=shape.name,
        cloud_mips=cloud_mips,
    )
