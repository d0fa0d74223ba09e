from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.migration_plain import try_every_sequence
from migration.random_trees import random_brokers
from thalweg.errors import InvalidInput
from thalweg.migration.stability import Horizon, cannot_be_better, hold
from thalweg.migration.time_graph import Moves, TimeGraph, cheapest_path


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 12.0))
@settings(max_examples=200)
def test_a_plan_that_cannot_be_bettered_is_the_cheapest_of_all(seed: int, change: float) -> None:
    rng = np.random.default_rng(seed)
    brokers = random_brokers(rng, 3)
    moves = Moves.of(brokers, state_bytes=float(rng.choice([0, 5, 50])), step_s=100.0)
    before = rng.uniform(0, 5, (4, 3)) + np.array([0.0, 5.0, 10.0])
    start = int(rng.integers(3))
    path = cheapest_path(TimeGraph(moves=moves, place_cost=before, start=start))
    assert path is not None
    now = np.maximum(before + rng.uniform(-change, change, before.shape), 0.0)
    if not cannot_be_better(before, now, path.hosts):
        return
    tried = try_every_sequence(TimeGraph(moves=moves, place_cost=now, start=start))
    assert now[np.arange(4), path.hosts].sum() == pytest.approx(tried.cost)


def test_the_bound_says_yes_often_enough_to_be_of_use() -> None:
    rng = np.random.default_rng(0)
    stays = np.zeros(5, dtype=np.int32)
    said = 0
    for _ in range(100):
        before = rng.uniform(0, 1, (5, 4)) + np.array([0.0, 3.0, 3.0, 3.0])
        said += cannot_be_better(before, before + rng.uniform(-0.5, 0.5, before.shape), stays)
    assert said == 100


def test_a_plan_that_moves_or_a_vertex_that_is_gone_is_no_safe_case() -> None:
    before = np.array([[0.0, 9.0], [9.0, 0.0]])
    assert not cannot_be_better(before, before, np.array([0, 1], dtype=np.int32))
    gone = np.array([[1.0, 5.0], [np.inf, 5.0]])
    stays = np.zeros(2, dtype=np.int32)
    assert not cannot_be_better(np.array([[1.0, 5.0], [1.0, 5.0]]), gone, stays)


def test_small_deviations_do_not_count() -> None:
    held = hold(np.array([100.0, 0.0]), np.array([119.0, 1.0]), 0.2)
    assert held.tolist() == [100.0, 1.0]


def test_a_horizon_stays_within_its_limits() -> None:
    horizon = Horizon(least=8, most=20)
    for _ in range(5):
        horizon = horizon.failed()
    assert horizon.steps == 8
    for _ in range(5):
        horizon = horizon.held()
    assert horizon.steps == 20
    with pytest.raises(InvalidInput):
        Horizon(least=5, most=2)
