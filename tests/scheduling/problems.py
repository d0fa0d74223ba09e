"""Random problems between fogs and one cloud."""

from __future__ import annotations

import numpy as np

import thalweg as tw
from thalweg.model import CountWindow, Limits
from thalweg.scenarios import fog_cloud


def random_fog_problem(seed: int, *, fogs: int = 3, transforms: int = 5) -> tw.Problem:
    """A random graph with windows of every sort on a few fogs, some of them nearly full."""
    rng = np.random.default_rng(seed)
    names = [f"o{k}" for k in range(transforms)]
    streams = {("source", "o0")}
    for k in range(1, transforms):
        for upstream in rng.choice(k, size=min(k, 1 + int(rng.integers(2))), replace=False):
            streams.add((f"o{upstream}", f"o{k}"))
    if transforms > 1 and rng.random() < 0.3:
        streams.add(("source", f"o{transforms - 1}"))
    # A second source, born in the first fog alone or everywhere, with events of another size.
    second = []
    if rng.random() < 0.4:
        streams.add(("second", f"o{int(rng.integers(transforms))}"))
        pin = tw.Pin(site="fog-0") if rng.random() < 0.5 else tw.Pin(tier="fog")
        second = [
            tw.Operator(
                name="second",
                kind="source",
                rate=float(rng.choice([300.0, 5_000.0])),
                event_size=float(rng.choice([20.0, 2_000.0])),
                pin=pin,
            )
        ]
    ends = {a for a, _ in streams}
    streams |= {(name, "sink") for name in names if name not in ends}
    windows = [None, CountWindow(int(rng.integers(1, 50))), tw.TimeWindow(1.0, 0.5)]
    operators = [
        tw.Operator(
            name="source",
            kind="source",
            # Where nothing flows, sizes are means of what is not there: mixed ones are left out.
            rate=float(rng.choice([500.0, 20_000.0] if second else [0.0, 500.0, 20_000.0])),
            event_size=200.0,
            pin=tw.Pin(tier="fog"),
        ),
        *second,
        *(
            tw.Operator(
                name=name,
                selectivity=float(rng.uniform(0.3, 1.2)),
                compression=float(rng.uniform(0.5, 1.2)),
                cpu_per_byte=float(rng.uniform(0, 40)),
                cpu_per_event=float(rng.uniform(0, 2000)),
                memory=float(rng.uniform(0, 1e6)),
                memory_factor=float(rng.uniform(0, 3)),
                window=windows[int(rng.integers(3))],
                replicable=bool(rng.random() < 0.85),
            )
            for name in names
        ),
        tw.Operator(name="sink", kind="sink", pin=tw.Pin(tier="cloud")),
    ]
    app = tw.Application(
        name="random",
        operators=operators,
        streams=[
            tw.Stream(source=a, target=b, probability=float(rng.choice([1.0, 0.5])))
            for a, b in sorted(streams)
        ],
        limits=Limits(response_time_s=float(rng.choice([0.4, 1.0, 5.0])), uplink_bps=2e8),
    )
    net = fog_cloud(fogs, seed=seed)
    free = rng.choice([0.001, 0.3, 1.0], size=net.node_count)
    net = net.with_available(node_memory_available_bytes=net.node_memory_bytes * free)
    return tw.Problem(application=app, network=net)
