"""What holds for every graph, every capacity and every order of delivery."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from migration.coordination.orders import orders
from migration.coordination.worlds import random_world, static_plans
from thalweg.migration.coordination import (
    HostPlan,
    Message,
    PlanPublished,
    coordinate,
    holding,
    run,
    trigger,
)

seeds = st.integers(0, 2**32 - 1)


def finished(world, order, stable=None, triggers=None):
    machines = world.machines(stable or {})
    chosen = [trigger(machine.name) for machine in machines] if triggers is None else triggers
    return run(
        machines,
        holding(world.ledgers(), machines),
        chosen,
        order,
        planner_of=world.planner_of,
        cost=world.total_cost,
    )


def check_reservations(world, result):
    """Exactly the stable plans are reserved, and no broker ever held more than it can."""
    reserved = {
        (name, ledger.broker, at): demand
        for ledger in result.ledgers.values()
        for at, demands in ledger.held.items()
        for name, demand in demands.items()
    }
    assert reserved == {
        (name, broker, at): world.demands[name]
        for name, plan in result.plans.items()
        for broker, at in plan.vertices
    }
    for (broker, _), peak in result.peak_reserved.items():
        assert peak <= world.capacities[broker]


def check_costs(world, result):
    """No accepted plan that replaces another raises C_tot.

    Why this holds whatever is refused: the plan replaced stays reserved until the new one is, and
    only vertices beyond it are asked for, so none of its own is ever banned and it stays open to
    the planner. The planner leaves it only for less cost against the neighbours' plans; these hold
    until the plan is accepted, as neighbours never change at once; and the part of C_tot that an
    operator's plan enters is that cost. An operator's first plan brings its streams into C_tot
    and may raise it: there was nothing to keep.
    """
    for acceptance in result.acceptances:
        if acceptance.previous is not None:
            assert acceptance.cost_after < acceptance.cost_before
    for name, plan in result.plans.items():
        # What an operator believes of its neighbours is true in the end.
        for other, believed in result.machines[name].known.items():
            assert not believed.deviates_from({**world.users, **result.plans}[other])
        assert len(plan.hosts) == world.steps


@given(seeds, orders, st.booleans())
@settings(max_examples=200)
def test_it_ends_with_plans_that_are_reserved_and_never_cost_more(seed, order, is_deployed):
    world = random_world(seed)
    stable = static_plans(world) if is_deployed else {}
    result = finished(world, order, stable)
    check_reservations(world, result)
    check_costs(world, result)
    assert set(result.plans) | set(result.without_plan) == set(world.ranks)
    assert set(stable) <= set(result.plans)
    if set(stable) == set(world.ranks):
        costs = [world.total_cost(stable), *(a.cost_after for a in result.acceptances)]
        assert costs == sorted(costs, reverse=True)
        assert costs[-1] == world.total_cost(result.plans)


@given(seeds, orders)
@settings(max_examples=60)
def test_with_room_for_all_nobody_could_do_better_alone(seed, order):
    world = random_world(seed, roomy=True, brokers=4, steps=3)
    result = finished(world, order)
    for name, plan in result.plans.items():
        plans = {**world.users, **result.plans}
        best = min(world.own_cost(name, hosts, plans) for hosts in world.all_plans())
        assert world.own_cost(name, plan.hosts, plans) == best
    assert set(result.plans) == set(world.ranks)
    assert result.counts.keys().isdisjoint({"Refused"})


@given(seeds, orders)
@settings(max_examples=60)
def test_who_has_no_plan_finds_no_room_besides_the_others(seed, order):
    world = random_world(seed, steps=2)
    result = finished(world, order)
    for name in result.without_plan:
        fits = [
            all(
                not result.ledgers[broker].check(name, world.demands[name], [at])
                for at, broker in enumerate(hosts)
            )
            for hosts in world.all_plans()
        ]
        assert not any(fits)


@given(seeds, orders, st.lists(st.integers(0, 4), max_size=12))
@settings(max_examples=60)
def test_triggers_may_come_again_and_again(seed, order, again):
    world = random_world(seed)
    names = [f"o{k % len(world.ranks)}" for k in again]
    result = finished(world, order, triggers=[trigger(name) for name in names])
    check_reservations(world, result)
    check_costs(world, result)
    assert set(names) <= set(result.plans) | set(result.without_plan)
    assert result.counts.get("Trigger", 0) >= len(names)


@given(seeds, orders, orders)
@settings(max_examples=60)
def test_a_second_coordination_after_users_changed_lowers_the_cost_again(seed, first, second):
    world = random_world(seed)
    before = finished(world, first)
    rng = np.random.default_rng(seed)
    count = len(world.delay)
    users = {
        user: HostPlan(hosts=tuple(int(h) for h in rng.integers(count, size=world.steps)))
        for user in world.users
    }
    moved = replace(world, users=users)
    # All hear the news before anybody plans: users don't change during a coordination.
    after = run(
        [machine.hearing(_heard(world, machine, users)) for machine in before.machines.values()],
        before.ledgers,
        [trigger(name) for name in world.ranks],
        second,
        planner_of=moved.planner_of,
        cost=moved.total_cost,
    )
    check_reservations(moved, after)
    check_costs(moved, after)
    if not before.without_plan:
        assert moved.total_cost(after.plans) <= moved.total_cost(before.plans)


def _heard(world, machine, users):
    return {user: users[user] for user in world.neighbours(machine.name) if user in users}


def published(world, users, version):
    return [
        Message(
            sender=user, receiver=name, content=PlanPublished(version=version, plan=users[user])
        )
        for name in world.ranks
        for user in world.neighbours(name)
        if user in users
    ]


@given(seeds, orders)
@settings(max_examples=60)
def test_users_that_change_meanwhile_are_heard_in_the_end(seed, order):
    # C_tot compares plans for the same users only, so nothing is said of it here.
    world = random_world(seed, roomy=True)
    rng = np.random.default_rng(seed)
    users = {
        user: HostPlan(hosts=tuple(int(h) for h in rng.permutation(plan.hosts)))
        for user, plan in world.users.items()
    }
    news = published(world, users, version=2) + published(world, world.users, version=1)
    triggers = [trigger(name) for name in world.ranks]
    result = finished(world, order, triggers=triggers + news)
    moved = replace(world, users=users)
    check_reservations(moved, result)
    for name, plan in result.plans.items():
        known = {**users, **result.plans}
        best = moved.planner_of(name)(known, frozenset(), plan)
        assert not best.deviates_from(plan)


@given(seeds)
@settings(max_examples=30)
def test_all_at_once_is_the_same_as_message_by_message(seed):
    world = random_world(seed)
    operators = [replace(m, known={}) for m in world.machines()]
    result = coordinate(operators, world.planner_of, world.users, world.ledgers())
    assert result.plans == finished(world, lambda pending: 0).plans


@given(seeds, orders)
@settings(max_examples=60)
def test_the_same_order_gives_the_same_again(seed, order):
    world = random_world(seed)
    sent = []

    def remembering(pending):
        sent.append(order(pending) % len(pending))
        return sent[-1]

    result = finished(world, remembering)
    replay = iter(sent)
    assert finished(world, lambda pending: next(replay)) == result
