"""A site as its coordinator sees it: what it is, what it runs, and what it can be told."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from thalweg.errors import Defects
from thalweg.model.names import require_name
from thalweg.spark.query.carry import CarryOrder
from thalweg.spark.query.checkpoint import Offsets, Stand, require_writable
from thalweg.spark.query.spec import QuerySpec, QueryStatus
from thalweg.spark.session import MASTER_FORMS, is_master
from thalweg.spark.site.channel import LOG_NAME, SiteChannel, SiteError, last_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

START_TIMEOUT_S = 180.0
COMMAND_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 20.0
_ANSWER_TIMEOUT_S = 10.0
_LEAST_HEAP_MB = 256
_PORTS = {"spark": 7077, "sc": 15002}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSpec:
    """A site: its name, the Spark that it is, and the folder for its log and scratch files.

    `master` is `local[N]` for a JVM of its own on this machine, a master URL, or a Spark Connect
    address; of the latter the process here is a thin client, and its queries run on the server.
    """

    name: str
    folder: Path
    master: str = "local[1]"
    heap_mb: int = 768
    config: Mapping[str, str] = field(default_factory=dict)
    """Spark settings of its own, over those that every site has."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder).absolute())
        defects = Defects()
        require_name(defects, "name", self.name)
        defects.require(is_master(self.master), "master", self.master, MASTER_FORMS)
        whole = isinstance(self.heap_mb, int) and not isinstance(self.heap_mb, bool)
        enough = whole and self.heap_mb >= _LEAST_HEAP_MB
        rule = f"a whole number >= {_LEAST_HEAP_MB}: Spark does not start with less"
        defects.require(enough, "heap_mb", self.heap_mb, rule)
        for key, value in self.config.items():
            texts = isinstance(key, str) and isinstance(value, str)
            defects.require(texts, f"config.{key}", value, "a Spark setting, its value as text")
        defects.raise_if_any()

    @property
    def remote(self) -> bool:
        """Whether its queries run on a Spark Connect server."""
        return self.master.startswith("sc://")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteEvent:
    """Something that a site did unasked.

    `kind` is `died` (its process ended, or its Spark did), `unheard` (no sign of life for some
    beats), `silent` (for long), `heard` (again), `query-failed`, or, of a query that looks for the
    rows that made it fail, `query-halted` and, when it goes on without them, `query-resumed`.
    """

    site: str
    kind: str
    detail: str
    query: str | None = None
    at_s: float = 0.0
    """Seconds since 1970."""
    log: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteStatus:
    """Whether a site is there, and what its queries are doing."""

    name: str
    alive: bool
    pid: int | None
    silent_s: float
    """Since it was last heard; it says something twice a second."""
    queries: tuple[QueryStatus, ...]
    answered: bool = True
    """Whether it said so itself, now; else `queries` are as it told them last."""

    @property
    def is_idle(self) -> bool:
        """Whether it says now that its queries run and have nothing to do.

        A site without a query cannot know whether rows wait.
        """
        works = any(query.state != "running" or not query.is_idle for query in self.queries)
        return self.alive and self.answered and bool(self.queries) and not works


class Site:
    """A site that was started: over restarts the same, with one process at a time."""

    def __init__(self, spec: SiteSpec) -> None:
        self.spec = spec
        self._queries: dict[str, QuerySpec] = {}
        self._channel: SiteChannel | None = None
        self._told: tuple[QueryStatus, ...] = ()
        self._lock = threading.RLock()
        self._calls = threading.Condition()
        self._in_flight = 0
        self._restarter: int | None = None

    @property
    def name(self) -> str:
        """The site's name."""
        return self.spec.name

    @property
    def alive(self) -> bool:
        """Whether its process is there."""
        return self._channel is not None and self._channel.alive

    @property
    def pid(self) -> int | None:
        """Its process; None where there is none."""
        return self._channel.pid if self._channel is not None and self._channel.alive else None

    @property
    def silent_s(self) -> float:
        """How long ago it was last heard; 0 where there is no process to be heard."""
        channel = self._channel
        return time.monotonic() - channel.heard_at if channel and channel.alive else 0.0

    @property
    def queries(self) -> tuple[QuerySpec, ...]:
        """What it was told to run and has not been told to end: what a restart starts again."""
        return tuple(self._queries.values())

    @property
    def log(self) -> tuple[str, ...]:
        """The last lines of its log."""
        return last_lines(self.spec.folder / LOG_NAME)

    def start(self, query: QuerySpec, timeout_s: float = COMMAND_TIMEOUT_S) -> QueryStatus:
        """Start a query; with a checkpoint that was used before, it goes on from there.

        A query that runs already is left alone.

        Raises:
            InvalidInput: where the query cannot run: unknown operators, a checkpoint in use, …
            SiteError: where it does not start.
        """
        with self._commanded("start"):
            status = self._call("start", {"spec": query.to_dict()}, timeout_s)
            with self._lock:
                self._queries[query.name] = query
        return QueryStatus.from_dict(status)

    def newest_ms(self, query: str, timeout_s: float = _ANSWER_TIMEOUT_S) -> int | None:
        """The latest event time that a running query has been given; None: none yet."""
        newest: int | None = self._call("newest", {"query": query}, timeout_s)
        return newest

    def prepare(self, query: QuerySpec, timeout_s: float = COMMAND_TIMEOUT_S) -> None:
        """Get a query ready: planned, compiled, and with no rows until it is started."""
        self._call("prepare", {"spec": query.to_dict()}, timeout_s)

    def rehearse(
        self,
        query: QuerySpec,
        rows_from: Path | None = None,
        patience_s: float = 0.0,
        timeout_s: float = COMMAND_TIMEOUT_S,
    ) -> int:
        """Run a query for show and throw it away: the next one like it is made more quickly.

        It works on the last rows that were born here in a log, for the first of which it waits at
        most so long; gives how many. Without a log, it only gets ready.
        """
        log = None if rows_from is None else str(rows_from)
        asked = {"spec": query.to_dict(), "rows_from": log, "patience_s": patience_s}
        rows: int = self._call("rehearse", asked, timeout_s + patience_s)
        return rows

    def drain(
        self, query: str, upto: Offsets | None = None, timeout_s: float = COMMAND_TIMEOUT_S
    ) -> Stand:
        """End a query as soon as it has processed everything up to these offsets.

        The batch under way is finished and no other one begun: nothing is published after the
        batch returned, and the offsets returned are where a successor has to begin. They may lie
        beyond `upto`, by the rest of a batch. Without `upto`, the query ends after the batch
        under way. In vain, within the time given, leaves the query running.
        """
        arguments = {"query": query, "upto": upto, "timeout_s": timeout_s}
        return self._end_query("drain", arguments, timeout_s + _ANSWER_TIMEOUT_S)

    def stop(self, query: str, timeout_s: float = COMMAND_TIMEOUT_S) -> Stand:
        """End a query at once, even within a batch; its checkpoint lets it go on."""
        return self._end_query("stop", {"query": query}, timeout_s)

    def carry(
        self, query: QuerySpec, order: CarryOrder, timeout_s: float = COMMAND_TIMEOUT_S
    ) -> dict[str, int]:
        """Hand over the open windows of a query that was drained; gives the rows by edge."""
        arguments = {"spec": query.to_dict(), "order": order.to_dict()}
        carried: dict[str, int] = self._call("carry", arguments, timeout_s)
        return carried

    def ship(self, query: QuerySpec, batch: int, timeout_s: float = COMMAND_TIMEOUT_S) -> None:
        """Wait until all that a query has published up to a batch is safe with its link.

        Raises:
            SiteError: where that is not so in time.
        """
        arguments = {"spec": query.to_dict(), "batch": batch, "timeout_s": timeout_s}
        self._call("ship", arguments, timeout_s + _ANSWER_TIMEOUT_S)

    def await_arrival(
        self,
        query: QuerySpec,
        site: str,
        epoch: int,
        batch: int,
        timeout_s: float = COMMAND_TIMEOUT_S,
    ) -> None:
        """Wait until all that another site has shipped up to a batch is in this query's log.

        Raises:
            SiteError: where that is not so in time, and what is missing.
        """
        arguments = {"spec": query.to_dict(), "site": site, "epoch": epoch, "batch": batch}
        timeouts = {"timeout_s": timeout_s}
        self._call("await_arrival", arguments | timeouts, timeout_s + _ANSWER_TIMEOUT_S)

    def gaps(self, query: QuerySpec, timeout_s: float = _ANSWER_TIMEOUT_S) -> dict[str, str]:
        """What has not come over this query's link though later things have, by site."""
        missing: dict[str, str] = self._call("gaps", {"spec": query.to_dict()}, timeout_s)
        return missing

    def send_again(self, query: QuerySpec, timeout_s: float = _ANSWER_TIMEOUT_S) -> None:
        """Have all that was ever sent over this query's link sent again, for who misses some."""
        self._call("send_again", {"spec": query.to_dict()}, timeout_s)

    def status(self, timeout_s: float = _ANSWER_TIMEOUT_S) -> SiteStatus:
        """What the site and its queries are doing; a dead site is not an error here."""
        queries: Sequence[QueryStatus] = ()
        if self.alive:
            told = self._call("status", {}, timeout_s)
            queries = [QueryStatus.from_dict(status) for status in told]
        self._told = tuple(queries)
        return self.last_status(answered=True)

    def last_status(self, *, answered: bool = False) -> SiteStatus:
        """Whether the site is there, and what it told last; nobody is asked."""
        return SiteStatus(
            name=self.name,
            alive=self.alive,
            pid=self.pid,
            silent_s=self.silent_s,
            queries=self._told if self.alive else (),
            answered=answered,
        )

    def records(self, timeout_s: float = _ANSWER_TIMEOUT_S) -> list[dict[str, Any]]:
        """What the batches did that were finished since this was last asked, oldest first."""
        if not self.alive:
            return []
        told: list[dict[str, Any]] = self._call("records", {}, timeout_s)
        return told

    def ping(self, timeout_s: float = _ANSWER_TIMEOUT_S) -> float:
        """How long the site takes to answer at all, in seconds."""
        begin = time.monotonic()
        self._call("ping", {}, timeout_s)
        return time.monotonic() - begin

    def kill(self) -> None:
        """End its process at once, and all that belongs to it, as a power cut would."""
        if self._channel is not None:
            self._channel.kill()
            self._channel.wait(_END_TIMEOUT_S)

    # For `Sites`, which starts the processes.

    @contextmanager
    def restarting(self) -> Iterator[None]:
        """End its process, and let nobody but this thread command the next one within the block.

        A change that is under way meanwhile is told that the site is being started again. What a
        command had done by then is known when the block begins.

        Raises:
            SiteError: where another thread starts it again.
        """
        with self._calls:
            if self._restarter is not None:
                raise SiteError(self.name, "restart", "it is being started again already")
            self._restarter = threading.get_ident()
        try:
            self.kill()
            with self._calls:
                if not self._calls.wait_for(lambda: not self._in_flight, _END_TIMEOUT_S):
                    raise SiteError(self.name, "restart", "a command to it has not ended")
            yield
        finally:
            with self._calls:
                self._restarter = None

    def begin(self, channel: SiteChannel, timeout_s: float) -> None:
        """Take a new process, and wait until its Spark is there."""
        self._channel = channel
        arguments = {
            "name": self.name,
            "master": self.spec.master,
            "folder": str(self.spec.folder),
            "heap_mb": self.spec.heap_mb,
            "config": dict(self.spec.config),
        }
        self._call("open", arguments, timeout_s)

    def end(self) -> None:
        """End its process in order, or at once where that takes long."""
        channel = self._channel
        if channel is None or not channel.alive:
            return
        try:
            channel.call("end", {}, _END_TIMEOUT_S)
        except SiteError:
            channel.kill()
        if not channel.wait(_ANSWER_TIMEOUT_S):
            channel.kill()
            channel.wait(_ANSWER_TIMEOUT_S)

    @contextmanager
    def _commanded(self, command: str) -> Iterator[None]:
        """A command that is under way, with what has to be remembered of it."""
        with self._calls:
            if self._restarter not in (None, threading.get_ident()):
                raise SiteError(self.name, command, "it is being started again")
            self._in_flight += 1
        try:
            yield
        finally:
            with self._calls:
                self._in_flight -= 1
                self._calls.notify_all()

    def _call(self, command: str, arguments: Mapping[str, Any], timeout_s: float) -> Any:
        with self._commanded(command):
            if self._channel is None:
                raise SiteError(self.name, command, "it was not started", self.log)
            return self._channel.call(command, arguments, timeout_s)

    def _end_query(self, command: str, arguments: Mapping[str, Any], timeout_s: float) -> Stand:
        with self._commanded(command):
            stand = Stand(**self._call(command, arguments, timeout_s))
            with self._lock:
                self._queries.pop(arguments["query"], None)
            return stand


def check_site(spec: SiteSpec) -> None:
    """Raise `InvalidInput` for what would keep a site from starting, as far as can be known.

    Its folder has to be one that can be written, and somebody has to answer at its address.
    """
    defects = Defects()
    try:
        require_writable(spec.folder)
    except OSError as error:
        defects.add("folder", str(spec.folder), "a folder that can be written", str(error))
    place = urlsplit(spec.master.split(",")[0])
    if place.scheme in _PORTS:
        try:
            address = (place.hostname or "", place.port or _PORTS[place.scheme])
            socket.create_connection(address, timeout=_ANSWER_TIMEOUT_S).close()
        except (OSError, ValueError) as error:
            hint = f"nobody answers ({error}): start Spark there first"
            defects.add("master", spec.master, "an address where Spark answers", hint)
    defects.raise_if_any()
