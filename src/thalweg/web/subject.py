"""What a page can be about, and what it can be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thalweg.errors import ThalwegError
from thalweg.web.question import Question

Plain = dict[str, Any]


class NotOffered(ThalwegError):
    """A subject of another kind was asked for this."""


class UnknownName(ThalwegError):
    """There is no operator, site, link or placement of that name here."""


class Refused(ThalwegError):
    """What was asked cannot be done now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Something new about a live subject: a `frame`, `placement`, `mark` or `state`."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Subject:
    """Something to look at: a run, a plan, a simulation, a schedule, a city, or results.

    Each kind answers what it can; all else is `NotOffered`.
    """

    kind = "results"
    views: tuple[str, ...] = ()
    run_folder: Path | None = None
    """The folder of the run that it is about, where it is about one."""

    def __init__(self, title: str) -> None:
        self.title = title

    @property
    def is_live(self) -> bool:
        """Whether it may still change by itself."""
        return False

    def scene(self) -> Plain:
        """What stands still."""
        raise self._not_offered("a scene")

    def history(self) -> Plain:
        """All frames, placements and marks so far."""
        raise self._not_offered("a history")

    def updates(self, after: int) -> Iterator[Update | None]:  # noqa: ARG002
        """What comes after a position, as it comes; None: nothing new, ask again a little later."""
        raise self._not_offered("updates")

    def why(self, *, operator: str, site: str, link: str, placement: str) -> Plain:  # noqa: ARG002
        """Why an operator is where it is, or what a site or a link has to do."""
        raise self._not_offered("reasons")

    def ask(self, question: Question) -> Plain:  # noqa: ARG002
        """What would be planned if."""
        raise self._not_offered("what-if")

    def apply(self, answer: str) -> str:  # noqa: ARG002
        """Do what a what-if has found; says what was done."""
        raise self._not_offered("anything to apply")

    def rollback(self) -> str:
        """Go back to what ran before; says what was done."""
        raise self._not_offered("a rollback")

    def compare(self, strategies: tuple[str, ...]) -> Plain:  # noqa: ARG002
        """Several strategies on the same problem."""
        raise self._not_offered("a comparison")

    def city(self) -> Plain:
        """A moving city, packed."""
        raise self._not_offered("a city")

    def results(self) -> Plain:
        """Stored tables and pictures."""
        raise self._not_offered("results")

    def image(self, name: str) -> Path:  # noqa: ARG002
        """A stored picture."""
        raise self._not_offered("pictures")

    def _not_offered(self, what: str) -> NotOffered:
        return NotOffered(f"{self.title} has no such thing: {what}")
