"""`thalweg rollback`: back to the cuts before the last change."""

from __future__ import annotations

import typer

from thalweg.cli.output import progress, say
from thalweg.cli.status import FolderArgument

_PATIENCE_S = 180.0


def rollback(folder: FolderArgument) -> None:
    """Go back to the cuts before the last change: at once in a live run, else at its next start."""
    from thalweg.errors import ThalwegError
    from thalweg.spark.deployment.control import await_answer, give_up, leave_rollback
    from thalweg.spark.deployment.folder import RunFolder

    found = RunFolder.of_run(folder)
    request = leave_rollback(found)
    if not found.is_held():
        say(f"nothing runs in {folder}: its next start begins with the rollback")
        return
    with progress("rolling back"):
        answer = await_answer(found, request, _PATIENCE_S, goes_on=found.is_held)
    if answer is None:
        what = give_up(found, request)
        raise ThalwegError(f"{what}. Hint: `thalweg status {folder}` says how it is doing.")
    done, text = answer
    if not done:
        raise ThalwegError(text)
    typer.echo(text)
