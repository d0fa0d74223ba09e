"""Loops over what may be ahead of a vehicle."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, part

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]
NOWHERE = -1


@kernel
def extrapolate(
    x_m: Floats,
    y_m: Floats,
    tick: int,
    window: int,
    ahead_s: Floats,
    step_s: float,
    radius_m: Floats,
    disc_x: Floats,
    disc_y: Floats,
    bounds_m: Floats,
) -> tuple[Floats, Floats]:
    """Where the points of a disc are that goes on as a vehicle did within the last `window` ticks.

    A row for each point, a column for each of `ahead_s`. Fewer ticks where its trip is younger.
    Points beyond the bounds (west, south, east, north) are moved to the nearest one within.
    """
    back = 0
    while back < window and tick - back > 0 and x_m[tick - back - 1] == x_m[tick - back - 1]:
        back += 1
    speed_x = (x_m[tick] - x_m[tick - back]) / (back * step_s) if back else 0.0
    speed_y = (y_m[tick] - y_m[tick - back]) / (back * step_s) if back else 0.0
    points, steps = disc_x.size, ahead_s.size
    found_x, found_y = np.empty((points, steps)), np.empty((points, steps))
    for k in range(steps):
        centre_x = x_m[tick] + speed_x * ahead_s[k]
        centre_y = y_m[tick] + speed_y * ahead_s[k]
        for point in range(points):
            x = centre_x + radius_m[k] * disc_x[point]
            y = centre_y + radius_m[k] * disc_y[point]
            found_x[point, k] = min(max(x, bounds_m[0]), bounds_m[2])
            found_y[point, k] = min(max(y, bounds_m[1]), bounds_m[3])
    return found_x, found_y


@kernel
def merge_equal(hosts: Index, weight: Floats, most: int) -> tuple[Index, Floats]:
    """Equal rows become one; at most so many are kept, the likeliest first, and add up to 1.

    Ties: as they were given.
    """
    rows, steps = hosts.shape
    first = np.empty(rows, np.int64)
    total = np.empty(rows)
    found = 0
    for row in range(rows):
        same = -1
        for k in range(found):
            equal = True
            # From the end, where rows differ most.
            for step in range(steps - 1, -1, -1):
                if hosts[row, step] != hosts[first[k], step]:
                    equal = False
                    break
            if equal:
                same = k
                break
        if same < 0:
            first[found] = row
            total[found] = weight[row]
            found += 1
        else:
            total[same] += weight[row]
    order = np.argsort(-total[:found], kind="mergesort")
    kept = min(found, most)
    merged = np.empty((kept, steps), np.int32)
    shares = np.empty(kept)
    for k in range(kept):
        merged[k] = hosts[first[order[k]]]
        shares[k] = total[order[k]]
    return merged, shares / shares.sum()


@kernel
def now_in(leaf: Index, tick: int) -> tuple[int, int]:
    """Ticks since a vehicle came into its leaf, and the leaf before; `NOWHERE` where none was."""
    begun = tick
    while begun > 0 and leaf[begun - 1] == leaf[tick]:
        begun -= 1
    return tick - begun, leaf[begun - 1] if begun > 0 else NOWHERE


@part
def _write(row: Index, begin: int, end: int, host: int) -> None:
    for step in range(begin, end):
        row[step] = host


@part
def _first_step(time_s: float, pace_s: float, steps: int) -> int:
    """The first step at or after a time."""
    step = np.ceil(time_s / pace_s - 1e-9)
    return steps if step >= steps else int(step)


@part
def _normal_at(share: float) -> float:
    """Below which value a standard normal figure lies with this probability, by halving."""
    low, high = -9.0, 9.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if 0.5 * math.erfc(-middle / math.sqrt(2.0)) < share:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@part
def _survives(spent_s: float, log_mean: float, log_spread: float) -> float:
    """The probability that a log-normal stay is longer than what was spent already."""
    if spent_s <= 0.0:
        return 1.0
    return 0.5 * math.erfc((math.log(spent_s) - log_mean) / (log_spread * math.sqrt(2.0)))


@kernel
def rests(
    begin: int,
    end: int,
    spent_s: float,
    parts: int,
    share: Floats,
    log_mean: Floats,
    log_spread: Floats,
) -> tuple[Floats, Floats]:
    """For edges of a state: how likely each is after so long, and `parts` equally likely rests.

    Stays are log-normal. After a stay that is longer than any that can be, edges are as likely as
    ever, and the rests are those of one just begun.
    """
    edges = end - begin
    chance, rest_s = np.empty(edges), np.empty((edges, parts))
    for k in range(edges):
        left = _survives(spent_s, log_mean[begin + k], log_spread[begin + k])
        chance[k] = share[begin + k] * left
    if chance.sum() < 1e-6:
        chance[:] = share[begin:end]
        spent_s = 0.0
    chance /= chance.sum()
    for k in range(edges):
        mean, spread = log_mean[begin + k], log_spread[begin + k]
        left = _survives(spent_s, mean, spread)
        for turn in range(parts):
            # From the upper end, where small probabilities keep their digits.
            above = left * (1.0 - (turn + 0.5) / parts)
            rest_s[k, turn] = math.exp(mean - spread * _normal_at(above)) - spent_s
    return chance, rest_s


@kernel
def walk(
    state: int,
    host: int,
    chance_now: Floats,
    rest_now_s: Floats,
    steps: int,
    pace_s: float,
    least_s: float,
    threshold: float,
    first: Rows,
    after: Index,
    share: Floats,
    stay_s: Floats,
    state_after: Index,
) -> tuple[Index, Floats]:
    """The paths through a graph from one state, as rows of hosts, with their probabilities.

    The edges of state s are first[s]…first[s + 1] − 1, the likeliest first; those of the state of
    now have chances of their own, and several rests that are equally likely. A path is followed
    while it has at least the probability `threshold`, then only along its likeliest edge. So at
    most parts / threshold paths are there at any time.
    """
    parts = rest_now_s.shape[1]
    room = parts * (int(1.0 / threshold) + 2)
    hosts, weight = np.empty((room, steps), np.int32), np.empty(room)
    row = np.full(steps, host, np.int32)
    # Of each path that waits: its state and host, the step and host before; its time and chance.
    waiting = [(0, 0, 0, 0, 0.0, 0.0) for _ in range(0)]
    done = 0
    likeliest = np.argmax(chance_now) if chance_now.size else -1
    for k in range(chance_now.size):
        if k == likeliest or chance_now[k] >= threshold:
            edge = first[state] + k
            then, there = int(state_after[edge]), int(after[edge])
            for turn in range(parts):
                rest_s = max(rest_now_s[k, turn], least_s)
                waiting.append((then, there, 0, host, rest_s, chance_now[k] / parts))
    if not waiting:
        hosts[0], weight[0], done = row, 1.0, 1
    while waiting:
        now, here, from_step, from_host, time_s, chance = waiting.pop()
        begin = _first_step(time_s, pace_s, steps)
        _write(row, from_step, begin, from_host)
        if begin == steps or now < 0 or first[now] == first[now + 1]:
            _write(row, begin, steps, here)
            hosts[done], weight[done] = row, chance
            done += 1
            continue
        # The likeliest is pushed last and so followed first.
        for edge in range(first[now + 1] - 1, first[now] - 1, -1):
            product = chance * share[edge]
            if edge == first[now] or product >= threshold:
                then, there = int(state_after[edge]), int(after[edge])
                left_s = time_s + max(stay_s[edge], least_s)
                waiting.append((then, there, begin, here, left_s, product))
    return hosts[:done], weight[:done]


@kernel
def look_up(leaf: Index, first: int, end: int, pace: float, at: float, out: Index) -> None:
    """What is found in a piece of a row at `at`, `at + pace`, … positions; the last beyond."""
    for step in range(1, out.size):
        place = first + int(at + pace * step)
        out[step] = leaf[min(place, end - 1)]


@kernel
def judge(
    hosts: Index, weight: Floats, leaf: Index, tick: int, ahead: Rows, step: Rows, sums: Floats
) -> None:
    """Add up for each look-ahead: moments, hits, probability, and of those that moved the same."""
    for k in range(ahead.size):
        if tick + ahead[k] >= leaf.size or leaf[tick + ahead[k]] == NOWHERE:
            continue
        actual = leaf[tick + ahead[k]]
        best, most, given = NOWHERE, -1.0, 0.0
        for row in range(weight.size):
            host, total = hosts[row, step[k]], 0.0
            for other in range(weight.size):
                if hosts[other, step[k]] == host:
                    total += weight[other]
            if total > most or (total == most and host < best):
                best, most = host, total
            if host == actual:
                given = total
        sums[k, 0] += 1.0
        sums[k, 1] += best == actual
        sums[k, 2] += given
        if actual != leaf[tick]:
            sums[k, 3] += 1.0
            sums[k, 4] += best == actual
