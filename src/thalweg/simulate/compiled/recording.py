"""Distributions of times: a bin for every few hundredths of the value, whatever its size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, leaf

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Index = npt.NDArray[np.int32]

# A float's exponent and the first bits of its fraction are the number of its bin.
_BITS_PER_OCTAVE = 5
SHIFT = 52 - _BITS_PER_OCTAVE
_OCTAVES = 42
LEAST_S = 2.0**-24
FIRST = int(np.float64(LEAST_S).view(np.int64)) >> SHIFT
BINS = _OCTAVES << _BITS_PER_OCTAVE

# Places in the row of sums of a path.
COUNT, TOTAL_S, SQUARES, MOST_S, HELD_S = range(5)
SUMS = 5


@leaf
def bin_of(value_s: float) -> int:
    """The bin of a time; what is below the first or above the last belongs to those."""
    place = int(np.float64(value_s).view(np.int64) >> SHIFT) - FIRST
    return min(max(place, 0), BINS - 1)


@leaf
def count_before(time: Floats, later_s: float, count: int, edges: Floats, before: Counts) -> None:
    """Add to each edge how many of the first so many rising times are before it."""
    if count == 0:
        return
    low, high = 0, edges.size
    # Edges before the first time have none of them; most edges have none or all.
    while low < high:
        middle = (low + high) // 2
        if edges[middle] <= time[0] + later_s:
            low = middle + 1
        else:
            high = middle
    last = time[count - 1] + later_s
    place = 0
    for edge in range(low, edges.size):
        if edges[edge] > last:
            place = count
        else:
            left, right = place, count
            while left < right:
                middle = (left + right) // 2
                if time[middle] + later_s < edges[edge]:
                    left = middle + 1
                else:
                    right = middle
            place = left
        before[edge] += place


@kernel
def record(
    time: Floats,
    later_s: float,
    birth: Floats,
    held: Floats,
    token: Index,
    row_of: Index,
    warm_s: float,
    end_s: float,
    sums: Floats,
    histogram: Counts,
) -> None:
    """Add the latencies of events that arrive from the end of the warm-up to the end of the run.

    `held` is how long each waited for windows to fill, or empty.
    """
    for i in range(time.size):
        now = time[i] + later_s
        if now >= end_s:
            break
        if now < warm_s:
            continue
        value = now - birth[i]
        row = row_of[token[i]]
        sums[row, COUNT] += 1.0
        sums[row, TOTAL_S] += value
        sums[row, SQUARES] += value * value
        sums[row, MOST_S] = max(sums[row, MOST_S], value)
        if held.size:
            sums[row, HELD_S] += held[i]
        histogram[row, bin_of(value)] += 1


def bin_edges_s() -> Floats:
    """Where bins begin and end; what is below the first or above the last is in those."""
    bits = np.arange(FIRST, FIRST + BINS + 1, dtype=np.int64) << SHIFT
    return bits.view(np.float64)


def quantiles_s(histogram: Counts, shares: tuple[float, ...]) -> list[float]:
    """The times below which these shares of a histogram lie, straight between the ends of a bin.

    NaN where nothing was counted.
    """
    total = int(histogram.sum())
    if not total:
        return [float("nan")] * len(shares)
    edges, below = bin_edges_s(), np.cumsum(histogram)
    found = []
    for share in shares:
        wanted = share * total
        place = int(np.searchsorted(below, wanted, side="left"))
        inside = (wanted - (below[place] - histogram[place])) / histogram[place]
        low = edges[place] if place else 0.0
        found.append(float(low + inside * (edges[place + 1] - low)))
    return found
