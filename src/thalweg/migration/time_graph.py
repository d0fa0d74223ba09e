"""The time graph of an operator: every broker at every step, and the cheapest way through it.

Section 4.1 of Ottenwälder et al. 2013, MigCEP: Operator Migration for Mobility Driven Distributed
Complex Event Processing. The graph itself is never built: its edges follow from the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from thalweg.errors import Defects
from thalweg.migration.brokers import Brokers
from thalweg.migration.compiled.relaxing import (
    relax_all_pairs,
    relax_by_hops,
    relax_in_one_step,
    trace_back,
)
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index

_NOTHING: Floats = np.empty(0)
_NO_STEPS: Index = np.empty(0, dtype=np.int32)


class MoveTime(Enum):
    """What decides how many steps a move takes."""

    ONE_STEP = "one step"
    HOPS = "hops"
    PAIRS = "pairs"


@dataclass(frozen=True, eq=False, kw_only=True)
class Moves:
    """What moving an operator costs between any two brokers, and how many steps it takes.

    Moving s bytes costs s × delay and takes s / bandwidth + delay, at least one step.

    >>> from thalweg.scenarios import broker_tree
    >>> Moves.of(Brokers.of(broker_tree()), state_bytes=60_000, step_s=1.0).time
    <MoveTime.ONE_STEP: 'one step'>
    """

    brokers: Brokers
    state_bytes: float
    step_s: float
    time: MoveTime
    steps_of_hops: Index
    """Steps of a move over 0, 1, … hops, where hops decide."""
    steps: Index
    """Steps between all pairs, where they decide."""

    def __post_init__(self) -> None:
        freeze(self)

    @classmethod
    def of(cls, brokers: Brokers, *, state_bytes: float, step_s: float) -> Moves:
        """Find out what decides how long moves take."""
        defects = Defects()
        good = np.isfinite(state_bytes) and state_bytes >= 0
        defects.require(bool(good), "state_bytes", state_bytes, "a finite number >= 0")
        defects.require(
            bool(np.isfinite(step_s) and step_s > 0), "step_s", step_s, "a finite number > 0"
        )
        defects.raise_if_any()
        made = cls(
            brokers=brokers,
            state_bytes=state_bytes,
            step_s=step_s,
            time=MoveTime.ONE_STEP,
            steps_of_hops=_NO_STEPS,
            steps=_NO_STEPS.reshape(0, 0),
        )
        return made if made._all_within_a_step() else made._with_steps()

    def _all_within_a_step(self) -> bool:
        """A bound that needs no pairs: the whole tree's delay over its narrowest link."""
        if self.brokers.count == 1:
            return True
        widest = self.brokers.diameter * float(self.brokers.link_delay_s[1:].max())
        narrow = float(self.brokers.link_bandwidth_bps[1:].min())
        if narrow == 0.0:
            return False
        return self.state_bytes * 8.0 / narrow + widest <= self.step_s

    def _with_steps(self) -> Moves:
        everyone = np.arange(self.brokers.count, dtype=np.int32)
        steps = self.steps_from(everyone)
        hops = self.brokers.hops_from(everyone).astype(np.int32)
        most = int(hops.max())
        shortest = np.full(most + 1, np.iinfo(np.int32).max, dtype=np.int32)
        longest = np.zeros(most + 1, dtype=np.int32)
        np.minimum.at(shortest, hops.ravel(), steps.ravel())
        np.maximum.at(longest, hops.ravel(), steps.ravel())
        figures = {"brokers": self.brokers, "state_bytes": self.state_bytes, "step_s": self.step_s}
        if steps.max() <= 1:
            time = MoveTime.ONE_STEP
        elif np.array_equal(shortest, longest) and bool((np.diff(longest) >= 0).all()):
            time = MoveTime.HOPS
        else:
            time = MoveTime.PAIRS
        return Moves(**figures, time=time, steps_of_hops=longest, steps=steps)  # type: ignore[arg-type]

    def seconds_from(self, origins: Index) -> Floats:
        """How long a move takes from each of these to every broker; 0 to itself."""
        bandwidth = self.brokers.bandwidths_from(origins)
        # Nothing is sent in no time even where nothing can be sent.
        with np.errstate(divide="ignore", invalid="ignore"):
            sending = np.where(self.state_bytes > 0, self.state_bytes * 8.0 / bandwidth, 0.0)
        return sending + self.brokers.delays_from(origins)

    def steps_from(self, origins: Index) -> Index:
        """How many steps, at least one."""
        whole = np.ceil(self.seconds_from(origins) / self.step_s - 1e-9)
        return np.clip(whole, 1, np.iinfo(np.int32).max // 2).astype(np.int32)

    def cost_from(self, origins: Index) -> Floats:
        """What a move costs from each of these to every broker."""
        return self.state_bytes * self.brokers.delays_from(origins)


@dataclass(frozen=True, slots=True)
class Move:
    """The state of an operator goes from one broker to another between two steps."""

    begin: int
    """The step at whose beginning the transfer starts; the operator still runs at `source`."""
    arrive: int
    """The step from which on the operator runs at `target`."""
    source: int
    target: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Path:
    """A way through a time graph."""

    cost: float
    hosts: Index
    """Where the operator runs during each step."""
    moves: tuple[Move, ...]

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class TimeGraph:
    """A vertex for each broker and step where an operator may run; moves join them."""

    moves: Moves
    place_cost: Floats
    """Shape (steps, brokers): what running there costs during the step; ∞ where it may not."""
    start: int
    """Where the operator is now."""
    leave_factor: float = 1.0
    """How much of its price the first move away from the start costs."""

    def __post_init__(self) -> None:
        defects = Defects()
        shape = self.place_cost.shape
        count = self.moves.brokers.count
        defects.require(
            len(shape) == 2 and shape[0] > 0 and shape[1] == count,
            "place_cost",
            shape,
            f"a row of {count} costs for at least one step",
        )
        defects.require(0 <= self.start < count, "start", self.start, "the number of a broker")
        defects.require(
            0.0 <= self.leave_factor <= 1.0, "leave_factor", self.leave_factor, "0 to 1"
        )
        defects.raise_if_any()
        freeze(self)

    @property
    def vertices(self) -> int:
        """How many there are."""
        return int(np.isfinite(self.place_cost).sum())


def cheapest_path(graph: TimeGraph, *, all_pairs: bool = False) -> Path | None:
    """The cheapest way from the start to any broker after the last step; None if there is none.

    Linear in brokers and steps where one step or the hops decide how long moves take; else, or
    with `all_pairs`, quadratic in brokers.
    """
    moves, place = graph.moves, np.ascontiguousarray(graph.place_cost)
    steps, count = place.shape
    came = np.empty((steps + 1, count), dtype=np.int32)
    since = _NO_STEPS.reshape(0, 0)
    leave_cost, leave_steps = _leaving(graph)
    time = MoveTime.PAIRS if all_pairs else moves.time
    link_cost = moves.state_bytes * moves.brokers.link_delay_s
    parent = moves.brokers.parent
    if time is MoveTime.ONE_STEP:
        best = relax_in_one_step(place, parent, link_cost, graph.start, leave_cost, came)
    else:
        since = np.empty((steps + 1, count), dtype=np.int32)
        if time is MoveTime.HOPS:
            best = relax_by_hops(
                place, parent, link_cost, moves.steps_of_hops, graph.start,
                leave_cost, leave_steps, came, since,
            )  # fmt: skip
        else:
            everyone = np.arange(count, dtype=np.int32)
            best = relax_all_pairs(
                place, moves.cost_from(everyone), moves.steps_from(everyone), graph.start,
                leave_cost, leave_steps, came, since,
            )  # fmt: skip
    # Ties: where it is now, then the lower number.
    last = graph.start if best[graph.start] <= best.min() else int(np.argmin(best))
    if not np.isfinite(best[last]):
        return None
    hosts, taken = _trace(came, since, last, graph.start)
    return Path(cost=float(best[last]), hosts=hosts, moves=taken)


def _leaving(graph: TimeGraph) -> tuple[Floats, Index]:
    if graph.leave_factor == 1.0:
        return _NOTHING, _NO_STEPS
    start = np.array([graph.start], dtype=np.int32)
    leave = graph.leave_factor * graph.moves.cost_from(start)[0]
    return leave, graph.moves.steps_from(start)[0]


def _trace(came: Index, since: Index, last: int, start: int) -> tuple[Index, tuple[Move, ...]]:
    """The hosts of a way and the moves on it, walked back from the last step."""
    hosts = np.empty(came.shape[0] - 1, dtype=np.int32)
    moves = trace_back(came, since, last, start, hosts)
    # A move that ends after the last step moves nothing anybody would run.
    found = (Move(*row) for row in reversed(moves.tolist()))
    return hosts, tuple(move for move in found if move.arrive < hosts.size)
