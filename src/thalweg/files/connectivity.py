"""Which sites of a network can talk to each other."""

from __future__ import annotations

from collections.abc import Iterable

from thalweg.errors import Defects


def require_connected(
    defects: Defects, names: tuple[str, ...], ends: Iterable[tuple[int, int]]
) -> None:
    """Remember a defect for each site outside the largest group of sites that links join.

    Of two groups of the same size, the one with the last site counts as the network, because
    networks are written from the edge to the cloud.
    """
    group = _groups(len(names), ends)
    sizes: dict[int, int] = {}
    for root in group:
        sizes[root] = sizes.get(root, 0) + 1
    main = max(reversed(group), key=sizes.__getitem__, default=0)
    for site, root in enumerate(group):
        defects.require(
            root == main,
            f"sites[{site}]",
            names[site],
            "a site that links join to the rest",
            "add a link to one of the other sites, or take it out",
        )


def _groups(site_count: int, ends: Iterable[tuple[int, int]]) -> list[int]:
    """For each site the one that stands for its group (union by smaller index, halved paths)."""
    leader = list(range(site_count))

    def find(site: int) -> int:
        while leader[site] != site:
            leader[site] = leader[leader[site]]
            site = leader[site]
        return site

    for a, b in ends:
        first, second = find(a), find(b)
        leader[max(first, second)] = min(first, second)
    return [find(site) for site in range(site_count)]
