"""Plans for moving operators without any idea: every sequence of hosts, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from thalweg.migration.brokers import Brokers
from thalweg.migration.time_graph import Moves, TimeGraph
from thalweg.model.graph import Floats, Index

STEPS_S = (0.05, 0.2, 5.0)
"""From where most moves take several steps to where all take one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The least cost of all sequences, and how many there were to try."""

    cost: float
    sequences: int


def try_every_sequence(graph: TimeGraph) -> Answer:
    """Price each sequence of hosts that moves in time: no bound, nothing left out."""
    everyone = np.arange(graph.moves.brokers.count, dtype=np.int32)
    cost, sequences = _try(
        np.ascontiguousarray(graph.place_cost),
        graph.moves.cost_from(everyone),
        graph.moves.steps_from(everyone),
        graph.start,
        graph.leave_factor,
    )
    return Answer(cost=cost, sequences=sequences)


@njit
def _try(
    place: Floats, move_cost: Floats, move_steps: Index, start: int, leave: float
) -> tuple[float, int]:
    """Depth first.

    During step 0 the operator runs at the start. Before it changes its host it has been at the
    old one for as many steps as the move takes. The first move away from the start costs `leave`
    of its price.
    """
    steps, count = place.shape
    hosts = np.full(steps, -1, np.int32)
    spent = np.zeros(steps + 1)
    stayed = np.zeros(steps, np.int32)
    best, tried = np.inf, 0
    depth = 0
    while depth >= 0:
        hosts[depth] += 1
        if hosts[depth] == count:
            hosts[depth] = -1
            depth -= 1
            continue
        host = hosts[depth]
        cost = spent[depth] + place[depth, host]
        stayed[depth] = 1
        if depth == 0:
            if host != start:
                continue
        elif hosts[depth - 1] == host:
            stayed[depth] = stayed[depth - 1] + 1
        else:
            before = hosts[depth - 1]
            if stayed[depth - 1] < move_steps[before, host]:
                continue
            first = stayed[depth - 1] == depth and before == start
            cost += move_cost[before, host] * (leave if first else 1.0)
        spent[depth + 1] = cost
        if depth + 1 == steps:
            tried += 1
            best = min(best, cost)
        else:
            depth += 1
    return best, tried


def draw_graph(rng: np.random.Generator, *, most_sequences: float) -> TimeGraph:
    """A random tree of at most 12 brokers with random costs over at most 8 steps.

    Both are drawn until no more than so many sequences are possible. On every other tree all links
    are alike, so that hops may decide how long moves take; some brokers are closed at times.
    """
    while True:
        count, steps = int(rng.integers(1, 13)), int(rng.integers(1, 9))
        if float(count) ** (steps - 1) <= most_sequences:
            break
    alike = bool(rng.integers(2))
    delay = np.full(count, 0.02) if alike else rng.uniform(0.001, 0.05, count)
    bandwidth = np.full(count, 1e6) if alike else rng.uniform(2e5, 1e7, count)
    delay[0], bandwidth[0] = 0.0, np.inf
    brokers = Brokers(
        names=tuple(f"b{k}" for k in range(count)),
        parent=np.array([-1, *(int(rng.integers(0, k)) for k in range(1, count))], dtype=np.int32),
        link_delay_s=delay,
        link_bandwidth_bps=bandwidth,
        capacity_ips=np.ones(count),
        speed_ips=np.ones(count),
        area_m=np.full((count, 4), np.nan),
    )
    state_bytes, step_s = float(rng.uniform(0.0, 60_000.0)), float(rng.choice(STEPS_S))
    moves = Moves.of(brokers, state_bytes=state_bytes, step_s=step_s)
    start = int(rng.integers(count))
    place = rng.uniform(0.0, 2_000.0, (steps, count))
    place[rng.uniform(size=place.shape) < 0.1] = np.inf
    place[:, start] = rng.uniform(0.0, 2_000.0, steps)
    return TimeGraph(moves=moves, place_cost=place, start=start)
