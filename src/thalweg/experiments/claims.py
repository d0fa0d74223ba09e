"""What a paper says beside what we measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One row of the table *paper says / we measured*."""

    about: str
    paper: str
    """What the paper says; empty for a row of our own."""
    measured: str
    agrees: bool | None
    """Whether the orderings agree; None where there is nothing to agree with."""
    reason: str = ""
    """Why it came out otherwise, where it did."""

    @property
    def verdict(self) -> str:
        """`yes`, `no`, or `—` where there is nothing to agree with."""
        return "—" if self.agrees is None else ("yes" if self.agrees else "no")


def claims_table(claims: Sequence[Claim]) -> tuple[list[str], list[list[str]]]:
    """Names of the columns, and a row for each claim."""
    names = ["about", "paper says", "we measured", "order agrees", "why not"]
    rows = [
        [
            claim.about,
            claim.paper or "(not in the paper)",
            claim.measured,
            claim.verdict,
            claim.reason if claim.agrees is False else "",
        ]
        for claim in claims
    ]
    return names, rows


def claims_as_dicts(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """The claims as plain data."""
    return [
        {**asdict(claim), "reason": claim.reason if claim.agrees is False else ""}
        for claim in claims
    ]
