"""The record of a replay: a row for each step, as a table, as plain data, as Arrow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from thalweg.adapt.observation import Observation
from thalweg.model.plan import Violation
from thalweg.model.table import format_table, wrap
from thalweg.units import BANDWIDTH, DURATION, show_number, show_quantity, show_share

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What happened when the rates changed: seen before, decided, seen after."""

    time_s: float
    adapted: bool
    """Whether the strategy was asked; it may have answered with what ran already."""
    ahead: bool
    """Whether only a forecast spoke for it."""
    reason: str
    before: Observation | None
    """What ran as the step began, at the rates of the step; None where nothing ran."""
    after: Observation
    """What runs from then on, at the same rates."""
    started: int
    stopped: int
    cuts: Mapping[str, tuple[str, ...]]
    """For every fog site (and every edge site that is used) the operators that run there, without
    sources, in the order of the application."""
    seconds: float = field(compare=False)
    """How long the strategy took."""

    @property
    def violated(self) -> bool:
        """Whether what ran as the step began broke a constraint: what users felt."""
        return self.before is not None and bool(self.before.broken)

    def to_dict(self) -> dict[str, Any]:
        """The step as plain data, ready for JSON; ∞ is written "inf"."""
        after, limits = self.after, self.after.limits
        return {
            "time_s": self.time_s,
            "adapted": self.adapted,
            "ahead": self.ahead,
            "reason": self.reason,
            "usage": _finite(after.usage),
            "uplink_bps": _finite(after.uplink_bps),
            "response_time_s": _finite(after.response_time_s),
            "usage_limit": _finite(limits.usage),
            "uplink_limit_bps": _finite(limits.uplink_bps),
            "response_time_limit_s": _finite(limits.response_time_s),
            "violations_before": [] if self.before is None else _tell(self.before.violations),
            "violations_after": _tell(after.violations),
            "started": self.started,
            "stopped": self.stopped,
            "cuts": {site: list(operators) for site, operators in self.cuts.items()},
            "seconds": self.seconds,
        }


@dataclass(frozen=True, kw_only=True)
class Replay:
    """What a strategy did with a workload, step by step."""

    application: str
    network: str
    strategy: str
    steps: tuple[Step, ...]

    def summary(self) -> dict[str, float | int]:
        """The figures that sum it up.

        `steps_violated` counts the steps that began with a broken constraint, and
        `steps_violated_after` those where one was broken still after the decision.
        Means are over the steps after their decisions, ∞ where one of them is.
        """
        steps = self.steps
        return {
            "steps": len(steps),
            "adaptations": sum(step.adapted for step in steps),
            "adaptations_ahead": sum(step.adapted and step.ahead for step in steps),
            "changes": sum(step.started + step.stopped > 0 for step in steps),
            "steps_violated": sum(step.violated for step in steps),
            "steps_violated_after": sum(bool(step.after.broken) for step in steps),
            "started": sum(step.started for step in steps),
            "stopped": sum(step.stopped for step in steps),
            "usage_mean": _mean([step.after.usage for step in steps]),
            "uplink_mean_bps": _mean([step.after.uplink_bps for step in steps]),
            "seconds": math.fsum(step.seconds for step in steps),
        }

    def to_dict(self) -> dict[str, Any]:
        """The replay as plain data, ready for JSON; ∞ is written "inf"."""
        return {
            "thalweg": 1,
            "application": self.application,
            "network": self.network,
            "strategy": self.strategy,
            "summary": {name: _finite(value) for name, value in self.summary().items()},
            "steps": [step.to_dict() for step in self.steps],
        }

    def table(self, *, all_steps: bool = False) -> tuple[list[str], list[list[str]]]:
        """Names of the columns, and a row for each step that changes something, or for each step.

        A step changes something if operators start or stop, if a constraint is broken that was not
        or no longer is, or if the strategy is asked for a reason that it was not asked for in the
        step before. `!` marks a figure above its limit; `violated` tells how many constraints are
        broken, as the step begins and, where they differ, after the decision.
        """
        names = ["time", "usage", "uplink", "response", "violated", "started", "stopped", "reason"]
        times = _clock([step.time_s for step in self.steps])
        before = (None, *self.steps)
        return names, [
            [time, *_row(step)]
            for time, previous, step in zip(times, before, self.steps, strict=False)
            if all_steps or _changes_something(previous, step)
        ]

    @property
    def outcome(self) -> str:
        """The figures that sum it up, in a sentence."""
        found = self.summary()
        return (
            f"{found['steps']} steps, {found['adaptations']} adaptations, {found['steps_violated']}"
            f" steps began with a violation, {found['started']} operators started, "
            f"{found['stopped']} stopped; on average usage {show_share(found['usage_mean'])}, "
            f"uplink {show_quantity(found['uplink_mean_bps'], BANDWIDTH)}"
        )

    def to_arrow(self) -> pa.Table:
        """A row for each step; the columns are the fields of `Step.to_dict`, ∞ as it is."""
        import pyarrow as pa

        texts = pa.list_(pa.string())
        schema = pa.schema(
            [
                ("time_s", pa.float64()),
                ("adapted", pa.bool_()),
                ("ahead", pa.bool_()),
                ("reason", pa.string()),
                *((name, pa.float64()) for name in _FIGURES),
                ("violations_before", texts),
                ("violations_after", texts),
                ("started", pa.int64()),
                ("stopped", pa.int64()),
                ("cuts", pa.map_(pa.string(), texts)),
                ("seconds", pa.float64()),
            ],
            metadata={
                "application": self.application,
                "network": self.network,
                "strategy": self.strategy,
            },
        )
        rows = []
        for step in self.steps:
            row = step.to_dict()
            figures = {name: float(row[name]) for name in _FIGURES}
            rows.append({**row, **figures, "cuts": list(row["cuts"].items())})
        return pa.Table.from_pylist(rows, schema=schema)

    @property
    def headline(self) -> str:
        """What was replayed."""
        return f"{self.application} on {self.network} by {self.strategy}: {len(self.steps)} steps"

    def __str__(self) -> str:
        return "\n".join([self.headline, format_table(*self.table()), *wrap(self.outcome)])


_FIGURES = (
    "usage",
    "uplink_bps",
    "response_time_s",
    "usage_limit",
    "uplink_limit_bps",
    "response_time_limit_s",
)


def _row(step: Step) -> list[str]:
    after = step.after
    shown = {
        "usage": show_share(after.usage),
        "uplink": show_quantity(after.uplink_bps, BANDWIDTH),
        "response-time": show_quantity(after.response_time_s, DURATION),
    }
    above = {excess.name for excess in (*after.broken, *after.excess_usage(after.limits.usage))}
    left = str(len(after.broken))
    felt = str(len(step.before.broken)) if step.before else left
    return [
        *(f"{text} !" if name in above else text for name, text in shown.items()),
        left if felt == left else f"{felt} → {left}",
        str(step.started),
        str(step.stopped),
        step.reason,
    ]


def _changes_something(previous: Step | None, step: Step) -> bool:
    if previous is None or step.started or step.stopped:
        return True
    then = _broken(previous.after)
    if then != _broken(step.after) or (step.before is not None and then != _broken(step.before)):
        return True
    return step.adapted and step.reason != previous.reason


def _broken(seen: Observation) -> frozenset[str]:
    return frozenset(excess.name for excess in seen.broken)


def _clock(times_s: Sequence[float]) -> list[str]:
    """The times as on a clock, with days where there are some; in seconds within an hour.

    >>> _clock([0.0, 5400.0]), _clock([0.0, 90000.0]), _clock([0.0, 0.5])
    (['00:00', '01:30'], ['0 d 00:00', '1 d 01:00'], ['0 s', '0.5 s'])
    """
    last_s = max(times_s, default=0.0)
    if last_s < 3600 or any(time_s % 1 for time_s in times_s):
        return [f"{show_number(time_s)} s" for time_s in times_s]
    with_seconds = any(time_s % 60 for time_s in times_s)
    shown = []
    for time_s in times_s:
        days, rest = divmod(int(time_s), 86_400)
        text = f"{rest // 3600:02}:{rest // 60 % 60:02}"
        text += f":{rest % 60:02}" if with_seconds else ""
        shown.append(f"{days} d {text}" if last_s >= 86_400 else text)
    return shown


def _mean(values: Sequence[float]) -> float:
    finite = all(math.isfinite(value) for value in values)
    return math.fsum(values) / max(len(values), 1) if finite else math.inf


def _tell(violations: tuple[Violation, ...]) -> list[str]:
    return [str(violation) for violation in violations]


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
