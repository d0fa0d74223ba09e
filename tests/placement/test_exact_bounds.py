"""The parts of `exact`: tables, trees and places, against adding up every combination."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.model import Problem
from thalweg.placement.branch_and_bound.elimination import Term, eliminate, order_levels
from thalweg.placement.branch_and_bound.places import bound_nodes, find_places
from thalweg.placement.branch_and_bound.pruning import least_with_each, spanning_tree
from thalweg.placement.local_search.board import Board
from thalweg.placement.local_search.figures import FREE_CPU, FREE_LAN, FREE_MEMORY, LAN_S
from thalweg.scenarios import cloud_edge, random_application

SEEDS = st.integers(0, 2**32 - 1)


def random_terms(rng: np.random.Generator) -> tuple[list[int], list[Term]]:
    """Costs of up to six levels and of some pairs of them; some combinations cost ∞."""
    sizes = rng.integers(1, 4, int(rng.integers(1, 7))).tolist()
    terms = [Term((k,), rng.integers(0, 9, size).astype(float)) for k, size in enumerate(sizes)]
    for b in range(len(sizes)):
        for a in range(b):
            if rng.random() < 0.5:
                table = rng.integers(0, 9, (sizes[a], sizes[b])).astype(float)
                table[rng.random(table.shape) < 0.1] = np.inf
                terms.append(Term((a, b), table))
    return sizes, terms


def total(terms: list[Term], chosen: tuple[int, ...]) -> float:
    return sum(float(term.table[tuple(chosen[k] for k in term.scope)]) for term in terms)


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_what_is_left_costs_at_least_what_the_tables_say(seed: int) -> None:
    """And exactly that, if no table is too large: at every level, for every choice so far."""
    rng = np.random.default_rng(seed)
    sizes, terms = random_terms(rng)
    most = int(rng.choice([4, 10**6]))
    made = eliminate(sizes, terms, most)
    every = list(product(*map(range, sizes)))
    for placed in range(len(sizes) + 1):
        open_tables = [
            term
            for term in made
            if term.made_at >= placed and (not term.scope or term.scope[-1] < placed)
        ]
        inside = [term for term in terms if term.scope[-1] < placed]
        for so_far in {chosen[:placed] for chosen in every}:
            bound = total(inside, so_far) + total(open_tables, so_far)
            least = min(total(terms, c) for c in every if c[:placed] == so_far)
            assert bound <= least + 1e-9
            if most > 4 and np.isfinite(least):
                assert bound == pytest.approx(least)


def test_the_order_takes_out_what_has_the_smallest_table_first() -> None:
    # A star: the rays go first, each leaves a table over the hub alone.
    assert order_levels([3, 3, 3, 3], [(0, 1), (0, 2), (0, 3)])[0] in (0, 3)
    assert order_levels([2, 9], []) == [1, 0]
    assert order_levels([2, 2], []) == [1, 0]


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_on_a_tree_the_least_with_each_place_is_known(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, terms = random_terms(rng)
    own = [term.table for term in terms if len(term.scope) == 1]
    pairs = {term.scope: term.table for term in terms if len(term.scope) == 2}
    weights = rng.integers(0, 5, len(pairs)).tolist()
    tree = spanning_tree(len(sizes), list(pairs), weights)  # type: ignore[arg-type]
    kept = [Term((k,), cost) for k, cost in enumerate(own)]
    for k, parent in tree:
        if parent >= 0:
            scope = (min(k, parent), max(k, parent))
            kept.append(Term(scope, pairs[scope]))

    def message(start: int, end: int, cost: np.ndarray) -> np.ndarray:
        table = pairs[min(start, end), max(start, end)]
        return (cost[:, None] + (table if start < end else table.T)).min(axis=0)

    each, least = least_with_each(own, tree, message)
    every = list(product(*map(range, sizes)))
    assert least == min(total(kept, chosen) for chosen in every)
    if np.isfinite(least):
        for k, size in enumerate(sizes):
            for value in range(size):
                with_it = min(total(kept, chosen) for chosen in every if chosen[k] == value)
                assert each[k][value] == with_it


def test_the_tree_keeps_the_heaviest_pairs() -> None:
    tree = spanning_tree(3, [(0, 1), (1, 2), (0, 2)], [1.0, 3.0, 2.0])
    assert {frozenset(pair) for pair in tree if pair[1] >= 0} == {
        frozenset((1, 2)),
        frozenset((0, 2)),
    }
    assert [pair for pair in tree if pair[1] < 0] == [(0, -1)]


@pytest.mark.parametrize("seed", range(4))
def test_places_hold_every_node_that_may_be_needed(seed: int) -> None:
    network = cloud_edge(2, 3, 30, seed=seed)
    problem = Problem(application=random_application("stats", network, seed), network=network)
    board = Board.of(problem, None)
    assert board is not None
    figures, bound = board.figures, bound_nodes(board.figures, board.anywhere())
    places = find_places(figures, bound)
    fixed = set(bound[bound >= 0].tolist())
    most = int((bound < 0).sum())
    figure = (FREE_CPU, FREE_MEMORY, FREE_LAN)
    listed = []
    for place in range(places.count):
        nodes = places.node[places.first[place] : places.first[place + 1]].tolist()
        listed += nodes
        # Alike in all but LAN latency, the nearest first.
        assert len({tuple(figures.node[node, figure]) for node in nodes}) == 1
        assert len({int(figures.spot[node]) for node in nodes}) == 1
        assert [figures.node[n, LAN_S] for n in nodes] == sorted(figures.node[nodes, LAN_S])
        assert len(nodes) == 1 or not fixed.intersection(nodes)
        alike = [
            node
            for node in range(network.node_count)
            if node not in fixed
            and figures.spot[node] == figures.spot[nodes[0]]
            and (figures.node[node, figure] == figures.node[nodes[0], figure]).all()
        ]
        if not fixed.intersection(nodes):
            nearest = sorted(alike, key=lambda n: (figures.node[n, LAN_S], n))[:most]
            assert nodes == nearest
    assert len(listed) == len(set(listed))
    assert fixed <= set(listed)
