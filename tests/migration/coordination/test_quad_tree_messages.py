"""How many messages a coordination takes for two operators between two moving users."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from migration.coordination.worlds import World
from thalweg.migration.coordination import (
    HostPlan,
    first_sent,
    holding,
    in_random_order,
    run,
    trigger,
)

PARENTS = (0,) * 4 + tuple(1 + leaf // 4 for leaf in range(16))
STEPS = 20


def drive(rng):
    """A way over the 4 × 4 leaves, a few steps on each."""
    place = rng.integers(4, size=2)
    hosts = []
    while len(hosts) < STEPS:
        x, y = place
        leaf = 5 + 4 * (2 * (y // 2) + x // 2) + 2 * (y % 2) + x % 2
        hosts += [int(leaf)] * int(rng.integers(2, 8))
        place = np.clip(place + rng.integers(-1, 2, size=2), 0, 3)
    return HostPlan(hosts=tuple(hosts[:STEPS]))


def quad_tree(rng, event_bytes, state_bytes, capacity):
    return World(
        parents=PARENTS,
        link_delays=(1,) * 20,
        steps=STEPS,
        streams={("source", "D"): event_bytes, ("D", "F"): event_bytes, ("F", "consumer"): 50},
        states={"D": state_bytes, "F": 100},
        starts={"D": int(rng.integers(21)), "F": int(rng.integers(21))},
        users={"source": drive(rng), "consumer": drive(rng)},
        capacities=(capacity,) * 21,
        demands={"D": 1.0, "F": 1.0},
        ranks={"D": 0, "F": 1},
    )


def coordinations(event_bytes, state_bytes, *, capacity=8.0, seed=7, repetitions=12, order=None):
    """The deployment of a chain, and what follows when its source has turned off; many times."""
    rng = np.random.default_rng(seed)
    order = order or in_random_order(rng)
    for _ in range(repetitions):
        world = quad_tree(rng, event_bytes, state_bytes, capacity)
        machines = world.machines()
        ledgers = holding(world.ledgers(), machines)
        first = run(machines, ledgers, [trigger("D")], order, planner_of=world.planner_of)
        yield first
        source = drive(rng)
        turned = replace(world, users=world.users | {"source": source})
        heard = replace(first.machines["D"], known=first.machines["D"].known | {"source": source})
        second = run(
            [heard, first.machines["F"]],
            first.ledgers,
            [trigger("D", "the source left its path")],
            order,
            planner_of=turned.planner_of,
            cost=turned.total_cost,
        )
        assert turned.total_cost(second.plans) <= turned.total_cost(first.plans)
        yield second


def brokers(vertices):
    return len({broker for broker, _ in vertices})


@pytest.mark.parametrize(("event_bytes", "state_bytes"), [(50, 0), (250, 1_000), (250, 60_000)])
def test_without_conflicts_the_messages_are_three_per_neighbour_and_four_per_target(
    event_bytes, state_bytes
):
    results = list(coordinations(event_bytes, state_bytes, order=first_sent))
    for result in results:
        expected = 0
        for accepted in result.acceptances:
            old = accepted.previous.vertices if accepted.previous else frozenset()
            new = accepted.plan.vertices
            expected += 3 + 4 * brokers(new - old) + brokers(old - new)
        assert result.message_count == expected
    assert np.mean([result.message_count for result in results]) > 3


def test_conflicts_and_tight_brokers_keep_the_count_small():
    results = list(coordinations(150, 500, capacity=1.0))
    assert 5 < np.mean([result.message_count for result in results if result.acceptances]) < 100


if __name__ == "__main__":
    every = []
    for event_bytes in (50, 150, 250):
        for state_bytes in (0, 500, 2_000, 60_000):
            results = list(coordinations(event_bytes, state_bytes, repetitions=40))
            first, second = results[::2], results[1::2]
            counts = [
                [r.message_count for r in some if r.message_count] for some in (first, second)
            ]
            every += counts[0] + counts[1]
            means = [np.mean(some) if some else np.nan for some in counts]
            print(event_bytes, state_bytes, means, [len(some) for some in counts])
    print("mean of all", np.mean(every))
