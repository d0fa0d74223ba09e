from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.migration_plain import try_every_sequence
from migration.random_trees import random_brokers
from thalweg.errors import InvalidInput
from thalweg.migration.time_graph import Moves, MoveTime, Path, TimeGraph, cheapest_path


def random_graph(seed: int, most_brokers: int, most_steps: int, kind: str) -> TimeGraph:
    """Kinds of trees: moves within a step, by hops, or by pairs."""
    rng = np.random.default_rng(seed)
    count, steps = int(rng.integers(1, most_brokers + 1)), int(rng.integers(1, most_steps + 1))
    brokers = random_brokers(rng, count, alike=kind == "hops")
    step_s = 100.0 if kind == "one" else float(rng.choice([0.4, 0.75, 1.5]))
    place = rng.uniform(0, 50, (steps, count))
    place[rng.random((steps, count)) < rng.choice([0.0, 0.2])] = np.inf
    start = int(rng.integers(count))
    place[0, start] = rng.uniform(0, 50)
    moves = Moves.of(brokers, state_bytes=float(rng.choice([0, 5, 40])), step_s=step_s)
    leave = float(rng.choice([1.0, 0.5, 0.0]))
    return TimeGraph(moves=moves, place_cost=place, start=start, leave_factor=leave)


def cost_of(graph: TimeGraph, path: Path) -> float:
    """What its hosts and moves cost, added up one by one."""
    delay = graph.moves.brokers.delay_s
    steps = range(len(path.hosts))
    total = sum(float(graph.place_cost[t, path.hosts[t]]) for t in steps)
    for number, move in enumerate(path.moves):
        first = number == 0 and move.source == graph.start
        share = graph.leave_factor if first else 1.0
        total += graph.moves.state_bytes * float(delay[move.source, move.target]) * share
    return total


@pytest.mark.parametrize("all_pairs", [False, True])
@pytest.mark.parametrize("kind", ["one", "hops", "pairs"])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_the_cheapest_path_costs_what_the_cheapest_of_all_sequences_costs(
    kind: str, all_pairs: bool, seed: int
) -> None:
    graph = random_graph(seed, 6, 6, kind)
    expected = try_every_sequence(graph).cost
    path = cheapest_path(graph, all_pairs=all_pairs)
    if path is None:
        assert expected == np.inf
        return
    assert path.cost == pytest.approx(expected)
    assert cost_of(graph, path) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["one", "hops", "pairs"])
def test_twelve_brokers_and_eight_steps(kind: str) -> None:
    for seed in range(3):
        place = np.random.default_rng(seed).uniform(0, 50, (8, 12))
        brokers = random_brokers(np.random.default_rng(seed), 12, alike=kind == "hops")
        step_s = 100.0 if kind == "one" else 0.75
        graph = TimeGraph(
            moves=Moves.of(brokers, state_bytes=20, step_s=step_s), place_cost=place, start=seed
        )
        tried = try_every_sequence(graph)
        assert tried.sequences > 10_000
        path = cheapest_path(graph)
        assert path is not None
        assert path.cost == pytest.approx(tried.cost)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["one", "hops", "pairs"]))
def test_hosts_follow_the_moves_and_never_run_where_there_is_no_vertex(
    seed: int, kind: str
) -> None:
    graph = random_graph(seed, 9, 9, kind)
    path = cheapest_path(graph)
    if path is None:
        return
    hosts = np.full(len(path.hosts), graph.start)
    for move in path.moves:
        seconds = graph.moves.seconds_from(np.array([move.source], dtype=np.int32))
        assert (move.arrive - move.begin) * graph.moves.step_s >= seconds[0, move.target] - 1e-6
        assert (hosts[move.begin : move.arrive] == move.source).all()
        hosts[move.arrive :] = move.target
    assert hosts.tolist() == path.hosts.tolist()
    assert np.isfinite(graph.place_cost[np.arange(hosts.size), hosts]).all()


def test_what_decides_how_long_moves_take() -> None:
    rng = np.random.default_rng(1)
    alike, mixed = random_brokers(rng, 12, alike=True), random_brokers(rng, 12)
    assert Moves.of(alike, state_bytes=1e3, step_s=100).time is MoveTime.ONE_STEP
    assert Moves.of(alike, state_bytes=1e3, step_s=0.4).time is MoveTime.HOPS
    assert Moves.of(mixed, state_bytes=1e3, step_s=0.4).time is MoveTime.PAIRS


def test_a_free_move_is_not_made_for_nothing() -> None:
    brokers = random_brokers(np.random.default_rng(0), 5)
    moves = Moves.of(brokers, state_bytes=0, step_s=10)
    path = cheapest_path(TimeGraph(moves=moves, place_cost=np.ones((6, 5)), start=3))
    assert path is not None
    assert (path.hosts.tolist(), path.moves) == ([3] * 6, ())


def test_bad_figures_are_all_named() -> None:
    brokers = random_brokers(np.random.default_rng(0), 3)
    with pytest.raises(InvalidInput) as caught:
        Moves.of(brokers, state_bytes=-1, step_s=float("nan"))
    assert "state_bytes" in str(caught.value)
    assert "step_s" in str(caught.value)
    moves = Moves.of(brokers, state_bytes=1, step_s=1)
    with pytest.raises(InvalidInput) as caught:
        TimeGraph(moves=moves, place_cost=np.ones((0, 3)), start=7, leave_factor=2)
    assert all(name in str(caught.value) for name in ("place_cost", "start", "leave_factor"))
