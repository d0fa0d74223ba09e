"""`thalweg compare`: several strategies on the same problem."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from thalweg.cli.inputs import ApplicationArgument, NetworkArgument, load_problem, read_options
from thalweg.cli.output import Format, FormatOption, print_json, print_table, progress
from thalweg.cli.plan import NOT_FEASIBLE

if TYPE_CHECKING:
    from thalweg.model import Problem


def compare(
    application: ApplicationArgument,
    network: NetworkArgument,
    strategies: Annotated[
        str,
        typer.Option(
            "--strategy",
            "-s",
            metavar="A,B,C",
            help="Names of strategies, separated by commas; see `thalweg strategies`.",
        ),
    ] = "aels,aels-rp,aels-rp-la,cloud-only,tcep,aels-rp-la+improve",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="Option of the strategies that take it; repeatable.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Also draw the comparison (.png, .svg or .pdf).")
    ] = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Compare what strategies make of one problem. Exit code 3: no plan is feasible."""
    from thalweg.cli.output_files import require_place, write_beside
    from thalweg.comparison import compare as compare_strategies
    from thalweg.errors import Defects
    from thalweg.plotting import PLOT_ENDINGS, require_plotting
    from thalweg.strategy import find_strategy

    defects = Defects()
    names = [name.strip() for name in strategies.split(",") if name.strip()]
    with progress("loading"):
        if plot is not None:
            require_plotting()
        posed = defects.attempt("", lambda: load_problem(application, network))
        options = defects.attempt("", lambda: read_options(option or [])) or {}
        for name in names:
            defects.attempt("", lambda name=name: find_strategy(name))  # type: ignore[misc]
        require_place(defects, plot, PLOT_ENDINGS)
    defects.raise_if_any()
    problem = cast("Problem", posed)
    with progress("planning"):
        found = compare_strategies(problem.application, problem.network, names, **options)
    if plot is not None:
        write_beside(plot, found.plot)
    if format is Format.JSON:
        print_json(found.to_dict())
    else:
        print_table(*found.table(), title=found.headline)
    if found.best is None:
        raise typer.Exit(NOT_FEASIBLE)
