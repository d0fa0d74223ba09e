"""Events of all streams followed from the sources through every operator and edge."""

from __future__ import annotations

import numpy as np

from thalweg.compiling import kernel
from thalweg.scheduling.compiled.latency import Flags, Floats, Integers


@kernel
def follow_streams(
    order: Integers,
    source: Integers,
    target: Integers,
    is_source: Flags,
    selectivity: Floats,
    compression: Floats,
    probability: Floats,
    period_s: Floats,
    batch: Floats,
    fed: Flags,
    events: Floats,
    size: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Bytes/s into every operator, bytes/s on every edge, and bytes of one emission on it.

    `events` and `size` (operators × streams) hold what is born in the sources and are filled in
    for the others. The size of events that come in is the mean over what arrives, by rate; where
    nothing arrives, the plain mean. An operator with neither period nor batch has no window: it
    emits the result of one emission of each of its inputs.
    """
    operators, streams = events.shape
    bytes_in, plain = np.zeros((operators, streams)), np.zeros((operators, streams))
    flow, emission = np.zeros((source.size, streams)), np.zeros((source.size, streams))
    senders, arriving = np.zeros((operators, streams)), np.zeros((operators, streams))
    for x in order:
        share, shrink = selectivity[x], compression[x]
        if is_source[x]:
            share = shrink = 1.0
        for stream in range(streams):
            if is_source[x]:
                bytes_in[x, stream] = events[x, stream] * size[x, stream]
            elif events[x, stream] > 0.0:
                size[x, stream] = bytes_in[x, stream] / events[x, stream]
            else:
                size[x, stream] = plain[x, stream] / max(senders[x, stream], 1.0)
        for edge in range(source.size):
            if source[edge] != x:
                continue
            y = target[edge]
            passed = share * probability[edge]
            for stream in range(streams):
                moved = bytes_in[x, stream] * passed * shrink
                flow[edge, stream] = moved
                events[y, stream] += events[x, stream] * passed
                bytes_in[y, stream] += moved
                if fed[x, stream]:
                    plain[y, stream] += size[x, stream] * shrink
                    senders[y, stream] += 1.0
                at_once = 0.0
                if period_s[x] > 0.0:
                    at_once = events[x, stream] * passed * period_s[x]
                elif batch[x] == 0.0:
                    at_once = arriving[x, stream] * passed
                elif events[x, stream] > 0.0:
                    at_once = batch[x] * passed
                arriving[y, stream] += at_once
                emission[edge, stream] = at_once * size[x, stream] * shrink
    return bytes_in, flow, emission
