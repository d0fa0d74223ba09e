"""The line to a site's process: numbered commands as JSON lines, and how its end is noticed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from thalweg.errors import Defect, InvalidInput, ThalwegError
from thalweg.spark.session import ONE_THREAD

LOG_NAME = "site.log"
NO_QUERY = "there is no query"
"""What a site says of a query that it does not run."""
_SHOWN_LOG_LINES = 15
_TAIL_BYTES = 16_384
_GROUP_END_S = 5.0
_SILENT_S = 10.0
# Not to be done twice at the same time: who asks again waits for the answer that is due.
_ONE_AT_A_TIME = frozenset({"carry", "drain", "prepare", "start", "stop"})
# What is told once must not be lost with an answer that comes late, whatever is changed meanwhile.
_TOLD_ONCE = frozenset({"records"})
Answer = Future[dict[str, Any]]


class SiteError(ThalwegError):
    """A site did not do what it was told; with the last lines of its log."""

    def __init__(self, site: str, command: str, reason: str, log: tuple[str, ...] = ()) -> None:
        super().__init__(site, command, reason, log)
        self.site = site
        self.command = command
        self.reason = reason
        self.log = log

    def __str__(self) -> str:
        lines = "".join(f"\n  {line}" for line in self.log)
        end = f". The end of its log:{lines}" if lines else ""
        return f"site {self.site}: {self.command}: {self.reason}{end}"


class SiteLate(SiteError):
    """A site that is there and well has not done yet what it was told; it may be asked again."""


def last_lines(log: Path, count: int = _SHOWN_LOG_LINES) -> tuple[str, ...]:
    """The last lines of a log file; none where there is no such file."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(line for line in text.splitlines() if line.strip())[-count:]


class SiteChannel:
    """One life of a site's process, from its start to its end.

    `on_event` is called from the channel's own thread with what the process reports unasked, and
    with `{"event": "end", "code": …}` as the last of all, when the process has ended.

    Make it in a thread that lives as long as the process should: Linux tells a child of its
    parent's end when the thread ends that started it.
    """

    def __init__(self, name: str, folder: Path, on_event: Callable[[dict[str, Any]], None]) -> None:
        self.name = name
        self.log = folder / LOG_NAME
        self.heard_at = time.monotonic()
        self._on_event = on_event
        self._lock = threading.Lock()
        self._life_lock = threading.Lock()
        self._waiting: dict[int, Answer] = {}
        self._next_id = 0
        self._due: dict[bool, tuple[str, Mapping[str, Any], int, Answer]] = {}
        """The answers that nobody waits for any more: to a change, and to what is told once."""
        self._ended = threading.Event()
        self._buried = threading.Event()
        path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
        environment = os.environ | ONE_THREAD | {"PYTHONPATH": path}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # nosec B603  # a module of Thalweg
                [sys.executable, "-m", "thalweg.spark.site.process", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                env=environment,
                # A group of its own: no Ctrl-C of the terminal, and one signal ends all of it.
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, name=f"site {name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process, which is also its group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return not self._ended.is_set()

    def call(self, command: str, arguments: Mapping[str, Any], timeout_s: float) -> Any:
        """What the site answers.

        A command that changes something, and has had no answer yet when it is given again, is not
        sent again: the answer that is due is waited for.

        Raises:
            InvalidInput: where the site finds the arguments wrong.
            SiteLate: where it is well, and has not done it in time.
            SiteError: where it fails, ends, or is not heard any more.
        """
        number, answer = self._take_due(command, arguments) or self._ask(command, arguments)
        try:
            told = answer.result(timeout_s)
        except TimeoutError:
            self._leave(number, answer, command, arguments)
            silent_s = time.monotonic() - self.heard_at
            if self._ended.is_set() or silent_s > _SILENT_S:
                reason = f"no answer within {timeout_s:g} s, and nothing heard for {silent_s:.0f} s"
                raise self._error(command, reason) from None
            raise self._late(command, f"no answer within {timeout_s:g} s") from None
        if "result" in told:
            return told["result"]
        if "defects" in told:
            raise InvalidInput(Defect(**defect) for defect in told["defects"])
        reason = str(told.get("error", "an answer without a meaning"))
        raise self._late(command, reason) if told.get("late") else self._error(command, reason)

    def _ask(self, command: str, arguments: Mapping[str, Any]) -> tuple[int, Answer]:
        answer = Answer()
        with self._lock:
            self._next_id += 1
            number = self._next_id
            self._waiting[number] = answer
            self._send({"id": number, "command": command, "arguments": dict(arguments)})
            if self._ended.is_set():
                self._waiting.pop(number, None)
                raise self._error(command, "its process has ended")
        return number, answer

    def _take_due(self, command: str, arguments: Mapping[str, Any]) -> tuple[int, Answer] | None:
        """The answer that nobody has had yet, where the same was asked for last."""
        if command not in _ONE_AT_A_TIME | _TOLD_ONCE:
            return None
        with self._lock:
            due = self._due.pop(command in _TOLD_ONCE, None)
        return None if due is None or due[:2] != (command, arguments) else due[2:]

    def _leave(
        self, number: int, answer: Answer, command: str, arguments: Mapping[str, Any]
    ) -> None:
        """Wait no longer for an answer."""
        with self._lock:
            if command in _ONE_AT_A_TIME | _TOLD_ONCE:
                self._due[command in _TOLD_ONCE] = (command, arguments, number, answer)
            else:
                self._waiting.pop(number, None)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether the process, and all it started, is gone within this time."""
        return self._buried.wait(timeout_s)

    def kill(self) -> None:
        """End the process and all it started at once."""
        with self._life_lock:
            # Once it is reaped, its number may be another's.
            if not self._ended.is_set():
                os.killpg(self.pid, signal.SIGKILL)

    def _send(self, message: dict[str, Any]) -> None:
        # A process that has ended is told by its channel's end, which fails all that wait.
        with suppress(BrokenPipeError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self.heard_at = time.monotonic()
            with suppress(ValueError):
                self._take(json.loads(line))
        # Not reaped yet, the dead process keeps its number: the signal can reach no other group.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._life_lock:
            os.killpg(self.pid, signal.SIGKILL)
            code = self._process.wait()
            self._ended.set()
        with self._lock:
            waiting = list(self._waiting.values())
        for answer in waiting:
            if not answer.done():
                answer.set_result({"error": f"its process ended ({describe_end(code)})"})
        self._on_event({"event": "end", "code": code})
        self._wait_for_group()
        self._buried.set()

    def _take(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            if message.get("event") != "alive":
                self._on_event(message)
            return
        with self._lock:
            answer = self._waiting.pop(message["id"], None)
        if answer is not None:
            answer.set_result(message)

    def _wait_for_group(self) -> None:
        """Wait until the JVM, which was told to end, has gone: a successor needs its files."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        deadline = time.monotonic() + _GROUP_END_S
        with suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                os.killpg(self.pid, 0)
                time.sleep(0.01)

    def _error(self, command: str, reason: str) -> SiteError:
        return SiteError(self.name, command, reason, last_lines(self.log))

    def _late(self, command: str, reason: str) -> SiteLate:
        return SiteLate(self.name, command, reason, last_lines(self.log))


def describe_end(code: int) -> str:
    """How a process ended, in words.

    >>> describe_end(0), describe_end(3), describe_end(-9)
    ('exit code 0', 'exit code 3', 'killed by SIGKILL')
    """
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
