"""Reads a network from plain data: every entry by itself, then the names that join them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from thalweg.errors import Defects, InvalidInput
from thalweg.files.kinds import require_kind
from thalweg.files.network_assembly import assemble_network
from thalweg.files.network_document import (
    MOST_TEXT_NODES,
    MOST_TEXT_SITES,
    CoordinatesEntry,
    LinkEntry,
    MeshEntry,
    NetworkDocument,
    NodeEntry,
    SiteEntry,
)
from thalweg.files.quantities import write_quantity
from thalweg.files.validation import (
    Hints,
    as_written,
    list_of,
    read_items,
    renumber,
    require_known,
    text_of,
    validate,
)
from thalweg.model import Link, Network, Node, Site, build_network
from thalweg.model.names import LONGEST_NAME, is_name
from thalweg.units import BANDWIDTH, CPU_SPEED, LENGTH, SIZE

_WAYS = ("links", "mesh", "coordinates")
_SITE_RULE = "the name of a site"


def read_network(data: object) -> Network:
    """The network that plain data describes; raises `InvalidInput` with all its defects."""
    require_kind(data, "network")
    verdict = validate(NetworkDocument, data)
    defects = Defects()
    if verdict.defects:
        defects.absorb(InvalidInput(verdict.defects))
    read_items(defects, verdict, data, "sites", SiteEntry, _check_site)
    read_items(defects, verdict, data, "links", LinkEntry, _check_link)
    _require_one_way(defects, cast(Mapping[str, object], data))
    if verdict.document is not None:
        _check_whole(defects, verdict.document)
    _check_references(defects, cast(Mapping[str, object], data))
    document = verdict.document
    if document is not None and not defects:
        network = defects.attempt("", lambda: assemble_network(document))
        if network is not None:
            return network
    try:
        defects.raise_if_any()
    except InvalidInput as error:
        raise as_written(error, data) from None
    raise AssertionError("a network without defects is returned above")  # pragma: no cover


def _check_site(site: SiteEntry) -> None:
    defects = Defects()
    if site.area is not None:
        area = site.area
        for low, high in (("west", "east"), ("south", "north")):
            least, most = getattr(area, low), getattr(area, high)
            rule = f"a length below {high}, {write_quantity(most, LENGTH)}"
            defects.require(least < most, f"area.{low}", least, rule)
    for position, node in enumerate(site.nodes):
        _check_node(defects, f"nodes[{position}]", node)
    _require_own_names(defects, site.nodes)
    defects.raise_if_any()


def _check_node(defects: Defects, path: str, node: NodeEntry) -> None:
    lan = math.inf if node.lan_bandwidth is None else node.lan_bandwidth
    for name, available, whole, most, dimension in (
        ("cpu_available", node.cpu_available, "cpu", node.cpu, CPU_SPEED),
        ("memory_available", node.memory_available, "memory", node.memory, SIZE),
        ("lan_available", node.lan_available, "lan_bandwidth", lan, BANDWIDTH),
    ):
        if available is not None and available > most:
            rule = f"at most the {whole}, {write_quantity(most, dimension)}"
            defects.add(f"{path}.{name}", available, rule)
    if node.name is not None and node.count is not None:
        longest = f"{node.name}-{node.count - 1}"
        rule = f"a name that stays within {LONGEST_NAME} characters with its number"
        defects.require(is_name(longest), f"{path}.name", node.name, rule)


def _require_own_names(defects: Defects, nodes: list[NodeEntry]) -> None:
    """No two nodes of a site have one name; counted nodes are compared without listing them."""
    single: dict[str, int] = {}
    numbered: dict[str, dict[float, int]] = {}
    counted: dict[str, tuple[int, int]] = {}
    for position, node in enumerate(nodes):
        if node.name is None:
            continue
        if node.count is not None:
            alike = numbered.get(node.name, {})
            holder = next((alike[k] for k in alike if k < (node.count or 0)), None)
            holder = counted.get(node.name, (holder, 0))[0]
            counted.setdefault(node.name, (position, node.count))
        else:
            base, number = _split_number(node.name)
            holder = single.get(node.name)
            if base in counted and number < counted[base][1]:
                holder = counted[base][0]
            single.setdefault(node.name, position)
            numbered.setdefault(base, {}).setdefault(number, position)
        if holder is not None:
            hint = f"nodes[{holder}] has it already"
            defects.add(f"nodes[{position}].name", node.name, "a name of its own", hint)


def _split_number(name: str) -> tuple[str, float]:
    """The base and the number of a name such as gw-7; "gw-07" has none."""
    base, _, number = name.rpartition("-")
    is_number = number.isdecimal() and (number == "0" or not number.startswith("0"))
    return (base, int(number)) if is_number else (name, math.inf)


def _check_link(link: LinkEntry) -> None:
    defects = Defects()
    if link.bandwidth_available is not None:
        most = max(link.bandwidth_available)
        rule = f"at most the bandwidth, {write_quantity(link.bandwidth, BANDWIDTH)}"
        value = write_quantity(most, BANDWIDTH)
        defects.require(most <= link.bandwidth, "bandwidth_available", value, rule)
    defects.raise_if_any()


def _require_one_way(defects: Defects, data: Mapping[str, object]) -> None:
    given = [way for way in _WAYS if way in data]
    if len(given) > 1:
        rule = "only one of links, mesh and coordinates"
        defects.add(given[1], " and ".join(given), rule, f"{given[0]} is given already")
    if not given and len(list_of(data, "sites") or []) > 1:
        rule = "links, a mesh or coordinates"
        defects.add("links", None, rule, "say how the sites are joined")
    if "root" in data and "links" not in data:
        defects.add("root", data["root"], "no root without links", "only a tree of links has one")


def _check_whole(defects: Defects, document: NetworkDocument) -> None:
    """What concerns all sites together, asked only where every entry is sound."""
    hint = "keep a large network in a Parquet folder"
    sites, nodes = document.sites, list(_nodes(document))
    total = sum(node.count or 1 for _, node in nodes)
    rule = f"at most {MOST_TEXT_NODES} nodes in a text file"
    defects.require(total <= MOST_TEXT_NODES, "sites", f"{total} nodes", rule, hint)
    rule = f"at most {MOST_TEXT_SITES} sites in a text file"
    defects.require(len(sites) <= MOST_TEXT_SITES, "sites", f"{len(sites)} sites", rule, hint)
    if any(node.name is not None for _, node in nodes):
        unnamed = next((path for path, node in nodes if node.name is None), None)
        if unnamed is not None:
            rule, hint = "a name, as other nodes have one", "name every node, or none"
            defects.add(f"{unnamed}.name", None, rule, hint)
    if document.mesh is not None:
        _check_mesh(defects, document.mesh, len(sites))
    if document.coordinates is not None:
        _check_taken(defects, document.coordinates)
    if document.coordinates is None or (document.links is None and document.mesh is None):
        _check_positions(defects, document)


def _nodes(document: NetworkDocument) -> Iterator[tuple[str, NodeEntry]]:
    for at, site in enumerate(document.sites):
        for position, node in enumerate(site.nodes):
            yield f"sites[{at}].nodes[{position}]", node


def _check_mesh(defects: Defects, mesh: MeshEntry, site_count: int) -> None:
    fits = True
    for name in ("latency", "bandwidth", "bandwidth_available"):
        figures = getattr(mesh, name)
        if isinstance(figures, np.ndarray) and len(figures) != site_count:
            size, rule = (
                len(figures),
                f"{site_count} × {site_count}, as there are {site_count} sites",
            )
            defects.add(f"mesh.{name}", f"{size} × {size}", rule)
            fits = False
    if fits:
        rule = "0 s, as a site is at no distance from itself"
        for site in np.flatnonzero(np.diagonal(mesh.latency)).tolist():
            defects.add(f"mesh.latency[{site}][{site}]", None, rule)
    if not fits or mesh.bandwidth_available is None:
        return
    shape = (site_count, site_count)
    bandwidth = np.broadcast_to(mesh.bandwidth, shape)
    over = np.argwhere(np.broadcast_to(mesh.bandwidth_available, shape) > bandwidth)
    for row, column in over[:1].tolist():
        cell = f"[{row}][{column}]" if isinstance(mesh.bandwidth_available, np.ndarray) else ""
        most = write_quantity(bandwidth[row, column], BANDWIDTH)
        defects.add(f"mesh.bandwidth_available{cell}", None, f"at most the bandwidth, {most}")


def _check_taken(defects: Defects, coordinates: CoordinatesEntry) -> None:
    first: dict[tuple[str, str], int] = {}
    for position, entry in enumerate(coordinates.taken):
        path, shown = f"coordinates.taken[{position}]", f"{entry.a} → {entry.b}"
        defects.require(entry.a != entry.b, path, shown, "two different sites")
        earlier = first.setdefault((entry.a, entry.b), position)
        rule = "one entry for each way between two sites"
        hint = f"coordinates.taken[{earlier}] is the same"
        defects.require(earlier == position, path, shown, rule, hint)


def _check_positions(defects: Defects, document: NetworkDocument) -> None:
    first: int | None = None
    for at, site in enumerate(document.sites):
        path = f"sites[{at}]"
        if document.coordinates is None:
            for name in ("position", "height"):
                given = getattr(site, name)
                rule, hint = f"no {name} here", "only a network with coordinates has it"
                defects.require(given is None, f"{path}.{name}", f"a {name}", rule, hint)
        elif site.position is None:
            rule = "a position, as the network has coordinates"
            defects.add(f"{path}.position", None, rule)
        else:
            first = len(site.position) if first is None else first
            rule, given = f"{first} durations, as before", f"{len(site.position)} durations"
            defects.require(len(site.position) == first, f"{path}.position", given, rule)


def _check_references(defects: Defects, data: Mapping[str, object]) -> None:
    """Whether names lead to sites and sites differ, as far as it is known despite other defects."""
    names = [text_of(item, "name") for item in list_of(data, "sites") or []]
    if not names or not all(is_name(name) for name in names):
        return
    known = {str(name): position for position, name in enumerate(names)}
    hints = Hints()

    def is_site(item: object, path: str, field: str) -> bool:
        name = text_of(item, field)
        if name is None or not is_name(name):
            return False
        return require_known(defects, f"{path}{field}", name, known, _SITE_RULE, hints)

    parents = [
        known[str(text_of(item, "parent"))]
        if is_site(item, f"sites[{position}].", "parent")
        else -1
        for position, item in enumerate(list_of(data, "sites") or [])
    ]
    _require_parents_end(defects, [str(name) for name in names], parents)
    is_site(data, "", "root")
    for position, item in enumerate(list_of(data.get("coordinates"), "taken") or []):
        for end in ("a", "b"):
            is_site(item, f"coordinates.taken[{position}].", end)
    links = []
    for position, item in enumerate(list_of(data, "links") or []):
        known_ends = [is_site(item, f"links[{position}].", end) for end in ("a", "b")]
        if all(known_ends):
            links.append((position, item))
    if defects:
        _check_stand_ins(defects, [str(name) for name in names], links)


def _require_parents_end(defects: Defects, names: list[str], parents: list[int]) -> None:
    """Remember every circle of parents, at its first site."""
    seen: dict[int, int] = {}
    for start in range(len(parents)):
        way: list[int] = []
        site = start
        while site >= 0 and site not in seen:
            seen[site] = start
            way.append(site)
            site = parents[site]
        if site >= 0 and seen[site] == start:
            circle = [*way[way.index(site) :], site]
            shown = " → ".join(names[k] for k in [*circle[:7], *circle[7:][-1:]])
            path, rule = f"sites[{site}].parent", "parents that do not lead back to the site"
            defects.add(path, names[parents[site]], rule, f"they go {shown}")


def _check_stand_ins(
    defects: Defects, names: list[str], links: list[tuple[int, Mapping[str, Any]]]
) -> None:
    """What the model says to sites of these names and links with these ends, all else set right."""
    node = Node(name="any", cpu_ips=1.0, memory_bytes=1.0)
    try:
        build_network(
            "unnamed",
            [Site(name=name, tier="edge", nodes=(node,)) for name in names],
            [Link(a=item["a"], b=item["b"], latency_s=0.0, bandwidth_bps=1.0) for _, item in links],
        )
    except InvalidInput as error:
        numbers = [position for position, _ in links]
        defects.absorb(InvalidInput(renumber(d, "links", numbers) for d in error.defects))
