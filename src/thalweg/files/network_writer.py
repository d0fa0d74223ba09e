"""Writes a network as plain data, without what is at its default."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defect, InvalidInput
from thalweg.files.fields import FORMAT_VERSION
from thalweg.files.quantities import write_quantity, write_signed
from thalweg.model import CoordinateWan, LinkWan, MeshWan, Network, Tier, TreeWan
from thalweg.units import BANDWIDTH, CPU_SPEED, DURATION, LENGTH, SIZE

MOST_WRITTEN_NODES = 5_000


def network_data(network: Network) -> dict[str, Any]:
    """The network as plain data; raises `InvalidInput` where that would be too long to read."""
    if network.node_count > MOST_WRITTEN_NODES:
        value = f"{network.node_count} nodes"
        rule = f"at most {MOST_WRITTEN_NODES} nodes in a text file"
        hint = "save the network as a folder: give a name without an ending"
        raise InvalidInput([Defect(path="sites", value=value, rule=rule, hint=hint)])
    return {
        "thalweg": FORMAT_VERSION,
        "network": network.name,
        "sites": [_site(network, site) for site in range(network.site_count)],
        **_wan(network),
    }


def _site(network: Network, site: int) -> dict[str, Any]:
    parent = int(network.site_parent[site])
    delay = float(network.site_edge_delay_s[site])
    data: dict[str, Any] = {
        "name": network.site_names[site],
        "tier": Tier(network.site_tier[site]).label,
    }
    if parent >= 0:
        data["parent"] = network.site_names[parent]
    if delay:
        data["edge_delay"] = write_quantity(delay, DURATION)
    if network.site_area_m is not None and not np.isnan(network.site_area_m[site]).any():
        edges = network.site_area_m[site].tolist()
        names = ("west", "south", "east", "north")
        data["area"] = {
            name: write_signed(edge, LENGTH) for name, edge in zip(names, edges, strict=True)
        }
    if isinstance(network.wan, CoordinateWan):
        position = network.wan.position_s[site].tolist()
        data["position"] = [write_signed(value, DURATION) for value in position]
        if height := float(network.wan.height_s[site]):
            data["height"] = write_quantity(height, DURATION)
    if nodes := _nodes(network, site):
        data["nodes"] = nodes
    if address := network.addresses.get(network.site_names[site]):
        data["spark"] = address
    return data


def _nodes(network: Network, site: int) -> list[dict[str, Any]]:
    """The nodes of a site; those that are alike and numbered from 0 are one entry with a count."""
    first, end = int(network.first_node[site]), int(network.first_node[site + 1])
    entries = []
    while first < end:
        figures = _figures(network, first)
        base = "" if network.node_names is None else _base_name(network.node_names[first])
        after = first + 1
        while (
            base is not None
            and after < end
            and (
                network.node_names is None or network.node_names[after] == f"{base}-{after - first}"
            )
            and _figures(network, after) == figures
        ):
            after += 1
        entry: dict[str, Any] = {}
        if network.node_names is not None:
            entry["name"] = network.node_names[first] if after == first + 1 else base
        if after > first + 1:
            entry["count"] = after - first
        entries.append({**entry, **_node(figures)})
        first = after
    return entries


def _base_name(name: str) -> str | None:
    return name.removesuffix("-0") if name.endswith("-0") and len(name) > 2 else None


def _figures(network: Network, node: int) -> tuple[float, ...]:
    return (
        float(network.node_cpu_ips[node]),
        float(network.node_cpu_available_ips[node]),
        float(network.node_memory_bytes[node]),
        float(network.node_memory_available_bytes[node]),
        float(network.node_lan_latency_s[node]),
        float(network.node_lan_bandwidth_bps[node]),
        float(network.node_lan_available_bps[node]),
        int(network.node_operators[node]),
    )


def _node(figures: tuple[float, ...]) -> dict[str, Any]:
    cpu, cpu_free, memory, memory_free, latency, bandwidth, bandwidth_free, operators = figures
    data: dict[str, Any] = {"cpu": write_quantity(cpu, CPU_SPEED)}
    if cpu_free != cpu:
        data["cpu_available"] = write_quantity(cpu_free, CPU_SPEED)
    data["memory"] = write_quantity(memory, SIZE)
    if memory_free != memory:
        data["memory_available"] = write_quantity(memory_free, SIZE)
    if latency:
        data["lan_latency"] = write_quantity(latency, DURATION)
    if bandwidth != np.inf:
        data["lan_bandwidth"] = write_quantity(bandwidth, BANDWIDTH)
    if bandwidth_free != bandwidth:
        data["lan_available"] = write_quantity(bandwidth_free, BANDWIDTH)
    if operators:
        data["operators"] = operators
    return data


def _wan(network: Network) -> dict[str, Any]:
    wan = network.wan
    if isinstance(wan, MeshWan):
        return {"mesh": _mesh(wan)}
    if isinstance(wan, CoordinateWan):
        return {"coordinates": _coordinates(network, wan)}
    if isinstance(wan, TreeWan):
        return _tree(network, wan)
    if isinstance(wan, LinkWan):
        links = [
            _link(network, a, b, *figures)
            for a, b, *figures in zip(
                wan.a.tolist(),
                wan.b.tolist(),
                wan.latency.tolist(),
                wan.bandwidth.tolist(),
                wan.available.tolist(),
                strict=True,
            )
        ]
        return {"links": links}
    rule = "links, a tree, a mesh or coordinates between the sites"
    raise InvalidInput([Defect(path="wan", value=type(wan).__name__, rule=rule)])


def _tree(network: Network, wan: TreeWan) -> dict[str, Any]:
    parents = wan.parent.tolist()
    root = parents.index(-1)
    links = [
        _link(
            network,
            site,
            above,
            float(wan.latency[site]),
            float(wan.bandwidth[site]),
            wan.available[site].tolist(),
        )
        for site, above in enumerate(parents)
        if above >= 0
    ]
    data: dict[str, Any] = {"links": links} if links else {}
    if root != network.site_count - 1:
        data["root"] = network.site_names[root]
    return data


def _link(
    network: Network, a: int, b: int, latency: float, bandwidth: float, available: list[float]
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "a": network.site_names[a],
        "b": network.site_names[b],
        "latency": write_quantity(latency, DURATION),
        "bandwidth": write_quantity(bandwidth, BANDWIDTH),
    }
    forth, back = (write_quantity(free, BANDWIDTH) for free in available)
    if forth != back:
        data["bandwidth_available"] = [forth, back]
    elif available[0] != bandwidth:
        data["bandwidth_available"] = forth
    return data


def _mesh(wan: MeshWan) -> dict[str, Any]:
    # The diagonal means nothing: a site is at no distance from itself.
    latency = np.where(np.eye(wan.site_count, dtype=bool), 0.0, wan.latency).tolist()
    data: dict[str, Any] = {
        "latency": [[write_quantity(value, DURATION) for value in row] for row in latency],
        "bandwidth": _one_or_all(wan.bandwidth),
    }
    if not np.array_equal(wan.available, wan.bandwidth):
        data["bandwidth_available"] = _one_or_all(wan.available)
    return data


def _one_or_all(figures: npt.NDArray[np.float64]) -> str | list[list[str]]:
    if (figures == figures[0, 0]).all():
        return write_quantity(float(figures[0, 0]), BANDWIDTH)
    return [[write_quantity(value, BANDWIDTH) for value in row] for row in figures.tolist()]


def _coordinates(network: Network, wan: CoordinateWan) -> dict[str, Any]:
    data: dict[str, Any] = {"bandwidth": write_quantity(wan.capacity_bps, BANDWIDTH)}
    taken = []
    for link, amount in zip(wan.taken_links.tolist(), wan.taken_bps.tolist(), strict=True):
        a, b = (network.site_names[site] for site in wan.link_ends(link))
        taken.append({"a": a, "b": b, "bandwidth": write_quantity(amount, BANDWIDTH)})
    return {**data, "taken": taken} if taken else data
