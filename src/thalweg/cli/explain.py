"""`thalweg explain`: why is each operator where it is?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.output import Format, FormatOption, print_json


def explain(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file (JSON or YAML).")],
    operator: Annotated[
        str | None, typer.Argument(metavar="[OPERATOR]", help="Only this operator.")
    ] = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Say for every operator which rule put it there, and what the next best would have cost."""
    from thalweg.errors import Defect, InvalidInput, nearest
    from thalweg.files.load import load_plan

    loaded = load_plan(plan)
    known = list(dict.fromkeys(instance.operator for instance in loaded.placement))
    if operator is not None and operator not in known:
        rule = f"an operator of {loaded.application}"
        raise InvalidInput(
            [Defect(path="OPERATOR", value=operator, rule=rule, hint=nearest(operator, known))]
        )
    if format is Format.TABLE:
        typer.echo(loaded.explain(operator))
        return
    data = loaded.to_dict()
    if operator is not None:
        for key in ("placement", "reasons"):
            data[key] = [row for row in data[key] if row["operator"] == operator]
    print_json(
        {key: data[key] for key in ("strategy", "feasible", "placement", "reasons", "violations")}
    )
