"""How far and how often operators plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.errors import Defects


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How far and how often to plan."""

    step_ticks: int = 1
    """Ticks between the moments at which an operator may move."""
    horizon: int = 500
    """Steps to plan ahead, at most."""
    least_horizon: int = 10
    adaptive: bool = True
    """Whether the horizon shrinks when predictions fail."""
    refresh: float = 0.5
    """The share of a plan after which the next one is made."""
    doubt: float = 0.1
    """A prediction has failed when it gave less than this to where a user really is."""
    rate_threshold: float = 0.2
    """A rate counts as changed when it is off by more than this share."""
    decay_s: float = np.inf
    """Over which the cost of leaving a broker is taken to fall to nothing."""
    range_m: float = np.inf
    """Only brokers whose area is within this of that of the current host are targets."""
    most_turns: int = 10
    """How often each operator may answer the others within one coordination."""

    together: bool = False
    """Whether operators also try to move as one, which none of them would do alone. Ours; only
    where no limit but range holds and each operator has one path."""

    def __post_init__(self) -> None:
        defects = Defects()
        # A plan of one step is where the operator is already.
        for name, least in (
            ("step_ticks", 1),
            ("horizon", 2),
            ("least_horizon", 2),
            ("most_turns", 1),
        ):
            value = getattr(self, name)
            good = isinstance(value, int) and value >= least
            defects.require(good, name, value, f"a whole number >= {least}")
        for name, most in (("refresh", 1.0), ("doubt", 1.0), ("rate_threshold", np.inf)):
            value = getattr(self, name)
            defects.require(0.0 <= value <= most, name, value, f"a number from 0 to {most:g}")
        defects.require(self.decay_s > 0, "decay_s", self.decay_s, "a number > 0")
        defects.require(self.range_m >= 0, "range_m", self.range_m, "a number >= 0")
        defects.raise_if_any()
