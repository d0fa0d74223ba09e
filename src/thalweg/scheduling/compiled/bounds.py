"""How long streams take at the least, whatever cuts the others choose among those left to them."""

from __future__ import annotations

import math

import numpy as np

from thalweg.compiling import kernel
from thalweg.scheduling.compiled.latency import (
    Figures,
    Flags,
    Floats,
    Load,
    find_arrivals,
    find_onward,
    slowest_way,
)


@kernel
def find_certain(f: Figures, allowed: Flags) -> Flags:
    """(streams, operators): whether no allowed cut of the stream has the operator on the fog."""
    cuts, streams = allowed.shape
    operators = f.order.size
    certain = np.zeros((streams, operators), np.bool_)
    for stream in range(streams):
        for x in range(operators):
            certain[stream, x] = f.is_transform[x] and f.fed[stream, x]
    for cut in range(cuts):
        for stream in range(streams):
            if allowed[cut, stream]:
                for x in range(operators):
                    if f.members[cut, x]:
                        certain[stream, x] = False
    return certain


@kernel
def _add_operator(f: Figures, load: Load, stream: int, x: int, sign: int) -> None:
    load.streams[x] += sign
    load.plain[x] += sign * f.work_per_event[stream, x]
    load.events[x] += sign * f.events[stream, x]
    load.work[x] += sign * f.events[stream, x] * f.work_per_event[stream, x]


@kernel
def all_arrivals(f: Figures) -> Floats:
    """(cuts, streams, operators): what `find_arrivals` finds, for all of them."""
    cuts, streams, operators = f.members.shape[0], f.events.shape[0], f.order.size
    done = np.empty(operators)
    arrivals = np.empty((cuts, streams, operators))
    for cut in range(cuts):
        for stream in range(streams):
            find_arrivals(f, stream, cut, done, arrivals[cut, stream])
    return arrivals


@kernel
def _fill(f: Figures, load: Load, wanted: Flags) -> None:
    load.events[:] = 0.0
    load.work[:] = 0.0
    load.streams[:] = 0
    load.plain[:] = 0.0
    for stream in range(wanted.shape[0]):
        for x in range(wanted.shape[1]):
            if wanted[stream, x]:
                _add_operator(f, load, stream, x, 1)


@kernel
def least_latencies(
    f: Figures,
    lightest: Figures,
    arrivals: Floats,
    allowed: Flags,
    certain: Flags,
    load: Load,
    most_s: float,
    own: bool,
) -> Floats:
    """The least L of every allowed (cut, stream); ∞ for the others.

    The cloud has at least what is certain to be left to it, and with `own` also what the stream
    itself leaves to it at the cut; that is looked at only where it can decide. `lightest` has the
    least work per event over all streams where the mean would not be a bound. `arrivals` is of
    `all_arrivals`, or empty. `load` is room to work in.
    """
    cuts, streams = allowed.shape
    operators = f.order.size
    onward, most_onward = np.zeros(operators), np.zeros(operators)
    done, arrival = np.empty(operators), np.empty(operators)
    if own:
        _fill(f, load, _find_possible(f, allowed))
        find_onward(f, load, most_onward)
    _fill(lightest, load, certain)
    find_onward(f, load, onward)
    base_events, base_work, base_streams = load.events.copy(), load.work.copy(), load.streams.copy()
    base_plain = load.plain.copy()
    with_own = np.zeros(operators)
    latency = np.full((cuts, streams), math.inf)
    for stream in range(streams):
        for cut in range(cuts):
            if not allowed[cut, stream]:
                continue
            if arrivals.size > 0:
                arrival[:] = arrivals[cut, stream]
            else:
                find_arrivals(f, stream, cut, done, arrival)
            latency[cut, stream] = slowest_way(arrival, onward)[0]
            if not own or latency[cut, stream] > most_s:
                continue
            if slowest_way(arrival, most_onward)[0] <= most_s:
                continue
            for x in range(operators):
                leaves = f.is_transform[x] and f.fed[stream, x] and not f.members[cut, x]
                if leaves and not certain[stream, x]:
                    _add_operator(lightest, load, stream, x, 1)
            find_onward(f, load, with_own)
            load.events[:] = base_events
            load.work[:] = base_work
            load.streams[:] = base_streams
            load.plain[:] = base_plain
            latency[cut, stream] = slowest_way(arrival, with_own)[0]
    return latency


@kernel
def _find_possible(f: Figures, allowed: Flags) -> Flags:
    """(streams, operators): whether some allowed cut of the stream leaves it to the cloud."""
    cuts, streams = allowed.shape
    possible = np.zeros((streams, f.order.size), np.bool_)
    for cut in range(cuts):
        for stream in range(streams):
            if allowed[cut, stream]:
                for x in range(f.order.size):
                    if f.is_transform[x] and f.fed[stream, x] and not f.members[cut, x]:
                        possible[stream, x] = True
    return possible
