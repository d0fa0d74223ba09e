"""Ways through a tree whose brokers are numbered from the root down."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]


@kernel
def fold_from(origins: Index, parent: Index, link: Floats, found: Floats) -> None:
    """From each origin to every broker: the figures of the links on the way, added up.

    A parent has a lower number than its children. Each row costs one walk up and one pass down.
    """
    for row in range(origins.size):
        origin = origins[row]
        for broker in range(parent.size):
            found[row, broker] = -1.0
        found[row, origin] = 0.0
        at = origin
        while parent[at] >= 0:
            found[row, parent[at]] = found[row, at] + link[at]
            at = parent[at]
        for broker in range(1, parent.size):
            if found[row, broker] < 0.0:
                found[row, broker] = found[row, parent[broker]] + link[broker]


@kernel
def narrowest_from(origins: Index, parent: Index, link: Floats, found: Floats) -> None:
    """From each origin to every broker: the least figure of the links on the way; ∞ to itself."""
    for row in range(origins.size):
        origin = origins[row]
        for broker in range(parent.size):
            found[row, broker] = -1.0
        found[row, origin] = np.inf
        at = origin
        while parent[at] >= 0:
            found[row, parent[at]] = min(found[row, at], link[at])
            at = parent[at]
        for broker in range(1, parent.size):
            if found[row, broker] < 0.0:
                found[row, broker] = min(found[row, parent[broker]], link[broker])
