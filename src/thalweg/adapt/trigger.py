"""Keep the deployment that runs, or adapt it?

Formula (35) of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators for IoT Edge
Analytics, keeps a deployment while its usage is at most RUmax and no constraint is violated.
Here a trigger also looks ahead, and it has the patience and the memory that keep operators from
going to and fro:

- A violation is answered at once (or after `patience` observations), unless this very question
  has been answered before: the same placement at the same inputs, and the answer was to stay.
- Adapting only to lower the usage, or only because of a forecast, is optional. It has to wait
  until `rest_s` after the last adaptation, and after a figure has crossed its limit once, that
  figure counts again only beyond the limit by `clear_margin`, until it has been below the limit by
  `clear_margin`.

So in a time of D seconds there are at most 1 + D / rest_s optional adaptations. A rate that goes to
and fro around a limit causes at most one answer more than that where some deployment holds on both
sides, and one for each side where none does on either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from thalweg.adapt.observation import Excess, Observation, is_above
from thalweg.errors import Defects
from thalweg.units import DURATION, show_quantity, show_share

_REMEMBERED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """When to adapt.

    - `usage_most`: RUmax; None takes the application's limit.
    - `patience`: how many observations in a row have to be bad before they are answered.
    - `slight_margin`, `slight_patience`: a figure that is above its limit by no more than this part
      has to be so in so many observations in a row: measured figures are not exact.
    - `rest_s`: how long optional adaptations wait after any adaptation.
    - `clear_margin`: how far a figure has to go beyond its limit, or back, to count as new.
    - `change_least`: inputs that differ by at most this part are the same question.
    """

    usage_most: float | None = None
    patience: int = 1
    slight_margin: float = 0.0
    slight_patience: int = 1
    rest_s: float = 600.0
    clear_margin: float = 0.05
    change_least: float = 0.01

    def __post_init__(self) -> None:
        defects = Defects()
        for path in ("patience", "slight_patience"):
            count = getattr(self, path)
            whole = isinstance(count, int) and not isinstance(count, bool)
            defects.require(whole and count >= 1, path, count, "a whole number >= 1")
        for path, most in (
            ("usage_most", math.inf),
            ("rest_s", math.inf),
            ("clear_margin", 1.0),
            ("slight_margin", 1.0),
            ("change_least", 1.0),
        ):
            value = getattr(self, path)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            good = (number and 0 <= value <= most) or (value is None and path == "usage_most")
            rule = "a number >= 0" if math.isinf(most) else f"a number from 0 to {most:g}"
            defects.require(good, path, value, rule)
        defects.raise_if_any()


LIVE_TRIGGER = Trigger(slight_margin=0.02, slight_patience=3, rest_s=30.0, change_least=0.1)
"""For runs. Measured figures are never twice the same: what differs by less is the same question,
and what is above a limit by less may be so by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a strategy was asked: this placement at these inputs, for these causes."""

    deployed: str
    inputs: tuple[float, ...]
    causes: frozenset[str]
    """Names of what was wrong; with `expected` behind them, of what was expected to be."""
    stayed: bool = False
    """Whether the answer was to stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerState:
    """What a trigger remembers between two observations."""

    bad_count: int = 0
    adapted_s: float | None = None
    crossed: frozenset[str] = frozenset()
    """Figures that caused an adaptation and have not been clearly below their limit since."""
    asked: tuple[Question, ...] = ()
    """The last questions, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Keep or adapt, and why; `ahead` where only a forecast speaks for it."""

    adapt: bool
    reason: str
    ahead: bool = False


def decide(
    trigger: Trigger, state: TriggerState, now: Observation, ahead: Observation | None = None
) -> tuple[Decision, TriggerState]:
    """What to do after this observation, and what to remember; the same for the same arguments.

    Violations come first, then what is expected, then the usage.
    """
    most = now.limits.usage if trigger.usage_most is None else trigger.usage_most
    broken, usage = now.broken, now.excess_usage(most)
    expected = () if ahead is None else ahead.broken
    if ahead is not None and not usage:
        expected += ahead.excess_usage(most)
    state = _look(trigger, state, now, most, is_bad=bool(broken or usage))
    cases = (
        _Case(excesses=broken, when="now"),
        _Case(excesses=expected, when=_due(now, ahead), is_ahead=True, is_optional=True),
        _Case(excesses=usage, when="now", is_optional=True),
    )
    question = Question(
        deployed=now.deployed,
        inputs=now.inputs + (ahead.inputs if ahead else ()),
        causes=frozenset().union(*(case.causes for case in cases)),
    )
    held = ""
    for case in cases:
        if not case.excesses:
            continue
        hindrance = _hindrance(trigger, state, case, question, now.time_s)
        if not hindrance:
            kept = state.asked[1 - _REMEMBERED :]
            return (
                Decision(adapt=True, reason=case.text, ahead=case.is_ahead),
                replace(
                    state,
                    adapted_s=now.time_s,
                    crossed=state.crossed | {e.name for case in cases for e in case.excesses},
                    asked=(*kept, question),
                ),
            )
        held = held or f"kept: {case.text}; {hindrance}"
    return Decision(adapt=False, reason=held or _all_is_well(now, most)), state


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """Something that may speak for adapting."""

    excesses: tuple[Excess, ...]
    when: str
    is_ahead: bool = False
    is_optional: bool = False

    @property
    def causes(self) -> frozenset[str]:
        suffix = " expected" if self.is_ahead else ""
        return frozenset(f"{excess.name}{suffix}" for excess in self.excesses)

    @property
    def text(self) -> str:
        first, *others = self.excesses
        more = f" and {len(others)} more" if others else ""
        return f"{first.text} {self.when}{more}"


def _look(
    trigger: Trigger, state: TriggerState, now: Observation, most: float, *, is_bad: bool
) -> TriggerState:
    """Learn from an observation, before anything is decided."""
    broken = {excess.name for excess in now.broken}

    def has_cleared(name: str) -> bool:
        level = (now.usage, most) if name == "usage" else now.level(name)
        if level is None:
            return name not in broken
        figure, limit = level
        return figure <= limit * (1.0 - trigger.clear_margin)

    asked = state.asked
    if asked and asked[-1].deployed == now.deployed:
        asked = (*asked[:-1], replace(asked[-1], stayed=True))
    return replace(
        state,
        bad_count=state.bad_count + 1 if is_bad else 0,
        crossed=frozenset(name for name in state.crossed if not has_cleared(name)),
        asked=asked,
    )


def _hindrance(
    trigger: Trigger, state: TriggerState, case: _Case, question: Question, time_s: float
) -> str:
    """Why this case is no reason to adapt; empty where it is one."""
    patience = trigger.patience
    slight = 1.0 + trigger.slight_margin
    if not any(is_above(excess.need, excess.have * slight) for excess in case.excesses):
        patience = max(patience, trigger.slight_patience)
    if not case.is_ahead and state.bad_count < patience:
        return f"{state.bad_count} of {patience} such observations in a row"
    if case.is_optional:
        margin = trigger.clear_margin
        counting = any(
            excess.name not in state.crossed or is_above(excess.need, excess.have * (1.0 + margin))
            for excess in case.excesses
        )
        if not counting:
            return f"within {100 * margin:g} % of a limit that was crossed before"
        if state.adapted_s is not None and time_s - state.adapted_s < trigger.rest_s:
            ago = _show_duration(time_s - state.adapted_s)
            return f"rests, last adapted {ago} ago"
    if _is_settled(trigger, state.asked, question, case):
        return "nothing has changed since adapting for it was of no use"
    return ""


def _is_settled(
    trigger: Trigger, asked: tuple[Question, ...], question: Question, case: _Case
) -> bool:
    """Whether asking is of no use: the answer was to stay, or led back here at the same inputs.

    Inputs that are nearly the same can break what was not broken before: then nobody has asked
    about that yet.
    """
    if not (question.deployed and question.inputs):
        return False
    inputs_changed = False
    for past in reversed(asked):
        if not _are_close(past.inputs, question.inputs, trigger.change_least):
            inputs_changed = True
        elif (
            past.deployed == question.deployed
            and case.causes <= past.causes
            and (past.stayed or not inputs_changed)
        ):
            return True
    return False


def _are_close(a: tuple[float, ...], b: tuple[float, ...], least: float) -> bool:
    return len(a) == len(b) and all(
        abs(x - y) <= least * max(abs(x), abs(y)) for x, y in zip(a, b, strict=True)
    )


def _all_is_well(now: Observation, most: float) -> str:
    limit = f" ≤ {show_share(most)}" if math.isfinite(most) else ""
    return f"kept: every constraint is met, usage {show_share(now.usage)}{limit}"


def _due(now: Observation, ahead: Observation | None) -> str:
    if ahead is None:
        return ""
    return f"expected in {_show_duration(ahead.time_s - now.time_s)}"


def _show_duration(seconds: float) -> str:
    """In days, hours or minutes where it is that long: "30 min"."""
    for unit in ("d", "h", "min"):
        if seconds >= DURATION.units[unit]:
            return f"{seconds / DURATION.units[unit]:.3g} {unit}"
    return show_quantity(seconds, DURATION)
