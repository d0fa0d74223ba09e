"""Where vehicles are at given moments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]


@kernel
def sample_rows(time: Floats, first: Rows, start: float, step: float, steps: int) -> Rows:
    """The last row of each vehicle at or before each moment; −1 before the first, after the last.

    Shape (vehicles, steps). A vehicle is there up to half a step after its last row.
    """
    found = np.full((first.size - 1, steps), -1, np.int64)
    for vehicle in range(first.size - 1):
        row, end = first[vehicle], first[vehicle + 1]
        for k in range(steps):
            moment = start + k * step + 1e-9
            while row + 1 < end and time[row + 1] <= moment:
                row += 1
            begun = row < end and time[row] <= moment
            if begun and (row + 1 < end or moment < time[row] + 0.5 * step):
                found[vehicle, k] = row
    return found
