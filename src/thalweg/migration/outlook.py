"""All that an operator knows when it plans: its neighbours' plans, what flows, where is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.migration.compiled.pricing import add_stream
from thalweg.migration.fan import Fan
from thalweg.migration.operators import MobileOperator
from thalweg.migration.time_graph import Moves, TimeGraph
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class Tie:
    """A stream between the operator and a neighbour whose plan is known."""

    neighbour: str
    fan: Fan
    """Where the neighbour will be."""
    carried_bytes: Floats
    """During each step."""
    incoming: bool
    most_delay_s: Floats | None = None
    """What the neighbour has reserved for this stream in each step, where it is the neighbour's."""

    def __post_init__(self) -> None:
        defects = Defects()
        steps = (self.fan.steps,)
        defects.require(
            self.carried_bytes.shape == steps, "carried_bytes", self.carried_bytes.shape, str(steps)
        )
        defects.raise_if_any()
        freeze(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class Outlook:
    """The future of an operator's neighbourhood, and where the operator is now."""

    operator: MobileOperator
    moves: Moves
    ties: tuple[Tie, ...]
    start: int
    latency_share_s: float = np.inf
    """What the operator may add to a way from source to consumer: streams in, work, streams to
    users."""
    room: Flags | None = None
    """Shape (steps, brokers): where the operator could run; None: everywhere."""
    leave_factor: float = 1.0

    @property
    def steps(self) -> int:
        """How many steps ahead it looks."""
        return self.ties[0].fan.steps

    def place_cost(self, fans: Sequence[Fan] | None = None) -> Floats:
        """Expected bytes × delay of each step at each broker, whatever is allowed there.

        With `fans`, the neighbours go by these instead.
        """
        brokers = self.moves.brokers
        place = np.zeros((self.steps, brokers.count))
        for position, tie in enumerate(self.ties):
            fan = tie.fan if fans is None else fans[position]
            row_of, delay = brokers.rows_from(fan.hosts)
            add_stream(place, tie.carried_bytes, fan.weight, fan.hosts, row_of, delay)
        return place

    @cached_property
    def excess_s(self) -> Floats | None:
        """How far each broker is beyond the latency share in each step; None without a limit.

        Neighbours are taken to be where they most likely are.
        """
        if np.isinf(self.latency_share_s) and all(t.most_delay_s is None for t in self.ties):
            return None
        brokers = self.moves.brokers
        shape = (self.steps, brokers.count)
        into, out, beyond = np.zeros(shape), np.zeros(shape), np.full(shape, -np.inf)
        for tie in self.ties:
            row_of, delay = brokers.rows_from(tie.fan.hosts)
            hosts = tie.fan.hosts[0]
            far = np.where((hosts >= 0)[:, None], delay[row_of[hosts]], 0.0)
            if tie.incoming:
                into = np.maximum(into, far)
            elif tie.most_delay_s is None:
                out = np.maximum(out, far)
            else:
                beyond = np.maximum(beyond, far - tie.most_delay_s[:, None])
        late = into + self.work_s + out - self.latency_share_s
        return np.asarray(np.maximum(late, beyond))

    @cached_property
    def work_s(self) -> Floats:
        """How long one event keeps the operator busy at each broker."""
        with np.errstate(divide="ignore", invalid="ignore"):
            work = self.operator.instructions / self.moves.brokers.speed_ips
        return np.where(self.operator.instructions > 0, work, 0.0)

    @cached_property
    def closed(self) -> Flags | None:
        """Where the operator must not run, by step; None if it may run everywhere."""
        closed = None if self.room is None else ~self.room
        if self.excess_s is not None:
            late = self.excess_s > 1e-12
            closed = late if closed is None else closed | late
        if closed is not None:
            # It is there already.
            closed = closed.copy()
            closed[0, self.start] = False
        return closed

    def graph(self, place_cost: Floats) -> TimeGraph:
        """The time graph with these costs, without the vertices where it must not run."""
        if self.closed is not None:
            place_cost = np.where(self.closed, np.inf, place_cost)
        return TimeGraph(
            moves=self.moves,
            place_cost=place_cost,
            start=self.start,
            leave_factor=self.leave_factor,
        )

    def lenient_graph(self, place_cost: Floats) -> TimeGraph:
        """The time graph where being late is possible, but dearer than anything else."""
        everything = float(place_cost.sum()) + self.steps * float(
            self.moves.state_bytes * self.moves.brokers.link_delay_s.sum()
        )
        dear = 10.0 * max(everything, 1.0)
        if self.excess_s is not None:
            late = np.maximum(self.excess_s, 0.0)
            least = max(float(late[late > 0].min(initial=np.inf)), 1e-9)
            place_cost = place_cost + dear * late / least
        if self.room is not None:
            closed = ~self.room
            closed[:, self.start] = False  # Nobody can throw it out of where it is.
            place_cost = np.where(closed, np.inf, place_cost)
        return TimeGraph(moves=self.moves, place_cost=place_cost, start=self.start)
