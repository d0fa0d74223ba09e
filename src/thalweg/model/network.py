"""Where it can run: sites, the nodes in them, and the links between them, held as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.addresses import LOCAL, require_addresses
from thalweg.model.figures import freeze, require_figures, require_no_more
from thalweg.model.graph import Floats, Index, distinct
from thalweg.model.names import is_name, require_name, require_unique
from thalweg.model.views import Link, Node, Site
from thalweg.model.wan import Wan

if TYPE_CHECKING:
    import networkx as nx


class Tier(IntEnum):
    """How far from the data a site is."""

    EDGE = 0
    FOG = 1
    CLOUD = 2

    @property
    def label(self) -> str:
        """The name that files and people use."""
        return self.name.lower()


Nodes = int | npt.NDArray[np.integer[Any]]

_MOST_SHOWN = 20
_NODE_FIGURES = (
    ("node_cpu_ips", "node_cpu_available_ips"),
    ("node_memory_bytes", "node_memory_available_bytes"),
    ("node_lan_bandwidth_bps", "node_lan_available_bps"),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Network:
    """Sites and nodes as a structure of arrays; `Site` and `Node` are views made on demand.

    Nodes are ordered by site. A message from node a to node b takes nothing on the same node,
    LAN a + LAN b within a site, and LAN a + WAN + LAN b between sites. The LAN link of a node
    is one, shared by both directions; WAN links have two directions.

    "Available" is what nobody uses yet: a second application is planned on what the first left.
    """

    name: str
    site_names: tuple[str, ...]
    site_tier: npt.NDArray[np.uint8]
    site_parent: Index
    """The site above, −1 for none."""
    site_edge_delay_s: Floats
    """The largest delay from a device of the site's area to the site."""
    node_site: Index
    node_cpu_ips: Floats
    node_cpu_available_ips: Floats
    node_memory_bytes: Floats
    node_memory_available_bytes: Floats
    node_lan_latency_s: Floats
    node_lan_bandwidth_bps: Floats
    node_lan_available_bps: Floats
    node_operators: Index
    """Operators of other applications that run on the node and share its CPU."""
    wan: Wan
    node_names: tuple[str, ...] | None = None
    """Names within the site; without them nodes are numbered. See `node_name`."""
    site_area_m: Floats | None = None
    """West, south, east, north of the area a site serves; NaN where it has none."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Where the Spark of a site is reached, by site; those not named are `local`."""

    def __post_init__(self) -> None:
        for name in ("site_edge_delay_s", "node_lan_latency_s", *chain(*_NODE_FIGURES)):
            figures = getattr(self, name)
            if figures.dtype.kind in "iu":  # Estimators put ∞ where these numbers are.
                object.__setattr__(self, name, figures.astype(float))
        object.__setattr__(self, "addresses", dict(self.addresses))
        defects = Defects()
        self._require_sites(defects)
        self._require_nodes(defects)
        defects.raise_if_any()
        freeze(self)

    def _require_sites(self, defects: Defects) -> None:
        count = len(self.site_names)
        require_name(defects, "name", self.name)
        defects.require(count > 0, "sites", "no sites", "at least one site")
        for position, name in enumerate(self.site_names):
            require_name(defects, f"sites[{position}].name", name)
        require_unique(defects, "sites", list(self.site_names))
        for name in ("site_tier", "site_parent"):
            shape = getattr(self, name).shape
            defects.require(shape == (count,), name, shape, f"one value for each of {count} sites")
        require_figures(defects, "site_edge_delay_s", self.site_edge_delay_s, (count,), finite=True)
        if self.site_area_m is not None:
            shape = self.site_area_m.shape
            defects.require(shape == (count, 4), "site_area_m", shape, f"shape ({count}, 4)")
        defects.require(
            self.wan.site_count == count, "wan", self.wan.site_count, f"links for {count} sites"
        )
        require_addresses(defects, self.addresses, self.site_names)
        known_tiers = (self.site_tier >= Tier.EDGE) & (self.site_tier <= Tier.CLOUD)
        defects.require(bool(known_tiers.all()), "site_tier", "an unknown tier", "0, 1 or 2")
        if not defects:
            _require_parents(defects, self.site_parent, self.site_names)

    def _require_nodes(self, defects: Defects) -> None:
        count = self.node_site.size
        defects.require(count > 0, "nodes", "no nodes", "at least one node")
        ordered = count == 0 or bool((np.diff(self.node_site) >= 0).all())
        within = count == 0 or bool(
            self.node_site[0] >= 0 and self.node_site[-1] < len(self.site_names)
        )
        defects.require(ordered and within, "node_site", "out of order", "site indices, ascending")
        for capacity, available in _NODE_FIGURES:
            good = require_figures(defects, capacity, getattr(self, capacity), (count,))
            if require_figures(defects, available, getattr(self, available), (count,)) and good:
                require_no_more(
                    defects, available, getattr(self, available), getattr(self, capacity)
                )
        require_figures(
            defects, "node_lan_latency_s", self.node_lan_latency_s, (count,), finite=True
        )
        require_figures(defects, "node_operators", self.node_operators, (count,))
        if self.node_names is not None:
            _require_node_names(defects, self.node_names, self.node_site)

    @property
    def site_count(self) -> int:
        """How many sites there are."""
        return len(self.site_names)

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return int(self.node_site.size)

    @cached_property
    def site_index(self) -> dict[str, int]:
        """Position of each site by name."""
        return {name: position for position, name in enumerate(self.site_names)}

    @cached_property
    def first_node(self) -> npt.NDArray[np.int64]:
        """Nodes of site s are first_node[s] … first_node[s + 1] − 1."""
        return np.searchsorted(self.node_site, np.arange(self.site_count + 1))

    @cached_property
    def cloud_nodes(self) -> npt.NDArray[np.int64]:
        """The nodes of all cloud sites."""
        return self.nodes_in_tier(Tier.CLOUD)

    @cached_property
    def nearest_cloud(self) -> Index:
        """The cloud site with nodes that has least latency from each site; ties: lower index.

        −1 where no way leads to any.
        """
        clouds = distinct(self.node_site[self.cloud_nodes])
        if not clouds.size:
            return np.full(self.site_count, -1, dtype=np.int32)
        sites = np.arange(self.site_count)
        latency = self.wan.latency_s(sites[:, None], clouds[None, :])
        nearest = np.take(clouds, np.argmin(latency, axis=1))
        return np.where(np.isfinite(latency.min(axis=1)), nearest, -1).astype(np.int32)

    @cached_property
    def memory_below_cloud_bytes(self) -> float:
        """The memory of all nodes that are in no cloud; those with infinite memory left out."""
        below = self.site_tier[self.node_site] != Tier.CLOUD
        memory = self.node_memory_bytes[below]
        return float(memory[np.isfinite(memory)].sum())

    def nodes_in_tier(self, tier: Tier) -> npt.NDArray[np.int64]:
        """The nodes of all sites of a tier, ascending."""
        if tier not in self._tiers:
            self._tiers[tier] = np.flatnonzero(self.site_tier[self.node_site] == tier)
        return self._tiers[tier]

    @cached_property
    def _tiers(self) -> dict[Tier, npt.NDArray[np.int64]]:
        return {}

    def nodes_in_site(self, site: int) -> npt.NDArray[np.int64]:
        """The nodes of a site, ascending."""
        return np.arange(self.first_node[site], self.first_node[site + 1])

    def latency_s(self, a: Nodes, b: Nodes) -> Floats:
        """One-way latency between nodes, with both LAN hops; 0 on the same node."""
        lan = self.node_lan_latency_s[a] + self.node_lan_latency_s[b]
        wan = self.wan.latency_s(self.node_site[a], self.node_site[b])
        return np.where(np.equal(a, b), 0.0, lan + wan)

    def available_bps(self, a: Nodes, b: Nodes) -> Floats:
        """What is free between nodes, at the narrowest link; infinite on the same node."""
        lan = np.minimum(self.node_lan_available_bps[a], self.node_lan_available_bps[b])
        wan = self.wan.available_bps(self.node_site[a], self.node_site[b])
        return np.where(np.equal(a, b), np.inf, np.minimum(lan, wan))

    def address_of(self, site: str) -> str:
        """Where the Spark of a site is reached."""
        return self.addresses.get(site, LOCAL)

    def node_name(self, node: int) -> str:
        """`site/name`; without names `site/number`, or just `site` for a node alone in its site."""
        site = int(self.node_site[node])
        if self.node_names is not None:
            return f"{self.site_names[site]}/{self.node_names[node]}"
        first, end = int(self.first_node[site]), int(self.first_node[site + 1])
        return (
            self.site_names[site] if end - first == 1 else f"{self.site_names[site]}/{node - first}"
        )

    def node_names_of(self, nodes: Index) -> tuple[str, ...]:
        """The names of many nodes."""
        site = self.node_site[nodes]
        first = self.first_node[site]
        sites = map(self.site_names.__getitem__, site.tolist())
        if self.node_names is None and bool((self.first_node[site + 1] - first == 1).all()):
            return tuple(sites)
        return tuple(map(self.node_name, nodes.tolist()))

    def node_index(self, name: str) -> int:
        """The node of that name; `KeyError` where there is none."""
        site_name, slash, local = name.partition("/")
        site = self.site_index[site_name]
        first, end = int(self.first_node[site]), int(self.first_node[site + 1])
        if not slash:
            if end - first != 1:
                raise KeyError(name)
            return first
        if self.node_names is not None:
            local_names = self.node_names[first:end]
            number = local_names.index(local) if local in local_names else -1
        else:
            number = int(local) if local.isdecimal() and len(local) < 12 else -1
            number = number if str(number) == local else -1  # "007" names nobody
        if not 0 <= number < end - first:
            raise KeyError(name)
        return first + number

    def node(self, node: int | str) -> Node:
        """One node, as a view."""
        i = self.node_index(node) if isinstance(node, str) else node
        return Node(
            name=self.node_name(i),
            cpu_ips=float(self.node_cpu_ips[i]),
            cpu_available_ips=float(self.node_cpu_available_ips[i]),
            memory_bytes=float(self.node_memory_bytes[i]),
            memory_available_bytes=float(self.node_memory_available_bytes[i]),
            lan_latency_s=float(self.node_lan_latency_s[i]),
            lan_bandwidth_bps=float(self.node_lan_bandwidth_bps[i]),
            lan_available_bps=float(self.node_lan_available_bps[i]),
            operators=int(self.node_operators[i]),
        )

    def site(self, site: int | str) -> Site:
        """One site with its nodes, as a view."""
        i = self.site_index[site] if isinstance(site, str) else site
        parent = int(self.site_parent[i])
        area = None if self.site_area_m is None else tuple(self.site_area_m[i].tolist())
        return Site(
            name=self.site_names[i],
            tier=Tier(self.site_tier[i]).label,
            parent=self.site_names[parent] if parent >= 0 else None,
            edge_delay_s=float(self.site_edge_delay_s[i]),
            area_m=None if area is None or np.isnan(area).any() else area,
            nodes=tuple(self.node(int(n)) for n in self.nodes_in_site(i)),
            spark=self.addresses.get(self.site_names[i]),
        )

    def link(self, a: str, b: str) -> Link:
        """The way from site a to site b, as one link: latencies added, narrowest bandwidth."""
        i, j = self.site_index[a], self.site_index[b]
        return Link(
            a=a,
            b=b,
            latency_s=float(self.wan.latency_s(i, j)),
            bandwidth_bps=float(self.wan.bandwidth_bps(i, j)),
            bandwidth_available_bps=float(self.wan.available_bps(i, j)),
        )

    def with_available(self, **figures: npt.NDArray[np.generic] | Wan) -> Network:
        """The same network with other figures, e.g. `node_memory_available_bytes=…`."""
        return replace(self, **figures)  # type: ignore[arg-type]

    def to_networkx(self, *, machines: bool = True) -> nx.DiGraph:
        """Sites, machines and links as a directed graph of networkx.

        Sites are vertices by name. So are the nodes, by `site/name`, each joined to its site by its
        LAN link; without `machines` they are left out. Every link has two directions, with
        `latency_s`, `bandwidth_bps` and `available_bps`. A mesh has a link between any two sites.
        All of it is Python objects: of a large network leave the machines out, or take a part.
        """
        from thalweg.model.networkx_graph import network_graph

        return network_graph(self, machines=machines)

    @property
    def held_bytes(self) -> int:
        """Bytes of all arrays, each buffer counted once."""
        buffers: dict[int, int] = {}
        for holder in (self, self.wan):
            for value in vars(holder).values():
                if isinstance(value, np.ndarray):
                    base = value
                    while isinstance(base.base, np.ndarray):
                        base = base.base
                    buffers[id(base)] = base.nbytes if base.base is None else value.nbytes
        return sum(buffers.values())

    def __repr__(self) -> str:
        counts = np.bincount(self.site_tier, minlength=len(Tier))
        tiers = ", ".join(f"{counts[t]} {t.label}" for t in Tier if counts[t])
        return f"<Network {self.name}: {self.node_count:,} nodes in {tiers} sites>"


def _require_node_names(
    defects: Defects, names: tuple[str, ...], node_site: npt.NDArray[np.int32]
) -> None:
    count = int(node_site.size)
    if len(names) != count:
        defects.add("node_names", len(names), f"{count} names")
        return
    first = np.flatnonzero(np.diff(node_site, prepend=-1)).tolist()
    before: set[str] = set()
    for site, (start, end) in enumerate(zip(first, [*first[1:], count], strict=True)):
        here = set(names[start:end])
        # Sites repeat each other's names; one look at each is enough.
        strange = [name for name in here - before if not is_name(name)]
        for name in sorted(strange, key=str)[:_MOST_SHOWN]:
            require_name(defects, "node_names", name)
        if len(here) < end - start:
            defects.add("node_names", "a name twice in a site", "a name of its own for each node")
        if site >= _MOST_SHOWN and defects:
            return
        before = here


def _require_parents(defects: Defects, parent: Index, names: tuple[str, ...]) -> None:
    for site, above in enumerate(parent.tolist()):
        if not -1 <= above < len(names):
            defects.add(f"sites[{site}].parent", above, "the index of a site, or −1")
    if defects:
        return
    height = parent.copy()
    for _ in names:  # After as many steps up as there are sites, everyone has left the forest.
        if (height < 0).all():
            return
        height = np.where(height >= 0, parent[height], -1)
    for site in np.flatnonzero(height >= 0)[:1].tolist():
        defects.add(f"sites[{site}].parent", names[parent[site]], "parents that do not go round")
