"""A network put together from sites, nodes and links given as objects."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects, nearest
from thalweg.model.graph import Floats
from thalweg.model.links import LinkWan
from thalweg.model.names import require_name, require_unique
from thalweg.model.network import Network, Tier
from thalweg.model.tree import TreeWan
from thalweg.model.views import Link, Node, Site
from thalweg.model.wan import Wan

_TIERS = tuple(tier.label for tier in Tier)


def build_network(name: str, sites: Sequence[Site], links: Sequence[Link]) -> Network:
    """The network of these sites and links.

    Where the links form one tree it is held as a tree, else routes of least latency are used.

    >>> from thalweg.model import Link, Node, Site, build_network
    >>> node = Node(name="a", cpu_ips=1e9, memory_bytes=1e9)
    >>> sites = [Site(name="fog", tier="fog", nodes=(node,)),
    ...          Site(name="cloud", tier="cloud", nodes=(node,))]
    >>> links = [Link(a="fog", b="cloud", latency_s=0.1, bandwidth_bps=1e8)]
    >>> build_network("small", sites, links)
    <Network small: 2 nodes in 1 fog, 1 cloud sites>
    """
    defects = Defects()
    _require_sites(defects, sites)
    _require_links(defects, sites, links)
    defects.raise_if_any()
    index = {site.name: position for position, site in enumerate(sites)}
    nodes = [node for site in sites for node in site.nodes]
    areas = [site.area_m or (np.nan,) * 4 for site in sites]
    return Network(
        name=name,
        site_names=tuple(site.name for site in sites),
        site_tier=np.array([_TIERS.index(site.tier) for site in sites], dtype=np.uint8),
        site_parent=np.array(
            [index[site.parent] if site.parent is not None else -1 for site in sites],
            dtype=np.int32,
        ),
        site_edge_delay_s=np.array([site.edge_delay_s for site in sites], dtype=float),
        site_area_m=np.array(areas) if any(site.area_m for site in sites) else None,
        node_site=np.repeat(np.arange(len(sites), dtype=np.int32), [len(s.nodes) for s in sites]),
        node_cpu_ips=_column(nodes, "cpu_ips"),
        node_cpu_available_ips=_column(nodes, "cpu_available_ips"),
        node_memory_bytes=_column(nodes, "memory_bytes"),
        node_memory_available_bytes=_column(nodes, "memory_available_bytes"),
        node_lan_latency_s=_column(nodes, "lan_latency_s"),
        node_lan_bandwidth_bps=_column(nodes, "lan_bandwidth_bps"),
        node_lan_available_bps=_column(nodes, "lan_available_bps"),
        node_operators=np.array([node.operators for node in nodes], dtype=np.int32),
        node_names=tuple(node.name for node in nodes),
        addresses={site.name: site.spark for site in sites if site.spark is not None},
        wan=join_sites(len(sites), [(index[link.a], index[link.b], link) for link in links]),
    )


def join_sites(site_count: int, ends: Sequence[tuple[int, int, Link]]) -> Wan:
    """A tree where the links form one over all sites, rooted at the last site; else a graph.

    The last site is the root because networks are written from the edge to the cloud; which one
    it is changes no answer.
    """
    a = np.array([x for x, _, _ in ends], dtype=np.int32)
    b = np.array([y for _, y, _ in ends], dtype=np.int32)
    latency = np.array([link.latency_s for _, _, link in ends], dtype=float)
    bandwidth = np.array([link.bandwidth_bps for _, _, link in ends], dtype=float)
    free = np.array([link.bandwidth_available_bps for _, _, link in ends], dtype=float)
    available = np.repeat(free[:, None], 2, axis=1)
    if len(ends) == site_count - 1:
        link_up, parent = _root_tree(site_count, list(zip(a.tolist(), b.tolist(), strict=True)))
        if (link_up >= 0).sum() == site_count - 1:
            return TreeWan(
                parent=parent.astype(np.int32),
                latency=_at(latency, link_up, 0.0),
                bandwidth=_at(bandwidth, link_up, np.inf),
                available=np.repeat(_at(free, link_up, np.inf)[:, None], 2, axis=1),
            )
    return LinkWan(
        site_count=site_count, a=a, b=b, latency=latency, bandwidth=bandwidth, available=available
    )


def _root_tree(
    site_count: int, ends: list[tuple[int, int]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each site the link towards the last site and the site at its other end, −1 if none."""
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(site_count)]
    for k, (x, y) in enumerate(ends):
        neighbours[x].append((y, k))
        neighbours[y].append((x, k))
    link_up = np.full(site_count, -1)
    parent = np.full(site_count, -1)
    root = site_count - 1
    seen = {root}
    waiting = deque([root])
    while waiting:
        site = waiting.popleft()
        for other, k in neighbours[site]:
            if other not in seen:
                seen.add(other)
                link_up[other], parent[other] = k, site
                waiting.append(other)
    return link_up, parent


def _at(values: Floats, position: npt.NDArray[np.int64], otherwise: float) -> Floats:
    found = np.full(position.shape, otherwise)
    found[position >= 0] = values[position[position >= 0]]
    return found


def _column(nodes: Sequence[Node], name: str) -> Floats:
    return np.array([getattr(node, name) for node in nodes], dtype=float)


def _require_sites(defects: Defects, sites: Sequence[Site]) -> None:
    defects.require(bool(sites), "sites", "no sites", "at least one site")
    defects.require(
        not sites or any(site.nodes for site in sites), "sites", "no nodes", "at least one node"
    )
    names = [site.name for site in sites]
    known = set(names)
    require_unique(defects, "sites", names)
    for position, site in enumerate(sites):
        path = f"sites[{position}]"
        require_name(defects, f"{path}.name", site.name)
        if site.tier not in _TIERS:
            defects.add(
                f"{path}.tier", site.tier, "edge, fog or cloud", nearest(str(site.tier), _TIERS)
            )
        if site.parent is not None and site.parent not in known:
            defects.add(
                f"{path}.parent", site.parent, "the name of a site", nearest(site.parent, names)
            )
        require_unique(defects, f"{path}.nodes", [node.name for node in site.nodes])
        for k, node in enumerate(site.nodes):
            require_name(defects, f"{path}.nodes[{k}].name", node.name)


def _require_links(defects: Defects, sites: Sequence[Site], links: Sequence[Link]) -> None:
    names = {site.name for site in sites}
    seen: dict[frozenset[str], int] = {}
    for position, link in enumerate(links):
        path = f"links[{position}]"
        for end, name in (("a", link.a), ("b", link.b)):
            if name not in names:
                defects.add(
                    f"{path}.{end}", name, "the name of a site", nearest(name, sorted(names))
                )
        defects.require(
            math.isfinite(link.latency_s), f"{path}.latency_s", link.latency_s, "a finite number"
        )
        defects.require(
            link.a != link.b, path, f"{link.a} – {link.b}", "a link between two different sites"
        )
        pair = frozenset((link.a, link.b))
        if pair in seen:
            defects.add(
                path,
                f"{link.a} – {link.b}",
                "one link between two sites",
                f"links[{seen[pair]}] joins them already",
            )
        seen.setdefault(pair, position)
