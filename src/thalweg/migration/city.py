"""A city: brokers, vehicles that move, and operators between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thalweg.errors import Defects
from thalweg.migration.brokers import Brokers
from thalweg.migration.connections import Connections
from thalweg.migration.operators import MobileGraph
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index


@dataclass(frozen=True, eq=False, kw_only=True)
class City:
    """Instances of an operator graph, each between vehicles of its own."""

    brokers: Brokers
    connections: Connections
    graph: MobileGraph
    vehicles: Index
    """Shape (instances, users): the vehicle that is each user of the graph."""
    start: Index
    """Shape (instances, operators): the broker where each operator is first."""
    lonely: tuple[str, ...] = ()
    """Vehicles that were to be users and meet nobody."""
    factor: Floats | None = None
    """Shape (instances, streams, ticks): what each stream carries as a multiple of its usual
    load; None: always 1."""

    def __post_init__(self) -> None:
        defects = Defects()
        users, operators = len(self.graph.users), len(self.graph.operators)
        count = len(self.vehicles)
        defects.require(count > 0, "vehicles", "no instance", "at least one")
        for name, width, most in (
            ("vehicles", users, self.connections.vehicles),
            ("start", operators, self.brokers.count),
        ):
            given = getattr(self, name)
            good = given.shape == (count, width) and bool(((given >= 0) & (given < most)).all())
            defects.require(good, name, given.shape, f"{width} numbers below {most} for each")
        if self.factor is not None:
            shape = (count, len(self.graph.streams), self.connections.steps)
            good = self.factor.shape == shape and bool((self.factor >= 0).all())
            defects.require(good, "factor", self.factor.shape, f"numbers >= 0 of shape {shape}")
        for operator in self.graph.operators:
            largest = float(self.brokers.capacity_ips.max())
            defects.require(
                operator.demand_ips <= largest,
                f"operators[{operator.name}]",
                f"{operator.demand_ips:g} instructions/s",
                f"no more than the largest broker has free, {largest:g}",
            )
        defects.raise_if_any()
        alone = np.flatnonzero(self.life[:, 0] >= self.life[:, 1])
        if alone.size:
            names = ", ".join(
                " and ".join(self.connections.names[v] for v in self.vehicles[k]) for k in alone[:5]
            )
            rule = "vehicles that are on the map at the same time"
            defects.add("vehicles", names, rule, f"{alone.size} of {count} never meet")
        defects.raise_if_any()
        freeze(self)

    @property
    def instances(self) -> int:
        """How many operator graphs there are."""
        return len(self.vehicles)

    @property
    def ticks(self) -> int:
        """How many moments there are."""
        return self.connections.steps

    @property
    def tick_s(self) -> float:
        """The time between moments."""
        return self.connections.step_s

    @cached_property
    def life(self) -> Index:
        """First tick of each instance, and the one after its last: while all users are there.

        A vehicle that comes back has the time in between counted as away: only the longest
        time together counts.
        """
        there = self.connections.there[self.vehicles].all(axis=1)
        padded = np.pad(there, ((0, 0), (1, 1))).astype(np.int8)
        change = np.diff(padded, axis=1)
        life = np.zeros((self.instances, 2), dtype=np.int32)
        for k in range(self.instances):
            first, end = np.flatnonzero(change[k] == 1), np.flatnonzero(change[k] == -1)
            if first.size:
                longest = int(np.argmax(end - first))
                life[k] = first[longest], end[longest]
        return life

    def leaves_of(self, instance: int) -> Index:
        """Where the users of an instance are during its life, a row for each user."""
        first, end = self.life[instance]
        return self.connections.leaf[self.vehicles[instance], first:end]

    def carried_bytes(self, instance: int) -> Floats:
        """What each stream carries during each tick of an instance's life."""
        first, end = self.life[instance]
        usual = self.graph.bytes_per_s * self.tick_s
        if self.factor is None:
            return np.repeat(usual[:, None], end - first, axis=1)
        return np.asarray(usual[:, None] * self.factor[instance, :, first:end])


def draw_city(
    graph: MobileGraph,
    brokers: Brokers,
    connections: Connections,
    rng: np.random.Generator,
    *,
    instances: int | None = None,
    among: Index | None = None,
    least_life_s: float = 60.0,
) -> City:
    """Each vehicle a source once, the other users drawn among those it meets; hosts at random.

    As many instances as there are vehicles, or as told; only vehicles `among` these take part. An
    instance lasts at least `least_life_s`, or as long as any could with that source. A source that
    meets nobody has no instance and is named in `City.lonely`.
    """
    users = len(graph.users)
    there = connections.there
    first = np.argmax(there, axis=1)
    last = there.shape[1] - np.argmax(there[:, ::-1], axis=1)
    known = np.arange(connections.vehicles) if among is None else np.unique(among)
    count = known.size if instances is None else instances
    defects = Defects()
    defects.require(
        1 <= count <= 1_000_000, "instances", count, "a whole number from 1 to 1,000,000"
    )
    defects.require(known.size >= users, "vehicles", known.size, f"at least {users}")
    defects.raise_if_any()
    rounds = -(-count // known.size)
    sources = np.concatenate([rng.permutation(known) for _ in range(rounds)])[:count]
    stranger = np.ones(connections.vehicles, dtype=bool)
    stranger[known] = False
    rows, lonely = list[list[int]](), dict[str, None]()
    least = int(least_life_s / connections.step_s)
    for source in sources.tolist():
        row = [source]
        while len(row) < users:
            begin = np.maximum(first, first[row].max())
            together = np.minimum(last, last[row].min()) - begin
            together[row] = 0
            together[stranger] = 0
            enough = max(min(least, int(together.max())), 1)
            if not (together >= enough).any():
                lonely[connections.names[source]] = None
                break
            row.append(int(rng.choice(np.flatnonzero(together >= enough))))
        else:
            rows.append(row)
    rule = f"{users} vehicles that are on the map together"
    defects.require(bool(rows), "vehicles", "none that meet", rule)
    defects.raise_if_any()
    hosts = np.flatnonzero(brokers.capacity_ips > 0)
    drawn = rng.integers(0, hosts.size, (len(rows), len(graph.operators)))
    return City(
        brokers=brokers,
        connections=connections,
        graph=graph,
        vehicles=np.array(rows, dtype=np.int32),
        start=hosts[drawn].astype(np.int32),
        lonely=tuple(lonely),
    )
