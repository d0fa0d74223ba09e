"""The process of a site: one Spark application that does what it is told on its standard input.

`python -m thalweg.spark.site.process PARENT` is started by `thalweg.spark.site.sites` and ends with
it: on the end of its input, on a signal at the parent's end, and where its parent is another.
"""

from __future__ import annotations

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

from thalweg.errors import InvalidInput, NotInTime, ThalwegError
from thalweg.spark.class_archive import archive_options
from thalweg.spark.java import find_java
from thalweg.spark.query.carry import CarryOrder, carry_windows
from thalweg.spark.query.ended_batches import spare_what_stays
from thalweg.spark.query.rehearsal import rehearse
from thalweg.spark.query.running import RunningQuery
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.session import open_session
from thalweg.spark.site.channel import LOG_NAME
from thalweg.spark.site.config import ServerLease, site_config
from thalweg.spark.site.lifeline import end_group, end_with_parent, take_standard_streams
from thalweg.spark.site.links import SiteLinks
from thalweg.spark.site.queries import SiteQueries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BEAT_S = 0.5
_FAREWELL_S = 3.0
_THREADS = 6
# These do next to nothing but wait, and a cloud may be asked to wait for many sites at a time: what
# is done meanwhile must not stand behind them.
_WAITS = frozenset({"await_arrival", "rehearse", "ship"})
_WAITING_THREADS = 64
_JVM_LOST = 70


class SiteProcess:
    """Takes commands, each in a thread of a small pool, and answers them in any order."""

    def __init__(self, commands: IO[bytes], answers: IO[bytes], parent: int) -> None:
        self._commands = commands
        self._answers = answers
        self._parent = parent
        self._write_lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="command")
        self._waits = ThreadPoolExecutor(_WAITING_THREADS, thread_name_prefix="wait")
        self._links = SiteLinks()
        self._queries = SiteQueries(self._links, self._say_of_query)
        self._session: SparkSession | None = None
        self._lease: ServerLease | None = None
        self._ending = threading.Event()
        self._end_number: int | None = None

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
            spare_what_stays()
            self._answer(opening["id"], {"result": {"pid": os.getpid()}})
            self._ending.wait()
            self._queries.stop_all()
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
                pool = self._waits if command in _WAITS else self._pool
                pool.submit(self._obey, number, command, message["arguments"])
        # Nobody is there any more to take an answer.
        if not self._ending.is_set():
            self._end_at_once()

    def _obey(self, number: int, command: str, arguments: dict[str, Any]) -> None:
        try:
            known: dict[str, Callable[..., Any]] = {
                "await_arrival": self._await_arrival,
                "gaps": lambda spec: self._links.gaps_of(QuerySpec.from_dict(spec)),
                "newest": self._queries.newest_ms,
                "prepare": self._prepare,
                "records": self._queries.records,
                "rehearse": self._rehearse,
                "send_again": self._send_again,
                "ship": self._ship,
                "start": self._start,
                "carry": self._carry,
                "drain": self._drain,
                "stop": self._stop,
                "status": self._queries.status,
            }
            if command not in known:
                raise ThalwegError(f"there is no such command; known: {', '.join(sorted(known))}")
            answer = {"result": known[command](**arguments)}
        except Exception as error:
            answer = failure(error)
        self._answer(number, answer)

    def _require_session(self) -> SparkSession:
        if self._session is None:
            raise ThalwegError("Spark is still starting")
        return self._session

    def _start(self, spec: dict[str, Any]) -> dict[str, Any]:
        session = self._require_session()
        return asdict(self._queries.start(session, QuerySpec.from_dict(spec)).status())

    def _prepare(self, spec: dict[str, Any]) -> dict[str, Any]:
        session = self._require_session()
        running = self._queries.start(session, QuerySpec.from_dict(spec), held=True)
        told = asdict(running.status())
        running.get_ready()
        return told

    def _rehearse(self, spec: dict[str, Any], rows_from: str | None, patience_s: float) -> int:
        log = None if rows_from is None else Path(rows_from)
        return rehearse(self._require_session(), QuerySpec.from_dict(spec), log, patience_s)

    def _carry(self, spec: dict[str, Any], order: dict[str, Any]) -> dict[str, int]:
        query = QuerySpec.from_dict(spec)
        return carry_windows(self._require_session(), query, CarryOrder(**order))

    def _ship(self, spec: dict[str, Any], batch: int, timeout_s: float) -> None:
        query = QuerySpec.from_dict(spec)
        self._links.end_of(query).ship(query.epoch, batch, timeout_s)

    def _send_again(self, spec: dict[str, Any]) -> None:
        self._links.end_of(QuerySpec.from_dict(spec)).send_again()

    def _await_arrival(
        self, spec: dict[str, Any], site: str, epoch: int, batch: int, timeout_s: float
    ) -> None:
        end = self._links.end_of(QuerySpec.from_dict(spec))
        end.await_arrival(site, epoch, batch, timeout_s)

    def _drain(self, query: str, upto: dict[str, Any] | None, timeout_s: float) -> dict[str, Any]:
        stand = self._queries.end(query, lambda running: running.drain(upto, timeout_s))
        return stand.to_dict()

    def _stop(self, query: str) -> dict[str, Any]:
        return self._queries.end(query, RunningQuery.stop).to_dict()

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
            self._queries.look_after()

    def _spark_is_gone(self) -> bool:
        context = getattr(self._session, "_sc", None)
        gateway = getattr(context, "_gateway", None)
        return gateway is not None and gateway.proc.poll() is not None

    def _end_at_once(self) -> None:
        """End without an answer, and with this process everything that it started."""
        if self._lease is not None and self._lease.remote:
            # Queries of a Spark Connect server would outlive this process.
            farewell = threading.Thread(target=self._queries.stop_all, daemon=True)
            farewell.start()
            farewell.join(_FAREWELL_S)
        end_group()

    def _say_of_query(self, event: str, query: str, error: str | None) -> None:
        self._say({"event": event, "query": query, "error": error})

    def _answer(self, number: int, answer: dict[str, Any]) -> None:
        self._say({"id": number, **answer})

    def _say(self, message: dict[str, Any]) -> None:
        with self._write_lock, suppress(BrokenPipeError):
            self._answers.write(json.dumps(message, default=str).encode() + b"\n")
            self._answers.flush()


def failure(error: Exception) -> dict[str, Any]:
    """An error as an answer: its defects where it has some, else its message.

    Whoever asked may wait for longer where something is only late.
    """
    if isinstance(error, InvalidInput):
        defects = [asdict(defect) for defect in error.defects]
        return {"defects": defects}
    traceback.print_exception(error, file=sys.stderr)
    sys.stderr.flush()
    if isinstance(error, ThalwegError):
        return {"error": str(error), "late": isinstance(error, NotInTime)}
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
