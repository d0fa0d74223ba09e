"""What plans are compared with looks at every sequence of hosts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from benchmarks.migration_plain import draw_graph, try_every_sequence
from benchmarks.migration_scale import _exponent, _outlook, _walk
from thalweg.migration.brokers import Brokers
from thalweg.migration.policies import weighted_sum
from thalweg.migration.time_graph import Moves, MoveTime, TimeGraph, cheapest_path
from thalweg.scenarios import broker_tree


def price(graph: TimeGraph, hosts: tuple[int, ...]) -> float:
    """What a sequence costs; ∞ where a move would take longer than there is time for it."""
    everyone = np.arange(graph.moves.brokers.count, dtype=np.int32)
    cost, takes = graph.moves.cost_from(everyone), graph.moves.steps_from(everyone)
    total, since = 0.0, 0
    for step, host in enumerate(hosts):
        before = hosts[step - 1] if step else host
        if host != before:
            if step - since < takes[before, host]:
                return np.inf
            total, since = total + cost[before, host], step
        total += graph.place_cost[step, host]
    return float(total) if hosts[0] == graph.start else np.inf


@pytest.mark.parametrize("seed", range(60))
def test_every_sequence_is_tried_and_the_cheapest_one_found(seed: int) -> None:
    graph = draw_graph(np.random.default_rng(seed), most_sequences=700)
    steps, count = graph.place_cost.shape
    found = try_every_sequence(graph)
    prices = [price(graph, hosts) for hosts in product(range(count), repeat=steps)]
    assert found.cost == pytest.approx(min(prices))
    assert np.isfinite(prices).sum() <= found.sequences <= count ** (steps - 1)
    path = cheapest_path(graph)
    assert path is not None
    assert path.cost == pytest.approx(found.cost)


def test_drawn_trees_have_moves_of_all_kinds_and_the_sizes_that_were_asked_for() -> None:
    rng = np.random.default_rng(0)
    graphs = [draw_graph(rng, most_sequences=1e4) for _ in range(100)]
    assert {graph.moves.time for graph in graphs} == set(MoveTime)
    assert max(graph.moves.brokers.count for graph in graphs) == 12
    assert all(g.moves.brokers.count ** (len(g.place_cost) - 1) <= 1e4 for g in graphs)


def test_neighbours_go_from_leaf_to_leaf_and_the_plan_follows_them() -> None:
    brokers = Brokers.of(broker_tree())
    walk = _walk(brokers, 200, np.random.default_rng(0))
    assert np.isin(walk, brokers.leaves).all()
    assert 5 < (np.diff(walk) != 0).sum() < 40
    outlook = _outlook(Moves.of(brokers, state_bytes=1_000.0, step_s=1.0), 200)
    assert len(set(weighted_sum(outlook).fan.hosts[0].tolist())) > 3


def test_the_exponent_is_that_of_a_power() -> None:
    assert _exponent([10, 100, 1_000], [3e-3, 3e-1, 3e1]) == pytest.approx(2.0)
