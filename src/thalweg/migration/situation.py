"""What the operators of an instance know together when they plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from thalweg.migration.city import City
from thalweg.migration.fan import Fan
from thalweg.migration.outlook import Flags, Outlook, Tie
from thalweg.migration.reservations import Reservations
from thalweg.migration.settings import Settings
from thalweg.migration.stability import leave_factor
from thalweg.migration.time_graph import Moves
from thalweg.model.graph import Floats, Index

Plans = Mapping[str, Fan]
"""Of users and operators, by name."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Situation:
    """Where users will be, what flows, and where is room, from a tick on."""

    city: City
    settings: Settings
    moves: tuple[Moves, ...]
    """Of each operator."""
    reservations: Reservations | None
    """What others hold; None where no broker could become full."""
    first_tick: int
    fans: tuple[Fan, ...]
    """Of each user."""
    tick_bytes: Floats
    """What each stream carries in a tick."""
    stayed_s: tuple[float, ...]
    """How long each operator has been where it is."""

    @property
    def steps(self) -> int:
        """How many steps ahead it goes."""
        return self.fans[0].steps

    @property
    def users(self) -> dict[str, Fan]:
        """The plan of each user, by name."""
        return dict(zip(self.city.graph.users, self.fans, strict=True))

    def with_operators(self, hosts: Index) -> dict[str, Fan]:
        """The plans of all, operators going by these hosts."""
        operators = enumerate(self.city.graph.operators)
        return self.users | {o.name: Fan.certain(hosts[k]) for k, o in operators}

    def cut(self, steps: int) -> Situation:
        """The same for fewer steps."""
        fans = tuple(
            Fan(weight=fan.weight, hosts=np.ascontiguousarray(fan.hosts[:, :steps]))
            for fan in self.fans
        )
        return replace(self, fans=fans)

    def carried(self) -> Floats:
        """What each stream carries in each step; nothing once one of the users has gone."""
        alive = np.ones(self.steps)
        for fan in self.fans:
            alive *= fan.weight @ (fan.hosts >= 0)
        return np.asarray((self.tick_bytes * self.settings.step_ticks)[:, None] * alive)

    def barred(self, start: Index) -> Flags:
        """Which brokers each operator cannot use at any step: too small for it, or too far away."""
        brokers = self.city.brokers
        demand = np.array([operator.demand_ips for operator in self.city.graph.operators])
        # Without any capacity a broker hosts nobody, not even who needs nothing.
        barred = brokers.capacity_ips[None, :] < np.maximum(demand, 1e-300)[:, None]
        if np.isfinite(self.settings.range_m):
            far = np.stack([brokers.distance_m(int(host)) for host in start])
            barred = barred | (far > self.settings.range_m)
        return np.asarray(barred)

    def outlook(self, operator: int, plans: Plans, start: int) -> Outlook:
        """What one operator looks at, the others going by these plans."""
        graph, carried = self.city.graph, self.carried()
        found = graph.operators[operator]
        ties = []
        for stream in graph.streams_of[operator]:
            other = graph.other_end(stream, operator)
            incoming = graph.streams[stream].target == found.name
            ties.append(
                Tie(
                    neighbour=other,
                    fan=plans[other],
                    carried_bytes=carried[stream],
                    incoming=incoming,
                    most_delay_s=None if incoming else self._left_for(other, plans),
                )
            )
        return Outlook(
            operator=found,
            moves=self.moves[operator],
            ties=tuple(ties),
            start=start,
            latency_share_s=graph.latency_s * found.share,
            room=self._room(operator, plans, start),
            leave_factor=leave_factor(self.stayed_s[operator], self.settings.decay_s),
        )

    def _room(self, operator: int, plans: Plans, start: int) -> Flags | None:
        operators = self.city.graph.operators
        barred = self.barred(np.full(len(operators), start))[operator]
        if self.reservations is None and not barred.any():
            return None
        room = np.repeat(~barred[None, :], self.steps, axis=0)
        if self.reservations is not None:
            ticks = self.first_tick + np.arange(self.steps) * self.settings.step_ticks
            found = operators[operator]
            beside = [(plans[o.name].hosts[0], o.demand_ips) for o in operators if o is not found]
            stride = self.settings.step_ticks
            room &= self.reservations.room(ticks.astype(np.int32), stride, found.demand_ips, beside)
        return room

    def _left_for(self, other: str, plans: Plans) -> Floats | None:
        """What a neighbour downstream has left of its latency share for a stream to it."""
        graph = self.city.graph
        if other not in graph.number or np.isinf(graph.latency_s):
            return None
        position, brokers = graph.number[other], self.city.brokers
        operator, hosts = graph.operators[position], plans[other].hosts[0]
        with np.errstate(divide="ignore"):
            work = operator.instructions / brokers.speed_ips[hosts]
        rest = np.zeros(hosts.size)
        for stream in graph.streams_of[position]:
            target = graph.streams[stream].target
            if target in graph.users:
                leaf = plans[target].hosts[0]
                far = np.where(leaf >= 0, brokers.delay_s[hosts, leaf], 0.0)
                rest = np.maximum(rest, far)
        return np.asarray(graph.latency_s * operator.share - work - rest)


def moves_of(city: City, settings: Settings) -> tuple[Moves, ...]:
    """What moves of each operator of a city cost and take."""
    step_s = city.tick_s * settings.step_ticks
    return tuple(
        Moves.of(city.brokers, state_bytes=operator.state_bytes, step_s=step_s)
        for operator in city.graph.operators
    )
