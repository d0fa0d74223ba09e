"""The k cheapest ways through a time graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]


@kernel
def k_best(
    place: Floats, move_cost: Floats, move_steps: Index, start: int, most: int
) -> tuple[Floats, Index]:
    """Costs and hosts of up to `most` different sequences, the cheapest first.

    At every vertex the `most` cheapest ways to it are kept, each with the vertex before it and
    its rank there: n² offers for each step and rank. Ties: staying, then the lower broker, then
    the lower rank.
    """
    steps, count = place.shape
    best = np.full((steps + 1, count, most), np.inf)
    came = np.full((steps + 1, count, most), -1, np.int32)
    rank = np.zeros((steps + 1, count, most), np.int32)
    begun = np.zeros((steps + 1, count, most), np.int32)
    best[0, start, 0] = 0.0
    for t in range(1, steps + 1):
        for to in range(count):
            if t < steps and place[t, to] == np.inf:
                continue
            for turn in range(count):
                # The broker itself first, then all others in order.
                at = to if turn == 0 else (turn - 1 if turn - 1 < to else turn)
                begin = t - 1 if at == to else t - move_steps[at, to]
                if begin < 0 or (at != to and t == steps):
                    continue
                fixed = 0.0 if at == to else move_cost[at, to]
                for k in range(begin, t):
                    fixed += place[k, at]
                if fixed == np.inf:
                    continue
                for r in range(most):
                    offer = best[begin, at, r] + fixed
                    if offer >= best[t, to, most - 1]:
                        break
                    slot = most - 1
                    while slot > 0 and offer < best[t, to, slot - 1]:
                        best[t, to, slot] = best[t, to, slot - 1]
                        came[t, to, slot] = came[t, to, slot - 1]
                        rank[t, to, slot] = rank[t, to, slot - 1]
                        begun[t, to, slot] = begun[t, to, slot - 1]
                        slot -= 1
                    best[t, to, slot], came[t, to, slot] = offer, at
                    rank[t, to, slot], begun[t, to, slot] = r, begin
    flat = best[steps].ravel()
    order = np.argsort(flat, kind="mergesort")[:most]
    found = 0
    while found < order.size and flat[order[found]] < np.inf:
        found += 1
    hosts = np.empty((found, steps), np.int32)
    for j in range(found):
        at, r, t = order[j] // most, order[j] % most, steps
        while t > 0:
            before, begin = came[t, at, r], begun[t, at, r]
            for k in range(begin, t):
                hosts[j, k] = before
            r, at, t = rank[t, at, r], before, begin
    return flat[order[:found]], hosts
