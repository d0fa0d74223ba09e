"""Random trees of brokers for tests."""

from __future__ import annotations

import numpy as np

from thalweg.migration.brokers import Brokers


def random_brokers(
    rng: np.random.Generator, count: int, *, alike: bool = False, bandwidth_bps: float = 1e6
) -> Brokers:
    """A tree with random parents; with `alike`, all links are the same."""
    parent = np.array([-1] + [int(rng.integers(0, k)) for k in range(1, count)], dtype=np.int32)
    spread = np.full(count, 0.5) if alike else rng.uniform(0.1, 1.0, count)
    wide = np.ones(count) if alike else rng.choice([0.5, 1.0, 4.0], count)
    columns = np.arange(count, dtype=float)
    return Brokers(
        names=tuple(f"b{k}" for k in range(count)),
        parent=parent,
        link_delay_s=spread,
        link_bandwidth_bps=bandwidth_bps * wide,
        capacity_ips=np.full(count, 1e9),
        speed_ips=np.full(count, 1e9),
        area_m=np.stack([columns, columns * 0, columns + 1, columns * 0 + 1], axis=1),
    )
