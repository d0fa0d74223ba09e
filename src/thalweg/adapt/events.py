"""What an adaptation controller is given, and what it answers: events in, instructions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from thalweg.adapt.observation import Observation
from thalweg.model.network import Network
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan

Pair = tuple[str, str]
"""(source, site)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """How many events have arrived so far, by source and site, as of a moment."""

    time_s: float
    events: Mapping[Pair, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesKnown:
    """Rates that need no estimate, in events/s: of a workload, or counted over a whole interval."""

    time_s: float
    rates: Mapping[Pair, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Events that an operator or a source put out, with their size.

    `data_bytes` is what they take before compression, which declared sizes mean; `link_bytes` what
    they take on a link, None where they crossed none.
    """

    events: int
    data_bytes: float
    link_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDone:
    """What one batch of a site counted: events in and out of operators, sizes, instructions.

    `instructions` are those of the whole batch, what it costs whatever is in it included; None
    where CPU was not measured.
    """

    time_s: float
    site: str
    events_in: Mapping[str, int] = field(default_factory=dict)
    events_out: Mapping[str, int] = field(default_factory=dict)
    outputs: Mapping[str, Output] = field(default_factory=dict)
    instructions: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksMeasured:
    """Bits/s that each site sends up in the deployment that runs.

    `passing_bps` is what all sites send beside that and will end by itself: the catch-up of a
    backlog, and what a hand-over sends.
    """

    time_s: float
    bps: Mapping[str, float]
    passing_bps: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """A monitoring cycle: decide about what runs.

    `coming` are forecasts of the next steps, if the caller has them; else the controller makes its
    own, if it has a forecaster. `network` replaces the controller's where it has changed.
    """

    time_s: float
    running: Placement | None
    coming: Sequence[Forecast] | None = None
    network: Network | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The rates that are expected in `ahead_s` seconds."""

    ahead_s: float
    rates: Mapping[Pair, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Somebody has set the placement by hand: it is kept for as long as a trigger rests."""

    time_s: float
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBegan:
    """A change of the placement is being carried out; until it has ended, none is asked for."""

    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEnded:
    """A change of the placement is in force, or was given up."""

    time_s: float
    done: bool = True


Event = Arrived | RatesKnown | BatchDone | LinksMeasured | Cycle | Held | ChangeBegan | ChangeEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a monitoring cycle saw: the figures that count, and what the model alone says."""

    observation: Observation
    estimated: Observation
    measured_bps: float | None
    """What the links measured; None where nothing is known of the deployment that runs."""
    passing_bps: float | None = None
    """What the links carry beside that, and will not for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What runs is kept."""

    time_s: float
    reason: str
    situation: Situation | None = None
    asked_for: str | None = None
    """Why the strategy was asked, if it was; it had nothing better."""
    again_s: float | None = None
    """In how many seconds to look again, where that is sooner than the next cycle."""
    ahead: bool = False
    """Whether only a forecast spoke for asking it."""
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapt:
    """Change to this plan; `ahead` where only a forecast speaks for it."""

    time_s: float
    reason: str
    plan: Plan
    ahead: bool = False
    situation: Situation | None = None
    seconds: float = field(default=0.0, compare=False)
    """How long the strategy took."""


Instruction = Keep | Adapt
