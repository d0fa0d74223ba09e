"""`thalweg stop`: end a run, in order."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from thalweg.cli.output import progress, say
from thalweg.cli.status import FolderArgument

_POLL_S = 0.1


def stop(
    folder: FolderArgument,
    within: Annotated[str, typer.Option(help="How long to wait until it has ended.")] = "2 min",
) -> None:
    """End a run after the batches under way, and wait until it has ended. It can be resumed."""
    from thalweg.errors import ThalwegError
    from thalweg.spark.deployment.control import STOP, Request, leave
    from thalweg.spark.deployment.folder import RunFolder
    from thalweg.units import DURATION, parse_quantity

    patience_s = parse_quantity(within, DURATION, path="--within")
    found = RunFolder.of_run(folder)
    if not found.is_held():
        say(f"nothing runs in {folder}")
        return
    leave(found, Request(kind=STOP))
    deadline = time.monotonic() + patience_s
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
