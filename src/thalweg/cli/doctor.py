"""`thalweg doctor`: what state is a run in, what is wrong, and what can be done?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.output import (
    Format,
    FormatOption,
    print_json,
    print_table,
    progress,
    say,
    tell,
)

if TYPE_CHECKING:
    from thalweg.spark.deployment.health import Health

_WARNING = (
    "this sets aside all that was made of the rows of this run. The next `thalweg run` makes it "
    "again from the first row: readers of the sinks will see them again from the beginning."
)


def doctor(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[FOLDER]", help="Folder of the run; without it, this machine."),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read all rows, and compare them with what was written.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Do the repairs that are safe; nothing is deleted.")
    ] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Keep the rows that came in, and make all else again.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a rebuild.")] = False,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Say what state a run is in, what is wrong and what to do; or whether this machine is ready.

    Ends with 1 where there is a problem.
    """
    from thalweg.spark.deployment.health import examine, examine_machine

    _require_folder(folder, deep=deep, repair=repair, rebuild=rebuild)
    if folder is None:
        _tell(examine_machine(), format)
        return
    done: tuple[str, ...] = ()
    if rebuild:
        done = _rebuild(folder, yes=yes)
    elif repair:
        from thalweg.spark.deployment.health import repair as repair_run

        done = repair_run(folder) or ("nothing needed a repair that is safe",)
    with progress("looking"):
        health = examine(folder, deep=deep)
    _tell(health, format, done)


def _require_folder(folder: Path | None, *, deep: bool, repair: bool, rebuild: bool) -> None:
    from thalweg.errors import Defects

    defects = Defects()
    for option, given in (("--deep", deep), ("--repair", repair), ("--rebuild", rebuild)):
        if given and folder is None:
            defects.add(option, None, "the FOLDER of a run with it")
    defects.raise_if_any()


def _rebuild(folder: Path, *, yes: bool) -> tuple[str, ...]:
    from thalweg.errors import ThalwegError
    from thalweg.spark.deployment.folder import RunFolder
    from thalweg.spark.deployment.health import rebuild

    RunFolder.of_run(folder).require_free()
    if not yes:
        say(_WARNING)
        if not _confirm():
            raise ThalwegError("nothing was done. Hint: `--yes` does it without a question.")
    return rebuild(folder)


def _confirm() -> bool:
    """Whether a user at a terminal says yes; nobody else is asked."""
    import sys

    return sys.stdin.isatty() and typer.confirm("rebuild it?", err=True)


def _tell(health: Health, format: Format, done: tuple[str, ...] = ()) -> None:  # noqa: A002
    if format is Format.JSON:
        print_json({"done": list(done), **health.to_dict()})
    else:
        for line in done:
            tell(line)
        rows = [[f.level, f.where, f.what] for f in health.findings]
        print_table(["level", "where", "what"], rows)
        for finding in health.findings:
            if finding.remedy and finding.level != "good":
                tell(f"{finding.where}: {finding.remedy}")
    if not health.is_well:
        raise typer.Exit(1)
