"""What came of a kind of fault, and the table of all kinds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from thalweg.history import FAULTS, Verdict

Ending = Literal["healed", "resumed", "refused"]
"""By itself; by the same command again; with a reason, and mended by the command that it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """One fault: what was done, how it ended, and for how long nothing came out."""

    what: str
    ending: Ending
    pause_s: float
    reason: str = ""
    """What was said where it was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A kind of fault: every time it was injected, and what the checker says in the end."""

    kind: str
    injections: tuple[Injection, ...]
    verdicts: Mapping[str, Verdict]
    events: int
    seconds: float
    skipped: str = ""
    """Why it could not be injected here."""
    disturbed: tuple[str, ...] = ()
    """What happened to sites that were to go on as they were."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What is not as it should be.

        Faults at sinks, refusals without a remedy, sites disturbed, no injection.
        """
        if self.skipped:
            return ()
        told = self.verdicts.items()
        found = [f"{name}: {v}" for name, v in told if not (v.is_right and v.found)]
        found += [
            f"{injection.what}: refused without a remedy: {injection.reason}"
            for injection in self.injections
            if injection.ending == "refused" and "Hint: " not in injection.reason
        ]
        found += self.disturbed
        return tuple(found if self.injections else [*found, "nothing was injected"])

    @property
    def is_right(self) -> bool:
        """Whether nothing is lost, twice, wrong or late, and every refusal says what to do."""
        return not self.problems

    def count(self, ending: Ending) -> int:
        """How many injections ended so."""
        return sum(injection.ending == ending for injection in self.injections)

    def total(self, fault: str) -> int:
        """A fault of all sinks together."""
        return sum(getattr(verdict, fault) for verdict in self.verdicts.values())

    @property
    def longest_pause_s(self) -> float:
        """The longest time in which nothing came out."""
        return max((injection.pause_s for injection in self.injections), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "fault": self.kind,
            "injected": len(self.injections),
            "healed_by_itself": self.count("healed"),
            "resumed_by_the_same_command": self.count("resumed"),
            "refused_with_reason": self.count("refused"),
            **{fault: self.total(fault) for fault in FAULTS},
            "longest_pause_s": round(self.longest_pause_s, 2),
            "events": self.events,
            "seconds": round(self.seconds, 1),
            "skipped": self.skipped,
            "problems": list(self.problems),
            "injections": [asdict(injection) for injection in self.injections],
            "sinks": {name: verdict.to_dict() for name, verdict in self.verdicts.items()},
        }


def skip(kind: str, why: str) -> Outcome:
    """The outcome of a fault that cannot be injected on this machine."""
    return Outcome(kind=kind, injections=(), verdicts={}, events=0, seconds=0.0, skipped=why)


COLUMNS = (
    "fault",
    "injected",
    "healed by itself",
    "same command",
    "refused",
    "lost",
    "duplicated",
    "wrong or late",
    "longest pause",
)


def to_rows(outcomes: Iterable[Outcome]) -> list[list[str]]:
    """The table, a row for each kind of fault; those that were skipped say why."""
    rows = []
    for outcome in outcomes:
        if outcome.skipped:
            rows.append([outcome.kind, f"skipped: {outcome.skipped}"])
            continue
        other = sum(outcome.total(fault) for fault in ("wrong", "unknown", "late"))
        rows.append(
            [
                outcome.kind,
                str(len(outcome.injections)),
                str(outcome.count("healed")),
                str(outcome.count("resumed")),
                str(outcome.count("refused")),
                str(outcome.total("lost")),
                str(outcome.total("duplicated")),
                str(other),
                f"{outcome.longest_pause_s:.1f} s",
            ]
        )
    return rows


def to_table(outcomes: Sequence[Outcome]) -> str:
    """The table for people."""
    rows = to_rows(outcomes)
    whole = [row for row in rows if len(row) == len(COLUMNS)]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *whole, strict=True)]
    widths[0] = max([widths[0], *(len(row[0]) for row in rows)])

    def line(cells: Sequence[str]) -> str:
        first, *others = cells
        if len(cells) < len(COLUMNS):
            return f"{first:<{widths[0]}}  {'; '.join(others)}"
        numbers = (f"{c:>{w}}" for c, w in zip(others, widths[1:], strict=True))
        return "  ".join([f"{first:<{widths[0]}}", *numbers])

    return "\n".join([line(COLUMNS), *map(line, rows)])


@dataclass(slots=True)
class Diary:
    """Collects injections while a trial runs."""

    injections: list[Injection] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)

    def write(self, what: str, ending: Ending, pause_s: float, reason: str = "") -> None:
        """Remember an injection."""
        self.injections.append(Injection(what=what, ending=ending, pause_s=pause_s, reason=reason))

    def close(
        self, kind: str, verdicts: Mapping[str, Verdict], events: int, began_s: float
    ) -> Outcome:
        """What came of all of them; `began_s` is of the clock that only goes forward."""
        return Outcome(
            kind=kind,
            injections=tuple(self.injections),
            verdicts=dict(verdicts),
            events=events,
            seconds=time.monotonic() - began_s,
            disturbed=tuple(self.disturbed),
        )
