"""`thalweg explain`: why is each operator where it is?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from thalweg.cli.output import Format, FormatOption, print_json, tell_wrapped


def explain(
    plan: Annotated[
        Path,
        typer.Argument(metavar="PLAN|FOLDER", help="Plan file (JSON or YAML), or folder of a run."),
    ],
    operator: Annotated[
        str | None, typer.Argument(metavar="[OPERATOR]", help="Only this operator.")
    ] = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Say for every operator which rule put it there, and what the next best would have cost."""
    from thalweg.errors import Defect, InvalidInput, nearest
    from thalweg.files.load import load_plan

    change: dict[str, Any] = {}
    if (plan / "run.json").is_file():
        change, plan = _find_change(plan)
    loaded = load_plan(plan)
    known = list(dict.fromkeys(instance.operator for instance in loaded.placement))
    if operator is not None and operator not in known:
        rule = f"an operator of {loaded.application}"
        raise InvalidInput(
            [Defect(path="OPERATOR", value=operator, rule=rule, hint=nearest(operator, known))]
        )
    if format is Format.TABLE:
        if change:
            tell_wrapped(f"{change.get('cause', 'a change')}: {change.get('reason', '')}")
        tell_wrapped(loaded.explain(operator))
        return
    data = loaded.to_dict()
    if operator is not None:
        for key in ("placement", "reasons"):
            data[key] = [row for row in data[key] if row["operator"] == operator]
    kept = {k: data[k] for k in ("strategy", "feasible", "placement", "reasons", "violations")}
    print_json({"change": change, **kept} if change else kept)


def _find_change(folder: Path) -> tuple[dict[str, Any], Path]:
    """The last change of a run's cuts that a plan is behind, and the file of that plan.

    What was changed by hand since has no plan: the reason says so.
    """
    from thalweg.errors import Defect, InvalidInput
    from thalweg.spark.deployment.folder import RunFolder

    found = RunFolder(folder)
    changes = [d for d in found.read_decisions() if d.get("changed") or d.get("plan")]
    planned = [change for change in changes if change.get("plan")]
    if not planned:
        rule = "the folder of a run that has been deployed"
        raise InvalidInput([Defect(path="PLAN", value=str(folder), rule=rule)])
    name, last = Path(str(planned[-1]["plan"])).name, dict(changes[-1])
    if last is not planned[-1] and not last.get("plan"):
        earlier = planned[-1].get("reason", "")
        last["reason"] = f"{last.get('reason', '')}; planned before that: {earlier}"
    return last, found.plans / name
