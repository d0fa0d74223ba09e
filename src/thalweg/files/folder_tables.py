"""A network taken apart into the tables of a folder, and put together from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from thalweg.errors import Defect, InvalidInput
from thalweg.files.folder_contents import Contents
from thalweg.files.folder_wan import take_wan_apart, wan_from, wan_tables
from thalweg.files.tables import NODES, SITES, TIERS, Array, Table, Values, table_defect
from thalweg.model import Network, Tier

Tables = Mapping[str, Mapping[str, Values]]
"""The columns of each table, by the name of its file."""

_AREA = tuple(column.name for column in SITES.optional)
_FIGURES = tuple(column.name for column in NODES.columns if column.sort == "figure")


def expected_tables(contents: Contents) -> list[tuple[Table, int]]:
    """The tables that a folder with these contents has, and how many rows each."""
    return [(SITES, contents.site_count), (NODES, contents.node_count), *wan_tables(contents)]


def take_apart(network: Network) -> tuple[Contents, dict[str, dict[str, Values]]]:
    """What the folder of a network says it holds, and its tables; raises `InvalidInput`."""
    if network.addresses:
        value = f"{len(network.addresses)} addresses of Spark"
        rule, hint = "a network without any in a folder", "save it as a YAML or JSON file"
        raise InvalidInput([Defect(path="sites", value=value, rule=rule, hint=hint)])
    sites: dict[str, Values] = {
        "name": list(network.site_names),
        "tier": [Tier(tier).label for tier in network.site_tier.tolist()],
        "parent": network.site_parent,
        "edge_delay_s": network.site_edge_delay_s,
    }
    if network.site_area_m is not None:
        sites.update(zip(_AREA, network.site_area_m.T, strict=True))
    nodes: dict[str, Values] = {"site": network.node_site, "operators": network.node_operators}
    nodes.update({name: getattr(network, f"node_{name}") for name in _FIGURES})
    if network.node_names is not None:
        nodes["name"] = list(network.node_names)
    details, tables = take_wan_apart(network.wan)
    contents = Contents(
        name=network.name,
        site_count=network.site_count,
        node_count=network.node_count,
        **details,
    )
    return contents, {SITES.file: sites, NODES.file: nodes, **tables}


def put_together(contents: Contents, tables: Tables) -> Network:
    """The network of these tables, whose single values are sound; raises `InvalidInput`."""
    sites, nodes = tables[SITES.file], tables[NODES.file]
    names = tuple(sites["name"])
    defects: list[Defect] = []
    _check_areas(defects, sites)
    _check_nodes(defects, nodes)
    if defects:
        raise InvalidInput(defects)
    return Network(
        name=contents.name,
        site_names=names,
        site_tier=np.array([TIERS.index(tier) for tier in sites["tier"]], dtype=np.uint8),
        site_parent=np.asarray(sites["parent"]),
        site_edge_delay_s=np.asarray(sites["edge_delay_s"]),
        site_area_m=_areas(sites),
        node_site=np.asarray(nodes["site"]),
        node_operators=np.asarray(nodes["operators"]),
        node_names=tuple(nodes["name"]) if "name" in nodes else None,
        wan=wan_from(contents, tables, names),
        **_node_figures(nodes),
    )


def _areas(sites: Mapping[str, Values]) -> Array | None:
    if _AREA[0] not in sites:
        return None
    return np.stack([np.asarray(sites[name]) for name in _AREA], axis=1)


def _node_figures(nodes: Mapping[str, Values]) -> dict[str, Any]:
    """The figures of the nodes; what is wholly available shares the memory of its capacity."""
    figures = {name: np.asarray(nodes[name]) for name in _FIGURES}
    for whole, part in (
        ("cpu_ips", "cpu_available_ips"),
        ("memory_bytes", "memory_available_bytes"),
        ("lan_bandwidth_bps", "lan_available_bps"),
    ):
        if np.array_equal(figures[whole], figures[part]):
            figures[part] = figures[whole]
    return {f"node_{name}": figure for name, figure in figures.items()}


def _check_areas(defects: list[Defect], sites: Mapping[str, Values]) -> None:
    if _AREA[0] not in sites:
        return
    edges: dict[str, Array] = {name: np.asarray(sites[name]) for name in _AREA}
    west, south, east, north = edges.values()
    empty = [np.isnan(edge) for edge in edges.values()]
    good = np.logical_and.reduce(empty) | ((west < east) & (south < north))
    for row in np.flatnonzero(~good)[:1].tolist():
        rule = "four edges with west below east and south below north, or none"
        found = tuple(float(edge[row]) for edge in edges.values())
        defects.append(table_defect(SITES, f"{_AREA[0]}[{row}]", found, rule))


def _check_nodes(defects: list[Defect], nodes: Mapping[str, Values]) -> None:
    site = np.asarray(nodes["site"])
    for row in np.flatnonzero(np.diff(site) < 0)[:1].tolist():
        rule = "positions of sites, ascending"
        defects.append(table_defect(NODES, f"site[{row + 1}]", int(site[row + 1]), rule))
    if "name" not in nodes:
        return
    seen: set[tuple[int, str]] = set()
    for row, key in enumerate(zip(site.tolist(), nodes["name"], strict=True)):
        if key in seen:
            rule = "a name of its own within the site"
            defects.append(table_defect(NODES, f"name[{row}]", key[1], rule))
            return
        seen.add(key)
