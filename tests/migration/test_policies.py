from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migration.random_trees import random_brokers
from thalweg.errors import InvalidInput
from thalweg.migration.cheapest import probability_of_least
from thalweg.migration.compiled.k_best import k_best
from thalweg.migration.fan import Fan
from thalweg.migration.operators import MobileOperator
from thalweg.migration.outlook import Outlook, Tie
from thalweg.migration.policies import (
    KShortest,
    Naive,
    Temporal,
    _likeliest,
    cost_of,
    policy,
    weighted_sum,
)
from thalweg.migration.time_graph import Moves

seeds = st.integers(0, 2**32 - 1)


def random_fan(rng: np.random.Generator, brokers: int, steps: int, most: int) -> Fan:
    count = int(rng.integers(1, most + 1))
    return Fan.of(rng.dirichlet(np.ones(count)), rng.integers(0, brokers, (count, steps)))


def random_outlook(
    seed: int, *, brokers: int = 4, steps: int = 5, most: int = 3, **figures: object
) -> Outlook:
    rng = np.random.default_rng(seed)
    tree = random_brokers(rng, brokers)
    ties = tuple(
        Tie(
            neighbour=name,
            fan=random_fan(rng, brokers, steps, most),
            carried_bytes=rng.uniform(0, 40, steps),
            incoming=name == "a",
        )
        for name in ("a", "b")
    )
    operator = MobileOperator(
        name="op",
        immutable_bytes=float(rng.choice([0.0, 10.0, 60.0])),
        mutable_bytes=0.0,
        window_s=0.0,
        demand_ips=1.0,
        instructions=0.0,
        share=1.0,
    )
    return Outlook(
        operator=operator,
        moves=Moves.of(tree, state_bytes=operator.state_bytes, step_s=100.0),
        ties=ties,
        start=int(rng.integers(brokers)),
        **figures,  # type: ignore[arg-type]
    )


def expected_cost(outlook: Outlook, hosts: tuple[int, ...]) -> float:
    """Word by word: over all sequences of neighbours, weighted."""
    delay, total = outlook.moves.brokers.delay_s, 0.0
    for tie in outlook.ties:
        for weight, other in zip(tie.fan.weight, tie.fan.hosts, strict=True):
            for t, host in enumerate(hosts):
                total += weight * tie.carried_bytes[t] * delay[host, other[t]]
    at = outlook.start
    for host in hosts:
        total += outlook.moves.state_bytes * delay[at, host]
        at = host
    return float(total)


def all_sequences(outlook: Outlook) -> list[tuple[int, ...]]:
    count = outlook.moves.brokers.count
    rest = product(range(count), repeat=outlook.steps - 1)
    return [(outlook.start, *hosts) for hosts in rest]


@given(seeds)
@settings(max_examples=40)
def test_the_weighted_sum_is_the_cheapest_sequence_by_expectation(seed: int) -> None:
    outlook = random_outlook(seed)
    choice = weighted_sum(outlook)
    least = min(expected_cost(outlook, hosts) for hosts in all_sequences(outlook))
    assert choice.cost == pytest.approx(least)
    assert expected_cost(outlook, tuple(choice.fan.hosts[0])) == pytest.approx(least)


@given(seeds)
@settings(max_examples=40)
def test_naive_plans_are_the_best_answers_to_every_combination(seed: int) -> None:
    outlook = random_outlook(seed)
    choice = Naive(most=100)(outlook)
    assert choice.left_out == pytest.approx(0.0, abs=1e-9)
    for row in choice.fan.hosts:
        best_somewhere = False
        for picks in product(*(range(len(tie.fan.weight)) for tie in outlook.ties)):
            place = outlook.place_cost(
                [Fan.certain(tie.fan.hosts[k]) for tie, k in zip(outlook.ties, picks, strict=True)]
            )
            answers = [np.array(h, dtype=np.int32) for h in all_sequences(outlook)]
            least = min(cost_of(outlook, place, hosts) for hosts in answers)
            best_somewhere |= cost_of(outlook, place, row) <= least + 1e-9
        assert best_somewhere


def test_the_cap_on_combinations_says_what_it_left_out() -> None:
    outlook = random_outlook(3, most=6)
    combinations = len(outlook.ties[0].fan.weight) * len(outlook.ties[1].fan.weight)
    assert combinations > 2
    assert 0.0 < Naive(most=2)(outlook).left_out < 1.0


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=1, max_size=4), min_size=1, max_size=3))
def test_the_likeliest_combinations_come_first(weights: list[list[float]]) -> None:
    falling = [np.sort(np.array(w))[::-1] for w in weights]
    everything = sorted(
        (
            float(np.prod([w[k] for w, k in zip(falling, picks, strict=True)]))
            for picks in product(*(range(len(w)) for w in falling))
        ),
        reverse=True,
    )
    found = [probability for probability, _ in _likeliest(falling, 5)]
    assert found == pytest.approx(everything[:5])


@given(seeds, st.integers(0, 3))
@settings(max_examples=60)
def test_shifted_moves_cost_least_of_all_shifts_and_keep_their_order(seed: int, most: int) -> None:
    outlook = random_outlook(seed, steps=6)
    plain, choice = Temporal(0)(outlook), Temporal(most)(outlook)
    hosts, base = choice.fan.hosts[0].tolist(), plain.fan.hosts[0].tolist()
    order = [h for k, h in enumerate(base) if k == 0 or base[k - 1] != h]
    arrive = [k for k in range(1, 6) if base[k - 1] != base[k]]
    assert [h for k, h in enumerate(hosts) if k == 0 or hosts[k - 1] != h] == order
    shifts = product(*(range(max(1, a - most), min(5, a + most) + 1) for a in arrive))
    costs = [
        expected_cost(outlook, tuple(np.repeat(order, np.diff([0, *moments, 6]))))
        for moments in shifts
        if all(a < b for a, b in pairwise(moments))
    ]
    assert choice.cost == pytest.approx(min(costs))


@given(seeds, st.integers(1, 12))
@settings(max_examples=60)
def test_the_k_best_paths_are_the_k_cheapest_sequences(seed: int, k: int) -> None:
    outlook = random_outlook(seed)
    choice = KShortest(k=k)(outlook)
    costs = sorted(expected_cost(outlook, hosts) for hosts in all_sequences(outlook))
    found = [expected_cost(outlook, tuple(hosts)) for hosts in choice.fan.hosts]
    assert found == pytest.approx(costs[:k])
    assert len({tuple(hosts) for hosts in choice.fan.hosts}) == len(found)


def test_k_best_with_moves_of_several_steps_waits_for_them() -> None:
    place = np.array([[1.0, 9.0]] * 2 + [[9.0, 1.0]] * 4)
    steps = np.array([[1, 3], [3, 1]], dtype=np.int32)
    costs, hosts = k_best(place, np.array([[0.0, 1.0], [1.0, 0.0]]), steps, 0, 3)
    assert costs.tolist() == [1 + 1 + 9 + 1 + 3, 1 + 1 + 9 + 9 + 1 + 2, 1 + 1 + 27 + 1 + 1]
    assert hosts[0].tolist() == [0, 0, 0, 1, 1, 1]


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 3)), min_size=1, max_size=5),
    st.sampled_from(["uniform", "normal"]),
)
@settings(max_examples=30)
def test_probabilities_of_the_least_are_those_of_many_draws(
    figures: list[tuple[float, float]], spread: str
) -> None:
    costs, error = (np.array(column) for column in zip(*figures, strict=True))
    rng = np.random.default_rng(0)
    shape = (40_000, costs.size)
    drawn = rng.uniform(-1, 1, shape) if spread == "uniform" else rng.standard_normal(shape)
    least = np.bincount((costs + error * drawn).argmin(axis=1), minlength=costs.size)
    found = probability_of_least(costs, error, spread=spread)  # type: ignore[arg-type]
    assert found == pytest.approx(least / 40_000, abs=0.015)


def test_where_nothing_is_uncertain_the_least_is_the_least() -> None:
    assert probability_of_least([3.0, 1.0, 1.0], [0, 0, 0]).tolist() == [0.0, 0.5, 0.5]
    with pytest.raises(InvalidInput):
        probability_of_least([], [])


def test_nobody_runs_where_there_is_no_room() -> None:
    room = np.ones((5, 4), dtype=bool)
    outlook = random_outlook(5, room=room)
    crowded = weighted_sum(outlook).fan.hosts[0]
    room = room.copy()
    room[1:, crowded[1:]] = False
    room[:, outlook.start] = True
    for name in ("naive", "weighted-sum", "temporal", "k-shortest"):
        choice = policy(name)(random_outlook(5, room=room))
        assert room[np.arange(5), choice.fan.hosts].all()
        assert not choice.crowded


@given(seeds)
@settings(max_examples=30)
def test_a_latency_that_can_be_kept_is_kept_and_one_that_cannot_is_told(seed: int) -> None:
    outlook = random_outlook(seed, most=1)
    excess = random_outlook(seed, most=1, latency_share_s=0.0).excess_s
    assert excess is not None
    limit = float(excess.min(axis=1).max()) + 1e-9
    kept = random_outlook(seed, most=1, latency_share_s=limit)
    choice = weighted_sum(kept)
    assert kept.excess_s is not None
    if kept.excess_s[0, kept.start] <= 0:
        assert choice.late_s == 0.0
    strict = weighted_sum(random_outlook(seed, most=1, latency_share_s=limit / 2 - 1e-6))
    if limit > 1e-6 and not np.isclose(excess.min(axis=1).max(), 0):
        assert strict.late_s > 0.0
    assert choice.cost >= weighted_sum(outlook).cost - 1e-9


def test_no_room_anywhere_keeps_it_where_it_is_and_says_so() -> None:
    choice = weighted_sum(random_outlook(1, room=np.zeros((5, 4), dtype=bool)))
    assert choice.crowded
    assert len(set(choice.fan.hosts[0].tolist())) == 1


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(InvalidInput, match="weighted-sum"):
        policy("weighted_sum")
