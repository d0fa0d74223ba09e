"""What is seen of a running deployment at a moment, or expected of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from thalweg.errors import Defects
from thalweg.model.application import Limits
from thalweg.model.plan import Plan, Violation
from thalweg.units import BANDWIDTH, CPU_SPEED, DURATION, SIZE, Dimension, show_quantity, show_share

_ROUNDING = 1e-9
_DIMENSIONS = {"instr/s": CPU_SPEED, "B": SIZE, "bps": BANDWIDTH, "s": DURATION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """One figure above its limit, or one constraint that is broken."""

    name: str
    """`usage`, `uplink`, `response-time`, or the constraint and the place where it is broken."""
    need: float
    have: float
    text: str
    """For people: "uplink 131 Mbps above 125 Mbps (4.8 %)"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The figures of a deployment with its limits and everything that it violates.

    `deployed` tells one placement from another (a fingerprint), and `inputs` are the numbers that
    a strategy would decide on: the rates, and whatever else changes. Where either is not given,
    nobody can tell that a question has been answered before, so it will be asked again.
    """

    time_s: float
    usage: float
    uplink_bps: float
    response_time_s: float
    violations: tuple[Violation, ...] = ()
    limits: Limits = field(default_factory=Limits)
    deployed: str = ""
    inputs: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        defects = Defects()
        for name in ("time_s", "usage", "uplink_bps", "response_time_s"):
            value = getattr(self, name)
            least = -math.inf if name == "time_s" else 0.0
            defects.require(value >= least, name, value, "a number, not NaN")
        defects.raise_if_any()
        object.__setattr__(self, "violations", tuple(self.violations))
        object.__setattr__(self, "inputs", tuple(self.inputs))

    @classmethod
    def of(
        cls, plan: Plan, time_s: float, limits: Limits, *, inputs: Sequence[float] = ()
    ) -> Observation:
        """What a plan that was evaluated at the rates of this moment says."""
        return cls(
            time_s=time_s,
            usage=plan.estimate.usage,
            uplink_bps=plan.estimate.uplink_bps,
            response_time_s=plan.estimate.response_time_s,
            violations=plan.violations,
            limits=limits,
            deployed=plan.placement.fingerprint,
            inputs=tuple(inputs),
        )

    def level(self, name: str) -> tuple[float, float] | None:
        """Figure and limit, for the names of figures that have a limit; None for all others."""
        levels = {
            "usage": (self.usage, self.limits.usage),
            "uplink": (self.uplink_bps, self.limits.uplink_bps),
            "response-time": (self.response_time_s, self.limits.response_time_s),
        }
        return levels.get(name)

    @property
    def broken(self) -> tuple[Excess, ...]:
        """Every broken constraint: those listed, then limits that a figure is above."""
        found = [_excess_of(violation) for violation in self.violations]
        listed = {excess.name for excess in found}
        for name, noun, dimension in (
            ("response-time", "response time", DURATION),
            ("uplink", "uplink", BANDWIDTH),
        ):
            figure, limit = self.level(name) or (0.0, 0.0)
            if name not in listed and is_above(figure, limit):
                found.append(_excess(name, noun, figure, limit, dimension))
        return tuple(found)

    def excess_usage(self, usage_most: float) -> tuple[Excess, ...]:
        """The usage, if it is above the most that is wanted."""
        if not is_above(self.usage, usage_most):
            return ()
        return (_excess("usage", "usage", self.usage, usage_most, None),)


def is_above(figure: float, limit: float) -> bool:
    """Whether a figure is above a limit by more than rounding."""
    return figure > limit * (1.0 + _ROUNDING)


def _excess_of(violation: Violation) -> Excess:
    own_limit = violation.constraint in ("uplink", "response-time")
    name = violation.constraint if own_limit else f"{violation.constraint} {violation.place}"
    if not violation.unit:
        return Excess(name=name, need=violation.need, have=violation.have, text=str(violation))
    noun = violation.resource if own_limit else f"{violation.resource} at {violation.place}"
    dimension = _DIMENSIONS.get(violation.unit)
    return _excess(name, noun, violation.need, violation.have, dimension)


def _excess(name: str, noun: str, need: float, have: float, dimension: Dimension | None) -> Excess:
    def show(value: float) -> str:
        if name == "usage":
            return show_share(value)
        return show_quantity(value, dimension) if dimension else f"{value:.3g}"

    # Two figures that differ by less than what is shown of them still differ visibly.
    share = (need - have) / have if have > 0 else math.inf
    percent = f"{100.0 * share:.2g}" if share < 0.995 else f"{100.0 * share:.0f}"
    by = f" ({percent} %)" if math.isfinite(share) and share < 10.0 else ""
    return Excess(
        name=name, need=need, have=have, text=f"{noun} {show(need)} above {show(have)}{by}"
    )
