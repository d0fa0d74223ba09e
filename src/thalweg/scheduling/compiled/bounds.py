"""How long streams take at the least, whatever cuts the others choose among those left to them."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from thalweg.scheduling.compiled.latency import (
    Figures,
    Flags,
    Floats,
    Load,
    find_arrivals,
    find_onward,
    slowest_way,
)


@njit(cache=True)
def find_certain(f: Figures, allowed: Flags) -> Flags:
    """(streams, operators): whether no allowed cut of the stream has the operator on the fog."""
    cuts, streams = allowed.shape
    operators = f.order.size
    certain = np.zeros((streams, operators), np.bool_)
    for stream in range(streams):
        for x in range(operators):
            certain[stream, x] = f.is_transform[x]
    for cut in range(cuts):
        for stream in range(streams):
            if allowed[cut, stream]:
                for x in range(operators):
                    if f.members[cut, x]:
                        certain[stream, x] = False
    return certain


@njit(cache=True)
def _add_operator(f: Figures, load: Load, stream: int, x: int, sign: int) -> None:
    load.streams[x] += sign
    load.events[x] += sign * f.events[stream, x]
    load.work[x] += sign * f.events[stream, x] * f.work_per_event[stream, x]


@njit(cache=True)
def least_latencies(
    f: Figures, lightest: Figures, allowed: Flags, certain: Flags, load: Load, own: bool
) -> Floats:
    """The least L of every allowed (cut, stream); ∞ for the others.

    The cloud has at least what is certain to be left to it, and with `own` also what the stream
    itself leaves to it at the cut. `lightest` has the least work per event over all streams where
    the mean would not be a bound. `load` is room to work in.
    """
    cuts, streams = allowed.shape
    operators = f.order.size
    load.events[:] = 0.0
    load.work[:] = 0.0
    load.streams[:] = 0
    for stream in range(streams):
        for x in range(operators):
            if certain[stream, x]:
                _add_operator(lightest, load, stream, x, 1)
    base_events, base_work, base_streams = load.events.copy(), load.work.copy(), load.streams.copy()
    onward, done, arrival = np.zeros(operators), np.empty(operators), np.empty(operators)
    find_onward(f, load, onward)
    latency = np.full((cuts, streams), math.inf)
    for stream in range(streams):
        for cut in range(cuts):
            if not allowed[cut, stream]:
                continue
            if own:
                for x in range(operators):
                    if f.is_transform[x] and not f.members[cut, x] and not certain[stream, x]:
                        _add_operator(lightest, load, stream, x, 1)
                find_onward(f, load, onward)
                load.events[:] = base_events
                load.work[:] = base_work
                load.streams[:] = base_streams
            find_arrivals(f, stream, cut, done, arrival)
            latency[cut, stream] = slowest_way(arrival, onward)[0]
    return latency
