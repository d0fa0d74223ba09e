"""What every cut of every stream adds up to, row by row so that the streams lie side by side."""

from __future__ import annotations

import numpy as np

from thalweg.compiling import kernel
from thalweg.scheduling.compiled.latency import Flags, Floats


@kernel
def add_up(chosen: Flags, amounts: Floats) -> Floats:
    """(cuts, streams): the sum of the amounts (parts, streams) of the chosen (cuts, parts)."""
    cuts, parts = chosen.shape
    streams = amounts.shape[1]
    total = np.zeros((cuts, streams))
    for cut in range(cuts):
        for part in range(parts):
            if chosen[cut, part]:
                for stream in range(streams):
                    total[cut, stream] += amounts[part, stream]
    return total


@kernel
def find_largest(chosen: Flags, amounts: Floats) -> Floats:
    """(cuts, streams): the largest amount of the chosen parts; 0 where none is chosen."""
    cuts, parts = chosen.shape
    streams = amounts.shape[1]
    largest = np.zeros((cuts, streams))
    for cut in range(cuts):
        for part in range(parts):
            if chosen[cut, part]:
                for stream in range(streams):
                    largest[cut, stream] = max(largest[cut, stream], amounts[part, stream])
    return largest
