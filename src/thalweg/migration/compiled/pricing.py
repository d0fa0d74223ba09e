"""What streams cost at every broker and step."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]


@kernel
def add_stream(
    place: Floats, carried: Floats, weight: Floats, hosts: Index, row_of: Index, delay: Floats
) -> None:
    """Add carried bytes × expected delay to wherever the other end may be, for every broker.

    `hosts` has a row for each sequence that the other end may take; −1 means not connected.
    Row `row_of[host]` of `delay` tells how far every broker is from a host.
    """
    steps, count = place.shape
    for t in range(steps):
        if carried[t] == 0.0:
            continue
        for sequence in range(weight.size):
            host = hosts[sequence, t]
            if host < 0:
                continue
            share = carried[t] * weight[sequence]
            row = row_of[host]
            for broker in range(count):
                place[t, broker] += share * delay[row, broker]


@kernel
def price_hosts(
    place: Floats,
    hosts: Index,
    current: int,
    first: int,
    state_bytes: float,
    row_of: Index,
    delay: Floats,
) -> float:
    """What a sequence of hosts costs from a step on, if the operator is now at `current`."""
    total, at = 0.0, current
    for t in range(first, hosts.size):
        if hosts[t] != at:
            # The way is as long in both directions; only the rows of hosts are sure.
            total += state_bytes * delay[row_of[hosts[t]], at]
            at = hosts[t]
        total += place[t, at]
    return total
