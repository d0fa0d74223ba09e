"""`thalweg plan`: where should each operator run?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from thalweg.cli.inputs import ApplicationArgument, NetworkArgument, load_problem, read_options
from thalweg.cli.options import FamilyStrategyOption, OptionOption, also_option, output_option
from thalweg.cli.output import Format, FormatOption, print_json, print_plan, progress, say, tell

if TYPE_CHECKING:
    from thalweg.model import Plan, Problem

NOT_FEASIBLE = 3


def plan(
    application: ApplicationArgument,
    network: NetworkArgument,
    strategy: FamilyStrategyOption = None,
    option: OptionOption = None,
    current: Annotated[
        Path | None,
        typer.Option("--current", metavar="PLAN", help="Plan that runs now (JSON or YAML)."),
    ] = None,
    also: Annotated[
        list[Path] | None, also_option("APP", "on the same network, planned on what is left")
    ] = None,
    output: Annotated[Path | None, output_option("the plan (JSON or YAML)")] = None,
    all_rows: Annotated[
        bool, typer.Option("--all", help="Show every instance and every violation.")
    ] = False,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Plan where each operator runs. Exit code 3 means that the plan is not feasible."""
    import thalweg
    from thalweg.errors import Defects
    from thalweg.files.load import load_plan
    from thalweg.files.save import require_place, save
    from thalweg.plan_summary import summarise
    from thalweg.planning import family_strategy
    from thalweg.strategy import find_strategy, require_options

    defects = Defects()
    with progress("loading"):
        posed = defects.attempt("", lambda: load_problem(application, network))
        others = [
            defects.attempt("", partial(load_problem, other, network)) for other in also or []
        ]
        if also:
            rule = "left out together with --also: it is about one application"
            defects.require(current is None, "--current", str(current), rule)
            defects.require(output is None, "--output", str(output), rule)
        running = defects.attempt("", lambda: None if current is None else load_plan(current))
        options = defects.attempt("", lambda: read_options(option or [])) or {}
        name = strategy or (family_strategy(posed) if posed is not None else "")
        if name and defects.attempt("", lambda: find_strategy(name)) is not None:
            defects.attempt("", lambda: require_options(name, options))
        if output is not None:
            defects.attempt("", lambda: require_place(output))
    defects.raise_if_any()
    problem = cast("Problem", posed)
    if others:
        problems = [problem, *cast("list[Problem]", others)]
        _plan_together(problems, strategy, options, format, all_rows=all_rows)
        return
    with progress("planning"):
        found = thalweg.plan(
            problem.application, problem.network, strategy, current=running, **options
        )
        _require_honest(found, problem)
    if output is not None:
        save(found, output)
        say(f"wrote {output}")
    if format is Format.JSON:
        print_json(found.to_dict())
    else:
        print_plan(found, summarise(found, problem), all_rows=all_rows)
    if not found.feasible:
        raise typer.Exit(NOT_FEASIBLE)


def _plan_together(
    problems: list[Problem],
    strategy: str | None,
    options: dict[str, Any],
    format: Format,  # noqa: A002 - the name of the option
    *,
    all_rows: bool,
) -> None:
    """Plan the applications one after the other, each on what those before it leave."""
    from thalweg.plan_summary import summarise
    from thalweg.planning import plan_in_turn

    applications = [problem.application for problem in problems]
    with progress("planning"):
        turns = list(plan_in_turn(applications, problems[0].network, strategy, **options))
        for turn in turns:
            _require_honest(turn.plan, turn.problem)
    plans = [turn.plan for turn in turns]
    if format is Format.JSON:
        print_json({"plans": [found.to_dict() for found in plans]})
    else:
        for number, turn in enumerate(turns):
            if number > 0:
                tell("")
            print_plan(turn.plan, summarise(turn.plan, turn.problem), all_rows=all_rows)
    if not all(found.feasible for found in plans):
        raise typer.Exit(NOT_FEASIBLE)


def _require_honest(found: Plan, problem: Problem) -> None:
    """Hold the plan against the independent checker before anyone relies on it."""
    from thalweg.check import check
    from thalweg.errors import StrategyError

    claimed = sorted((v.constraint, v.place) for v in found.violations)
    verified = sorted((v.constraint, v.place) for v in check(found, problem))
    if claimed != verified:
        raise StrategyError(
            f"{found.strategy} claims {claimed or 'no violation'}, "
            f"the checker finds {verified or 'none'}. Hint: report this; do not use the plan."
        )
