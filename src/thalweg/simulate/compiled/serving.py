"""One queue: events in the order in which they arrive, each by the Lindley recursion."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, leaf, part
from thalweg.simulate.compiled.draws import factor, uniform
from thalweg.simulate.compiled.recording import bin_of, count_before

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]

# Places in the row of figures of a station.
SERVED, BUSY_S, WAITED_S, STAYED_S, AREA_S, BYTES, WORK_S = range(7)
FIGURES = 7


@leaf
def _follow(
    time: Floats,
    later_s: float,
    token: Index,
    sizes: Floats,
    fixed_s: float,
    per_byte_s: float,
    kind: int,
    values: Floats,
    key: np.uint64,
    first: int,
    free_s: float,
    until_s: float,
    left: Floats,
) -> tuple[int, float, float, float]:
    """The Lindley recursion: an event begins when it is there and the one before it has left.

    Gives how many were served, when the server is free, the work done and the bytes of links.
    """
    mean_s, work_s, carried = fixed_s, 0.0, 0.0
    for i in range(time.size):
        arrival = time[i] + later_s
        begin = arrival if arrival > free_s else free_s
        if begin >= until_s:
            return i, free_s, work_s, carried
        if per_byte_s > 0.0:
            size = sizes[token[i]]
            mean_s = fixed_s + per_byte_s * size
            carried += size
        own_s = mean_s * factor(kind, key, first + i, values)
        free_s = begin + own_s
        left[i] = free_s
        work_s += own_s
    return time.size, free_s, work_s, carried


@leaf
def _record_stays(
    time: Floats, later_s: float, left: Floats, served: int, histogram: Counts
) -> float:
    """How long all of them stayed together; each into its bin."""
    stayed_s = 0.0
    for i in range(served):
        stay_s = left[i] - (time[i] + later_s)
        stayed_s += stay_s
        histogram[bin_of(stay_s)] += 1
    return stayed_s


@part
def _count_clipped(
    time: Floats,
    later_s: float,
    token: Index,
    sizes: Floats,
    left: Floats,
    served: int,
    free_s: float,
    warm_s: float,
    end_s: float,
    figures: Floats,
    histogram: Counts,
) -> None:
    """The figures of a piece that the warm-up or the end of the run cuts."""
    for i in range(served):
        arrival, end = time[i] + later_s, left[i]
        begin = max(arrival, free_s)
        free_s = end
        high = min(end, end_s)
        figures[BUSY_S] += max(high - max(begin, warm_s), 0.0)
        figures[AREA_S] += max(high - max(arrival, warm_s), 0.0)
        if arrival >= warm_s:
            figures[SERVED] += 1.0
            figures[WORK_S] += end - begin
            figures[WAITED_S] += begin - arrival
            figures[STAYED_S] += end - arrival
            figures[BYTES] += sizes[token[i]]
            if histogram.size:
                histogram[bin_of(end - arrival)] += 1


@kernel
def serve(
    time: Floats,
    later_s: float,
    token: Index,
    sizes: Floats,
    fixed_s: float,
    per_byte_s: float,
    kind: int,
    values: Floats,
    key: np.uint64,
    first: int,
    free_s: float,
    until_s: float,
    warm_s: float,
    end_s: float,
    figures: Floats,
    histogram: Counts,
    edges: Floats,
    departed: Counts,
    left: Floats,
) -> tuple[int, float]:
    """Serve events first come, first served, as long as service begins before a time.

    An event of a token takes `fixed_s + per_byte_s · sizes[token]` in the mean; `left` gets the
    times of departure. Figures are of events that arrive after the warm-up, but busy time and the
    area under the number of events there are of the time from its end to the end of the run. With
    an empty histogram nobody asks how long events stay. Gives how many were served, and when the
    server is free.
    """
    before_s = free_s
    served, free_s, work_s, carried = _follow(
        time, later_s, token, sizes, fixed_s, per_byte_s, kind, values, key, first, free_s,
        until_s, left,
    )  # fmt: skip
    # All of a piece lies within the time that counts, but for the first and the last ones.
    if served and time[0] + later_s >= warm_s and free_s <= end_s:
        figures[SERVED] += served
        figures[WORK_S] += work_s
        figures[BUSY_S] += work_s
        figures[BYTES] += carried
        if histogram.size:
            stayed_s = _record_stays(time, later_s, left, served, histogram)
            figures[STAYED_S] += stayed_s
            figures[AREA_S] += stayed_s
            figures[WAITED_S] += stayed_s - work_s
    else:
        _count_clipped(
            time, later_s, token, sizes, left, served, before_s, warm_s, end_s, figures, histogram
        )
    count_before(left, 0.0, served, edges, departed)
    return served, free_s


@kernel
def count_arrivals(time: Floats, later_s: float, edges: Floats, arrived: Counts) -> None:
    """Add to each edge how many of these rising times are before it."""
    count_before(time, later_s, time.size, edges, arrived)


@kernel
def let_through(
    key: np.uint64,
    first: int,
    share: float,
    even: bool,
    time: Floats,
    birth: Floats,
    token: Index,
    held: Floats,
) -> tuple[Floats, Floats, Index, Floats]:
    """The events that get through, `share` of them: at random, or every so many-th.

    Above 1 an event is there more than once.
    """
    count = time.size
    whole = int(share)
    rest = share - whole
    most = count * (whole + 1) + 1
    new_time, new_birth = np.empty(most), np.empty(most)
    new_token = np.empty(most, dtype=np.int32)
    new_held = np.empty(most if held.size else 0)
    found = 0
    # Most operators let a random part through: without a jump that nobody can foresee.
    alone = count if whole == 0 and not even else 0
    for i in range(alone):
        new_time[found], new_birth[found], new_token[found] = time[i], birth[i], token[i]
        if held.size:
            new_held[found] = held[i]
        found += int(uniform(key, first + i) < rest)
    for i in range(alone, count):
        if even:
            # By the number of the event, so that it does not matter in which pieces they come.
            copies = int((first + i + 1) * share + 1e-9) - int((first + i) * share + 1e-9)
        else:
            copies = whole + int(uniform(key, first + i) < rest)
        for _ in range(copies):
            new_time[found], new_birth[found] = time[i], birth[i]
            new_token[found] = token[i]
            if held.size:
                new_held[found] = held[i]
            found += 1
    return (
        new_time[:found],
        new_birth[:found],
        new_token[:found],
        new_held[: min(found, new_held.size)],
    )


@kernel
def choose_between(
    key: np.uint64, first: int, count: int, low: float, high: float, chosen: Index
) -> int:
    """Which of so many events have a draw from `low` up to `high`; gives how many."""
    found = 0
    for i in range(count):
        draw = uniform(key, first + i)
        chosen[found] = i
        found += int((draw >= low) & (draw < high))
    return found


@kernel
def part_by_lane(
    stream_of: Index,
    lane_of: Index,
    by_token: bool,
    first: Counts,
    time: Floats,
    birth: Floats,
    token: Index,
    held: Floats,
) -> tuple[Floats, Floats, Index, Floats]:
    """The events by the lane that they take, in order within each.

    Those of lane k come to be at first[k] … first[k + 1] − 1.
    """
    count = token.size
    lane = np.empty(count, dtype=np.int32)
    for i in range(count):
        lane[i] = lane_of[token[i]] if by_token else lane_of[stream_of[token[i]]]
        first[lane[i] + 1] += 1
    for k in range(first.size - 1):
        first[k + 1] += first[k]
    place = first[:-1].copy()
    new_time, new_birth = np.empty(count), np.empty(count)
    new_token, new_held = np.empty(count, dtype=np.int32), np.empty(held.size)
    for i in range(count):
        k = place[lane[i]]
        place[lane[i]] = k + 1
        new_time[k], new_birth[k], new_token[k] = time[i], birth[i], token[i]
        if held.size:
            new_held[k] = held[i]
    return new_time, new_birth, new_token, new_held


@kernel
def weigh(
    time: Floats, later_s: float, token: Index, sizes: Floats, warm_s: float, end_s: float
) -> tuple[int, float]:
    """How many of these events leave within the time that counts, and their bytes."""
    count, carried = 0, 0.0
    for i in range(time.size):
        now = time[i] + later_s
        if now >= end_s:
            break
        if now >= warm_s:
            count += 1
            carried += sizes[token[i]]
    return count, carried


@kernel
def hand_on_by_slide(left: Floats, slide_s: float, handed: Floats) -> None:
    """The end of the slide in which each event is done."""
    for i in range(left.size):
        number = np.floor(left[i] / slide_s) + 1.0
        # Rounding: the first multiple that is later, whatever the quotient says.
        while (number - 1.0) * slide_s > left[i]:
            number -= 1.0
        while number * slide_s <= left[i]:
            number += 1.0
        handed[i] = number * slide_s


@kernel
def add_up_groups(
    token: Index, first: Counts, fixed_s: float, per_byte_s: float, sizes: Floats
) -> Floats:
    """The work of events first[k] … first[k + 1] − 1 together, for each k, added one by one."""
    work_s = np.zeros(first.size - 1)
    for k in range(work_s.size):
        for i in range(first[k], first[k + 1]):
            work_s[k] += fixed_s + per_byte_s * sizes[token[i]]
    return work_s


@kernel
def add_up_slides(past: Floats, own: Floats, whole: int, rest: float) -> Floats:
    """The work of windows that cover their own slide and those before: so many, and a part of one.

    `past` is the work of earlier slides, the newest last.
    """
    found = np.zeros(own.size)
    line = np.concatenate((past, own))
    for k in range(own.size):
        place = past.size + k
        for back in range(whole):
            found[k] += line[place - back]
        if rest > 0.0:
            found[k] += rest * line[place - whole]
    return found
