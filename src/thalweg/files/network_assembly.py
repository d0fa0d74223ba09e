"""Puts together the network that a sound document describes."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.files.connectivity import require_connected
from thalweg.files.network_document import (
    AreaEntry,
    CoordinatesEntry,
    LinkEntry,
    MeshEntry,
    NetworkDocument,
    NodeEntry,
    SiteEntry,
)
from thalweg.model import (
    CoordinateWan,
    Link,
    LinkWan,
    MeshWan,
    Network,
    Node,
    Site,
    TreeWan,
    Wan,
    build_network,
)

_NODE_FIGURES = (
    "node_site",
    "node_cpu_ips",
    "node_cpu_available_ips",
    "node_memory_bytes",
    "node_memory_available_bytes",
    "node_lan_latency_s",
    "node_lan_bandwidth_bps",
    "node_lan_available_bps",
    "node_operators",
)


def assemble_network(document: NetworkDocument) -> Network:
    """The network of a document whose entries are sound and whose names are known.

    Nodes given with a count are one node until the end, so a hundred thousand cost no objects.
    """
    compact = build_network(
        document.network,
        [_site(site) for site in document.sites],
        [_link(link) for link in document.links or []],
    )
    defects = Defects()
    index = compact.site_index
    parent = np.array(
        [-1 if site.parent is None else index[site.parent] for site in document.sites],
        dtype=np.int32,
    )
    defects.attempt("", lambda: replace(compact, site_parent=parent))
    wan = defects.attempt("", lambda: _wan(document, compact))
    defects.raise_if_any()
    nodes = [node for site in document.sites for node in site.nodes]
    counts = [node.count or 1 for node in nodes]
    figures = {name: np.repeat(getattr(compact, name), counts) for name in _NODE_FIGURES}
    return replace(
        compact,
        **figures,  # type: ignore[arg-type]
        site_parent=parent,
        wan=compact.wan if wan is None else wan,
        node_names=_node_names(nodes),
    )


def _site(site: SiteEntry) -> Site:
    # Names of nodes are checked before and given after, parents likewise: see `assemble_network`.
    nodes = tuple(_node(str(position), node) for position, node in enumerate(site.nodes))
    return Site(
        name=site.name,
        tier=site.tier,
        nodes=nodes,
        edge_delay_s=site.edge_delay,
        area_m=None if site.area is None else _area(site.area),
        spark=site.spark,
    )


def _area(area: AreaEntry) -> tuple[float, float, float, float]:
    return area.west, area.south, area.east, area.north


def _node(name: str, node: NodeEntry) -> Node:
    return Node(
        name=name,
        cpu_ips=node.cpu,
        cpu_available_ips=node.cpu_available,
        memory_bytes=node.memory,
        memory_available_bytes=node.memory_available,
        lan_latency_s=node.lan_latency,
        lan_bandwidth_bps=math.inf if node.lan_bandwidth is None else node.lan_bandwidth,
        lan_available_bps=node.lan_available,
        operators=node.operators,
    )


def _node_names(nodes: list[NodeEntry]) -> tuple[str, ...] | None:
    if any(node.name is None for node in nodes):
        return None
    names: list[str] = []
    for node in nodes:
        if node.count is None:
            names.append(str(node.name))
        else:
            names += [f"{node.name}-{number}" for number in range(node.count)]
    return tuple(names)


def _link(link: LinkEntry) -> Link:
    return Link(a=link.a, b=link.b, latency_s=link.latency, bandwidth_bps=link.bandwidth)


def _wan(document: NetworkDocument, compact: Network) -> Wan:
    if document.mesh is not None:
        return _mesh(document.mesh, len(document.sites))
    if document.coordinates is not None:
        return _coordinates(document.coordinates, document.sites, compact.site_index)
    return _joined(document, compact)


def _mesh(mesh: MeshEntry, site_count: int) -> MeshWan:
    def full(figures: npt.NDArray[np.float64] | float) -> npt.NDArray[np.float64]:
        return np.broadcast_to(np.asarray(figures, dtype=float), (site_count, site_count))

    bandwidth = full(mesh.bandwidth)
    free = bandwidth if mesh.bandwidth_available is None else full(mesh.bandwidth_available)
    return MeshWan(latency=mesh.latency, bandwidth=bandwidth, available=free)


def _coordinates(
    coordinates: CoordinatesEntry, sites: list[SiteEntry], index: dict[str, int]
) -> CoordinateWan:
    taken = {
        index[entry.a] * len(sites) + index[entry.b]: entry.bandwidth for entry in coordinates.taken
    }
    links = sorted(taken)
    return CoordinateWan(
        position_s=np.array([site.position for site in sites], dtype=float),
        height_s=np.array([site.height or 0.0 for site in sites]),
        capacity_bps=coordinates.bandwidth,
        taken_links=np.array(links, dtype=np.int64),
        taken_bps=np.array([taken[link] for link in links], dtype=float),
    )


def _joined(document: NetworkDocument, compact: Network) -> Wan:
    """The links as a tree where they form one, else as a graph."""
    links, index = document.links or [], compact.site_index
    ends = [(index[link.a], index[link.b]) for link in links]
    defects = Defects()
    require_connected(defects, compact.site_names, ends)
    defects.raise_if_any()
    free = [link.bandwidth_available or (link.bandwidth, link.bandwidth) for link in links]
    if len(links) == compact.site_count - 1:
        root = compact.site_count - 1 if document.root is None else index[document.root]
        return _tree(root, ends, links, free)
    rule, hint = "links that form one tree, where a root is given", "leave root out"
    defects.require(document.root is None, "root", document.root, rule, hint)
    defects.raise_if_any()
    return LinkWan(
        site_count=compact.site_count,
        a=np.array([a for a, _ in ends], dtype=np.int32),
        b=np.array([b for _, b in ends], dtype=np.int32),
        latency=np.array([link.latency for link in links], dtype=float),
        bandwidth=np.array([link.bandwidth for link in links], dtype=float),
        available=np.array(free, dtype=float).reshape(-1, 2),
    )


def _tree(
    root: int,
    ends: list[tuple[int, int]],
    links: list[LinkEntry],
    free: list[tuple[float, float]],
) -> TreeWan:
    """The tree of these links, hung up at its root."""
    site_count = len(ends) + 1
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(site_count)]
    for k, (a, b) in enumerate(ends):
        neighbours[a].append((b, k))
        neighbours[b].append((a, k))
    parent = np.full(site_count, -1, dtype=np.int32)
    latency, bandwidth = np.zeros(site_count), np.full(site_count, np.inf)
    available = np.full((site_count, 2), np.inf)
    waiting = deque([root])
    while waiting:
        above = waiting.popleft()
        for site, k in neighbours[above]:
            if site != parent[above]:
                parent[site] = above
                latency[site], bandwidth[site] = links[k].latency, links[k].bandwidth
                available[site] = free[k] if ends[k][0] == site else free[k][::-1]
                waiting.append(site)
    return TreeWan(parent=parent, latency=latency, bandwidth=bandwidth, available=available)
