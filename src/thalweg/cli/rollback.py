"""`thalweg rollback`: back to the cuts before the last change."""

from __future__ import annotations

from thalweg.cli.options import RunFolderArgument
from thalweg.cli.output import Format, FormatOption, print_json, progress, say, tell

_TIMEOUT_S = 180.0


def rollback(
    folder: RunFolderArgument,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Go back to the cuts before the last change: at once in a live run, else at its next start."""
    from thalweg.errors import ThalwegError
    from thalweg.spark.deployment.control import await_answer, give_up, leave_rollback
    from thalweg.spark.deployment.folder import RunFolder

    found = RunFolder.of_run(folder)
    request = leave_rollback(found)
    if not found.is_held():
        text = f"nothing runs in {folder}: its next start begins with the rollback"
        if format is Format.JSON:
            print_json({"folder": str(folder), "done": False, "outcome": text})
        else:
            say(text)
        return
    with progress("rolling back"):
        answer = await_answer(found, request, _TIMEOUT_S, goes_on=found.is_held)
    if answer is None:
        what = give_up(found, request)
        raise ThalwegError(f"{what}. Hint: `thalweg status {folder}` says how it is doing.")
    done, text = answer
    if not done:
        raise ThalwegError(text)
    if format is Format.JSON:
        print_json({"folder": str(folder), "done": True, "outcome": text})
    else:
        tell(text)
