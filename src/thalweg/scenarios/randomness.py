"""One seed, many independent random streams, each with a name."""

from __future__ import annotations

from zlib import crc32

import numpy as np


def random_stream(seed: int, *names: object) -> np.random.Generator:
    """The stream of that name under the seed; other names give independent streams.

    A generator that draws every figure from a stream of its own keeps all other figures when one
    of them is drawn more often: a network with one more cloud has the same devices.

    >>> float(random_stream(1, "lan").random()) == float(random_stream(1, "lan").random())
    True
    >>> float(random_stream(1, "lan").random()) == float(random_stream(1, "wan").random())
    False
    """
    keys = tuple(crc32(str(name).encode()) for name in names)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=keys))
