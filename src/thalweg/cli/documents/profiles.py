"""What `thalweg profile` prints."""

from __future__ import annotations

from typing_extensions import TypedDict

from thalweg.cli.documents.common import Document


class Spread(TypedDict):
    """A figure, and the range that half of its measurements or more are in."""

    value: float
    low: float
    high: float


class Calibration(TypedDict):
    """How fast the machine is."""

    speed_ips: Spread
    rounds: int
    repeat: int


class Declared(TypedDict):
    """What a pipeline declares of an operator."""

    event_size: float | None
    selectivity: float
    compression: float
    cpu_per_event: float
    cpu_per_byte: float


class Operator(TypedDict):
    """What was measured of an operator."""

    operator: str
    role: str
    declared: Declared
    rows_in: int
    rows_out: int
    selectivity: Spread
    size_in_bytes: float
    size_out_bytes: float
    link_bytes: float
    compression: Spread
    cpu_s: Spread
    fixed_s: float
    cpu_per_event: Spread
    window_events: float | None
    window_bytes: float | None
    state_bytes: float | None


class Difference(TypedDict):
    """A figure that is not as it was declared."""

    operator: str
    figure: str
    declared: float
    measured: float
    off: float


class Profile(Document):
    """What the operators of a pipeline do to a sample, and what they cost."""

    application: str
    rows: dict[str, int]
    rate: dict[str, float]
    sites: int
    repeat: int
    calibration: Calibration
    operators: list[Operator]
    differences: list[Difference]


class RunFigure(TypedDict):
    """A figure that a run has measured, with an interval."""

    operator: str
    figure: str
    declared: float
    measured: float
    low: float
    high: float
    count: float


class Measured(Document):
    """What a run has measured."""

    application: str
    run: str
    figures: list[RunFigure]
