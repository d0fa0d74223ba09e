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
from thalweg.files.network_references import check_references
from thalweg.files.quantities import write_quantity
from thalweg.files.validation import Verdict, as_written, list_of, read_items, validate
from thalweg.model import Network
from thalweg.model.names import LONGEST_NAME, is_name
from thalweg.units import BANDWIDTH, CPU_SPEED, LENGTH, SIZE

_WAYS = ("links", "mesh", "coordinates")


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
    _check_sound_parts(defects, verdict, cast(Mapping[str, object], data))
    check_references(defects, cast(Mapping[str, object], data))
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


def _check_sound_parts(
    defects: Defects, verdict: Verdict[NetworkDocument], data: Mapping[str, Any]
) -> None:
    """What concerns several entries together, asked wherever all of these are sound."""
    sound = [name for name in ("sites", "mesh", "coordinates") if name in data]
    sound = [name for name in sound if verdict.is_sound(name)]
    mesh = MeshEntry.model_validate(data["mesh"]) if "mesh" in sound else None
    if mesh is not None and list_of(data, "sites"):
        _check_mesh(defects, mesh, len(data["sites"]))
    if "coordinates" in sound:
        _check_taken(defects, CoordinatesEntry.model_validate(data["coordinates"]))
    if "sites" in sound:
        document = verdict.document
        sites = document.sites if document else list(map(SiteEntry.model_validate, data["sites"]))
        _check_sites(defects, sites)
        ways = [way for way in _WAYS if way in data]
        if len(ways) <= 1:
            _check_positions(defects, sites, has_coordinates="coordinates" in ways)


def _check_sites(defects: Defects, sites: list[SiteEntry]) -> None:
    """There are not too many of them for a text file, and their nodes have all names or none."""
    nodes = list(_nodes(sites))
    hint = "keep a large network in a Parquet folder"
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


def _nodes(sites: list[SiteEntry]) -> Iterator[tuple[str, NodeEntry]]:
    for at, site in enumerate(sites):
        for position, node in enumerate(site.nodes):
            yield f"sites[{at}].nodes[{position}]", node


def _check_mesh(defects: Defects, mesh: MeshEntry, site_count: int) -> None:
    fits = True
    for name in ("latency", "bandwidth", "bandwidth_available"):
        figures = getattr(mesh, name)
        if isinstance(figures, np.ndarray) and len(figures) != site_count:
            size = f"{len(figures)} × {len(figures)}"
            rule = f"{site_count} × {site_count}, as there are {site_count} sites"
            defects.add(f"mesh.{name}", size, rule)
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


def _check_positions(defects: Defects, sites: list[SiteEntry], *, has_coordinates: bool) -> None:
    first: int | None = None
    for at, site in enumerate(sites):
        path = f"sites[{at}]"
        if not has_coordinates:
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
