"""The network between sites as a table of a folder: one shape, one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.files.connectivity import require_connected
from thalweg.files.folder_contents import Contents
from thalweg.files.tables import (
    LINKS,
    MESH,
    TAKEN,
    TREE,
    Array,
    Table,
    Values,
    coordinates_table,
    table_defect,
)
from thalweg.model import CoordinateWan, LinkWan, MeshWan, TreeWan, Wan

DEEPEST_TREE = 1_000


def wan_tables(contents: Contents) -> list[tuple[Table, int]]:
    """The tables of the shape, and how many rows each has."""
    sites = contents.site_count
    if contents.shape == "mesh":
        return [(MESH, sites * sites)]
    if contents.shape == "links":
        return [(LINKS, contents.link_count)]
    if contents.shape == "tree":
        return [(TREE, sites)]
    taken = [(TAKEN, contents.taken_count)] if contents.taken_count else []
    return [(coordinates_table(contents.dimensions), sites), *taken]


def take_wan_apart(wan: Wan) -> tuple[dict[str, Any], dict[str, dict[str, Values]]]:
    """What the contents say about the shape, and its tables."""
    if isinstance(wan, MeshWan):
        mesh = (wan.latency, wan.bandwidth, wan.available)
        return {"shape": "mesh"}, _named(MESH, *(np.ravel(figures) for figures in mesh))
    if isinstance(wan, LinkWan):
        figures = (wan.latency, wan.bandwidth, *wan.available.T)
        return {"shape": "links", "link_count": len(wan.a)}, _named(LINKS, wan.a, wan.b, *figures)
    if isinstance(wan, TreeWan):
        figures = (wan.latency, wan.bandwidth, *wan.available.T)
        return {"shape": "tree"}, _named(TREE, wan.parent, *figures)
    if isinstance(wan, CoordinateWan):
        dimensions = wan.position_s.shape[1]
        tables = _named(coordinates_table(dimensions), *wan.position_s.T, wan.height_s)
        if wan.taken_links.size:
            a, b = np.divmod(wan.taken_links, wan.site_count)
            tables |= _named(TAKEN, a.astype(np.int32), b.astype(np.int32), wan.taken_bps)
        details = {
            "shape": "coordinates",
            "dimensions": dimensions,
            "bandwidth_bps": float(wan.capacity_bps),
            "taken_count": int(wan.taken_links.size),
        }
        return details, tables
    rule = "links, a tree, a mesh or coordinates between the sites"
    raise InvalidInput([Defect(path="wan", value=type(wan).__name__, rule=rule)])


def wan_from(
    contents: Contents, tables: Mapping[str, Mapping[str, Values]], names: tuple[str, ...]
) -> Wan:
    """The network between sites that these tables describe; raises `InvalidInput`."""
    if contents.shape == "mesh":
        return _mesh(contents.site_count, tables[MESH.file])
    if contents.shape == "links":
        return _links(tables[LINKS.file], names)
    if contents.shape == "tree":
        return _tree(tables[TREE.file])
    return _coordinates(contents, tables)


def _named(table: Table, *values: Array) -> dict[str, dict[str, Values]]:
    names = (column.name for column in table.columns)
    return {table.file: dict(zip(names, values, strict=True))}


def _mesh(site_count: int, columns: Mapping[str, Values]) -> MeshWan:
    shape = (site_count, site_count)
    latency, bandwidth, available = (
        np.asarray(columns[column.name]).reshape(shape) for column in MESH.columns
    )
    same = np.array_equal(bandwidth, available)
    bandwidth = _shared(bandwidth)
    return MeshWan(
        latency=latency,
        bandwidth=bandwidth,
        available=bandwidth if same else _shared(available),
    )


def _shared(figures: Array) -> Array:
    """One number that stands for all, where all are the same: it takes no memory for each."""
    if (figures == figures[0, 0]).all():
        return np.broadcast_to(figures[0, 0].copy(), figures.shape)
    return figures


def _links(columns: Mapping[str, Values], names: tuple[str, ...]) -> LinkWan:
    a, b, latency, bandwidth, to_b, to_a = (np.asarray(columns[c.name]) for c in LINKS.columns)
    _require_single_links(LINKS, a, b, len(names), both_ways=True)
    defects = Defects()
    require_connected(defects, names, zip(a.tolist(), b.tolist(), strict=True))
    try:
        defects.raise_if_any()
    except InvalidInput as error:
        raise error.in_file(LINKS.file) from None
    return LinkWan(
        site_count=len(names),
        a=a,
        b=b,
        latency=latency,
        bandwidth=bandwidth,
        available=np.stack([to_b, to_a], axis=1),
    )


def _tree(columns: Mapping[str, Values]) -> TreeWan:
    parent, latency, bandwidth, up, down = (np.asarray(columns[c.name]) for c in TREE.columns)
    above = parent
    for _ in range(DEEPEST_TREE):
        if (above < 0).all():
            break
        above = np.where(above >= 0, parent[above], -1)
    for row in np.flatnonzero(above >= 0)[:1].tolist():
        rule = f"a way of at most {DEEPEST_TREE} links up to the root"
        raise InvalidInput([table_defect(TREE, f"parent[{row}]", int(parent[row]), rule)])
    try:
        available = np.stack([up, down], axis=1)
        return TreeWan(parent=parent, latency=latency, bandwidth=bandwidth, available=available)
    except InvalidInput as error:
        raise error.in_file(TREE.file) from None


def _coordinates(contents: Contents, tables: Mapping[str, Mapping[str, Values]]) -> CoordinateWan:
    table = coordinates_table(contents.dimensions)
    columns = [np.asarray(tables[table.file][column.name]) for column in table.columns]
    links, taken = np.empty(0, dtype=np.int64), np.empty(0)
    if contents.taken_count:
        a, b, amount = (np.asarray(tables[TAKEN.file][column.name]) for column in TAKEN.columns)
        _require_single_links(TAKEN, a, b, contents.site_count, both_ways=False)
        links = a.astype(np.int64) * contents.site_count + b
        order = np.argsort(links)
        links, taken = links[order], amount[order]
    return CoordinateWan(
        position_s=np.stack(columns[:-1], axis=1),
        height_s=columns[-1],
        capacity_bps=contents.bandwidth_bps,
        taken_links=links,
        taken_bps=taken,
    )


def _require_single_links(
    table: Table, a: Array, b: Array, site_count: int, *, both_ways: bool
) -> None:
    """No link leads from a site to itself, and no two join the same sites."""
    for row in np.flatnonzero(a == b)[:1].tolist():
        raise InvalidInput([table_defect(table, f"b[{row}]", int(b[row]), "another site than a")])
    near, far = (np.minimum(a, b), np.maximum(a, b)) if both_ways else (a, b)
    link = near.astype(np.int64) * site_count + far
    _, first = np.unique(link, return_index=True)
    if first.size < link.size:
        row = int(np.setdiff1d(np.arange(link.size), first)[0])
        found, rule = (int(a[row]), int(b[row])), "sites that no row before joins"
        raise InvalidInput([table_defect(table, f"a[{row}]", found, rule)])
