"""What a coordinator or a mover says to sites, over the network, and waits for: in virtual time.

A call is a command that is sent until it is answered, or given up. As on a connection, a command
is for one process of a site, and older than the next one: a late copy finds that it is too late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from campaign.control.scheduler import Network, Scheduler
from thalweg.spark.query.carry import CarryOrder
from thalweg.spark.query.checkpoint import Stand
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.channel import SiteError

COORDINATOR = "coordinator"
_AGAIN_S = 0.7
_PATIENCE_S = 5.0
_LINK_PATIENCE_S = 2.5


class Killed(Exception):
    """Whoever calls died here."""


class CommandFailed(Exception):
    """A site cannot do what it was told."""


class Hearing:
    """What a process of a site remembers of what it was told."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.told: tuple[int, int] = (-1, -1)
        """Term of the caller and number of the command."""
        self.answer: tuple[str, Any] = ("", None)


class Obeys(Protocol):
    """A site that can be told something."""

    @property
    def name(self) -> str:
        """The site's name."""
        ...

    @property
    def process(self) -> Hearing:
        """The process that is there now."""
        ...

    def obey(self, command: str, given: tuple[Any, ...]) -> Any:
        """Do what it is told; `CommandFailed` tells why not."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, in which life, and whether that one is over."""

    name: str
    term: int
    is_killed: Callable[[], bool]


class Line:
    """One caller's line to one process of a site."""

    def __init__(self, scheduler: Scheduler, network: Network, site: Obeys, caller: Caller) -> None:
        self._scheduler, self._network, self._caller = scheduler, network, caller
        self._site = site
        self.process = site.process.number
        self._number = 0

    @property
    def is_broken(self) -> bool:
        """Whether the process at the other end is gone."""
        return self.process != self._site.process.number or self._site.name in self._network.down

    def call(self, command: str, *given: Any) -> Any:
        """What the site answers; raises `SiteError`, or `Killed` where the caller dies."""
        self._number += 1
        number, answers = self._number, list[tuple[str, Any]]()
        caller, name = self._caller, self._site.name
        label = f"{caller.name} {caller.term} → {name}: {command} #{number}"
        until_s = self._scheduler.now_s + _PATIENCE_S

        def is_over() -> bool:
            return bool(answers) or caller.is_killed()

        while not is_over() and self._scheduler.now_s < until_s:
            self._network.send(
                caller.name, name, label, lambda: self._arrive(number, command, given, answers)
            )
            wait_s = min(self._scheduler.now_s + _AGAIN_S, until_s)
            self._scheduler.run_until(is_over, wait_s)
        if caller.is_killed():
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
        process, caller = self._site.process, self._caller
        if self.is_too_late(number):
            self._scheduler.note(f"{self._site.name} is told too late: {command} #{number}")
            return
        if (caller.term, number) != process.told:
            process.told = (caller.term, number)
            try:
                process.answer = ("", self._site.obey(command, given))
            except CommandFailed as error:
                process.answer = (str(error), None)
        answer = process.answer
        label = f"{self._site.name} → {caller.name} {caller.term}: answer #{number}"
        self._network.send(self._site.name, caller.name, label, lambda: answers.append(answer))

    def is_too_late(self, number: int) -> bool:
        """Whether the command is for another process, or newer ones have come."""
        process = self._site.process
        return self.process != process.number or (self._caller.term, number) < process.told


class SiteLine(Line):
    """What a `Coordinator` takes for a site."""

    def __init__(self, scheduler: Scheduler, network: Network, site: Obeys, caller: Caller) -> None:
        super().__init__(scheduler, network, site, caller)
        self.queries: dict[str, QuerySpec] = {}

    def start(self, query: QuerySpec) -> None:
        """Start a query."""
        self.call("start", query)
        self.queries[query.name] = query

    def prepare(self, query: QuerySpec) -> None:
        """Get a query ready."""
        self.call("prepare", query)

    def newest_ms(self, query: str) -> int | None:
        """The latest event time that a query has been given."""
        newest: int | None = self.call("newest", query)
        return newest

    def drain(self, query: str) -> Stand:
        """End a query after the batch under way."""
        stand: Stand = self.call("drain", query)
        self.queries.pop(query, None)
        return stand

    def carry(self, query: QuerySpec, order: CarryOrder) -> None:
        """Hand over open windows."""
        self.call("carry", query, order)

    def ship(self, query: QuerySpec, batch: int) -> None:
        """Wait until all that a query has published up to a batch is safe with its link."""
        self._wait_for("ship", (query.site, query.epoch), batch)

    def await_arrival(self, _query: QuerySpec, site: str, epoch: int, batch: int) -> None:
        """Wait until all that another site has shipped up to a batch is in the cloud's log."""
        self._wait_for("await arrival", (site, epoch), batch)

    def _wait_for(self, command: str, *given: Any) -> None:
        """Ask until the answer is yes; what takes too long fails, and may be asked for again."""
        until_s = self._scheduler.now_s + _LINK_PATIENCE_S
        while not self.call(command, *given):
            if self._scheduler.now_s >= until_s:
                self._scheduler.fault("link late", f"{command} {given}")
                raise SiteError(self._site.name, command, "it takes too long")
            self._scheduler.run_until(self._caller.is_killed, self._scheduler.now_s + _AGAIN_S)
            if self._caller.is_killed():
                raise Killed
