"""`thalweg validate`: are these files right, alone and together?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.inputs import pose
from thalweg.cli.output import Format, FormatOption, print_json, print_table, progress

if TYPE_CHECKING:
    from thalweg.model import Application, Network, Plan


def validate(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Applications, networks and plans.")
    ],
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Check files, and every application against the network given with it.

    All problems of all files are told at once. With one application and one network the pins are
    checked too, and every plan given with them is checked against both.
    """
    from thalweg.errors import Defects
    from thalweg.files.load import load_any

    defects = Defects()
    with progress("reading"):
        loaded = [(path, defects.attempt("", partial(load_any, path))) for path in files]
    values = [(path, value) for path, value in loaded if value is not None]
    defects.attempt("", lambda: _check_together(values))
    defects.raise_if_any()
    rows = [(str(path), *_describe(value)) for path, value in values]
    if format is Format.JSON:
        print_json([dict(zip(("file", "kind", "holds"), row, strict=True)) for row in rows])
    else:
        print_table(["file", "kind", "holds"], rows)


def _check_together(values: list[tuple[Path, Application | Network | Plan]]) -> None:
    from thalweg.check import check
    from thalweg.errors import Defects
    from thalweg.model import Application, Network, Plan

    applications = [(path, v) for path, v in values if isinstance(v, Application)]
    networks = [v for _, v in values if isinstance(v, Network)]
    if len(networks) != 1:
        return
    defects = Defects()
    for path, app in applications:
        problem = defects.attempt("", partial(pose, path, app, networks[0]))
        for plan_path, plan in values:
            if problem is None or not isinstance(plan, Plan) or plan.application != app.name:
                continue
            for violation in check(plan, problem) if plan.feasible else []:
                defects.add(
                    f"{plan_path}: feasible",
                    True,
                    "false, since the checker finds a violation",
                    str(violation),
                )
    defects.raise_if_any()


def _describe(value: Application | Network | Plan) -> tuple[str, str]:
    from thalweg.model import Application, Network

    if isinstance(value, Application):
        return "application", f"{len(value.operators)} operators, {len(value.streams)} streams"
    if isinstance(value, Network):
        return "network", f"{value.site_count:,} sites, {value.node_count:,} nodes"
    return "plan", f"{len(value.placement):,} instances by {value.strategy}"
