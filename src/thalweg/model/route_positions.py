"""Loops over planned routes: where a vehicle will be, and on which step of its route it is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, leaf
from thalweg.model.graph import Floats, Index

Rows = npt.NDArray[np.int64]


@kernel
def advance(
    x_m: Floats,
    y_m: Floats,
    at_step: Rows,
    end_step: Rows,
    pos_m: Floats,
    ahead_s: Floats,
    edge: Index,
    enter_s: Floats,
    exit_s: Floats,
    length_m: Floats,
    first_corner: Rows,
    corner_m: Floats,
    corner_x_m: Floats,
    corner_y_m: Floats,
) -> None:
    """Fill in where each vehicle is `ahead_s` after it was `pos_m` along its step `at_step`."""
    for row in range(at_step.size):
        start = at_step[row]
        length = length_m[edge[start]]
        done = min(max(pos_m[row] / length, 0.0), 1.0) if length > 0 else 0.0
        now_s = enter_s[start] + done * (exit_s[start] - enter_s[start])
        for column in range(ahead_s.size):
            then_s = now_s + ahead_s[column]
            # The first step that is left later, or the last one.
            step, last = start, end_step[row] - 1
            while step < last:
                middle = (step + last) // 2
                if exit_s[middle] > then_s:
                    last = middle
                else:
                    step = middle + 1
            took_s = exit_s[step] - enter_s[step]
            done = min(max((then_s - enter_s[step]) / took_s, 0.0), 1.0) if took_s > 0 else 1.0
            road = edge[step]
            corner, share = _at_corner(first_corner[road], first_corner[road + 1], corner_m, done)
            x_m[row, column] = _between(corner_x_m, corner, share)
            y_m[row, column] = _between(corner_y_m, corner, share)


@leaf
def _at_corner(low: int, end: int, corner_m: Floats, done: float) -> tuple[int, float]:
    """The corner behind, and the share of the way from it to the next one."""
    goal = done * corner_m[end - 1]
    high = end - 2
    while low < high:
        middle = (low + high) // 2
        if corner_m[middle + 1] >= goal:
            high = middle
        else:
            low = middle + 1
    way = corner_m[low + 1] - corner_m[low]
    return low, ((goal - corner_m[low]) / way if way > 0 else 0.0)


@leaf
def _between(values: Floats, place: int, share: float) -> float:
    there: float = values[place] + share * (values[place + 1] - values[place])
    return there


@kernel
def follow(
    first_row: Rows,
    route: Rows,
    time_s: Floats,
    edge: Index,
    pos_m: Floats,
    first_step: Rows,
    step_edge: Index,
    enter_s: Floats,
    exit_s: Floats,
    length_m: Floats,
) -> tuple[Index, Floats]:
    """The step of its vehicle's route and the metres along its road, for each row of tracks."""
    steps = np.full(edge.size, -1, dtype=np.int32)
    along_m = np.zeros(edge.size)
    for vehicle in range(route.size):
        if route[vehicle] < 0:
            continue
        begin, end = first_step[route[vehicle]], first_step[route[vehicle] + 1]
        now = -1
        for row in range(first_row[vehicle], first_row[vehicle + 1]):
            found = -1
            if edge[row] >= 0:
                if now >= 0 and step_edge[begin + now] == edge[row]:
                    found = now
                else:
                    found = _nearest_step(
                        begin, end, now, edge[row], time_s[row], step_edge, enter_s, exit_s
                    )
            if found >= 0:
                now = found
                length = length_m[step_edge[begin + now]]
                along_m[row] = min(max(pos_m[row], 0.0), length)
            elif now >= 0:
                along_m[row] = length_m[step_edge[begin + now]]
            steps[row] = max(now, 0)
    return steps, along_m


@leaf
def _nearest_step(
    begin: int,
    end: int,
    now: int,
    edge: int,
    time_s: float,
    step_edge: Index,
    enter_s: Floats,
    exit_s: Floats,
) -> int:
    """The next step on this road, or else the last one before; at first, that planned nearest."""
    best, least = -1, np.inf
    for step in range(begin, end):
        if step_edge[step] == edge:
            away = max(enter_s[step] - time_s, time_s - exit_s[step], 0.0)
            if now >= 0:
                # Any step ahead is nearer than one behind: vehicles do not turn back on a route.
                ahead = step - begin - now
                away = float(ahead if ahead >= 0 else end - begin - ahead)
            if away < least:
                best, least = step - begin, away
    return best
