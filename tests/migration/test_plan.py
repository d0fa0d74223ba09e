"""The plan of an operator as people read it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migration.city_cases import random_city
from thalweg.errors import InvalidInput
from thalweg.migration.plan import plan_instance
from thalweg.migration.policies import KShortest
from thalweg.migration.predictors.perfect import Perfect
from thalweg.migration.settings import Settings

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(0, 4))
@settings(max_examples=40)
def test_plans_tell_hosts_moves_and_what_each_is_good_for(seed: int, later: int) -> None:
    city = random_city(seed, ticks=20)
    at_s = 100.0 + int(city.life[0, 0]) + later
    plans = plan_instance(city, 0, at_s, Perfect(city.connections), settings=Settings(horizon=12))
    assert [plan.operator for plan in plans] == ["o0", "o1"]
    for plan in plans:
        assert plan.begin_s == at_s
        assert plan.cost <= plan.staying_cost + 1e-6
        hosts = [step.host for step in plan.steps]
        changes = [k for k in range(1, 12) if hosts[k] != hosts[k - 1]]
        assert [move.at_s for move in plan.moves] == [at_s + k for k in changes]
        for k, move in zip(changes, plan.moves, strict=True):
            assert (move.source, move.target) == (hosts[k - 1], hosts[k])
            assert plan.steps[k].transfer_begin_s == move.begin_s == move.at_s - 1.0
            # Without it the plan would cost more, or as much.
            assert move.saves >= -1e-6
        json.dumps(plan.to_dict())
        assert len(plan.explain()) >= 3


def test_a_step_says_what_has_to_be_ready() -> None:
    city = random_city(3, ticks=20, latency_s=5.0, instructions=1e8)
    start_s = 100.0 + int(city.life[0, 0])
    first, second = plan_instance(city, 0, start_s, Perfect(city.connections))
    window_s = [operator.window_s for operator in city.graph.operators]
    step = first.steps[2]
    assert step.first_event_s == {"source": step.time_s - window_s[0]}
    assert step.out_bytes_per_s == pytest.approx(city.graph.streams[1].bytes_per_s)
    assert set(step.reserved_latency_s) == {"source", "o1"}
    # What upstream may take is what downstream keeps free for it.
    assert step.reserved_latency_s["o1"] == pytest.approx(second.steps[2].reserved_latency_s["o0"])
    work_s = 1e8 / 1e9
    assert step.reserved_latency_s["source"] == pytest.approx(2.5 - work_s)


def test_a_plan_that_keeps_several_sequences_says_how_likely_each_is() -> None:
    city = random_city(8, ticks=20)
    at_s = 100.0 + int(city.life[0, 0])
    few = Settings(horizon=8)
    plan = plan_instance(city, 0, at_s, Perfect(city.connections), KShortest(k=3), few)[0]
    assert len(plan.alternatives) == 3
    assert sum(probability for probability, _ in plan.alternatives) == pytest.approx(1.0)
    assert any("3 sequences" in line for line in plan.explain())


def test_a_latency_nobody_can_keep_is_told() -> None:
    city = random_city(5, latency_s=1e-6)
    at_s = 100.0 + int(city.life[0, 0])
    plans = plan_instance(city, 0, at_s, Perfect(city.connections))
    told = [violation for plan in plans for violation in plan.violations]
    assert told
    assert all("latency share" in violation for violation in told)
    assert any(line.startswith("Violated") for plan in plans for line in plan.explain())


def test_a_moment_outside_of_the_life_of_an_instance_is_refused() -> None:
    city = random_city(1)
    with pytest.raises(InvalidInput, match="while all its users"):
        plan_instance(city, 0, 5.0, Perfect(city.connections))
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        plan_instance(city, 9, 105.0, Perfect(city.connections))


def test_state_that_takes_steps_to_send_leaves_in_time() -> None:
    city = random_city(2, ticks=30)
    slow = type(city.brokers)(
        **{
            name: getattr(city.brokers, name)
            if name != "link_bandwidth_bps"
            else np.full(city.brokers.count, 500.0)
            for name in city.brokers.__dataclass_fields__
        }
    )
    city = type(city)(
        brokers=slow,
        connections=city.connections,
        graph=city.graph,
        vehicles=city.vehicles,
        start=city.start,
    )
    at_s = 100.0 + int(city.life[0, 0])
    moves = [
        move
        for instance in range(city.instances)
        for plan in plan_instance(city, instance, at_s, Perfect(city.connections))
        for move in plan.moves
    ]
    assert all(move.at_s - move.begin_s >= move.state_bytes * 8 / 500.0 for move in moves)
    assert moves
