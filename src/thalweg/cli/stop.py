"""`thalweg stop`: end a run, in order."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.inputs import read_duration
from thalweg.cli.options import DURATION, RunFolderArgument
from thalweg.cli.output import Format, FormatOption, print_json, progress, say

if TYPE_CHECKING:
    from thalweg.spark.deployment.folder import RunFolder

_POLL_S = 0.1


def stop(
    folder: RunFolderArgument,
    within: Annotated[
        str,
        typer.Option("--within", metavar=DURATION, help="How long to wait until it has ended."),
    ] = "2 min",
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """End a run after the batches under way, and wait until it has ended. It can be resumed."""
    from thalweg.errors import InvalidInput, ThalwegError
    from thalweg.spark.deployment.control import STOP, Request, leave
    from thalweg.spark.deployment.folder import RunFolder

    timeout_s = read_duration(within, "--within")
    found = RunFolder.of_run(folder)
    if not found.is_held():
        say(f"nothing runs in {folder}")
        _print_outcome(folder, format, stopped=False)
        return
    try:
        leave(found, Request(kind=STOP))
    except InvalidInput as error:
        other = _other_way(found)
        raise InvalidInput(replace(d, hint=f"{d.hint}; {other}") for d in error.defects) from None
    deadline = time.monotonic() + timeout_s
    with progress("stopping"):
        while found.is_held():
            if time.monotonic() > deadline:
                pid = found.read_status().get("pid")
                raise ThalwegError(
                    f"it has not ended within {within}. Hint: process {pid} runs it; killing it "
                    "loses nothing that was committed, and the same `thalweg run` goes on."
                )
            time.sleep(_POLL_S)
    say(f"stopped; the same `thalweg run` goes on from {folder}")
    _print_outcome(folder, format, stopped=True)


def _print_outcome(folder: Path, format: Format, *, stopped: bool) -> None:  # noqa: A002
    """For programs: whether something ran until now."""
    if format is Format.JSON:
        print_json({"folder": str(folder), "stopped": stopped})


def _other_way(folder: RunFolder) -> str:
    """How to ask a run that no request can be left for."""
    from thalweg.errors import InvalidInput

    pid = None
    with suppress(InvalidInput):
        pid = folder.read_status().get("pid")
    how = "SIGTERM to its process" if pid is None else f"`kill {pid}`, which is SIGTERM,"
    return f"{how} asks the same of a `thalweg run`"
