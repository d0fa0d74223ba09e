"""The WAN between some sites as flat arrays that compiled loops can read."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Floats, Index
from thalweg.model.links import LinkWan
from thalweg.model.mesh import CoordinateWan, MeshWan
from thalweg.model.network import Network, Tier
from thalweg.model.tree import TreeWan

Integers = npt.NDArray[np.int64]

# A mesh has its matrices anyway; of other shapes so many sites are looked at.
_MOST_COORDINATE_SITES = 1024
_MOST_ROUTED_SITES = 160
# Searching the routes from one site takes time in proportion to sites and links.
_MOST_ROUTE_STEPS = 300_000


# Columns of `Ways.steps`.
SITES, LATENCY_ROW, LATENCY_COLUMN, FREE_ROW, FREE_COLUMN, ROUTED = range(6)


class Ways(NamedTuple):
    """Latency and free bandwidth from site a to b: figures[place[a] * row + place[b] * column].

    Arrays are read-only, so that compiled loops meet them in one type.
    """

    sites: Integers
    """The sites looked at, ascending."""
    place: Index
    """The position of each site among them; −1 for the others."""
    latency_s: Floats
    free_bps: Floats
    steps: Integers
    """How many sites; steps along the rows and columns of both; whether links are shared (without
    routes each ordered pair of sites has its own)."""
    route_first: Integers
    """The links from place a to b are route_link[route_first[a * sites + b] : … + 1]."""
    route_link: Integers
    link_free_bps: Floats

    @property
    def all_sites(self) -> bool:
        """Whether every site is looked at."""
        return self.sites.size == self.place.size


_KNOWN: WeakKeyDictionary[Network, dict[bytes, Ways]] = WeakKeyDictionary()


def most_sites(network: Network) -> int:
    """How many sites of the network can be looked at together."""
    wan = network.wan
    if isinstance(wan, MeshWan):
        return network.site_count
    if isinstance(wan, CoordinateWan):
        return _MOST_COORDINATE_SITES
    if isinstance(wan, TreeWan):
        return _MOST_ROUTED_SITES
    links = len(wan.a) if isinstance(wan, LinkWan) else network.site_count**2
    return max(min(_MOST_ROUTED_SITES, _MOST_ROUTE_STEPS // (network.site_count + links)), 2)


def find_ways(network: Network, needed: npt.NDArray[np.integer[Any]]) -> Ways | None:
    """The ways between the sites that are needed and as many others as can be looked at.

    Others: clouds first, then those nearest to a site that is needed; ties: the lower index.
    None where even the needed ones are too many.
    """
    most = most_sites(network)
    sites = np.unique(needed)
    if sites.size > most:
        return None
    if most >= network.site_count:
        sites = np.arange(network.site_count)
    elif sites.size < most:
        sites = _add_others(network, sites, most)
    known = _KNOWN.setdefault(network, {})
    key = sites.astype(np.int64).tobytes()
    if key not in known:
        known.clear()  # Of a large network a few sites at a time; the last ones are asked again.
        known[key] = _build(network, sites)
    return known[key]


def _add_others(
    network: Network, sites: npt.NDArray[np.integer[Any]], most: int
) -> npt.NDArray[np.integer[Any]]:
    filled = np.diff(network.first_node) > 0
    others = np.setdiff1d(np.flatnonzero(filled), sites)
    near = np.full(others.size, np.inf)
    for site in sites.tolist():
        near = np.minimum(near, network.wan.latency_s(site, others))
    in_cloud = network.site_tier[others] == Tier.CLOUD
    chosen = others[np.lexsort((others, near, ~in_cloud))[: most - sites.size]]
    return np.sort(np.concatenate([sites, chosen]))


def _build(network: Network, sites: npt.NDArray[np.integer[Any]]) -> Ways:
    wan, count = network.wan, int(sites.size)
    place = np.full(network.site_count, -1, dtype=np.int32)
    place[sites] = np.arange(count)
    if isinstance(wan, MeshWan):
        latency, free = _flat(wan.latency), _flat(wan.available)
    else:
        latency = _flat(wan.latency_s(sites[:, None], sites[None, :]))
        free = _flat(wan.available_bps(sites[:, None], sites[None, :]))
    routed = not isinstance(wan, (MeshWan, CoordinateWan))
    first, links, link_free = _routes(network, sites) if routed else ([0], [], np.zeros(0))
    steps = (count, *latency[1:], *free[1:], routed)
    return Ways(
        sites=_read_only(sites.astype(np.int64)),
        place=_read_only(place),
        latency_s=latency[0],
        free_bps=free[0],
        steps=_read_only(np.array(steps, dtype=np.int64)),
        route_first=_read_only(np.array(first, dtype=np.int64)),
        route_link=_read_only(np.array(links, dtype=np.int64)),
        link_free_bps=_read_only(np.array(link_free, dtype=float)),
    )


def _routes(
    network: Network, sites: npt.NDArray[np.integer[Any]]
) -> tuple[list[int], list[int], Floats]:
    first, links = [0], []
    for a in sites.tolist():
        for b in sites.tolist():
            if a != b:
                links += network.wan.route(a, b).tolist()
            first.append(len(links))
    most = max(links, default=-1) + 1
    return first, links, network.wan.link_available_bps(np.arange(most))


def _flat(matrix: Floats) -> tuple[Floats, int, int]:
    """The matrix in one row, and the steps along its axes; one number where all are the same."""
    if matrix.size and not any(matrix.strides):
        return _read_only(np.array(matrix.flat[:1], dtype=float)), 0, 0
    rows = np.ascontiguousarray(matrix, dtype=float)
    return _read_only(rows.reshape(-1)), rows.shape[1], 1


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
