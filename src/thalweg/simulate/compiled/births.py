"""When events are born: gaps counted in mean gaps, stretched by the rate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel
from thalweg.simulate.compiled.draws import exponential

Floats = npt.NDArray[np.float64]


@kernel
def bear(
    poisson: bool,
    key: np.uint64,
    number: int,
    position: float,
    end: float,
    begin_s: float,
    begin: float,
    rate: float,
    times: Floats,
) -> tuple[int, int, float]:
    """Births from a position up to but without an end, both counted in mean gaps.

    `begin` is the position at `begin_s`. Fills `times`; gives how many there are, the number of
    the next gap and the next position.
    """
    count = 0
    while position < end and count < times.size:
        times[count] = begin_s + (position - begin) / rate
        count += 1
        position += exponential(key, number) if poisson else 1.0
        number += 1
    return count, number, position
