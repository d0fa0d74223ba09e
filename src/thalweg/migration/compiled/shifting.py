"""Moves of a path, shifted in time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]


@kernel
def shift_moves(place: Floats, order: Index, arrive: Index, least: Index, most_shift: int) -> Index:
    """When to arrive at each host of an order so that running costs least.

    The move to `order[i + 1]` arrives within `most_shift` steps of `arrive[i]`, and not before
    its host has run for `least[i]` steps. The order stays, so moves cost the same. Ties: as near
    to the given moment as possible, earlier first.
    """
    steps, moves = place.shape[0], arrive.size
    # Apart from what is closed, which would make all that follows ∞ − ∞.
    spent = np.zeros((moves + 1, steps + 1))
    closed = np.zeros((moves + 1, steps + 1), np.int32)
    for i in range(moves + 1):
        for t in range(steps):
            is_open = place[t, order[i]] < np.inf
            spent[i, t + 1] = spent[i, t] + (place[t, order[i]] if is_open else 0.0)
            closed[i, t + 1] = closed[i, t] + (0 if is_open else 1)
    best = np.full((moves, steps + 1), np.inf)
    before = np.full((moves, steps + 1), -1, np.int32)
    for i in range(moves):
        for at in range(max(1, arrive[i] - most_shift), min(steps - 1, arrive[i] + most_shift) + 1):
            if i == 0:
                if at >= least[0] and closed[0, at] == 0:
                    best[0, at] = spent[0, at]
                continue
            for last in range(1, at - least[i] + 1):
                offer = best[i - 1, last] + spent[i, at] - spent[i, last]
                if offer < best[i, at] and closed[i, at] == closed[i, last]:
                    best[i, at], before[i, at] = offer, last
    chosen = arrive.copy()
    cheapest, at_end = np.inf, -1
    for far in range(most_shift + 1):
        for side in range(2):
            at = arrive[moves - 1] + (far if side else -far)
            if at < 1 or at >= steps:
                continue
            rest = spent[moves, steps] - spent[moves, at]
            if closed[moves, steps] != closed[moves, at]:
                continue
            if best[moves - 1, at] + rest < cheapest - 1e-12:
                cheapest, at_end = best[moves - 1, at] + rest, at
    if at_end < 0:
        return chosen
    for i in range(moves - 1, -1, -1):
        chosen[i] = at_end
        at_end = before[i, at_end]
    return chosen
