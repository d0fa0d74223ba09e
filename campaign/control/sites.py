"""Sites that run epochs: what outlives a process and what does not.

Rows have event times in whole seconds. One operator, `o`, has windows; `x` stands before it, `p`
after it. Whatever does not run at a site is done in the cloud, of the rows that it is sent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from campaign.control.calls import CommandFailed, Hearing
from campaign.control.feed import Feed
from campaign.control.invariants import Epoch
from campaign.control.link import Link
from campaign.control.shared_log import EVER, Entry, Out, Raw, Refused, SharedLog
from thalweg.spark.query.carry import CarryOrder, carry_folder
from thalweg.spark.query.checkpoint import Stand
from thalweg.spark.query.spec import QuerySpec

SOURCE = "rides"
_COLD_LOOKS = 4
"""How often a query that was not made ready has no time for rows yet."""


@dataclass(slots=True)
class Checkpoint:
    """What an epoch has done, on a disk that outlives its process."""

    shape: object
    here: bool
    """Whether `o` runs at the site."""
    gate: int
    at: int
    clock_ms: int
    windows: dict[int, list[int]] = field(default_factory=dict)
    newest: int | None = None
    batch: int = -1
    begun: tuple[int, int] | None = None
    """The batch under way: the row after its last, and its watermark."""


class Query:
    """An epoch that runs in a process, by its checkpoint."""

    def __init__(self, epoch: Epoch, spec: QuerySpec, held: Checkpoint, writer: int) -> None:
        self.epoch, self.spec, self.held, self.writer = epoch, spec, held, writer
        self.published = False
        self.cold_looks = 0

    def work(self, feed: Feed, log: SharedLog, upto: int, *, is_ending: bool) -> None:
        """One third of a batch: begin it, publish it, or have it finished."""
        log.require_open(self.epoch, self.writer)
        held = self.held
        if held.begun is None:
            if is_ending and upto == held.at and not held.windows:
                return
            clock_ms = held.clock_ms
            if held.newest is not None:
                clock_ms = max(clock_ms, (held.newest - feed.delay) * 1000)
            if is_ending:
                clock_ms = EVER * 1000
            held.begun = (upto, clock_ms)
            self.published = False
        elif not self.published:
            entries, _ = self._result(feed)
            log.publish(self.epoch, self.writer, held.batch + 1, entries, held.begun[0])
            self.published = True
        else:
            self._finish(feed)

    def end(self, feed: Feed, log: SharedLog) -> None:
        """Finish the batch under way."""
        while self.held.begun is not None:
            self.work(feed, log, 0, is_ending=False)

    def _result(self, feed: Feed) -> tuple[tuple[Entry, ...], dict[int, list[int]]]:
        held = self.held
        upto, clock_ms = held.begun or (held.at, held.clock_ms)
        windows = {end: list(rows) for end, rows in held.windows.items()}
        entries: list[Entry] = []
        for row in range(held.at, upto):
            if not held.here:
                entries.append(Raw(row))
                continue
            if feed.times[row] < held.gate:
                entries.append(Raw(row, upto=held.gate))
            for end in feed.ends(row):
                if end > held.gate:
                    windows.setdefault(end, []).append(row)
        over = sorted(end for end in windows if end * 1000 <= clock_ms)
        entries += [Out(end, tuple(sorted(windows.pop(end)))) for end in over]
        return tuple(entries), windows

    def _finish(self, feed: Feed) -> None:
        held = self.held
        _, held.windows = self._result(feed)
        upto, held.clock_ms = held.begun or (held.at, held.clock_ms)
        times = feed.times[held.at : upto]
        held.newest = max((*times, *(() if held.newest is None else (held.newest,))), default=None)
        held.at, held.begun = upto, None
        held.batch += 1


class Process(Hearing):
    """One life of a site: its queries, those made ready, and the end of its link."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.queries: dict[str, Query] = {}
        self.held: dict[str, QuerySpec] = {}
        """Made ready, and waiting for the word to take rows."""
        self.reads = False
        """Whether it takes what others publish: the query of the cloud."""
        self.is_linked = False


class Site:
    """A place with a disk, and a process that may be dead, or outlived by one before it."""

    def __init__(
        self,
        name: str,
        feed: Feed,
        log: SharedLog,
        *,
        link: Link | None = None,
        fails: Callable[[str], bool] = lambda _command: False,
    ) -> None:
        self.name, self.feed, self.log = name, feed, log
        self._link, self._fails = link, fails
        self.checkpoints: dict[str, Checkpoint] = {}
        self.kept: dict[str, list[tuple[int, int]]] = {}
        """Rows of open windows and the ends they come after, by folder."""
        self.process = Process(0)
        self.lives = 0
        self.zombies: list[Process] = []
        self.is_ending = False

    def begin_process(self, *, leaves_zombie: bool) -> int:
        """A new process, in which nothing runs yet; gives its number."""
        if leaves_zombie and self.process.queries:
            self.zombies.append(self.process)
        self.lives += 1
        self.process = Process(self.lives)
        return self.lives

    def end_processes(self) -> None:
        """All that runs here ends at once."""
        self.zombies.clear()
        self.process.queries.clear()
        self.process.held.clear()
        self.process.reads = self.process.is_linked = False

    def work(self, random: Random, now_s: float) -> None:
        """Every process goes on a bit, whatever anybody thinks of it."""
        come = bisect_right(self.feed.comes_s, now_s)
        for process in (*self.zombies, self.process):
            for name, query in list(process.queries.items()):
                if query.cold_looks:
                    query.cold_looks -= 1
                    continue
                most = max(come - query.held.at, 0)
                upto = query.held.at + (most if self.is_ending else random.randint(0, min(most, 5)))
                try:
                    query.work(self.feed, self.log, upto, is_ending=self.is_ending)
                except Refused:
                    del process.queries[name]
        self.zombies = [process for process in self.zombies if process.queries]

    def send(self) -> None:
        """Send over the link what is published here."""
        if self._link is not None and self.process.is_linked:
            self._link.send(self.name)

    def receive(self) -> None:
        """Take from the link what others have published."""
        if self._link is not None and self.process.is_linked:
            self._link.deliver()

    def obey(self, command: str, given: tuple[Any, ...]) -> Any:
        """Do what a coordinator says; `CommandFailed` tells why not."""
        return _COMMANDS[command](self, *given)

    def _start(self, spec: QuerySpec) -> None:
        self.process.is_linked = True
        if spec.role == "cloud":
            self.process.reads = True
            return
        # What was made ready for something else is of no use, and does no harm.
        ready = self.process.held.pop(spec.name, None)
        running = self.process.queries.get(spec.name)
        if running is not None:
            if running.spec != spec:
                raise CommandFailed(f"another query {spec.name} is running already")
            return
        held = self.checkpoints.get(spec.name)
        if held is not None and held.shape != _shape_of(spec):
            if held.batch >= 0 or held.begun is not None:
                raise CommandFailed(f"the checkpoint of {spec.name} is that of another query")
            held = None
        if held is None:
            start: Mapping[str, Any] = spec.start or {SOURCE: 0}
            held = Checkpoint(
                shape=_shape_of(spec),
                here="o" in spec.cut,
                gate=spec.gates.get("o", 0) // 1000,
                at=start[SOURCE],
                clock_ms=spec.clock_ms or 0,
            )
            for folder in spec.carried.values():
                for row, after in self.kept[folder]:
                    for end in self.feed.ends(row):
                        if end > after:
                            held.windows.setdefault(end, []).append(row)
            self.checkpoints[spec.name] = held
        epoch = (self.name, spec.epoch)
        writer = self.log.open(epoch, held.at)
        query = self.process.queries[spec.name] = Query(epoch, spec, held, writer)
        if ready is None or _shape_of(ready) != _shape_of(spec):
            query.cold_looks = _COLD_LOOKS

    def _prepare(self, spec: QuerySpec) -> None:
        """Make a query ready; one that is not starts all the same, only later."""
        if spec.name in self.process.queries:
            raise CommandFailed(f"another query {spec.name} is running already")
        self.process.held.pop(spec.name, None)
        if self._fails("prepare"):
            raise CommandFailed(f"{spec.name} cannot be made ready")
        self.process.held[spec.name] = spec

    def _ship(self, epoch: Epoch, batch: int) -> bool:
        self.process.is_linked = True
        return self._link is None or self._link.is_safe(epoch, batch)

    def _await_arrival(self, epoch: Epoch, batch: int) -> bool:
        self.process.is_linked = True
        return self._link is None or self._link.has_arrived(epoch, batch)

    def _newest(self, name: str) -> int | None:
        query = self.process.queries.get(name)
        if query is None or query.held.newest is None:
            return None
        return query.held.newest * 1000

    def _drain(self, name: str) -> Stand:
        query = self.process.queries.get(name)
        if query is None:
            raise CommandFailed(f"there is no query {name}")
        try:
            query.end(self.feed, self.log)
        except Refused as error:
            raise CommandFailed(str(error)) from error
        del self.process.queries[name]
        held = query.held
        if held.batch < 0:
            return Stand()
        return Stand(
            batch=held.batch,
            offsets={SOURCE: held.at},
            watermark_ms=held.clock_ms or None,
            newest_ms=None if held.newest is None else held.newest * 1000,
        )

    def _carry(self, spec: QuerySpec, order: CarryOrder) -> None:
        at: Any = order.offsets.get(SOURCE, 0)
        for name, after_ms in order.keep.items():
            folder = str(carry_folder(order.folder, f"x+{name}"))
            self.kept[folder] = [(row, after_ms // 1000) for row in range(at)]
        entries: list[Entry] = [
            Raw(row, after=after_ms // 1000)
            for after_ms in order.send.values()
            for row in range(at)
        ]
        epoch = (self.name, spec.epoch)
        if epoch in self.log.fences:
            return
        writer = self.log.open(epoch, at)
        self.log.publish(epoch, writer, order.batch, tuple(entries), at)


def _shape_of(spec: QuerySpec) -> object:
    """What two queries have in common that can have the same checkpoint."""
    return (sorted(spec.cut), dict(spec.gates), dict(spec.carried))


_COMMANDS: dict[str, Callable[..., Any]] = {
    "start": Site._start,
    "prepare": Site._prepare,
    "newest": Site._newest,
    "drain": Site._drain,
    "carry": Site._carry,
    "ship": Site._ship,
    "await arrival": Site._await_arrival,
}
