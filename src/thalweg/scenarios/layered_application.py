"""Wide applications with very many paths, to measure how estimates grow."""

from __future__ import annotations

from itertools import pairwise

from thalweg.errors import Defects
from thalweg.model import Application, Operator, Pin, Stream
from thalweg.scenarios.parameters import require_amounts, require_count

_MOST_STREAMS = 1_000_000
_EDGE = Pin(tier="edge")
_CLOUD = Pin(tier="cloud")


def layered_application(
    layers: int = 10,
    width: int = 5,
    *,
    name: str = "layered",
    rate: float = 1_000.0,
    event_bytes: float = 200.0,
    cpu_per_event: float = 1_000.0,
    source_pin: Pin = _EDGE,
    sink_pin: Pin = _CLOUD,
) -> Application:
    """`layers` layers of `width` transforms, every one joined to all of the next layer.

    One source feeds the first layer, the last one feeds one sink: width ** layers paths. Each
    transform puts out 1 / width of its events, so every layer takes in as many as the first.

    >>> app = layered_application(layers=10, width=5)
    >>> len(app.operators), len(app.streams), f"{app.path_count:,}"
    (52, 235, '9,765,625')
    """
    defects = Defects()
    good = require_count(defects, "layers", layers, 1, 10_000)
    good &= require_count(defects, "width", width, 1, 10_000)
    require_amounts(defects, rate=rate, event_bytes=event_bytes, cpu_per_event=cpu_per_event)
    if good and (layers - 1) * width**2 + 2 * width > _MOST_STREAMS:
        defects.add("layers, width", (layers, width), f"at most {_MOST_STREAMS:,} streams")
    defects.raise_if_any()
    rows = [[f"layer-{k}-{m}" for m in range(width)] for k in range(layers)]
    transforms = [
        Operator(name=operator, selectivity=1 / width, cpu_per_event=cpu_per_event)
        for row in rows
        for operator in row
    ]
    source = Operator(
        name="source", kind="source", rate=rate, event_size=event_bytes, pin=source_pin
    )
    sink = Operator(name="sink", kind="sink", pin=sink_pin)
    stations = [["source"], *rows, ["sink"]]
    streams = [
        Stream(source=a, target=b)
        for before, after in pairwise(stations)
        for a in before
        for b in after
    ]
    return Application(name=name, operators=[source, *transforms, sink], streams=streams)
