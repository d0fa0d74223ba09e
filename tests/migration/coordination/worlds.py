"""Small worlds to coordinate in, with a plain planner and the total cost, all in whole numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from thalweg.migration.coordination import BrokerLedger, HostPlan, OperatorMachine


@dataclass(frozen=True, kw_only=True)
class World:
    """Brokers in a tree, operators and users with streams between them.

    Costs are sums of products of whole numbers, so ties are exact and "strictly cheaper" is too.
    """

    parents: tuple[int, ...]
    """Of broker 1, 2, …; broker 0 is the root."""
    link_delays: tuple[int, ...]
    steps: int
    streams: Mapping[tuple[str, str], int]
    states: Mapping[str, int]
    starts: Mapping[str, int]
    users: Mapping[str, HostPlan]
    capacities: tuple[float, ...]
    demands: Mapping[str, float]
    ranks: Mapping[str, int]
    delay: np.ndarray = field(init=False)

    def __post_init__(self):
        count = len(self.parents) + 1
        delay = np.zeros((count, count), dtype=int)
        for child, (parent, link) in enumerate(zip(self.parents, self.link_delays, strict=True), 1):
            delay[child, :child] = delay[:child, child] = delay[parent, :child] + link
        object.__setattr__(self, "delay", delay)

    def neighbours(self, name):
        """Each neighbour with the bandwidth of all streams to and from it."""
        found = {}
        for (a, b), bandwidth in self.streams.items():
            if name in (a, b):
                other = b if name == a else a
                found[other] = found.get(other, 0) + bandwidth
        return found

    def machines(self, stable=()):
        stable = dict(stable)
        return [
            OperatorMachine(
                name=name,
                rank=rank,
                ranks={o: self.ranks[o] for o in self.neighbours(name) if o in self.ranks},
                demand=self.demands[name],
                stable=stable.get(name),
            ).hearing(
                {
                    other: plan
                    for other, plan in {**self.users, **stable}.items()
                    if other in self.neighbours(name)
                }
            )
            for name, rank in self.ranks.items()
        ]

    def ledgers(self):
        return [BrokerLedger(broker=b, capacity=c) for b, c in enumerate(self.capacities)]

    def own_cost(self, name, hosts, plans):
        """What an operator pays for its streams and moves, its neighbours being where they plan."""
        placement = sum(
            bandwidth * self.delay[host, plans[other].hosts[at]]
            for other, bandwidth in self.neighbours(name).items()
            if other in plans
            for at, host in enumerate(hosts)
        )
        return int(placement + self.moving_cost(name, hosts))

    def moving_cost(self, name, hosts):
        route = itertools.pairwise((self.starts[name], *hosts))
        return int(self.states[name] * sum(self.delay[a, b] for a, b in route))

    def total_cost(self, plans):
        """C_tot: every stream once, and every move; streams need both their ends."""
        known = {**self.users, **plans}
        placement = sum(
            bandwidth * self.delay[x, y]
            for (a, b), bandwidth in self.streams.items()
            if a in known and b in known
            for x, y in zip(known[a].hosts, known[b].hosts, strict=True)
        )
        return int(placement + sum(self.moving_cost(n, p.hosts) for n, p in plans.items()))

    def planner_of(self, name):
        """All brokers × all brokers at each step; of equal plans the previous, then the first."""

        def plan(neighbour_plans, banned, previous):
            count = len(self.delay)
            cost = self.states[name] * self.delay[self.starts[name]].astype(float)
            came_from = []
            for at in range(self.steps):
                if at:
                    moves = cost[:, None] + self.states[name] * self.delay
                    came_from.append(moves.argmin(axis=0))
                    cost = moves.min(axis=0)
                for other, bandwidth in self.neighbours(name).items():
                    if other in neighbour_plans:
                        host = neighbour_plans[other].hosts[at]
                        cost = cost + bandwidth * self.delay[host]
                for broker in range(count):
                    if (broker, at) in banned:
                        cost[broker] = np.inf
            last = int(cost.argmin())
            if not np.isfinite(cost[last]):
                return None
            hosts = [last]
            for back in reversed(came_from):
                hosts.append(int(back[hosts[-1]]))
            if previous is not None and not previous.vertices & banned:
                stay = self.own_cost(name, previous.hosts, neighbour_plans)
                if stay <= cost[last]:
                    return HostPlan(hosts=previous.hosts, cost=stay)
            return HostPlan(hosts=tuple(reversed(hosts)), cost=float(cost[last]))

        return plan

    def all_plans(self):
        return itertools.product(range(len(self.delay)), repeat=self.steps)


def random_world(seed, *, roomy=False, operators=None, brokers=None, steps=None):
    """A chain or another acyclic graph of 1 to 5 operators, with users at its ends."""
    rng = np.random.default_rng(seed)
    count = operators or int(rng.integers(1, 6))
    broker_count = brokers or int(rng.integers(1, 7))
    step_count = steps or int(rng.integers(1, 6))
    names = [f"o{k}" for k in range(count)]
    streams = {(f"o{k}", f"o{k + 1}"): int(rng.integers(0, 5)) for k in range(count - 1)}
    if rng.random() < 0.6:  # Not a chain: any edge forward may be there or not.
        for a, b in itertools.combinations(range(count), 2):
            streams.pop((f"o{a}", f"o{b}"), None)
            if rng.random() < 0.6:
                streams[f"o{a}", f"o{b}"] = int(rng.integers(0, 5))
    streams["source", "o0"] = int(rng.integers(0, 5))
    streams[names[-1], "consumer"] = int(rng.integers(0, 5))
    if rng.random() < 0.4:
        streams["second", str(rng.choice(names))] = int(rng.integers(1, 5))
    users = {
        user: HostPlan(hosts=tuple(int(h) for h in rng.integers(broker_count, size=step_count)))
        for user in ("source", "consumer", "second")
    }
    capacities = rng.choice([0.0, 1.0, 1.0, 1.5, 2.0, 3.0], size=broker_count)
    return World(
        parents=tuple(int(rng.integers(k)) for k in range(1, broker_count)),
        link_delays=tuple(int(d) for d in rng.integers(1, 6, size=broker_count - 1)),
        steps=step_count,
        streams=streams,
        states={name: int(rng.integers(0, 4)) for name in names},
        starts={name: int(rng.integers(broker_count)) for name in names},
        users=users,
        capacities=(1e6,) * broker_count if roomy else tuple(float(c) for c in capacities),
        demands={name: float(rng.choice([0.5, 1.0, 1.0, 1.5])) for name in names},
        ranks={name: int(rank) for name, rank in zip(names, rng.permutation(count), strict=True)},
    )


def static_plans(world):
    """Everybody stays where it starts, as far as there is room."""
    room = {(b, at): c for b, c in enumerate(world.capacities) for at in range(world.steps)}
    plans = {}
    for name, start in world.starts.items():
        if all(room[start, at] >= world.demands[name] for at in range(world.steps)):
            plans[name] = HostPlan(hosts=(start,) * world.steps)
            for at in range(world.steps):
                room[start, at] -= world.demands[name]
    return plans
