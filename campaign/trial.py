"""One deployment under trial: fed all the time, struck again and again, judged at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from campaign.host import REFUSED
from campaign.numbered import SOURCE, expect, make_events
from campaign.strike import Order, Orders
from thalweg.errors import ThalwegError
from thalweg.history import Verdict, check_history
from thalweg.spark.deployment.control import MOVE, STOP, Request, await_answer, leave
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.publications import complete_ms, read_publications
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.log import Log
from thalweg.spark.log.disk import LogError
from thalweg.spark.log.names import sink_stream
from thalweg.spark.query.clock import END_OF_TIME_MS

PATIENCE_S = 180.0
EVENTS_PER_S = 200
_STEP_S = 0.1
_POLL_S = 0.05
ROOT = Path(__file__).parents[1]


class TrialStuck(ThalwegError):
    """A deployment neither goes on nor says why."""


class Feed:
    """Numbered events, so many a second, to the sites of their zones; a thread that can pause.

    Event time goes with the events, not with the clock: a pause of the feed is none in their time.
    """

    def __init__(self, logs: Mapping[str, Path]) -> None:
        self._logs = dict(logs)
        self._sites = list(logs)
        self._gateways: dict[str, Gateway] = {}
        self._sent: list[pa.Table] = []
        self._count = 0
        self._unsent: tuple[pa.Table, int] | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    @property
    def count(self) -> int:
        """How many events have been sent."""
        return self._count

    @property
    def events(self) -> pa.Table:
        """All events that have been sent."""
        return pa.concat_tables(self._sent)

    def start(self) -> None:
        """Send from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more, and say that nothing else will come."""
        self._ending.set()
        self._thread.join()
        if self._unsent is not None:
            raise ThalwegError("the feed was stopped while the log could not be written")
        for gateway in self._gateways.values():
            gateway.close()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ending.is_set():
            self._send()
            due = max(due + _STEP_S, time.monotonic())
            self._ending.wait(due - time.monotonic())

    def _send(self) -> None:
        """The next events, or again those that a log would not take: a device keeps what it has."""
        if self._unsent is None:
            count = round(EVENTS_PER_S * _STEP_S)
            begin_s = self._count / EVENTS_PER_S
            self._unsent = (make_events(self._count, count, begin_s, _STEP_S), 0)
        table, first = self._unsent
        for place in range(first, len(self._sites)):
            site = self._sites[place]
            here = pc.equal(pc.bit_wise_and(table["zone"], len(self._sites) - 1), place)
            try:
                self._gateway(site).send(table.filter(here))
            except (LogError, OSError):
                self._gateways.pop(site, None)
                self._unsent = (table, place)
                return
        self._unsent = None
        self._sent.append(table)
        self._count += table.num_rows

    def _gateway(self, site: str) -> Gateway:
        if site not in self._gateways:
            self._gateways[site] = Gateway(self._logs[site], SOURCE, site, time="at", durable=False)
        return self._gateways[site]


class Trial:
    """A deployment of the numbered events in a process of its own; use it as a context manager."""

    def __init__(
        self,
        folder: Path,
        *,
        fogs: int = 1,
        link: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = RunFolder(folder / "run")
        self.fogs = tuple(f"fog-{k}" for k in range(fogs))
        self.orders = Orders(folder / "orders")
        self.log = Log(self.folder.path / "log")
        self._folder, self._link = folder, link
        self._environment = dict(environment or {})
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        own = {fog: self.folder.path / "logs" / fog for fog in self.fogs}
        shared = dict.fromkeys(self.fogs, self.log.root)
        self.feed = Feed(own if link else shared)

    def __enter__(self) -> Trial:
        self._folder.mkdir(parents=True, exist_ok=True)
        self.start()
        self.await_running()
        self.feed.start()
        self.await_rows()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            self.feed.stop()
        self.kill()

    # The process

    @property
    def pid(self) -> int | None:
        """The process that runs the deployment, if it does."""
        return self._process.pid if self._process is not None and self.is_there else None

    @property
    def is_there(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def refusal(self) -> str | None:
        """Why the deployment has ended, if it said so."""
        if self._process is None or self._process.poll() != REFUSED:
            return None
        return self._errors.read_text(encoding="utf-8", errors="replace").strip()

    def start(self) -> None:
        """Start the deployment, or again: the same command goes on where it was."""
        self._starts += 1
        self._errors = self._folder / f"errors-{self._starts}.txt"
        command = [sys.executable, "-m", "campaign.host", str(self.folder.path)]
        command += ["--orders", str(self.orders.folder), "--fogs", str(len(self.fogs))]
        command += ["--link", self._link] if self._link else []
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(  # nosec B603  # a module of the campaign
                command,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self._environment, "PYTHONPATH": path},
            )

    def kill(self) -> None:
        """Kill the process, and wait until its sites have ended with it."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
        wait_until(lambda: not self.folder.is_held(), "the folder is free")

    def site_pid(self, site: str) -> int | None:
        """The process of a site, as the deployment last said."""
        pid = self.folder.read_status().get("sites", {}).get(site, {}).get("pid")
        return int(pid) if pid else None

    # What it is asked, and what is waited for

    @property
    def cuts(self) -> dict[str, tuple[str, ...]]:
        """What runs at every fog, as the deployment last said."""
        told = self.folder.read_status().get("cuts", {})
        return {site: tuple(cut) for site, cut in told.items()}

    def ask_move(self, cut: tuple[str, ...], patience_s: float = PATIENCE_S) -> str | None:
        """Ask for a cut at the first fog; the answer, or None where the process is gone first."""
        request = Request(kind=MOVE, cuts={self.fogs[0]: cut})
        leave(self.folder, request)
        found = await_answer(self.folder, request, patience_s, goes_on=lambda: self.is_there)
        if found is None and self.is_there:
            raise TrialStuck(f"no answer to a move within {patience_s:g} s\n{self.tell()}")
        return None if found is None else found[1]

    def await_running(self) -> None:
        """Wait until everything runs; raises what the deployment says instead."""
        status = self.folder.read_status

        def runs() -> bool:
            self._require_there()
            told = status() if (self.folder.path / "status.json").exists() else {}
            return told.get("pid") == self.pid and told.get("state") == "running"

        wait_until(runs, "the deployment runs", tell=self.tell)

    def rows_out(self) -> int:
        """How many events have come out."""
        return sum(segment.rows for segment in self.log.segments(sink_stream("list")))

    def await_rows(self, count: int | None = None, patience_s: float = PATIENCE_S) -> None:
        """Wait until so many events have come out; without a number, all that were sent by now."""
        wanted = self.feed.count if count is None else count

        def came() -> bool:
            self._require_there()
            return self.rows_out() >= max(wanted, 1)

        wait_until(came, f"{wanted} events have come out", patience_s, tell=self.tell)

    def finish(self) -> dict[str, Verdict]:
        """End the feed, wait for the last window, stop; what the checker says of every sink."""
        self.feed.stop()

        def ended() -> bool:
            self._require_there()
            return (complete_ms(self.log) or 0) >= END_OF_TIME_MS

        wait_until(ended, "the last window is out", tell=self.tell)
        leave(self.folder, Request(kind=STOP))
        if self._process is not None:
            self._process.wait(PATIENCE_S)
        return self.judge()

    def judge(self) -> dict[str, Verdict]:
        """What the checker says of every sink, as of now."""
        expected = expect(self.feed.events)
        return {
            name: check_history(expectation, read_publications(self.log, name))
            for name, expectation in expected.items()
        }

    def strike(self, order: Order) -> None:
        """Leave an order for the next time that its step comes."""
        self.orders.leave(order)

    def pauses(self) -> list[tuple[float, float]]:
        """When output came and how long none had [s]; by the times of the sink's segments."""
        times = sorted(s.folder.stat().st_mtime for s in self.log.segments(sink_stream("list")))
        return [(now, now - before) for before, now in pairwise(times)]

    def tell(self) -> str:
        """What is known when something is waited for in vain."""
        status: dict[str, Any] = {}
        with suppress(ThalwegError):
            status = self.folder.read_status()
        errors = self._errors.read_text(encoding="utf-8", errors="replace")[-2000:]
        return f"sent {self.feed.count}, out {self.rows_out()}, status {status}\n{errors}"

    def _require_there(self) -> None:
        if not self.is_there:
            raise TrialStuck(f"the deployment has ended: {self.refusal or self.tell()}")


def wait_until(
    happened: Callable[[], bool],
    what: str,
    patience_s: float = PATIENCE_S,
    *,
    tell: Callable[[], str] = lambda: "",
) -> None:
    """Wait until something has happened.

    Raises:
        TrialStuck: where it does not within this time.
    """
    deadline = time.monotonic() + patience_s
    while not happened():
        if time.monotonic() > deadline:
            raise TrialStuck(f"waited {patience_s:g} s in vain until {what}\n{tell()}")
        time.sleep(_POLL_S)
