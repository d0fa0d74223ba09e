from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import random_links, random_tree, random_wan
from thalweg.errors import InvalidInput
from thalweg.model import CoordinateWan, LinkWan, MeshWan, TreeWan, Wan

seeds = st.integers(0, 2**32 - 1)
counts = st.integers(1, 7)


def refused(make: Callable[[], Any]) -> list[str]:
    with pytest.raises(InvalidInput) as error:
        make()
    return [defect.path for defect in error.value.defects]


Arc = tuple[int, int, int, float, float, float]
"""(link, from, to, latency, bandwidth, available)."""


def arcs_of(wan: TreeWan | LinkWan) -> list[Arc]:
    """The directed links of a wan, read off its fields."""
    arcs: list[Arc] = []
    if isinstance(wan, TreeWan):
        for child, parent in enumerate(wan.parent.tolist()):
            if parent >= 0:
                figures = float(wan.latency[child]), float(wan.bandwidth[child])
                up, down = wan.available[child].tolist()
                arcs.append((2 * child, child, parent, *figures, up))
                arcs.append((2 * child + 1, parent, child, *figures, down))
        return arcs
    for k, (a, b) in enumerate(zip(wan.a.tolist(), wan.b.tolist(), strict=True)):
        figures = float(wan.latency[k]), float(wan.bandwidth[k])
        forth, back = wan.available[k].tolist()
        arcs.append((2 * k, a, b, *figures, forth))
        arcs.append((2 * k + 1, b, a, *figures, back))
    return arcs


def least_routes(wan: TreeWan | LinkWan, start: int) -> dict[int, list[Arc]]:
    """Bellman–Ford over (latency, links): the best way to each site, ties by the site before."""
    arcs = arcs_of(wan)
    best: dict[int, tuple[float, int]] = {start: (0.0, 0)}
    for _ in range(wan.site_count):
        for _, a, b, latency, _, _ in arcs:
            if a in best:
                offer = (best[a][0] + latency, best[a][1] + 1)
                best[b] = min(best.get(b, (math.inf, 0)), offer)
    routes = {}
    for end in best:
        way: list[Arc] = []
        at = end
        while at != start:
            arriving = [
                arc
                for arc in arcs
                if arc[2] == at
                and arc[1] in best
                and (best[arc[1]][0] + arc[3], best[arc[1]][1] + 1) == best[at]
            ]
            way.append(min(arriving, key=lambda arc: (arc[1], arc[0])))
            at = way[-1][1]
        routes[end] = way[::-1]
    return routes


@given(seeds, counts)
def test_a_graph_of_links_is_routed_by_least_latency_then_fewest_links_then_lowest_site(
    seed: int, count: int
) -> None:
    wan = random_links(np.random.default_rng(seed), count)
    arcs = {arc[0]: arc for arc in arcs_of(wan)}
    links = [sum(arc[1] == site for arc in arcs.values()) for site in range(count)]
    for a in range(count):
        for b in range(count):
            # The way is found from the end with more links and taken backwards from the other.
            root, other = max((links[a], a), (links[b], b))[1], min((links[a], a), (links[b], b))[1]
            found = least_routes(wan, root)
            way = found.get(other)
            if way is not None and root != a:
                way = [arcs[arc[0] ^ 1] for arc in reversed(way)]
            routes = {} if way is None else {b: way}
            if b not in routes:
                assert math.isinf(wan.latency_s(a, b))
                assert wan.bandwidth_bps(a, b) == wan.available_bps(a, b) == 0.0
                assert wan.route(a, b).tolist() == []
                continue
            way = routes[b]
            assert wan.route(a, b).tolist() == [arc[0] for arc in way]
            # Latencies are multiples of 1/64: their sums are exact.
            assert wan.latency_s(a, b) == sum(arc[3] for arc in way)
            assert wan.bandwidth_bps(a, b) == min((arc[4] for arc in way), default=math.inf)
            assert wan.available_bps(a, b) == min((arc[5] for arc in way), default=math.inf)


def ancestors(wan: TreeWan, site: int) -> list[int]:
    way = [site]
    while wan.parent[way[-1]] >= 0:
        way.append(int(wan.parent[way[-1]]))
    return way


@given(seeds, counts)
def test_a_tree_is_routed_through_the_lowest_common_ancestor(seed: int, count: int) -> None:
    wan = random_tree(np.random.default_rng(seed), count)
    arcs = {arc[0]: arc for arc in arcs_of(wan)}
    for a in range(count):
        assert wan.depth[a] == len(ancestors(wan, a)) - 1
        for b in range(count):
            up, down = ancestors(wan, a), ancestors(wan, b)
            common = next(site for site in up if site in down)
            way = [2 * site for site in up[: up.index(common)]]
            way += [2 * site + 1 for site in down[: down.index(common)][::-1]]
            assert wan.route(a, b).tolist() == way
            assert float(wan.latency_s(a, b)) == pytest.approx(sum(arcs[link][3] for link in way))
            assert wan.bandwidth_bps(a, b) == min((arcs[link][4] for link in way), default=math.inf)
            assert wan.available_bps(a, b) == min((arcs[link][5] for link in way), default=math.inf)


@given(seeds, counts)
def test_a_tree_given_as_links_answers_like_the_tree(seed: int, count: int) -> None:
    tree = random_tree(np.random.default_rng(seed), count)
    children = np.flatnonzero(tree.parent >= 0)
    links = LinkWan(
        site_count=count,
        a=children.astype(np.int32),
        b=tree.parent[children],
        latency=tree.latency[children],
        bandwidth=tree.bandwidth[children],
        available=tree.available[children],
    )
    all_sites = np.arange(count)
    a, b = all_sites[:, None], all_sites[None, :]
    np.testing.assert_allclose(tree.latency_s(a, b), links.latency_s(a, b), rtol=1e-12)
    assert np.array_equal(tree.bandwidth_bps(a, b), links.bandwidth_bps(a, b))
    assert np.array_equal(tree.available_bps(a, b), links.available_bps(a, b))
    for x in range(count):
        for y in range(count):
            ways = [[w.link_ends(k) for k in w.route(x, y).tolist()] for w in (tree, links)]
            assert ways[0] == ways[1]


def test_a_mesh_answers_from_its_matrices_but_not_within_a_site() -> None:
    matrix = np.arange(9.0).reshape(3, 3) + 1
    wan = MeshWan(latency=matrix, bandwidth=matrix * 10, available=matrix * 5)
    for a in range(3):
        for b in range(3):
            same = a == b
            assert wan.latency_s(a, b) == (0.0 if same else matrix[a, b])
            assert wan.bandwidth_bps(a, b) == (math.inf if same else matrix[a, b] * 10)
            assert wan.available_bps(a, b) == (math.inf if same else matrix[a, b] * 5)
            assert wan.route(a, b).tolist() == ([] if same else [a * 3 + b])
    assert wan.link_ends(5) == (1, 2)


@given(seeds, counts)
def test_coordinates_give_distance_plus_both_heights(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    position, height = rng.normal(size=(count, 3)), rng.uniform(0, 1, count)
    wan = CoordinateWan(position_s=position, height_s=height, capacity_bps=7.0)
    for a in range(count):
        for b in range(count):
            expected = (
                0.0 if a == b else math.dist(position[a], position[b]) + height[a] + height[b]
            )
            assert float(wan.latency_s(a, b)) == pytest.approx(expected)
            free = math.inf if a == b else 7.0
            assert wan.bandwidth_bps(a, b) == wan.available_bps(a, b) == free


@given(seeds, counts)
def test_every_shape_broadcasts_and_agrees_with_itself_pair_by_pair(seed: int, count: int) -> None:
    wan = random_wan(np.random.default_rng(seed), count)
    sites = np.arange(count, dtype=np.int32)
    for figure in (wan.latency_s, wan.bandwidth_bps, wan.available_bps):
        table = figure(sites[:, None], sites[None, :])
        assert table.shape == (count, count)
        for a in range(count):
            assert np.array_equal(figure(a, sites), table[a])
            assert np.array_equal(figure(sites, a), table[:, a])
            for b in range(count):
                assert float(figure(a, b)) == table[a, b]


def flows(rng: np.random.Generator, count: int) -> tuple[Any, Any, Any]:
    size = int(rng.integers(0, 12))
    ends = rng.integers(0, count, (2, size)).astype(np.int32)
    return ends[0], ends[1], rng.choice([0.0, 1.0, 2.5], size)


@given(seeds, counts)
def test_loads_are_those_of_sending_each_flow_along_its_route(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    wan = random_wan(rng, count)
    a, b, bps = flows(rng, count)
    expected: dict[int, float] = {}
    for start, end, flow in zip(a.tolist(), b.tolist(), bps.tolist(), strict=True):
        for link in wan.route(start, end).tolist():
            expected[link] = expected.get(link, 0.0) + flow
    links, loads = wan.link_loads(a, b, bps)
    assert links.tolist() == sorted(expected)
    assert loads.tolist() == [expected[link] for link in sorted(expected)]


@given(seeds, counts)
def test_a_route_is_a_way_of_joined_links_and_its_narrowest_link_is_what_is_free(
    seed: int, count: int
) -> None:
    wan = random_wan(np.random.default_rng(seed), count)
    for a in range(count):
        for b in range(count):
            links = wan.route(a, b)
            ends = [wan.link_ends(link) for link in links.tolist()]
            assert all(x[1] == y[0] for x, y in pairwise(ends))
            if ends:
                assert (ends[0][0], ends[-1][1]) == (a, b)
                assert wan.link_available_bps(links).min() == wan.available_bps(a, b)


@given(seeds, st.integers(2, 7))
def test_reserving_takes_from_these_links_alone_adds_up_and_stops_at_zero(
    seed: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    wan = random_wan(rng, count)
    known = sorted(
        {k for a in range(count) for b in range(count) for k in wan.route(a, b).tolist()}
    )
    if not known:
        return
    free = dict(zip(known, wan.link_available_bps(known).tolist(), strict=True))
    chosen = rng.choice(known, 5).tolist()
    taken = (rng.choice([0.0, 0.3, 0.8], 5) * [free[link] for link in chosen]).tolist()
    left = wan.reserved(chosen, taken)
    wants = dict(free.items())
    for link, amount in zip(chosen, taken, strict=True):
        wants[link] -= amount
    got = left.link_available_bps(known).tolist()
    scale = max(free.values())
    assert got == pytest.approx([max(wants[k], 0.0) for k in known], rel=1e-9, abs=1e-9 * scale)
    assert min(got) >= 0.0
    # The one it was taken from is as it was; so are latencies and capacities of the new one.
    assert wan.link_available_bps(known).tolist() == list(free.values())
    sites = np.arange(count)
    a, b = sites[:, None], sites[None, :]
    assert np.array_equal(left.latency_s(a, b), wan.latency_s(a, b))
    assert np.array_equal(left.bandwidth_bps(a, b), wan.bandwidth_bps(a, b))
    twice = left.reserved(known, [1e30] * len(known))
    assert twice.link_available_bps(known).tolist() == [0.0] * len(known)


@pytest.mark.parametrize("order", ["C", "F"])
def test_reserving_does_not_depend_on_how_the_matrix_lies_in_memory(order: Any) -> None:
    full = np.full((3, 3), 10.0)
    wan = MeshWan(latency=full, bandwidth=full, available=np.array(full, order=order))
    assert wan.reserved([1], [4.0]).available.tolist() == [[10, 6, 10], [10, 10, 10], [10, 10, 10]]
    tree = TreeWan(
        parent=np.array([2, 2, -1], dtype=np.int32),
        latency=np.zeros(3),
        bandwidth=np.full(3, 10.0),
        available=np.array(np.full((3, 2), 10.0), order=order),
    )
    assert tree.reserved([1], [4.0]).available.tolist() == [[10, 6], [10, 10], [10, 10]]


def test_one_number_can_stand_for_every_link_of_a_mesh() -> None:
    same = np.broadcast_to(np.float64(10.0), (3, 3))
    wan = MeshWan(latency=same, bandwidth=same, available=same)
    assert wan.reserved([1], [4.0]).available_bps(0, np.arange(3)).tolist() == [math.inf, 6.0, 10.0]


def test_whole_numbers_are_figures_too() -> None:
    matrix = np.array([[0, 5], [5, 0]])
    wan = MeshWan(latency=matrix, bandwidth=matrix, available=matrix)
    assert wan.reserved([1], [0.5]).available_bps(0, 1) == 4.5


def test_reservations_on_coordinates_add_up_over_calls() -> None:
    wan = CoordinateWan(position_s=np.zeros((2, 1)), height_s=np.ones(2), capacity_bps=10.0)
    wan = wan.reserved([1], [3.0]).reserved([1, 2], 2.0).reserved(2, 1.0)
    assert wan.available_bps(0, 1) == 5.0
    assert wan.available_bps(1, 0) == 7.0
    assert wan.bandwidth_bps(0, 1) == 10.0


def test_of_parallel_links_the_faster_carries_the_traffic() -> None:
    wan = LinkWan(
        site_count=2,
        a=np.array([0, 1], dtype=np.int32),
        b=np.array([1, 0], dtype=np.int32),
        latency=np.array([2.0, 1.0]),
        bandwidth=np.array([5.0, 6.0]),
        available=np.array([[5.0, 4.0], [3.0, 6.0]]),
    )
    assert wan.route(0, 1).tolist() == [3]
    assert wan.latency_s(0, 1) == 1.0
    assert wan.available_bps(0, 1) == 6.0


def mesh(**changes: Any) -> MeshWan:
    two = np.ones((2, 2))
    return MeshWan(**{"latency": two, "bandwidth": two, "available": two, **changes})


def tree(**changes: Any) -> TreeWan:
    fields = {"parent": np.array([1, -1], dtype=np.int32), "latency": np.ones(2)}
    fields |= {"bandwidth": np.ones(2), "available": np.ones((2, 2))}
    return TreeWan(**{**fields, **changes})


def links(**changes: Any) -> LinkWan:
    fields: dict[str, Any] = {"site_count": 2, "latency": np.ones(1), "bandwidth": np.ones(1)}
    fields |= {"a": np.zeros(1, dtype=np.int32), "b": np.ones(1, dtype=np.int32)}
    return LinkWan(**{**fields, "available": np.ones((1, 2)), **changes})


def coordinates(**changes: Any) -> CoordinateWan:
    fields = {"position_s": np.ones((2, 2)), "height_s": np.ones(2), "capacity_bps": 1.0}
    return CoordinateWan(**{**fields, **changes})


def test_figures_must_have_the_right_shape_and_be_numbers_from_zero_on() -> None:
    bad = np.array([[1.0, math.nan], [-1.0, 1.0]])
    assert refused(lambda: mesh(latency=np.ones((2, 3)))) == ["latency"]
    assert refused(lambda: mesh(latency=bad, bandwidth=bad, available=np.ones(2))) == [
        "latency",
        "bandwidth",
        "available",
    ]
    assert refused(lambda: tree(latency=np.ones(3), available=bad)) == ["latency", "available"]
    assert refused(lambda: links(bandwidth=np.array([-1.0]))) == ["bandwidth"]
    assert refused(lambda: coordinates(position_s=np.full((2, 2), math.inf))) == ["position_s"]
    assert refused(lambda: coordinates(position_s=np.ones((3, 2)))) == ["position_s"]
    assert refused(lambda: coordinates(height_s=np.array([1.0, -1.0]))) == ["height_s"]
    assert refused(lambda: coordinates(capacity_bps=math.nan)) == ["capacity_bps"]
    assert refused(lambda: coordinates(taken_links=np.array([1]))) == ["taken_bps"]


def test_a_link_that_takes_for_ever_is_no_link() -> None:
    assert refused(lambda: tree(latency=np.array([math.inf, 0.0]))) == ["latency"]
    assert refused(lambda: links(latency=np.array([math.inf]))) == ["latency"]


def test_no_more_is_free_than_there_is() -> None:
    assert refused(lambda: mesh(available=np.full((2, 2), 2.0))) == ["available"]
    assert refused(lambda: tree(available=np.array([[1.0, 1.5], [1.0, 1.0]]))) == ["available"]
    assert refused(lambda: links(available=np.array([[0.5, 2.0]]))) == ["available"]


@pytest.mark.parametrize(
    "parent", [[1, 0], [-1, -1], [0, -1], [2, -1], [-2, -1], [1, 2, 0, -1], [5, -1]]
)
def test_a_tree_has_one_root_that_everyone_leads_to(parent: list[int]) -> None:
    n = len(parent)
    found = refused(
        lambda: TreeWan(
            parent=np.array(parent, dtype=np.int32),
            latency=np.ones(n),
            bandwidth=np.ones(n),
            available=np.ones((n, 2)),
        )
    )
    assert found == ["parent"]


def test_links_join_sites_that_there_are() -> None:
    assert refused(lambda: links(a=np.array([-1]))) == ["a"]
    assert refused(lambda: links(b=np.array([2]))) == ["b"]
    assert refused(lambda: links(b=np.array([1, 1]))) == ["b"]


def test_a_site_alone_is_every_shape_of_network() -> None:
    one = np.zeros((1, 1))
    wans: list[Wan] = [
        MeshWan(latency=one, bandwidth=one, available=one),
        coordinates(position_s=one, height_s=np.ones(1)),
        TreeWan(
            parent=np.array([-1], dtype=np.int32),
            latency=np.zeros(1),
            bandwidth=np.zeros(1),
            available=np.zeros((1, 2)),
        ),
        LinkWan(
            site_count=1,
            a=np.empty(0, dtype=np.int32),
            b=np.empty(0, dtype=np.int32),
            latency=np.empty(0),
            bandwidth=np.empty(0),
            available=np.empty((0, 2)),
        ),
    ]
    here = np.zeros(2, dtype=np.int32)
    for wan in wans:
        assert wan.site_count == 1
        assert wan.latency_s(0, 0) == 0.0
        assert math.isinf(wan.bandwidth_bps(0, 0))
        assert math.isinf(wan.available_bps(0, 0))
        assert wan.route(0, 0).tolist() == []
        used, loads = wan.link_loads(here, here, np.ones(2))
        assert (used.tolist(), loads.tolist()) == ([], [])


@given(seeds)
def test_arrays_cannot_be_written_to(seed: int) -> None:
    wan = random_wan(np.random.default_rng(seed), 3)
    arrays = [value for value in vars(wan).values() if isinstance(value, np.ndarray)]
    assert arrays
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1
