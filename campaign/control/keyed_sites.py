"""What a mover is given: sites that run epochs of a keyed operator, and their log in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from campaign.control.calls import Caller, CommandFailed, Hearing, Line
from campaign.control.commits import CommitLog, Place, Worker
from campaign.control.scheduler import Network, Scheduler
from campaign.tally import tally
from thalweg.spark.keyed.log import STATES, KeyedLog, standby_stream, state_stream
from thalweg.spark.log import Fence, Log
from thalweg.spark.log.founding import LogAway
from thalweg.spark.log.names import EDGES, EpochPlace
from thalweg.spark.query.spec import QuerySpec

MayDie = Callable[[str], None]


class KeyedProcess(Hearing):
    """One life of a site, with the queries in it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.workers: dict[str, Worker] = {}


@dataclass(frozen=True, slots=True)
class QueryState:
    """What a mover looks at of a query."""

    name: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Status:
    """What the queries of a site were doing when it answered."""

    queries: tuple[QueryState, ...]


class KeyedSite:
    """A place with a process that may be dead, or outlived by one before it."""

    def __init__(self, name: str, log: CommitLog) -> None:
        self.name, self.log = name, log
        self.process = KeyedProcess(0)
        self.lives = 0
        self.zombies: list[Worker] = []

    def begin_process(self, *, leaves_zombie: bool) -> None:
        """A new process, in which nothing runs yet."""
        if leaves_zombie:
            self.zombies += self.process.workers.values()
        self.lives += 1
        self.process = KeyedProcess(self.lives)

    def end_processes(self) -> None:
        """All that runs here ends at once."""
        self.zombies.clear()
        self.process.workers.clear()

    def work(self, random: Random, rows: list[str], come: int) -> None:
        """Every process goes on a bit, whatever anybody thinks of it."""
        for worker in (*self.zombies, *self.process.workers.values()):
            worker.work(rows, random.randint(0, 6), come)
        self.zombies = [worker for worker in self.zombies if not worker.is_over]

    def obey(self, command: str, given: tuple[Any, ...]) -> Any:
        """Do what a mover says; `CommandFailed` tells why not."""
        workers = self.process.workers
        if command == "status":
            return Status(tuple(QueryState(w.name, w.error) for w in workers.values()))
        if command == "stop":
            if workers.pop(given[0], None) is None:
                raise CommandFailed(f"there is no query {given[0]}")
            return None
        return self._start(given[0])

    def _start(self, query: QuerySpec) -> None:
        told: Any = query.options["follows"]
        place = (query.site, query.epoch)
        follows: Place | None = None if told is None else (told[0], told[1])
        running = self.process.workers.get(query.name)
        if running is not None and running.error is None:
            if running.follows != follows:
                raise CommandFailed(f"another query {query.name} is running already")
            return
        self.log.begin(place, follows)
        self.process.workers[query.name] = Worker(query.name, place, follows, self.log)


class KeyedLine(Line):
    """What a `KeyedMover` takes for a site; `before_start` is told before anything is started."""

    def __init__(
        self,
        scheduler: Scheduler,
        network: Network,
        site: KeyedSite,
        caller: Caller,
        before_start: Callable[[], None],
    ) -> None:
        super().__init__(scheduler, network, site, caller)
        self._before_start = before_start

    @property
    def alive(self) -> bool:
        """Whether the process that it was connected to is there."""
        return not self.is_broken

    def start(self, query: QuerySpec) -> None:
        """Start a query."""
        self._before_start()
        self.call("start", query)

    def stop(self, query: str) -> None:
        """End a query."""
        self.call("stop", query)

    def status(self) -> Status:
        """What its queries are doing."""
        status: Status = self.call("status")
        return status


class PlayedLog(Log):
    """Fences of a log in memory, in a folder that has no more than the mark of a log.

    `before_look` is told before a mover looks which epochs have ended, `may_die` of each fence.
    """

    def __init__(
        self, root: Path, played: CommitLog, may_die: MayDie, before_look: Callable[[], None]
    ) -> None:
        super().__init__(root)
        self._played, self._may_die, self._before_look = played, may_die, before_look

    def places(self, stream: str, site: str | None = None) -> list[EpochPlace]:
        """Who has committed, or has said how far it has followed."""
        if self._played.is_away:
            return []
        found = {
            state_stream(tally.name): self._played.last_batches,
            standby_stream(tally.name): self._played.stands,
        }[stream]
        return [
            EpochPlace(root=self.root, stream=stream, site=writer, epoch=epoch)
            for writer, epoch in sorted(found)
            if site in (None, writer)
        ]

    def fence(
        self, site: str, epoch: int, last_batch: int | None = None, *, kind: str = EDGES
    ) -> Fence:
        """End an epoch; the mover may die right before and right after it."""
        if (kind, last_batch) != (STATES, None):
            raise RuntimeError(f"no mover fences {kind} after {last_batch}")
        if self._played.is_away:
            raise LogAway("the disk is away")
        self._may_die(f"before the fence of {site}@{epoch}")
        self._played.fence((site, epoch))
        self._may_die(f"after the fence of {site}@{epoch}")
        return Fence(kind=kind, site=site, epoch=epoch, last_batch=self._last((site, epoch)))

    def find_fence(self, site: str, epoch: int, *, kind: str = EDGES) -> Fence | None:
        """The fence of an epoch, if it has one."""
        place = (site, epoch)
        fences = self._played.fenced if kind == STATES else self._played.output_fenced
        if kind == STATES:
            self._before_look()
        if place not in fences or self._played.is_away:
            return None
        return Fence(kind=kind, site=site, epoch=epoch, last_batch=self._last(place))

    def _last(self, place: Place) -> int:
        return self._played.last_batches.get(place, -1)


class PlayedCommits(KeyedLog):
    """The commits of a log in memory, as a mover asks for them."""

    def __init__(self, log: PlayedLog, played: CommitLog) -> None:
        super().__init__(log, tally)
        self._played = played

    def last_commit(self, upto_epoch: int) -> tuple[EpochPlace, int] | None:
        """Where the newest commit is, of epochs up to one."""
        last = self._played.last(upto_epoch)
        if last is None:
            return None
        stream = state_stream(tally.name)
        place = EpochPlace(root=self.log.root, stream=stream, site=last.writer, epoch=last.epoch)
        return place, last.batch

    def last_stand(self, writer: str, epoch: int) -> tuple[int, int] | None:
        """How far a standby says that it has followed."""
        return self._played.stands.get((writer, epoch))
