"""`thalweg compare`: several strategies on one or more problems."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thalweg.cli.completion import complete_strategy
from thalweg.cli.inputs import ApplicationArgument, pose, read_duration, read_options
from thalweg.cli.options import (
    DURATION,
    OptionOption,
    PlotOption,
    on_option,
    output_option,
    strategy_option,
    vary_option,
)
from thalweg.cli.output import Format, FormatOption, counting, print_json, print_table, tell
from thalweg.cli.plan import NOT_FEASIBLE

if TYPE_CHECKING:
    from thalweg.errors import Defects
    from thalweg.model import Problem
    from thalweg.study.result import Study

NetworksArgument = Annotated[
    list[Path],
    typer.Argument(metavar="NETWORK", help="Network files (YAML or JSON) or Parquet folders."),
]


def compare(
    application: ApplicationArgument,
    networks: NetworksArgument,
    strategies: Annotated[
        str | None, strategy_option("Names of strategies; else those of the family", several=True)
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", metavar="N", help="Draw the source rates N times; 1: as they are declared."
        ),
    ] = 1,
    spread: Annotated[
        float | None,
        typer.Option(
            "--spread", help="How far rates are drawn from those declared, 0 to 1; else 0.5."
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        vary_option("rates, bandwidth or latency (factors), or option.NAME; repeatable"),
    ] = None,
    simulate: Annotated[
        str | None,
        typer.Option(
            "--simulate", metavar=DURATION, help="Also simulate each feasible plan for so long."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="NAME",
            help="Strategy that others are tested against; else cloud-only.",
            autocompletion=complete_strategy,
        ),
    ] = None,
    option: OptionOption = None,
    on: Annotated[str | None, on_option("in this process")] = None,
    output: Annotated[
        Path | None, output_option("every point (.csv, .parquet) or the whole study (.json)")
    ] = None,
    plot: PlotOption = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Compare what strategies make of one or more problems. Exit code 3: no plan is feasible."""
    from thalweg.cli.output_files import require_place, write_beside
    from thalweg.errors import Defects
    from thalweg.plotting import PLOT_ENDINGS, require_plotting
    from thalweg.study.draws import SPREAD
    from thalweg.study.run import require_arguments, study
    from thalweg.study.saving import ENDINGS
    from thalweg.study.variation import parse_variations

    if plot is not None:
        require_plotting()
    defects = Defects()
    problems = _load(defects, application, networks)
    options = defects.attempt("", lambda: read_options(option or [])) or {}
    varied = defects.attempt("", lambda: parse_variations(vary or []))
    seconds = defects.attempt(
        "", lambda: None if simulate is None else read_duration(simulate, "--simulate")
    )
    names = None if strategies is None else _split(strategies)
    asked: dict[str, Any] = {
        "seeds": seeds,
        "vary": varied,
        "spread": SPREAD if spread is None else spread,
        "baseline": baseline,
        "simulate_s": seconds,
        "on": on,
    }
    drawn = spread is None or seeds != 1
    defects.require(drawn, "--spread", spread, "--seeds of at least 2 with it")
    require_place(defects, output, ENDINGS)
    require_place(defects, plot, PLOT_ENDINGS)
    if defects:
        # Else it is the study that tells what is wrong with them.
        require_arguments(defects, names, **asked, options=options)
    defects.raise_if_any()
    with counting("planning") as count:
        found = study(
            problems[0].application,
            [problem.network for problem in problems],
            names,
            **asked,
            on_progress=count,
            **options,
        )
    if output is not None:
        write_beside(output, found.save)
    if plot is not None:
        write_beside(plot, found.plot)
    _print(found, format)
    if not found.any_feasible:
        raise typer.Exit(NOT_FEASIBLE)


def _load(defects: Defects, application: Path, networks: list[Path]) -> list[Problem]:
    """The problems that the application and each of the networks pose."""
    from thalweg.files.load import load_application, load_network

    once = len({network.resolve() for network in networks}) == len(networks)
    listed = " ".join(map(str, networks))
    defects.require(once, "NETWORK", listed, "each network once")
    app = defects.attempt("", partial(load_application, application))
    nets = [defects.attempt("", partial(load_network, network)) for network in networks]
    if app is None:
        return []
    posed = [
        defects.attempt("", partial(pose, application, app, net)) for net in nets if net is not None
    ]
    return [problem for problem in posed if problem is not None]


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _print(found: Study, form: Format) -> None:
    if form is Format.JSON:
        print_json(found.to_dict())
        return
    for number, table in enumerate(found.tables()):
        if number:
            tell("")
        print_table(table.names, table.rows, title=table.title)
    for line in found.notes():
        tell(line)
