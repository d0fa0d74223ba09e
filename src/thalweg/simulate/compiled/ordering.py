"""Events of several rows in one order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]

# More events than this in one bucket, and sorting them one by one is no longer cheap.
_FULL = 32
_BLOCK = 8192


@kernel
def merge(
    time_a: Floats,
    later_a: float,
    birth_a: Floats,
    token_a: Index,
    held_a: Floats,
    time_b: Floats,
    later_b: float,
    birth_b: Floats,
    token_b: Index,
    held_b: Floats,
) -> tuple[Floats, Floats, Index, Floats]:
    """Two rising rows in one order; of equal times those of `a` first."""
    m, n = time_a.size, time_b.size
    holds = held_a.size > 0 or held_b.size > 0
    time, birth = np.empty(m + n), np.empty(m + n)
    token, held = np.empty(m + n, dtype=np.int32), np.zeros(m + n if holds else 0)
    i = j = k = 0
    while i < m and j < n:
        # Without a jump that nobody can foresee: which row is next is a number.
        now_a, now_b = time_a[i] + later_a, time_b[j] + later_b
        first = now_a <= now_b
        time[k] = now_a if first else now_b
        birth[k] = birth_a[i] if first else birth_b[j]
        token[k] = token_a[i] if first else token_b[j]
        if holds:
            held_i = held_a[i] if held_a.size else 0.0
            held_j = held_b[j] if held_b.size else 0.0
            held[k] = held_i if first else held_j
        i += int(first)
        j += 1 - int(first)
        k += 1
    for rest in range(i, m):
        time[k], birth[k], token[k] = time_a[rest] + later_a, birth_a[rest], token_a[rest]
        if held_a.size:
            held[k] = held_a[rest]
        k += 1
    for rest in range(j, n):
        time[k], birth[k], token[k] = time_b[rest] + later_b, birth_b[rest], token_b[rest]
        if held_b.size:
            held[k] = held_b[rest]
        k += 1
    return time, birth, token, held


@kernel
def sort_in_buckets(times: Floats, begin: Counts, time: Floats, order: Index) -> bool:
    """Many rising rows, one behind the other, in one order; of equal times the first row's first.

    Row k is times[begin[k]] … times[begin[k + 1] − 1]. Events come about evenly over time, so that
    as many buckets as events have few each. False, and nothing done, where they do not.
    """
    count, rows = times.size, begin.size - 1
    low, high = times[0], times[0]
    for row in range(rows):
        low = min(low, times[begin[row]])
        high = max(high, times[begin[row + 1] - 1])
    scale = count / (high - low) if high > low else 0.0
    if not np.isfinite(scale):
        return False
    first = np.zeros(count + 1, dtype=np.int32)
    # A short time of all rows after the other: its buckets are close together in memory.
    blocks = count // _BLOCK + 1
    for filling in range(2):
        place = begin[:-1].copy()
        for block in range(blocks):
            end = low + (high - low) * (block + 1) / blocks if block + 1 < blocks else np.inf
            for row in range(rows):
                i = place[row]
                while i < begin[row + 1] and times[i] < end:
                    bucket = min(int((times[i] - low) * scale), count - 1)
                    if filling:
                        at = first[bucket]
                        first[bucket] = at + 1
                        order[at] = i
                        time[at] = times[i]
                    else:
                        first[bucket + 1] += 1
                    i += 1
                place[row] = i
        for k in range(0 if filling else count):
            if first[k + 1] > _FULL:
                return False
            first[k + 1] += first[k]
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
