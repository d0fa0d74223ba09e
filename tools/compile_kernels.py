"""Have every strategy compile its loops, once: Numba keeps them beside the source.

Tests run in two processes, and each would compile them for itself.
"""

from __future__ import annotations

from contextlib import suppress

import thalweg as tw
from thalweg.scenarios import (
    cloud_edge,
    fog_cloud,
    random_application,
    small_city,
    small_taxi,
    taxi_fares,
)


def main() -> None:
    """Plan small problems with every strategy that takes them."""
    edge = cloud_edge(2, 3, 4, seed=1)
    cases = [
        (small_taxi(), small_city()),
        (taxi_fares(), fog_cloud(3)),
        (random_application("stats", edge, seed=6), edge),
    ]
    for name in tw.strategies():
        for app, net in cases:
            with suppress(tw.InvalidInput):
                tw.plan(app, net, name)


if __name__ == "__main__":
    main()
