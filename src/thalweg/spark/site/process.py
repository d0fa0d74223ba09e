"""The process of a site: one Spark application that does what it is told on its standard input.

`python -m thalweg.spark.site.process PARENT` is started by `thalweg.spark.site.sites` and ends with
it: on the end of its input, on a signal at the parent's end, and where its parent is another.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from thalweg.errors import InvalidInput, ThalwegError
from thalweg.spark.class_archive import archive_options
from thalweg.spark.java import find_java
from thalweg.spark.query.carry import CarryOrder, carry_windows
from thalweg.spark.query.checkpoint import Stand
from thalweg.spark.query.queries import start_query
from thalweg.spark.query.rehearsal import rehearse
from thalweg.spark.query.running import RunningQuery
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.session import open_session
from thalweg.spark.site.channel import LOG_NAME, NO_QUERY
from thalweg.spark.site.config import ServerLease, site_config
from thalweg.spark.site.links import SiteLinks
from thalweg.spark.site.wall_clock import WallClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BEAT_S = 0.5
_FAREWELL_S = 3.0
_THREADS = 6
_PR_SET_PDEATHSIG = 1
_JVM_LOST = 70
# Less than that, Spark waits no longer than a slow batch would take.
_CLOCK_STEP_S = 1.0


class SiteProcess:
    """Takes commands, each in a thread of a small pool, and answers them in any order."""

    def __init__(self, commands: IO[bytes], answers: IO[bytes], parent: int) -> None:
        self._commands = commands
        self._answers = answers
        self._parent = parent
        self._write_lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="command")
        self._queries: dict[str, RunningQuery] = {}
        self._untold: list[dict[str, Any]] = []
        self._queries_lock = threading.Lock()
        self._told: set[str] = set()
        self._in_repair: set[str] = set()
        self._links = SiteLinks()
        self._session: SparkSession | None = None
        self._lease: ServerLease | None = None
        self._ending = threading.Event()
        self._end_number: int | None = None
        self._wall = WallClock()

    def run(self) -> int:
        """Open Spark as the first command says, then obey until told to end."""
        opening = json.loads(self._commands.readline() or b"{}")
        if opening.get("command") != "open":
            return 2
        signal.signal(signal.SIGTERM, lambda *_: self._end_at_once())
        for loop in (self._read, self._watch):
            threading.Thread(target=loop, daemon=True).start()
        with ExitStack() as stack:
            try:
                self._session = stack.enter_context(self._open(**opening["arguments"]))
                if not opening["arguments"]["master"].startswith(("local", "sc://")):
                    await_executor(self._session)
            except Exception as error:
                self._answer(opening["id"], failure(error))
                return 1
            quieten(self._session)
            self._answer(opening["id"], {"result": {"pid": os.getpid()}})
            self._ending.wait()
            self._stop_queries()
            self._links.close()
        if self._lease is not None:
            self._lease.release()
        if self._end_number is not None:
            self._answer(self._end_number, {"result": None})
        return 0

    def _open(
        self, *, name: str, master: str, folder: str, heap_mb: int, config: dict[str, str]
    ) -> Any:
        scratch = Path(folder) / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        remote = master.startswith("sc://")
        if remote:
            # Functions of pyspark make their columns for a JVM of this process otherwise.
            os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        java_options = () if remote else archive_options(find_java())
        settings = site_config(master, scratch, heap_mb, java_options) | config
        self._lease = ServerLease(master, Path(folder))
        address = self._lease.renew()
        return open_session(address, name, config=settings, log=Path(folder) / LOG_NAME)

    # What is told

    def _read(self) -> None:
        for line in self._commands:
            message = json.loads(line)
            number, command = message["id"], message["command"]
            if command == "end":
                self._end_number = number
                self._ending.set()
            elif command == "ping":
                self._answer(number, {"result": time.time()})
            else:
                self._pool.submit(self._obey, number, command, message["arguments"])
        # Nobody is there any more to take an answer.
        if not self._ending.is_set():
            self._end_at_once()

    def _obey(self, number: int, command: str, arguments: dict[str, Any]) -> None:
        try:
            known: dict[str, Callable[..., Any]] = {
                "await_arrival": self._await_arrival,
                "newest": self._newest,
                "prepare": self._prepare,
                "records": self._records,
                "rehearse": self._rehearse,
                "ship": self._ship,
                "start": self._start,
                "carry": self._carry,
                "drain": self._drain,
                "stop": self._stop,
                "status": self._status,
            }
            if command not in known:
                raise ThalwegError(f"there is no such command; known: {', '.join(sorted(known))}")
            answer = {"result": known[command](**arguments)}
        except Exception as error:
            answer = failure(error)
        self._answer(number, answer)

    def _start(self, spec: dict[str, Any], *, held: bool = False) -> dict[str, Any]:
        if self._session is None:
            raise ThalwegError("Spark is still starting")
        query = QuerySpec.from_dict(spec)
        self._links.connect(query)
        with self._queries_lock:
            running = self._queries.get(query.name)
            if running is not None and running.active:
                if running.spec == query or running.release(query):
                    # Its link may have failed, and has been begun anew.
                    self._told.discard(query.name)
                    return asdict(running.status())
                if not running.is_held:
                    raise ThalwegError(f"another query {query.name} is running already")
            self._queries.pop(query.name, None)
            self._told.discard(query.name)
        if running is not None:
            # It failed, or it was made ready for something else and has taken nothing.
            running.stop()
        started = start_query(self._session, query, held=held)
        with self._queries_lock:
            self._queries[query.name] = started
        return asdict(started.status())

    def _newest(self, query: str) -> int | None:
        with self._queries_lock:
            running = self._queries.get(query)
        return None if running is None else running.newest_ms

    def _prepare(self, spec: dict[str, Any]) -> dict[str, Any]:
        told = self._start(spec, held=True)
        with self._queries_lock:
            running = self._queries.get(QuerySpec.from_dict(spec).name)
        if running is not None:
            running.get_ready()
        return told

    def _rehearse(self, spec: dict[str, Any], rows_from: str | None, patience_s: float) -> int:
        if self._session is None:
            raise ThalwegError("Spark is still starting")
        log = None if rows_from is None else Path(rows_from)
        return rehearse(self._session, QuerySpec.from_dict(spec), log, patience_s)

    def _carry(self, spec: dict[str, Any], order: dict[str, Any]) -> dict[str, int]:
        if self._session is None:
            raise ThalwegError("Spark is still starting")
        return carry_windows(self._session, QuerySpec.from_dict(spec), CarryOrder(**order))

    def _ship(self, spec: dict[str, Any], batch: int, timeout_s: float) -> None:
        query = QuerySpec.from_dict(spec)
        self._links.end_of(query).ship(query.epoch, batch, timeout_s)

    def _await_arrival(
        self, spec: dict[str, Any], site: str, epoch: int, batch: int, timeout_s: float
    ) -> None:
        end = self._links.end_of(QuerySpec.from_dict(spec))
        end.await_arrival(site, epoch, batch, timeout_s)

    def _drain(self, query: str, upto: dict[str, Any] | None, timeout_s: float) -> dict[str, Any]:
        return self._end_query(query, lambda running: running.drain(upto, timeout_s))

    def _stop(self, query: str) -> dict[str, Any]:
        return self._end_query(query, RunningQuery.stop)

    def _end_query(self, name: str, end: Callable[[RunningQuery], Stand]) -> dict[str, Any]:
        with self._queries_lock:
            running = self._queries.get(name)
        if running is None:
            raise ThalwegError(f"{NO_QUERY} {name}; known: {', '.join(self._queries)}")
        with self._queries_lock:
            told_before = name in self._told
            self._told.add(name)
        try:
            stand = end(running)
        except BaseException:
            with self._queries_lock:
                if not told_before:
                    self._told.discard(name)
            raise
        # What it did last is told when that is asked for next; a server may have forgotten it.
        untold: list[dict[str, Any]] = []
        with suppress(Exception):
            untold = running.records()
        with self._queries_lock:
            self._untold += untold
            self._queries.pop(name, None)
        return stand.to_dict()

    def _records(self) -> list[dict[str, Any]]:
        with self._queries_lock:
            running = list(self._queries.values())
            untold, self._untold = self._untold, []
        return [*untold, *(record for query in running for record in query.records())]

    def _status(self) -> list[dict[str, Any]]:
        with self._queries_lock:
            running = list(self._queries.values())
        return [asdict(query.status()) for query in running]

    # What is watched

    def _watch(self) -> None:
        """Twice a second: say that all is well, and look after the parent, Spark and queries."""
        while not self._ending.wait(_BEAT_S):
            if os.getppid() != self._parent:
                self._end_at_once()
            if self._spark_is_gone():
                sys.stderr.write("the JVM of this site has ended\n")
                os._exit(_JVM_LOST)
            self._say({"event": "alive"})
            back_s = self._wall.went_back_s()
            with self._queries_lock:
                queries = {n: q for n, q in self._queries.items() if n not in self._told}
            for name, query in queries.items():
                if back_s > _CLOCK_STEP_S:
                    self._start_over(query, back_s)
                with suppress(Exception):
                    link_error = None if query.is_held else self._links.error_of(query.spec)
                    if link_error:
                        self._tell_failure(query, link_error)
                    elif not query.active and name not in self._in_repair:
                        self._in_repair.add(name)
                        threading.Thread(target=self._mend, args=(query,), daemon=True).start()

    def _mend(self, query: RunningQuery) -> None:
        """Have a query go on that has failed, or tell that it has."""
        try:
            if query.mend():
                sys.stderr.write(f"{query.spec.name} goes on without rows that made it fail\n")
            else:
                self._tell_failure(query, query.error)
        finally:
            self._in_repair.discard(query.spec.name)

    def _start_over(self, query: RunningQuery, back_s: float) -> None:
        """Have a query go on that would wait until the clock is where it was."""

        def start_over() -> None:
            if query.start_over():
                sys.stderr.write(
                    f"{query.spec.name} was made anew: the clock was set back by {back_s:.1f} s\n"
                )

        threading.Thread(target=start_over, daemon=True).start()

    def _tell_failure(self, query: RunningQuery, error: str | None) -> None:
        """Say that a query has failed, unless it was told before, or is being ended."""
        name = query.spec.name
        with self._queries_lock:
            if name in self._told or self._queries.get(name) is not query:
                return
            self._told.add(name)
        self._say({"event": "query-failed", "query": name, "error": error})

    def _spark_is_gone(self) -> bool:
        context = getattr(self._session, "_sc", None)
        gateway = getattr(context, "_gateway", None)
        return gateway is not None and gateway.proc.poll() is not None

    def _stop_queries(self) -> None:
        with self._queries_lock:
            running = list(self._queries.values())
        for query in running:
            with suppress(Exception):
                query.stop()

    def _end_at_once(self) -> None:
        """End without an answer, and with this process everything that it started."""
        if self._lease is not None and self._lease.remote:
            # Queries of a Spark Connect server would outlive this process.
            farewell = threading.Thread(target=self._stop_queries, daemon=True)
            farewell.start()
            farewell.join(_FAREWELL_S)
        end_group()

    def _answer(self, number: int, answer: dict[str, Any]) -> None:
        self._say({"id": number, **answer})

    def _say(self, message: dict[str, Any]) -> None:
        with self._write_lock, suppress(BrokenPipeError):
            self._answers.write(json.dumps(message, default=str).encode() + b"\n")
            self._answers.flush()


def failure(error: Exception) -> dict[str, Any]:
    """An error as an answer: its defects where it has some, else its message."""
    if isinstance(error, InvalidInput):
        defects = [asdict(defect) for defect in error.defects]
        return {"defects": defects}
    traceback.print_exception(error, file=sys.stderr)
    sys.stderr.flush()
    if isinstance(error, ThalwegError):
        return {"error": str(error)}
    first, *_ = str(error).strip().splitlines() or [""]
    return {"error": f"{type(error).__name__}: {first}"}


def quieten(session: Any) -> None:
    """Keep out of the log what Spark says at every batch that takes longer than its interval."""
    jvm = getattr(session, "_jvm", None)
    if jvm is not None:
        log4j = jvm.org.apache.logging.log4j
        name = "org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor"
        log4j.core.config.Configurator.setLevel(name, log4j.Level.ERROR)


def await_executor(session: SparkSession) -> None:
    """Wait until the cluster has given this site something to compute on.

    Spark itself goes on without: a cluster that has nothing to give would be seen by nobody.
    """
    session.range(1).count()


def end_group() -> None:
    """End this process and all of its group, the JVM among them; Spark's workers follow it."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def end_with_parent(parent: int) -> None:
    """Have the kernel tell this process when its parent ends; for systems without, see `_watch`."""
    signal.signal(signal.SIGTERM, lambda *_: end_group())
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        end_group()


def take_standard_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Standard input and output for commands and answers alone.

    What anything else prints goes where the errors go, and programs started from here get
    neither end of the line.
    """
    commands = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return commands, answers


def main(arguments: list[str]) -> int:
    """Be the process of a site."""
    parent = int(arguments[0])
    end_with_parent(parent)
    commands, answers = take_standard_streams()
    return SiteProcess(commands, answers, parent).run()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    # Threads that still wait for Spark must not keep the process.
    sys.stderr.flush()
    os._exit(code)
