"""What happened to the operators of a city: where each ran, tick by tick, and what that cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from thalweg.migration.city import City
from thalweg.migration.compiled.driving import add_costs
from thalweg.migration.fan import NOWHERE
from thalweg.migration.operators import MobileGraph
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What it took to decide."""

    coordinations: int = 0
    """How often the operators of an instance planned together."""
    plans: int = 0
    """How many plans were made, taken or not."""
    changes: int = 0
    """How many of them were taken."""
    kept: int = 0
    """How often nothing was planned since no plan could have been better."""
    failed_predictions: int = 0
    left_out: float = 0.0
    """The largest probability of combinations that a cap left out."""
    late: int = 0
    """Plans that could not keep the latency share."""
    crowded: int = 0
    """Plans that had to run where there was no room."""
    wasted_bytes: float = 0.0
    """State that was sent and never used."""
    wasted_transfers: int = 0

    def __add__(self, other: Effort) -> Effort:
        figures = {
            name: getattr(self, name) + getattr(other, name)
            for name in self.__slots__
            if name != "left_out"
        }
        return Effort(**figures, left_out=max(self.left_out, other.left_out))


@dataclass(frozen=True, eq=False, kw_only=True)
class Drive:
    """The hosts of all operators while their instance lives."""

    city: City
    approach: str
    hosts: Index
    """Shape (instances, operators, ticks); `NOWHERE` before and after the life of an instance."""
    effort: Effort = field(default_factory=Effort)

    def __post_init__(self) -> None:
        freeze(self)

    @cached_property
    def costs(self) -> Floats:
        """Placement and migration cost of each instance, in byte · s."""
        city = self.city
        ends = stream_ends(city.graph)
        state = state_bytes(city.graph)
        found = np.empty((city.instances, 2))
        for k, (first, end) in enumerate(city.life.tolist()):
            hosts = np.ascontiguousarray(self.hosts[k, :, first:end])
            leaf = np.ascontiguousarray(city.leaves_of(k))
            carried = city.carried_bytes(k)
            found[k] = add_costs(hosts, leaf, ends, carried, state, city.brokers.delay_s)
        return found

    @property
    def total(self) -> float:
        """C_tot: all placement and migration costs, in byte · s."""
        return float(self.costs.sum())

    @property
    def mean_bdp_bytes(self) -> float:
        """Bytes on their way at any moment of an instance's life, its moves included."""
        life_s = float((self.city.life[:, 1] - self.city.life[:, 0]).sum()) * self.city.tick_s
        return self.total / life_s

    @cached_property
    def moves(self) -> Index:
        """Instance, operator, tick of arrival, source and target of each move, in this order."""
        before, after = self.hosts[:, :, :-1], self.hosts[:, :, 1:]
        changed = (before != after) & (before != NOWHERE) & (after != NOWHERE)
        instance, operator, tick = np.nonzero(changed)
        source, target = before[changed], after[changed]
        return np.stack([instance, operator, tick + 1, source, target], axis=1).astype(np.int32)


def stream_ends(graph: MobileGraph) -> Index:
    """The ends of each stream: the number of an operator, or −1 − the number of a user."""
    users = {name: -1 - number for number, name in enumerate(graph.users)}
    end = users | graph.number
    return np.array([(end[s.source], end[s.target]) for s in graph.streams], dtype=np.int32)


def state_bytes(graph: MobileGraph) -> Floats:
    """What a move of each operator sends."""
    return np.array([operator.state_bytes for operator in graph.operators])
