"""Who of my friends is near: operators between two vehicles, for brokers over a city."""

from __future__ import annotations

from thalweg.errors import Defects
from thalweg.model import Application, Limits, Operator, Pin, Stream, TimeWindow
from thalweg.scenarios.parameters import require_amounts


def nearby_friends(
    event_bytes: float = 250.0,
    map_bytes: float = 30_000.0,
    *,
    rate: float = 1.0,
    latency_s: float = float("inf"),
    name: str = "nearby-friends",
) -> Application:
    """A vehicle tells where it is; another one learns how often it was near.

    `distance` looks up a street map of `map_bytes`, which travels with it, and keeps the positions
    of the last five seconds; `friends` counts those that are near over ten seconds. Shape and
    proportions follow the running example of Ottenwälder et al. 2013, MigCEP; what it leaves open
    is chosen so that the stream gets thinner with every operator.

    >>> [operator.name for operator in nearby_friends().operators]
    ['position', 'distance', 'friends', 'consumer']
    """
    defects = Defects()
    require_amounts(defects, event_bytes=event_bytes, rate=rate)
    if map_bytes != 0:  # No map at all is fine.
        require_amounts(defects, map_bytes=map_bytes)
    defects.raise_if_any()
    vehicle = Pin(tier="fog")
    return Application(
        name=name,
        operators=[
            Operator(
                name="position", kind="source", rate=rate, event_size=event_bytes, pin=vehicle
            ),
            Operator(
                name="distance",
                compression=0.5,
                cpu_per_event=2e5,
                state=map_bytes,
                window=TimeWindow(5.0, 1.0),
            ),
            Operator(
                name="friends", selectivity=0.5, cpu_per_event=1e5, window=TimeWindow(10.0, 1.0)
            ),
            Operator(name="consumer", kind="sink", pin=vehicle),
        ],
        streams=[
            Stream(source="position", target="distance"),
            Stream(source="distance", target="friends"),
            Stream(source="friends", target="consumer"),
        ],
        limits=Limits(response_time_s=latency_s),
    )
