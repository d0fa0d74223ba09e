"""How many messages operators and brokers send until a chain has agreed on its plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from thalweg.migration.city import City
from thalweg.migration.coordination import (
    BrokerLedger,
    HostPlan,
    OperatorMachine,
    Planner,
    Vertex,
    coordinate,
    in_random_order,
)
from thalweg.migration.fan import Fan
from thalweg.migration.outlook import Outlook, Tie
from thalweg.migration.policies import cost_of
from thalweg.migration.time_graph import Moves, cheapest_path
from thalweg.model.graph import Floats, Index

_EPSILON = 1e-9


def count_messages(city: City, steps: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Messages of every instance's first coordination, and of the next one half a plan later.

    Users' plans are their true ways; messages arrive in a random order.
    """
    first, next_ = np.zeros(city.instances), np.zeros(city.instances)
    for k in range(city.instances):
        stable: dict[str, HostPlan] = {}
        start = city.start[k]
        for counts, at in ((first, 0), (next_, steps // 2)):
            users = _ways(city, k, at, steps)
            machines = _machines(city, stable)
            planners = {
                name: _planner(city, number, int(start[number]), steps)
                for name, number in city.graph.number.items()
            }
            capacity = city.brokers.capacity_ips
            found = coordinate(
                machines,
                planners.__getitem__,
                users,
                [BrokerLedger(broker=b, capacity=float(c)) for b, c in enumerate(capacity)],
                in_random_order(rng),
            )
            counts[k] = found.message_count
            # Half of it later each goes by the rest of its plan, and stays where that ends.
            half = steps // 2
            stable = {
                name: HostPlan(hosts=plan.hosts[half:] + plan.hosts[-1:] * half)
                for name, plan in found.plans.items()
            }
            start = np.array([stable[o.name].hosts[0] for o in city.graph.operators])
    return first, next_


def _ways(city: City, instance: int, at: int, steps: int) -> dict[str, HostPlan]:
    """Where the users will be; beyond the end of the instance, where they were last."""
    leaves = city.leaves_of(instance)
    ticks = np.minimum(np.arange(at, at + steps), leaves.shape[1] - 1)
    return {
        user: HostPlan(hosts=tuple(leaves[number, ticks].tolist()))
        for number, user in enumerate(city.graph.users)
    }


def _machines(city: City, stable: Mapping[str, HostPlan]) -> list[OperatorMachine]:
    graph, machines = city.graph, []
    for number, operator in enumerate(graph.operators):
        others = {graph.other_end(stream, number) for stream in graph.streams_of[number]}
        machine = OperatorMachine(
            name=operator.name,
            rank=number,
            ranks={name: graph.number[name] for name in sorted(others & graph.number.keys())},
            demand=operator.demand_ips,
            stable=stable.get(operator.name),
        )
        known = {name: plan for name, plan in stable.items() if name in others}
        machines.append(machine.hearing(known))
    return machines


def _planner(city: City, number: int, start: int, steps: int) -> Planner:
    """The cheapest path of a time graph; of plans that cost the same, the previous one."""
    graph, brokers = city.graph, city.brokers
    operator = graph.operators[number]
    moves = Moves.of(brokers, state_bytes=operator.state_bytes, step_s=city.tick_s)
    carried = graph.bytes_per_s * city.tick_s

    def plan(
        known: Mapping[str, HostPlan], banned: frozenset[Vertex], previous: HostPlan | None
    ) -> HostPlan | None:
        ties = []
        for stream in graph.streams_of[number]:
            other = graph.other_end(stream, number)
            if other in known:
                ties.append(
                    Tie(
                        neighbour=other,
                        fan=Fan.certain(known[other].hosts),
                        carried_bytes=np.full(steps, carried[stream]),
                        incoming=graph.streams[stream].source == other,
                    )
                )
        room = np.ones((steps, brokers.count), dtype=bool)
        for broker, at in banned:
            room[at, broker] = False
        outlook = Outlook(operator=operator, moves=moves, ties=tuple(ties), start=start, room=room)
        place = outlook.place_cost()
        path = cheapest_path(outlook.graph(place))
        if path is None:
            return None
        if previous is not None and not previous.vertices & banned:
            hosts: Index = np.array(previous.hosts, dtype=np.int32)
            old = cost_of(outlook, place, hosts)
            if old <= path.cost + _EPSILON * (1.0 + abs(path.cost)):
                return replace(previous, cost=old)
        return HostPlan(hosts=tuple(path.hosts.tolist()), cost=path.cost)

    return plan
