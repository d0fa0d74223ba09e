"""Random directed acyclic graphs, and all their paths walked one by one."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

Edges = list[tuple[int, int]]


@st.composite
def acyclic_graphs(draw: st.DrawFn, most_vertices: int = 9) -> tuple[int, Edges]:
    """(size, edges): edges go up a hidden order, so that indices tell nothing about levels."""
    size = draw(st.integers(1, most_vertices))
    hidden = draw(st.permutations(range(size)))
    pairs = [(hidden[i], hidden[j]) for i in range(size) for j in range(i + 1, size)]
    if not pairs:
        return size, []
    return size, draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20))


def walk_all_paths(size: int, edges: Edges) -> Iterator[list[int]]:
    """Every root→leaf path as a list of edge numbers after the root's vertex number."""
    leaving: dict[int, list[int]] = {v: [] for v in range(size)}
    entered = set()
    for number, (source, target) in enumerate(edges):
        leaving[source].append(number)
        entered.add(target)

    def follow(vertex: int, walked: list[int]) -> Iterator[list[int]]:
        if not leaving[vertex]:
            yield walked
        for number in leaving[vertex]:
            yield from follow(edges[number][1], [*walked, number])

    for root in range(size):
        if root not in entered:
            yield from follow(root, [root])
