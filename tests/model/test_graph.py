from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.graphs import Edges, acyclic_graphs, walk_all_paths
from thalweg.model.graph import CycleFound, Graph, Level, build_graph, concatenated_ranges


def make(size: int, edges: Edges) -> Graph:
    return build_graph(size, [s for s, _ in edges], [t for _, t in edges])


def groups_of(level: Level) -> Iterator[tuple[int, list[int]]]:
    """Each vertex of the level with its edges."""
    ends = [*level.starts[1:].tolist(), level.edges.size]
    for k, vertex in enumerate(level.vertices.tolist()):
        yield vertex, level.edges[level.starts[k] : ends[k]].tolist()


def vertices_of(path: list[int], edges: Edges) -> list[int]:
    return [path[0], *(edges[number][1] for number in path[1:])]


@given(acyclic_graphs())
def test_a_level_is_the_length_of_the_longest_way_from_a_root(graph: tuple[int, Edges]) -> None:
    size, edges = graph
    expected = [0] * size
    for _ in range(size):
        for source, target in edges:
            expected[target] = max(expected[target], expected[source] + 1)
    assert make(size, edges).level.tolist() == expected


@given(acyclic_graphs())
def test_the_order_is_by_level_then_by_index(graph: tuple[int, Edges]) -> None:
    size, edges = graph
    made = make(size, edges)
    assert made.order.tolist() == sorted(range(size), key=lambda v: (made.level[v], v))


@given(acyclic_graphs())
def test_roots_have_no_way_in_and_leaves_none_out(graph: tuple[int, Edges]) -> None:
    size, edges = graph
    made = make(size, edges)
    assert made.roots.tolist() == [all(t != v for _, t in edges) for v in range(size)]
    assert made.leaves.tolist() == [all(s != v for s, _ in edges) for v in range(size)]


@given(acyclic_graphs())
def test_going_downstream_meets_every_edge_once_grouped_by_its_target(
    graph: tuple[int, Edges],
) -> None:
    size, edges = graph
    made = make(size, edges)
    seen: list[int] = []
    for level in made.downstream():
        for vertex, group in groups_of(level):
            assert group
            assert {edges[number][1] for number in group} == {int(vertex)}
            # Everyone upstream was met before.
            assert all(made.level[edges[number][0]] < made.level[vertex] for number in group)
            seen += group
    assert sorted(seen) == list(range(len(edges)))


@given(acyclic_graphs())
def test_going_upstream_meets_every_vertex_and_every_edge_once(graph: tuple[int, Edges]) -> None:
    size, edges = graph
    made = make(size, edges)
    vertices: list[int] = []
    seen: list[int] = []
    for everyone, level in made.upstream():
        for vertex, group in groups_of(level):
            assert {edges[number][0] for number in group} == {int(vertex)}
            assert all(edges[number][1] in vertices for number in group)
            seen += group
        vertices += everyone.tolist()
    assert sorted(vertices) == list(range(size))
    assert sorted(seen) == list(range(len(edges)))


@given(acyclic_graphs())
def test_path_counts_are_those_of_walking_every_path(graph: tuple[int, Edges]) -> None:
    size, edges = graph
    through_vertex, through_edge = np.zeros(size), np.zeros(len(edges))
    for path in walk_all_paths(size, edges):
        for vertex in vertices_of(path, edges):
            through_vertex[vertex] += 1
        for number in path[1:]:
            through_edge[number] += 1
    counted = make(size, edges).path_counts
    assert counted[0].tolist() == through_vertex.tolist()
    assert counted[1].tolist() == through_edge.tolist()


costs = st.sampled_from([0.0, 0.25, 1.0, 3.0, 7.5, math.inf])


@given(acyclic_graphs(), st.data())
def test_the_dearest_ways_are_those_of_walking_every_path(
    graph: tuple[int, Edges], data: st.DataObject
) -> None:
    size, edges = graph
    vertex_cost = data.draw(st.lists(costs, min_size=size, max_size=size))
    edge_cost = data.draw(st.lists(costs, min_size=len(edges), max_size=len(edges)))
    longest_to, longest_from = [-1.0] * size, [-1.0] * size
    for path in walk_all_paths(size, edges):
        walked = vertices_of(path, edges)
        for at, vertex in enumerate(walked):
            before = sum(vertex_cost[v] for v in walked[: at + 1])
            before += sum(edge_cost[number] for number in path[1 : at + 1])
            after = sum(vertex_cost[v] for v in walked[at:])
            after += sum(edge_cost[number] for number in path[at + 1 :])
            longest_to[vertex] = max(longest_to[vertex], before)
            longest_from[vertex] = max(longest_from[vertex], after)
    made = make(size, edges)
    # Costs are multiples of 1/4, so sums in any order are exact.
    assert made.longest_to(np.array(vertex_cost), np.array(edge_cost)).tolist() == longest_to
    assert made.longest_from(np.array(vertex_cost), np.array(edge_cost)).tolist() == longest_from


@given(
    st.integers(1, 8).flatmap(
        lambda size: st.tuples(
            st.just(size),
            st.lists(
                st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)),
                unique=True,
                max_size=14,
            ),
        )
    )
)
def test_a_graph_is_refused_exactly_if_it_has_a_cycle_and_the_cycle_is_one(
    graph: tuple[int, Edges],
) -> None:
    size, edges = graph
    reaches = {(s, t) for s, t in edges}
    for middle in range(size):
        for a in range(size):
            for b in range(size):
                if (a, middle) in reaches and (middle, b) in reaches:
                    reaches.add((a, b))
    cyclic = any((v, v) in reaches for v in range(size))
    try:
        make(size, edges)
    except CycleFound as found:
        assert cyclic
        cycle = found.cycle
        assert cycle[0] == cycle[-1] == min(cycle)
        assert len(set(cycle)) == len(cycle) - 1
        assert all(step in edges for step in pairwise(cycle))
    else:
        assert not cyclic


def test_a_vertex_that_points_to_itself_is_a_cycle() -> None:
    with pytest.raises(CycleFound) as found:
        make(2, [(0, 1), (1, 1)])
    assert found.value.cycle == (1, 1)


def test_no_vertices_make_an_empty_graph() -> None:
    made = make(0, [])
    assert made.order.tolist() == []
    assert list(made.downstream()) == []
    assert [counts.tolist() for counts in made.path_counts] == [[], []]


def test_paths_are_counted_exactly_up_to_two_to_the_53_and_infinite_beyond_the_largest_float() -> (
    None
):
    def diamonds(count: int) -> Graph:
        edges: Edges = []
        for k in range(0, 3 * count, 3):
            edges += [(k, k + 1), (k, k + 2), (k + 1, k + 3), (k + 2, k + 3)]
        return make(3 * count + 1, edges)

    assert diamonds(52).path_counts[0][0] == 2.0**52
    assert math.isinf(diamonds(1100).path_counts[0][0])


def test_a_chain_of_ten_thousand_vertices_has_as_many_levels() -> None:
    size = 10_000
    made = make(size, [(k, k + 1) for k in range(size - 1)])
    assert made.level.tolist() == list(range(size))
    longest = made.longest_to(np.ones(size), np.ones(size - 1))
    assert longest[-1] == 2 * size - 1
    assert made.longest_from(np.ones(size), np.ones(size - 1))[0] == 2 * size - 1


def test_a_thousand_edges_into_one_vertex_are_one_level() -> None:
    size = 1_001
    made = make(size, [(k, 1_000) for k in range(1_000)])
    assert made.path_counts[0].tolist() == [1.0] * 1_000 + [1_000.0]
    assert made.longest_to(np.arange(1_001.0), np.zeros(1_000))[-1] == 999 + 1_000


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=6))
def test_ranges_are_joined_in_turn(ranges: list[tuple[int, int]]) -> None:
    start = np.array([a for a, _ in ranges], dtype=np.int64)
    stop = start + np.array([n for _, n in ranges], dtype=np.int64)
    joined = [k for a, n in ranges for k in range(a, a + n)]
    assert concatenated_ranges(start, stop).tolist() == joined
