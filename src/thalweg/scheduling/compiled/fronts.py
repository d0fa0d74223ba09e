"""Chains of best bargains: how each stream can lower a weight at the least cost."""

from __future__ import annotations

import math

import numpy as np

from thalweg.compiling import kernel
from thalweg.scheduling.compiled.latency import Flags, Floats, Integers


@kernel
def find_bargains(
    cost: Floats, weight: Floats, allowed: Flags, start: Integers
) -> tuple[Integers, Integers, Floats, Floats]:
    """(stream, cut, rate, saved) of each step along every stream's lower hull, from its start on.

    A step goes to the allowed cut that lowers the weight most per cost added; `rate` is that
    ratio, ∞ for a step that costs nothing, `saved` the weight. Ties: the larger step, then the
    lower cut. Along a stream the rates fall.
    """
    cuts, streams = cost.shape
    stream_of = np.empty(cuts * streams, np.int64)
    cut_of = np.empty(cuts * streams, np.int64)
    rate_of = np.empty(cuts * streams)
    saved_of = np.empty(cuts * streams)
    count = 0
    for stream in range(streams):
        at = start[stream]
        while True:
            best, best_rate, best_saved = -1, 0.0, 0.0
            for cut in range(cuts):
                saved = weight[at, stream] - weight[cut, stream]
                if not allowed[cut, stream] or not saved > 0.0:
                    continue
                added = cost[cut, stream] - cost[at, stream]
                rate = saved / added if added > 0.0 else math.inf
                if rate > best_rate or (rate == best_rate and saved > best_saved):
                    best, best_rate, best_saved = cut, rate, saved
            if best < 0:
                break
            stream_of[count], cut_of[count] = stream, best
            rate_of[count], saved_of[count] = best_rate, best_saved
            count += 1
            at = best
    return stream_of[:count], cut_of[:count], rate_of[:count], saved_of[:count]
