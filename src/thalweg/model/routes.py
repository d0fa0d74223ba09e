"""Least-latency routes from one site over a graph of links."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Floats, Index


@dataclass(frozen=True, eq=False)
class RouteTable:
    """The tree of least-latency routes from one site."""

    latency_s: Floats
    """To each site; infinite where no route leads."""
    link_into: npt.NDArray[np.int64]
    """The last directed link (2k: a→b, 2k+1: b→a) on the route to each site; −1 for none."""
    site_before: npt.NDArray[np.int64]
    order: list[int]
    """Sites in the order in which they were settled, the start first."""

    def links_to(self, site: int) -> npt.NDArray[np.int64]:
        """The links on the route to a site, in travelling order."""
        links = []
        while self.link_into[site] >= 0:
            links.append(int(self.link_into[site]))
            site = int(self.site_before[site])
        return np.array(links[::-1], dtype=np.int64)

    def narrowest(self, per_link: Floats) -> Floats:
        """The smallest figure on the route to each site; ∞ at the start, 0 where none leads."""
        smallest = np.zeros(len(self.latency_s))
        smallest[self.order[0]] = np.inf
        for site in self.order[1:]:
            before = smallest[self.site_before[site]]
            smallest[site] = min(before, per_link[self.link_into[site]])
        return smallest


def shortest_routes(
    start: int, site_count: int, a: Index, b: Index, latency_s: Floats
) -> RouteTable:
    """Dijkstra from one site. Ties: fewer links, then the lower index of the site before."""
    neighbours: list[list[tuple[int, int, float]]] = [[] for _ in range(site_count)]
    for k, (x, y, cost) in enumerate(zip(a.tolist(), b.tolist(), latency_s.tolist(), strict=True)):
        neighbours[x].append((y, 2 * k, cost))
        neighbours[y].append((x, 2 * k + 1, cost))
    latency = np.full(site_count, np.inf)
    link_into = np.full(site_count, -1, dtype=np.int64)
    site_before = np.full(site_count, -1, dtype=np.int64)
    settled: list[int] = []
    done = [False] * site_count
    waiting = [(0.0, 0, -1, -1, start)]
    while waiting:
        cost, hops, before, link, site = heapq.heappop(waiting)
        if done[site]:
            continue
        done[site] = True
        settled.append(site)
        latency[site], link_into[site], site_before[site] = cost, link, before
        for other, out, step in neighbours[site]:
            if not done[other]:
                heapq.heappush(waiting, (cost + step, hops + 1, site, out, other))
    return RouteTable(latency, link_into, site_before, settled)
