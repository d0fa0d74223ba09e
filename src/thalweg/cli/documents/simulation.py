"""What `thalweg simulate` prints."""

from __future__ import annotations

from typing_extensions import TypedDict

from thalweg.cli.documents.common import Document, Scalar

Row = dict[str, Scalar]
"""A row of a table; from two replications on, half a 95 % interval of `x` is `x_ci`."""


class Physics(TypedDict):
    """How operators and links of an application work."""

    cpu: str
    windows: str
    ends_work: bool
    service: str | dict[str, str]
    transfer: str
    arrivals: str | dict[str, str]
    even: bool


class Totals(TypedDict):
    """What became of all events, over all runs."""

    born: int
    made: int
    ended: int
    filtered: int
    queued: int
    under_way: int
    lost: int
    hops: int


class Queue(TypedDict):
    """A queue to which more work comes than it can do."""

    name: str
    load: float
    queue_end: float
    growth_per_s: float


class Result(Document):
    """What both documents have."""

    applications: list[str]
    network: str
    strategies: list[str]
    seconds: float
    warm_up_s: float
    seed: int
    replications: int
    physics: list[Physics]
    stopped_s: float | None
    conserved: bool
    totals: Totals
    unstable: list[Queue]
    operators: list[Row]
    links: list[Row]
    nodes: list[Row]
    paths: list[Row]
    comparison: list[Row]
    latency: list[Row]
    segments: list[Row]
    moves: list[Row]
    decisions: list[Row]
    wall_s: float


class Simulation(Result):
    """A plan, run event by event."""


class Point(Result):
    """The same at so many times the rates."""

    rate_factor: float


class Simulations(Document):
    """A simulation for each value of the swept parameter."""

    points: list[Point]
