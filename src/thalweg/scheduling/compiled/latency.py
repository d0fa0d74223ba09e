"""How long a stream takes at a cut, for one stream and one cut at a time.

Formulas (15)–(23) and (27) of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators for
IoT Edge Analytics, as `thalweg.estimate` has them for whole deployments. Within a call nothing is
allocated but what the caller hands in.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel
from thalweg.estimate.compiled.queueing import stable_dm1_sojourn_s

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

OVERLOAD_S = 1e12
"""An unstable queue takes this long × its load instead of ∞, so that a search sees it improve."""
# Where less than this share of all events is left to the cloud, it is rounding.
_NOTHING = 1e-12


class Figures(NamedTuple):
    """What the loops read; rows of streams, columns of operators or edges."""

    order: Integers
    first_in: Integers
    """In-edges of operator x are `in_edge[first_in[x] : first_in[x + 1]]`."""
    in_edge: Integers
    first_out: Integers
    out_edge: Integers
    source: Integers
    target: Integers
    is_transform: Flags
    length_s: Floats
    slide_s: Floats
    batch: Floats
    events: Floats
    """Events/s into each operator, (streams, operators)."""
    total_events: Floats
    work_per_event: Floats
    fed: Flags
    """Whether the operator gets events of the stream, (streams, operators)."""
    crossing_s: Floats
    """From fog to cloud, (streams, edges)."""
    fog_ips: Floats
    fog_others: Floats
    """Operators of other applications on the fog."""
    edge_delay_s: Floats
    cloud_ips: float
    cloud_others: float
    members: Flags
    memory: Floats
    """Bytes per stream and operator, without the part that does not grow with the stream."""
    fixed_memory: Floats
    """Bytes that an operator takes by being there."""
    cpu: Floats
    """Instructions/s, (streams, operators)."""
    cloud_memory: float
    cloud_cpu: float


class Load(NamedTuple):
    """What all streams together leave to each operator in the cloud."""

    events: Floats
    work: Floats
    streams: Integers
    """How many streams leave the operator to the cloud."""
    plain: Floats
    """The sum of their work per event: the mean of it counts where no event comes."""
    memory: Floats
    cpu: Floats


@kernel
def dm1_sojourn_s(service_rate: float, interval_s: float) -> float:
    """Waiting and service time in D/M/1; `OVERLOAD_S` and more where the queue is unstable."""
    a = service_rate * interval_s
    if not a > 1.0:
        return OVERLOAD_S / a
    return stable_dm1_sojourn_s(service_rate, interval_s)


@kernel
def window_latency_s(
    work_per_event: float,
    events: float,
    share_ips: float,
    length_s: float,
    slide_s: float,
    batch: float,
) -> float:
    """Waiting and working time of one window on a share of a CPU."""
    in_time = slide_s > 0.0
    batch = max(batch, 1.0)
    work = work_per_event * (length_s * events if in_time else batch)
    if not work > 0.0:
        return 0.0
    if not share_ips > 0.0:
        return OVERLOAD_S * OVERLOAD_S
    windows_per_s = share_ips / work
    if in_time:
        return dm1_sojourn_s(windows_per_s, slide_s)
    arriving = events / batch
    if not windows_per_s > arriving:
        return OVERLOAD_S * arriving / windows_per_s
    return 0.5 * (arriving / windows_per_s) / (windows_per_s - arriving) + 1.0 / windows_per_s


@kernel
def find_arrivals(f: Figures, stream: int, cut: int, done: Floats, arrival: Floats) -> None:
    """Seconds until the stream's events have come up to each operator in the cloud.

    −∞ where no edge of the cut leads to the operator. `done` is room to work in.
    """
    running = 0
    for x in f.order:
        if f.members[cut, x] and f.fed[stream, x]:
            running += 1
    share = f.fog_ips[stream] / max(running + f.fog_others[stream], 1.0)
    for x in f.order:
        arrival[x] = -math.inf
        done[x] = 0.0
        if not f.fed[stream, x]:
            continue
        on_fog = f.members[cut, x]
        slowest = -math.inf
        for k in range(f.first_in[x], f.first_in[x + 1]):
            edge = f.in_edge[k]
            sender = f.source[edge]
            if not f.fed[stream, sender]:
                continue
            if not f.is_transform[sender] or f.members[cut, sender]:
                if on_fog:
                    slowest = max(slowest, done[sender])
                else:
                    up = f.edge_delay_s[stream] + done[sender] + f.crossing_s[stream, edge]
                    arrival[x] = max(arrival[x], up)
        if on_fog:
            done[x] = slowest + window_latency_s(
                f.work_per_event[stream, x],
                f.events[stream, x],
                share,
                f.length_s[x],
                f.slide_s[x],
                f.batch[x],
            )


@kernel
def find_onward(f: Figures, load: Load, onward: Floats) -> None:
    """The slowest way from each operator in the cloud to a sink, its own latency included."""
    running = 0
    for x in f.order:
        if f.is_transform[x] and load.streams[x] > 0:
            running += 1
    share = f.cloud_ips / max(running + f.cloud_others, 1.0)
    for position in range(f.order.size - 1, -1, -1):
        x = f.order[position]
        slowest = 0.0
        for k in range(f.first_out[x], f.first_out[x + 1]):
            slowest = max(slowest, onward[f.target[f.out_edge[k]]])
        own = 0.0
        if f.is_transform[x] and load.streams[x] > 0:
            silent = load.events[x] <= _NOTHING * f.total_events[x]
            per_event = load.plain[x] / load.streams[x]
            if not silent:
                per_event = load.work[x] / load.events[x]
            events = 0.0 if silent else load.events[x]
            own = window_latency_s(
                per_event, events, share, f.length_s[x], f.slide_s[x], f.batch[x]
            )
        onward[x] = own + slowest


@kernel
def slowest_way(arrival: Floats, onward: Floats) -> tuple[float, int]:
    """L of a stream, and the operator at which its slowest way comes up; the first of equals."""
    slowest, at = -math.inf, -1
    for x in range(arrival.size):
        if arrival[x] > -math.inf and arrival[x] + onward[x] > slowest:
            slowest, at = arrival[x] + onward[x], x
    return slowest, at


@kernel
def add_stream(f: Figures, load: Load, stream: int, cut: int, sign: int) -> None:
    """Add what the stream leaves to the cloud at the cut, or take it away."""
    for x in range(f.order.size):
        if f.is_transform[x] and f.fed[stream, x] and not f.members[cut, x]:
            load.streams[x] += sign
            load.plain[x] += sign * f.work_per_event[stream, x]
            load.events[x] += sign * f.events[stream, x]
            load.work[x] += sign * f.events[stream, x] * f.work_per_event[stream, x]
            load.memory[x] += sign * f.memory[stream, x]
            load.cpu[x] += sign * f.cpu[stream, x]
            if load.streams[x] == 0:
                load.plain[x] = 0.0
                load.events[x] = 0.0
                load.work[x] = 0.0
                load.memory[x] = 0.0
                load.cpu[x] = 0.0


@kernel
def all_latencies(f: Figures, onward: Floats, wanted: Flags, latency: Floats) -> None:
    """L of every wanted (cut, stream); what is not wanted gets ∞."""
    operators = f.order.size
    done, arrival = np.empty(operators), np.empty(operators)
    for cut in range(wanted.shape[0]):
        for stream in range(wanted.shape[1]):
            latency[cut, stream] = math.inf
            if wanted[cut, stream]:
                find_arrivals(f, stream, cut, done, arrival)
                latency[cut, stream] = slowest_way(arrival, onward)[0]
