"""Operators, brokers and users to coordinate: who is connected to whom, and how far away."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from thalweg.migration.coordination import HostPlan, OperatorMachine, Planner
from thalweg.migration.coordination.messages import Vertex


@dataclass(frozen=True, kw_only=True)
class Streets:
    """Who is connected to whom, and how far brokers are from each other; in whole numbers."""

    delay: tuple[tuple[int, ...], ...]
    steps: int
    streams: Mapping[tuple[str, str], int]
    states: Mapping[str, int]
    starts: Mapping[str, int]
    demands: Mapping[str, float]
    ranks: Mapping[str, int]
    capacities: tuple[float, ...]
    users: tuple[str, ...]

    @classmethod
    def draw(cls, random: Random) -> Streets:
        """A few operators in a chain or another acyclic graph, with users at its ends."""
        operators = [f"o{k}" for k in range(random.randint(1, 4))]
        brokers, steps = random.randint(2, 4), random.randint(1, 3)
        delay = [[0] * brokers for _ in range(brokers)]
        for child in range(1, brokers):
            parent, link = random.randrange(child), random.randint(1, 5)
            for other in range(child):
                delay[child][other] = delay[other][child] = delay[parent][other] + link
        streams = {pair: random.randint(0, 4) for pair in itertools.pairwise(operators)}
        for pair in itertools.combinations(operators, 2):
            if random.random() < 0.2:
                streams[pair] = random.randint(0, 4)
        streams["source", operators[0]] = random.randint(1, 4)
        streams[operators[-1], "consumer"] = random.randint(1, 4)
        ranks = list(range(len(operators)))
        random.shuffle(ranks)
        return cls(
            delay=tuple(map(tuple, delay)),
            steps=steps,
            streams=streams,
            states={name: random.randint(0, 3) for name in operators},
            starts={name: random.randrange(brokers) for name in operators},
            demands={name: random.choice((0.5, 1.0, 1.5)) for name in operators},
            ranks=dict(zip(operators, ranks, strict=True)),
            capacities=tuple(random.choice((0.0, 1.0, 1.5, 2.0, 4.0)) for _ in range(brokers)),
            users=("source", "consumer"),
        )

    def neighbours(self, name: str) -> dict[str, int]:
        """Each neighbour with the bandwidth of all streams to and from it."""
        found: dict[str, int] = {}
        for (a, b), bandwidth in self.streams.items():
            if name in (a, b):
                other = b if name == a else a
                found[other] = found.get(other, 0) + bandwidth
        return found

    def machine(self, name: str) -> OperatorMachine:
        """An operator that knows nobody's plan yet."""
        others = {
            other: self.ranks[other] for other in self.neighbours(name) if other in self.ranks
        }
        return OperatorMachine(
            name=name, rank=self.ranks[name], ranks=others, demand=self.demands[name]
        )

    def planner_of(self, name: str) -> Planner:
        """Broker by broker and step by step; of equal plans the previous one, then the first."""
        brokers, near = range(len(self.delay)), self.neighbours(name)
        state, start = self.states[name], self.starts[name]

        def price(at: int, host: int, plans: Mapping[str, HostPlan]) -> int:
            return sum(
                bandwidth * self.delay[host][plans[other].hosts[at]]
                for other, bandwidth in near.items()
                if other in plans
            )

        def plan(
            plans: Mapping[str, HostPlan], banned: frozenset[Vertex], previous: HostPlan | None
        ) -> HostPlan | None:
            best: dict[int, tuple[int, tuple[int, ...]]] = {start: (0, ())}
            for at in range(self.steps):
                best = {
                    host: min(
                        (
                            cost + state * self.delay[last][host] + price(at, host, plans),
                            (*way, host),
                        )
                        for last, (cost, way) in best.items()
                    )
                    for host in brokers
                    if (host, at) not in banned
                }
                if not best:
                    return None
            cost, hosts = min(best.values())
            if previous is not None and not previous.vertices & banned:
                route = itertools.pairwise((start, *previous.hosts))
                stay = state * sum(self.delay[a][b] for a, b in route)
                stay += sum(price(at, host, plans) for at, host in enumerate(previous.hosts))
                if stay <= cost:
                    return HostPlan(hosts=previous.hosts, cost=stay)
            return HostPlan(hosts=hosts, cost=cost)

        return plan
