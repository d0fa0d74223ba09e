"""Greedy searches that move one stream's cut at a time; every move is judged by its full effect."""

from __future__ import annotations

import math

import numpy as np

from thalweg.compiling import kernel
from thalweg.scheduling.compiled.latency import (
    Figures,
    Flags,
    Floats,
    Integers,
    Load,
    add_stream,
    find_arrivals,
    find_onward,
    slowest_way,
)


@kernel
def settle(f: Figures, choice: Integers, load: Load, onward: Floats, arrivals: Floats) -> None:
    """Load of the cloud, the ways through it, and the arrivals of all streams, from scratch."""
    load.events[:] = 0.0
    load.work[:] = 0.0
    load.streams[:] = 0
    load.plain[:] = 0.0
    load.memory[:] = 0.0
    load.cpu[:] = 0.0
    done = np.empty(f.order.size)
    for stream in range(choice.size):
        add_stream(f, load, stream, choice[stream], 1)
        find_arrivals(f, stream, choice[stream], done, arrivals[stream])
    find_onward(f, load, onward)


@kernel
def stream_latencies(arrivals: Floats, onward: Floats) -> Floats:
    """L of every stream."""
    latency = np.empty(arrivals.shape[0])
    for stream in range(latency.size):
        latency[stream] = slowest_way(arrivals[stream], onward)[0]
    return latency


@kernel
def cloud_excess(f: Figures, load: Load) -> float:
    """By how much memory or CPU of the cloud are overdrawn, relative; 0 where they are not."""
    memory, cpu = 0.0, 0.0
    for x in range(f.order.size):
        if load.streams[x] > 0:
            memory += f.fixed_memory[x] + load.memory[x]
            cpu += load.cpu[x]
    excess = 0.0
    if memory > f.cloud_memory:
        excess = memory / f.cloud_memory - 1.0 if f.cloud_memory > 0 else math.inf
    if cpu > f.cloud_cpu:
        excess = max(excess, cpu / f.cloud_cpu - 1.0 if f.cloud_cpu > 0 else math.inf)
    return excess


@kernel
def _last_on_fog(f: Figures, stream: int, cut: int, entry: int, done: Floats) -> int:
    """The sender on the fog whose events reach the entry last; −1 where that is a source."""
    slowest, found = -math.inf, -1
    for k in range(f.first_in[entry], f.first_in[entry + 1]):
        edge = f.in_edge[k]
        sender = f.source[edge]
        if not f.fed[stream, sender]:
            continue
        if not f.is_transform[sender] or f.members[cut, sender]:
            up = done[sender] + f.crossing_s[stream, edge]
            if up > slowest:
                slowest = up
                found = sender if f.is_transform[sender] else -1
    return found


@kernel
def shorten(
    f: Figures,
    choice: Integers,
    load: Load,
    onward: Floats,
    arrivals: Floats,
    uplink: Floats,
    fits: Flags,
    step: Integers,
    down: bool,
    most_s: float,
    most_bps: float,
    total_bps: float,
) -> float:
    """Move the operator at the cut of too slow streams while that helps; returns B.

    The slowest stream first; each until it is fast enough, its slowest way no longer improves, or
    the uplink would get above its limit. `step[cut, operator]` is the cut after the move: back to
    the cloud, with all that follows the operator, or down to the fog, with all that it needs.
    """
    operators = f.order.size
    done, arrival, ahead = np.empty(operators), np.empty(operators), np.empty(operators)
    latency = stream_latencies(arrivals, onward)
    for stream in np.argsort(-latency, kind="mergesort"):
        if not latency[stream] > most_s:
            break
        while True:
            now, entry = slowest_way(arrivals[stream], onward)
            if not now > most_s:
                break
            cut = choice[stream]
            find_arrivals(f, stream, cut, done, arrival)
            moved = entry if down else _last_on_fog(f, stream, cut, entry, done)
            if moved < 0 or not f.is_transform[moved]:
                break
            new = step[cut, moved]
            if new < 0 or not fits[new, stream]:
                break
            new_total = total_bps - uplink[cut, stream] + uplink[new, stream]
            if new_total > most_bps and new_total > total_bps:
                break
            add_stream(f, load, stream, cut, -1)
            add_stream(f, load, stream, new, 1)
            find_onward(f, load, ahead)
            find_arrivals(f, stream, new, done, arrival)
            if not slowest_way(arrival, ahead)[0] < now:
                add_stream(f, load, stream, new, -1)
                add_stream(f, load, stream, cut, 1)
                break
            choice[stream] = new
            total_bps = new_total
            onward[:] = ahead
            arrivals[stream] = arrival
    return total_bps


@kernel
def _latest_of_others(arrivals: Floats, operator: int, stream: int) -> float:
    latest = -math.inf
    for other in range(arrivals.shape[0]):
        if other != stream and arrivals[other, operator] > latest:
            latest = arrivals[other, operator]
    return latest


@kernel
def improve(
    f: Figures,
    choice: Integers,
    load: Load,
    onward: Floats,
    arrivals: Floats,
    uplink: Floats,
    cuts: Integers,
    streams: Integers,
    most_s: float,
    most_bps: float,
    total_bps: float,
) -> float:
    """Take the offered (cut, stream) moves in their order where all limits stay kept; returns B.

    A stream moves at most once. T is exact after every move: the latest arrival at each operator
    of the cloud is kept, so that the effect on all other streams is known without visiting them.
    """
    operators = f.order.size
    done, arrival, ahead = np.empty(operators), np.empty(operators), np.empty(operators)
    latest = np.full(operators, -math.inf)
    owner = np.full(operators, -1, np.int64)
    for stream in range(choice.size):
        for x in range(operators):
            if arrivals[stream, x] > latest[x]:
                latest[x], owner[x] = arrivals[stream, x], stream
    moved = np.zeros(choice.size, np.bool_)
    excess = cloud_excess(f, load)
    others = np.empty(operators)
    for k in range(cuts.size):
        stream, new = streams[k], cuts[k]
        if moved[stream]:
            continue
        cut = choice[stream]
        new_total = total_bps - uplink[cut, stream] + uplink[new, stream]
        if new_total > most_bps:
            continue
        find_arrivals(f, stream, new, done, arrival)
        add_stream(f, load, stream, cut, -1)
        add_stream(f, load, stream, new, 1)
        find_onward(f, load, ahead)
        slowest = slowest_way(arrival, ahead)[0]
        if slowest <= most_s:
            for x in range(operators):
                others[x] = latest[x]
                if owner[x] == stream:
                    others[x] = _latest_of_others(arrivals, x, stream)
            slowest = max(slowest, slowest_way(others, ahead)[0])
        if not slowest <= most_s or cloud_excess(f, load) > excess:
            add_stream(f, load, stream, new, -1)
            add_stream(f, load, stream, cut, 1)
            continue
        moved[stream] = True
        choice[stream] = new
        total_bps = new_total
        onward[:] = ahead
        arrivals[stream] = arrival
        for x in range(operators):
            if owner[x] == stream:
                latest[x] = others[x]
                owner[x] = -1
                for other in range(choice.size):
                    if other != stream and arrivals[other, x] == latest[x] > -math.inf:
                        owner[x] = other
                        break
            if arrival[x] > latest[x]:
                latest[x], owner[x] = arrival[x], stream
    return total_bps
