"""`thalweg diff`: what changes from one plan to another?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.output import Format, FormatOption, print_json, tell


def diff(
    older: Annotated[Path, typer.Argument(metavar="OLDER", help="Plan file.")],
    newer: Annotated[Path, typer.Argument(metavar="NEWER", help="Plan file.")],
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Say what moves, starts and stops between two plans, and how the estimates change."""
    from thalweg.errors import Defects, InvalidInput
    from thalweg.files.load import find_lines, load_plan

    defects = Defects()
    before = defects.attempt("", lambda: load_plan(older))
    after = defects.attempt("", lambda: load_plan(newer))
    defects.raise_if_any()
    if before is None or after is None:
        return
    rule = f"{before.application}, as in the older plan"
    same = before.application == after.application
    defects.require(same, "application", after.application, rule)
    try:
        defects.raise_if_any()
    except InvalidInput as error:
        raise find_lines(error, newer) from None
    change = before.diff(after)
    if format is Format.JSON:
        print_json(change.to_dict())
    else:
        tell(str(change))
