"""What a coordinator says to its sites, over the network, and waits for: calls in virtual time.

A call is a command that is sent until it is answered, or given up. As on a connection, a command
is for one process of a site, and older than the next one: a late copy finds that it is too late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from campaign.control.scheduler import Network, Scheduler
from campaign.control.shared_log import CommandFailed
from campaign.control.sites import Site
from thalweg.spark.query.carry import CarryOrder
from thalweg.spark.query.checkpoint import Stand
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.channel import SiteError

COORDINATOR = "coordinator"
_AGAIN_S = 0.7
_PATIENCE_S = 5.0


class Killed(Exception):
    """The coordinator died here."""


class Line:
    """One coordinator's line to one process of a site; what a `Coordinator` takes for the site."""

    def __init__(
        self,
        scheduler: Scheduler,
        network: Network,
        site: Site,
        term: int,
        is_killed: Callable[[], bool],
    ) -> None:
        self._scheduler, self._network, self._is_killed = scheduler, network, is_killed
        self.site = site
        self.term = term
        self.process = site.process.number
        self.queries: dict[str, QuerySpec] = {}
        self._number = 0

    @property
    def is_broken(self) -> bool:
        """Whether the process at the other end is gone."""
        return self.process != self.site.process.number or self.site.name in self._network.down

    def start(self, query: QuerySpec) -> None:
        """Start a query."""
        self._call("start", query)
        self.queries[query.name] = query

    def prepare(self, query: QuerySpec) -> None:
        """Get a query ready."""
        self._call("prepare", query)

    def newest_ms(self, query: str) -> int | None:
        """The latest event time that a query has been given."""
        newest: int | None = self._call("newest", query)
        return newest

    def drain(self, query: str) -> Stand:
        """End a query after the batch under way."""
        stand: Stand = self._call("drain", query)
        self.queries.pop(query, None)
        return stand

    def carry(self, query: QuerySpec, order: CarryOrder) -> None:
        """Hand over open windows."""
        self._call("carry", query, order)

    def ship(self, query: QuerySpec, batch: int) -> None:
        """All have one log."""

    def await_arrival(self, query: QuerySpec, site: str, epoch: int, batch: int) -> None:
        """All have one log."""

    def _call(self, command: str, *given: Any) -> Any:
        self._number += 1
        number, answers = self._number, list[tuple[str, Any]]()
        name = self.site.name
        label = f"{COORDINATOR} {self.term} → {name}: {command} #{number}"
        until_s = self._scheduler.now_s + _PATIENCE_S

        def is_over() -> bool:
            return bool(answers) or self._is_killed()

        while not is_over() and self._scheduler.now_s < until_s:
            self._network.send(
                COORDINATOR, name, label, lambda: self._arrive(number, command, given, answers)
            )
            wait_s = min(self._scheduler.now_s + _AGAIN_S, until_s)
            self._scheduler.run_until(is_over, wait_s)
        if self._is_killed():
            raise Killed
        if not answers:
            raise SiteError(name, command, "no answer")
        problem, answer = answers[0]
        if problem:
            raise SiteError(name, command, problem)
        return answer

    def _arrive(
        self, number: int, command: str, given: tuple[Any, ...], answers: list[tuple[str, Any]]
    ) -> None:
        """A command is at the site: obey it, or answer again, or find it too late."""
        process = self.site.process
        if self.is_too_late(number):
            self._scheduler.note(f"{self.site.name} is told too late: {command} #{number}")
            return
        if (self.term, number) != process.told:
            process.told = (self.term, number)
            try:
                process.answer = ("", self.site.obey(command, given))
            except CommandFailed as error:
                process.answer = (str(error), None)
        answer = process.answer
        label = f"{self.site.name} → {COORDINATOR} {self.term}: answer #{number}"
        self._network.send(self.site.name, COORDINATOR, label, lambda: answers.append(answer))

    def is_too_late(self, number: int) -> bool:
        """Whether the command is for another process, or newer ones have come."""
        process = self.site.process
        return self.process != process.number or (self.term, number) < process.told
