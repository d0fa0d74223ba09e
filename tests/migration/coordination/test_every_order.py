"""Every order of delivery there is, for worlds small enough to try them all."""

from __future__ import annotations

import pytest

from migration.coordination.worlds import World
from thalweg.migration.coordination import HostPlan, holding, step, trigger


def drawn_together(edges, capacities, starts, ranks):
    """Operators with heavy streams on two brokers; neighbours that move at once would swap."""
    names = [f"o{k}" for k in range(len(starts))]
    streams = {(f"o{a}", f"o{b}"): 5 for a, b in edges}
    return World(
        parents=(0,),
        link_delays=(1,),
        steps=1,
        streams=streams | {("source", names[0]): 1, (names[-1], "consumer"): 1},
        states=dict.fromkeys(names, 1),
        starts=dict(zip(names, starts, strict=True)),
        users={"source": HostPlan(hosts=(0,)), "consumer": HostPlan(hosts=(1,))},
        capacities=capacities,
        demands=dict.fromkeys(names, 1.0),
        ranks=dict(zip(names, ranks, strict=True)),
    )


def ends(world, stable):
    """All the ways it can end; each state that can be reached is looked at once.

    Messages are numbered, so no state comes twice in a run: that this function comes to an end
    means that every order of delivery does.
    """
    machines = {m.name: m for m in world.machines(stable)}
    ledgers = holding(world.ledgers(), machines.values())
    planners = {name: world.planner_of(name) for name in machines}
    todo = [(machines, ledgers, tuple(trigger(name) for name in machines))]
    seen, found = set(), []
    while todo:
        machines, ledgers, pending = todo.pop()
        for message in dict.fromkeys(pending):
            rest = list(pending)
            rest.remove(message)
            if isinstance(message.receiver, int):
                ledger, sent = ledgers[message.receiver].handle(message)
                now = machines, {**ledgers, message.receiver: ledger}
                assert all(ledger.reserved(at) <= ledger.capacity for at in range(world.steps))
            else:
                before = machines[message.receiver]
                after, sent = step(before, message, planners[before.name])
                now = {**machines, before.name: after}, ledgers
                check_cost(world, machines, before, after)
            state = (*now, tuple(sorted([*rest, *sent], key=str)))
            key = str(_sorted(state))
            if key not in seen:
                seen.add(key)
                todo.append(state)
        if not pending:
            found.append((machines, ledgers))
    return found, len(seen)


def check_cost(world, machines, before, after):
    if before.stable and after.stable.deviates_from(before.stable):
        plans = {name: m.stable for name, m in machines.items() if m.stable}
        moved = {**plans, before.name: after.stable}
        assert world.total_cost(moved) < world.total_cost(plans)


def _sorted(state):
    """The same text for the same state, whatever its mappings and sets were made from."""
    machines, ledgers, pending = state
    return (
        [_text(machine) for _, machine in sorted(machines.items())],
        [_text(ledger) for _, ledger in sorted(ledgers.items())],
        [str(message) for message in pending],
    )


def _text(value):
    if isinstance(value, dict):
        return sorted((str(key), _text(one)) for key, one in value.items())
    if isinstance(value, frozenset):
        return sorted(str(_text(one)) for one in value)
    if hasattr(value, "__dataclass_fields__"):
        return [(name, _text(getattr(value, name))) for name in value.__dataclass_fields__]
    return str(value)


def check_ends(world, stable):
    found, states = ends(world, stable)
    assert found
    assert states > 50
    for machines, ledgers in found:
        assert all(machine.is_settled for machine in machines.values())
        plans = {name: m.stable for name, m in machines.items() if m.stable}
        held = {(n, b) for b, ledger in ledgers.items() for n in ledger.held.get(0, ())}
        assert held == {(name, plan.hosts[0]) for name, plan in plans.items()}
        assert set(stable) <= set(plans)
        yield plans


def staying(world):
    return {name: HostPlan(hosts=(start,)) for name, start in world.starts.items()}


PAIR = ((0, 1),)
CHAIN = ((0, 1), (1, 2))
TRIANGLE = ((0, 1), (1, 2), (0, 2))


@pytest.mark.parametrize("ranks", [(0, 1), (1, 0)])
@pytest.mark.parametrize("is_deployed", [True, False])
def test_two_with_room_always_come_together(ranks, is_deployed):
    world = drawn_together(PAIR, (2.0, 2.0), (0, 1), ranks)
    for plans in check_ends(world, staying(world) if is_deployed else {}):
        assert plans["o0"].hosts == plans["o1"].hosts


@pytest.mark.parametrize(
    ("capacities", "starts", "is_deployed"),
    [((1.0, 1.0), (1, 0), True), ((1.0, 1.0), (1, 0), False), ((1.0, 2.0), (0, 1), True)],
)
def test_two_without_room_for_both_settle(capacities, starts, is_deployed):
    world = drawn_together(PAIR, capacities, starts, (0, 1))
    for plans in check_ends(world, staying(world) if is_deployed else {}):
        assert set(plans) == {"o0", "o1"}


def test_two_may_only_get_one_place():
    world = drawn_together(PAIR, (1.0, 0.0), (0, 0), (0, 1))
    assert {len(plans) for plans in check_ends(world, {})} == {1}


@pytest.mark.parametrize("ranks", [(1, 0, 2), (0, 1, 2)])
@pytest.mark.parametrize("capacities", [(3.0, 3.0), (2.0, 2.0)])
def test_a_chain_of_three_settles(capacities, ranks):
    world = drawn_together(CHAIN, capacities, (0, 1, 0), ranks)
    assert all(set(plans) == {"o0", "o1", "o2"} for plans in check_ends(world, staying(world)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edges", "capacities", "starts", "ranks"),
    [
        (CHAIN, (3.0, 3.0), (0, 1, 0), (0, 2, 1)),
        (TRIANGLE, (3.0, 3.0), (0, 1, 0), (2, 0, 1)),
        (TRIANGLE, (2.0, 2.0), (0, 1, 0), (0, 1, 2)),
    ],
)
def test_three_settle(edges, capacities, starts, ranks):
    world = drawn_together(edges, capacities, starts, ranks)
    assert all(set(plans) == set(world.ranks) for plans in check_ends(world, staying(world)))
