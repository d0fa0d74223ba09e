"""What a coordinator has done, written down so that the next one goes on from there.

One JSON line for every step that was carried out. A line that was cut off by a crash was never
finished, so it counts as not written. One coordinator at a time: the file is locked.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from thalweg.errors import ThalwegError
from thalweg.files.own_file import open_own, read_own_bytes
from thalweg.spark.deployment.hand_over import (
    DeploymentState,
    Drain,
    ExportState,
    Fence,
    Prepare,
    StartEpoch,
    Step,
    learn,
)
from thalweg.spark.deployment.lines import append_durably
from thalweg.spark.pipeline.windows import Opening

_MOST_BYTES = 256 * 2**20
_KINDS: dict[str, type[Step]] = {
    kind.__name__: kind for kind in (StartEpoch, Prepare, Drain, ExportState, Fence)
}


class JournalHeld(ThalwegError):
    """Another coordinator runs this deployment."""


class JournalBroken(ThalwegError):
    """A journal cannot be read, or a line in the middle of it."""


class UnknownStep(JournalBroken):
    """A line of a journal is whole, but of no step that this version of Thalweg writes."""


def to_line(step: Step, reached: Mapping[str, Any]) -> str:
    """A step that was carried out, and what it reached, as one line of a journal."""
    record = {"step": type(step).__name__, **asdict(step), "reached": reached}
    return json.dumps(record, allow_nan=False)


def from_line(line: str) -> tuple[Step, dict[str, Any]]:
    """What a line of a journal says; raises one of several errors where it says no step."""
    record = json.loads(line)
    reached = record.pop("reached")
    kind = _KINDS[record.pop("step")]
    for name in {"cut", "carried"} & set(record):
        record[name] = tuple(record[name])
    return kind(**record), reached


def _names_step(line: str) -> bool:
    """Whether a line is whole, and of a step, be it one that is not known."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and isinstance(record.get("step"), str)


class Journal:
    """The steps of one deployment, oldest first; use it as a context manager."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Behind a link, lines would be added to, and cut off from, a file of somebody else.
            file = os.fdopen(open_own(self.path), "a+", encoding="utf-8")
        except ValueError as error:
            raise JournalBroken(
                f"{self.path} is {error}. Hint: restore the file from a copy."
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise JournalHeld(
                f"{self.path} is in use: another coordinator runs this deployment. "
                "Hint: `thalweg stop` ends it."
            ) from None
        try:
            self._cut_off_torn_line(file.fileno())
        except BaseException:
            file.close()
            raise
        self._file = file
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def write(self, step: Step, **reached: Any) -> None:
        """Write down that the step was carried out, and what it reached; then it is on the disk."""
        if self._file is None:
            raise JournalHeld(f"{self.path} is not open")
        append_durably(self._file.fileno(), to_line(step, reached).encode())

    def read(self) -> Iterator[tuple[Step, dict[str, Any]]]:
        """Every step with what it reached, oldest first; raises `JournalBroken` at one it is not.

        A last line without an end was never finished, and is left out.
        """
        for number, line in self._whole_lines():
            try:
                step, reached = from_line(line)
                if not isinstance(step.epoch, int) or not isinstance(step.site, str):
                    raise ValueError("it names no epoch of a site")
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise self._broken(number, line, error) from error
            yield step, reached

    def state(
        self, sites: tuple[str, ...], openings: Mapping[str, Opening] | None = None
    ) -> DeploymentState:
        """What is true after all of it."""
        state = DeploymentState.of(sites, openings)
        # Every line that counts is one step, so the number of a step is that of its line.
        for number, (step, reached) in enumerate(self.read(), start=1):
            if step.site in state.sites:
                try:
                    state = learn(state, step, **reached)
                except (TypeError, ValueError, AttributeError) as error:
                    raise self._unknown(number, error) from error
        return state

    def content(self) -> bytes:
        """All of the file, a line that was cut off, too; nothing where there is no file.

        Raises:
            OSError: where it cannot be read.
            JournalBroken: where it is something else than a file, or one that no run has written.
        """
        try:
            return read_own_bytes(self.path.parent, self.path, _MOST_BYTES)
        except FileNotFoundError:
            return b""
        except ValueError as error:
            raise JournalBroken(
                f"{self.path} is {error}, and no journal. Hint: restore the file from a copy; "
                f"without one, `thalweg doctor {self.path.parent}` says what can be done."
            ) from None

    def _whole_lines(self) -> Iterator[tuple[int, str]]:
        text = self.content().decode("utf-8", errors="replace")
        whole, _, _ = text.rpartition("\n")
        yield from enumerate(whole.split("\n") if whole else (), start=1)

    def _unknown(self, number: int, error: Exception) -> UnknownStep:
        return UnknownStep(
            f"{self.path}:{number}: not a step that this Thalweg knows ({error}). Hint: if another "
            "version wrote it, use that one; else restore the file from a copy: "
            f"`thalweg doctor {self.path.parent}` says what can be done."
        )

    def _broken(self, number: int, line: str, error: Exception) -> JournalBroken:
        if _names_step(line):
            return self._unknown(number, error)
        return JournalBroken(
            f"{self.path}:{number}: not a step of a deployment ({error}). Hint: restore the file "
            f"from a copy; without one, `thalweg doctor {self.path.parent}` says what can be done."
        )

    def _cut_off_torn_line(self, number: int) -> None:
        content = self.content()
        if content and not content.endswith(b"\n"):
            os.ftruncate(number, content.rfind(b"\n") + 1)
