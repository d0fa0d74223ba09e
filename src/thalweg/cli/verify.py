"""`thalweg verify`: did every row of a run count once?"""

from __future__ import annotations

import typer

from thalweg.cli.options import PipelineArgument, RunFolderArgument
from thalweg.cli.output import Format, FormatOption, print_json, print_table, progress, tell
from thalweg.history import FAULTS


def verify(
    pipeline: PipelineArgument,
    folder: RunFolderArgument,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Work on all rows of a run once more, in one place, and compare every sink row by row.

    Dead letters are compared, too: one of each row that fails there. Of a live run, what is due by
    now is compared. Which code the rows were made with is said first: with other code here, rows
    are compared with those that this code gives. Ends with 1 where any row differs.
    """
    from thalweg.spark.deployment.one_place import verify as verify_run
    from thalweg.spark.deployment.rows_code import find_rows_code

    code = find_rows_code(pipeline, folder)
    if format is not Format.JSON:
        tell(code.describe())
    with progress("working on all rows in one place"):
        found = verify_run(pipeline, folder)
    if format is Format.JSON:
        sinks = {name: verdict.to_dict() for name, verdict in found.verdicts.items()}
        told = {"rows_in": found.born, "ended": found.ended, "same": found.same}
        print_json({"code": code.to_dict(), **told, "sinks": sinks})
    else:
        tell(f"{found}{'' if found.ended else '; of a live run, what is due by now'}")
        rows = [
            [name, f"{v.expected:,}", f"{v.found:,}", *(f"{getattr(v, f):,}" for f in FAULTS)]
            for name, v in found.verdicts.items()
        ]
        print_table(["sink", "in one place", "came", *FAULTS], rows)
        for verdict in found.verdicts.values():
            for fault, examples in verdict.examples.items():
                tell(f"{fault}: {examples[0]}")
    if not found.same:
        raise typer.Exit(1)
