"""A process of ours that runs something to be killed, and is started again by the same command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from thalweg.errors import ThalwegError

ROOT = Path(__file__).parents[1]
PATIENCE_S = 180.0
REFUSED = 3
"""The exit code of a host that ended with a reason."""
_POLL_S = 0.05


class TrialStuck(ThalwegError):
    """What is under trial neither goes on nor says why; or the trial itself has gone wrong."""


def run_host(serve: Callable[[], None]) -> int:
    """What a host's main does: serves until killed, and tells the reason where it ends with one."""
    try:
        serve()
    except ThalwegError as error:
        print(f"refused: {error}", file=sys.stderr)
        return REFUSED
    return 0


class Host:
    """A module of the campaign that runs in a process of its own."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._folder = folder
        self._environment = dict(environment or {})
        self._starts = 0
        self._errors = folder / "errors-0.txt"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process, if it runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def is_there(self) -> bool:
        """Whether it runs."""
        return self.pid is not None

    @property
    def refusal(self) -> str | None:
        """Why it has ended, if it said so."""
        refused = self._process is not None and self._process.poll() == REFUSED
        return self.told if refused else None

    @property
    def told(self) -> str:
        """The end of what it said."""
        with suppress(FileNotFoundError):
            text = self._errors.read_text(encoding="utf-8", errors="replace")
            return text[-2000:].strip()
        return ""

    def start(self) -> None:
        """Start it, or again: the same command goes on where it was."""
        self._starts += 1
        self._errors = self._folder / f"errors-{self._starts}.txt"
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(  # nosec B603  # this Python, a module of ours
                self._command,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self._environment, "PYTHONPATH": path},
            )

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE_S)

    def await_end(self) -> None:
        """Wait until it has ended by itself."""
        wait_until(lambda: not self.is_there, "the process has ended", tell=lambda: self.told)

    def require_there(self) -> None:
        """Raise `TrialStuck` where it has ended."""
        if not self.is_there:
            raise TrialStuck(f"the process has ended: {self.told}")


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


def longest_pause_s(times_s: Sequence[float], since_s: float) -> float:
    """The longest time without output from a moment on, given when output came.

    Whatever came last before that moment counts as its begin; where there is nothing of it any
    more, the moment itself does.
    """
    before = [at for at in times_s if at < since_s]
    after = sorted(at for at in times_s if at >= since_s)
    begin = max(before) if before else since_s
    return max((b - a for a, b in zip([begin, *after], after, strict=False)), default=0.0)
