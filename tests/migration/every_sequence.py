"""The oracle of time graphs: every sequence of hosts, one after the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]


@njit
def try_every_sequence(
    place: Floats, move_cost: Floats, move_steps: Index, start: int, leave: float
) -> tuple[float, int]:
    """The least cost over all sequences of hosts, and how many there were to try.

    During step 0 the operator runs at the start. A change from one host to another at a step
    needs the old one to have run for as many steps before as the move takes.
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
