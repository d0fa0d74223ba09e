"""What an adaptation controller remembers from one event to the next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from thalweg.adapt.arrivals import Arrivals
from thalweg.adapt.characteristics import Characteristics
from thalweg.adapt.events import LinksMeasured, Pair
from thalweg.adapt.trigger import TriggerState
from thalweg.errors import ThalwegError

Rates = Mapping[Pair, float]
_CHANGE_S = 5.0


class InvalidTransition(ThalwegError):
    """Something that cannot happen in this state, with what happened before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerState:
    """What a controller remembers from one event to the next."""

    known: Characteristics = field(default_factory=Characteristics)
    arrivals: Arrivals = field(default_factory=Arrivals)
    rates: Rates | None = None
    """Rates that need no estimate; None: they are those of the arrivals."""
    steps: tuple[tuple[float, Rates], ...] = ()
    """The rates of the last cycles, which forecasts are made from."""
    jumped_s: float = -math.inf
    """When rates were last seen to have become others than in the cycle before."""
    links: LinksMeasured | None = None
    trigger: TriggerState = field(default_factory=TriggerState)
    held_until_s: float = -math.inf
    held_by: str = ""
    changing_s: float | None = None
    """Since when a change has been carried out."""
    changed_s: float = -math.inf
    """When the last one ended."""
    change_s: float = _CHANGE_S
    """How long one takes, by those so far."""
    changing_rates_s: float | None = None
    """Since when rates have been changing; None: they are not."""
    unsettled_s: float | None = None
    """Since when rates have been changing that a violation waits for."""
    learnt_s: float | None = None
    """Since when batches have been counted."""
    planned: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """The measured figures that a strategy was asked with last, by (operator, figure)."""
    reconsider_until_s: float = -math.inf
    """Until when the strategy is asked in every cycle, as figures become better known."""
    replanned_for_figures: bool = True
    """Whether the last adaptation, if any, was for measured figures alone."""
    history: tuple[str, ...] = ()
    """The last events that changed what is under way, oldest first."""
