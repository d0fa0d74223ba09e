"""Events of several rows in one order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]

# More events than this in one bucket, and sorting them one by one is no longer cheap.
_FULL = 32


@kernel
def merge(times: Floats, border: int, time: Floats, order: Index) -> None:
    """Two rising rows, one behind the other, in one order; of equal times the first row's first.

    Without a branch that nobody can foresee: which row is next is a number, not a jump.
    """
    i, j, k = 0, border, 0
    count = times.size
    while i < border and j < count:
        a, b = times[i], times[j]
        first = int(a <= b)
        time[k] = a if first else b
        order[k] = i if first else j
        i += first
        j += 1 - first
        k += 1
    while i < border:
        time[k], order[k] = times[i], i
        i += 1
        k += 1
    while j < count:
        time[k], order[k] = times[j], j
        j += 1
        k += 1


@kernel
def sort_in_buckets(times: Floats, time: Floats, order: Index) -> bool:
    """Many rising rows, one behind the other, in one order; of equal times the first row's first.

    Events come about evenly over time, so that as many buckets as events have few each. False,
    and nothing done, where they do not.
    """
    count = times.size
    low, high = times[0], times[0]
    for i in range(count):
        low, high = min(low, times[i]), max(high, times[i])
    scale = count / (high - low) if high > low else 0.0
    if not np.isfinite(scale):
        return False
    first = np.zeros(count + 1, dtype=np.int32)
    for i in range(count):
        first[min(int((times[i] - low) * scale), count - 1) + 1] += 1
    for k in range(count):
        if first[k + 1] > _FULL:
            return False
        first[k + 1] += first[k]
    for i in range(count):
        bucket = min(int((times[i] - low) * scale), count - 1)
        place = first[bucket]
        first[bucket] = place + 1
        order[place] = i
        time[place] = times[i]
    for i in range(1, count):
        now = time[i]
        if time[i - 1] > now:
            own = order[i]
            k = i - 1
            while k >= 0 and time[k] > now:
                time[k + 1], order[k + 1] = time[k], order[k]
                k -= 1
            time[k + 1], order[k + 1] = now, own
    return True


@kernel
def gather(column: Floats, chosen: Index) -> Floats:
    """The numbers at these places."""
    found = np.empty(chosen.size)
    for i in range(chosen.size):
        found[i] = column[chosen[i]]
    return found


@kernel
def gather_tokens(column: Index, chosen: Index) -> Index:
    """The tokens at these places."""
    found = np.empty(chosen.size, dtype=np.int32)
    for i in range(chosen.size):
        found[i] = column[chosen[i]]
    return found
