"""What was found out about a run or a machine: one value for each thing, with what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from thalweg.errors import Defects

GOOD, NOTE, WARNING, PROBLEM = LEVELS = ("good", "note", "warning", "problem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was found: how bad it is, where, what, and the command that helps.

    `good` is as it should be, a `note` is worth knowing, a `warning` becomes worse if nothing is
    done, and a `problem` keeps the run from going on or its results from being right.
    """

    level: str
    where: str
    what: str
    remedy: str = ""

    def __post_init__(self) -> None:
        defects = Defects()
        rule = f"one of {', '.join(LEVELS)}"
        defects.require(self.level in LEVELS, "level", self.level, rule)
        defects.require(bool(self.where), "where", self.where, "the place of a finding")
        defects.require(bool(self.what), "what", self.what, "a text")
        defects.raise_if_any()
        for name in ("where", "what", "remedy"):
            object.__setattr__(self, name, _on_one_line(getattr(self, name)))

    @property
    def weight(self) -> int:
        """How bad it is, as a number: 0 is good."""
        return LEVELS.index(self.level)

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}"
        return f"{text}. Hint: {self.remedy}" if self.remedy else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """All findings, in the order in which they were looked for."""

    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Health:
        """The health that these findings make."""
        return cls(findings=tuple(findings))

    @property
    def is_well(self) -> bool:
        """Whether there is no problem."""
        return all(finding.level != PROBLEM for finding in self.findings)

    @property
    def worst(self) -> Finding | None:
        """The worst finding; of several, the first; None where nothing was found."""
        return max(self.findings, key=lambda finding: finding.weight, default=None)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"well": self.is_well, "findings": [asdict(finding) for finding in self.findings]}


def _on_one_line(text: str) -> str:
    """The text on one line, with nothing in it that a terminal could obey: it may be of a file."""
    flat = " ".join(text.split())
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in flat)
