"""`thalweg validate`: are these files right, alone and together?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.inputs import pose, require_births
from thalweg.cli.output import Format, FormatOption, print_json, print_table, progress

if TYPE_CHECKING:
    from thalweg.errors import Defects
    from thalweg.model import Application, Network, Plan, Problem, Workload


def validate(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Applications, networks, plans and workloads."),
    ],
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Check files, and every application against the network given with it.

    All problems of all files are told at once. With one application and one network the pins are
    checked too, and every plan and workload given with them is checked against both.
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


def _check_together(values: list[tuple[Path, Application | Network | Plan | Workload]]) -> None:
    from thalweg.errors import Defects
    from thalweg.model import Application, Network, Plan, Workload

    applications = [(path, v) for path, v in values if isinstance(v, Application)]
    networks = [v for _, v in values if isinstance(v, Network)]
    if len(networks) != 1:
        return
    defects = Defects()
    problems = {
        app.name: defects.attempt("", partial(pose, path, app, networks[0]))
        for path, app in applications
    }
    for path, plan in values:
        if problems and isinstance(plan, Plan):
            defects.attempt("", partial(_check_plan, path, plan, problems, networks[0].name))
    posed = next(iter(problems.values())) if len(problems) == 1 else None
    for path, workload in values:
        if posed is not None and isinstance(workload, Workload):
            defects.attempt("", partial(require_births, path, workload, posed))
    defects.raise_if_any()


def _check_plan(path: Path, plan: Plan, problems: dict[str, Problem | None], net: str) -> None:
    """Hold a plan against the problem that it says it solves."""
    from thalweg.check import check
    from thalweg.errors import Defects, InvalidInput
    from thalweg.files.load import find_lines

    defects = Defects()
    known, given = plan.application in problems, " or ".join(problems)
    rule = f'"{given}", the application given with the plan'
    defects.require(known, "application", plan.application, rule)
    rule = f'"{net}", the network given with the plan'
    defects.require(plan.network == net, "network", plan.network, rule)
    problem = None if defects else problems[plan.application]
    for violation in dict.fromkeys(check(plan, problem) if problem is not None else []):
        if violation.constraint == "placed":
            rule = f"a placement of {plan.application} on {net}"
            hint = f"{violation.place} {violation.resource}"
            defects.add("placement", violation.place, rule, hint)
        elif plan.feasible:
            rule = "false, since the checker finds a violation"
            defects.add("feasible", True, rule, str(violation))
    if problem is not None and not defects:
        _check_figures(defects, plan, problem)
    try:
        defects.raise_if_any()
    except InvalidInput as error:
        raise find_lines(error, path) from None


def _check_figures(defects: Defects, plan: Plan, problem: Problem) -> None:
    """Tiers and estimates as the network and the estimators have them."""
    from dataclasses import asdict

    from thalweg.estimate.evaluate import evaluate, find_hosts

    for node, host in find_hosts(problem, plan.placement).items():
        rule = f"{node} in the site {host[0]} of the tier {host[1]}"
        defects.require(
            plan.hosts[node] == host, "placement", " of the tier ".join(plan.hosts[node]), rule
        )
    claimed, found = asdict(plan.estimate), asdict(evaluate(problem, plan.placement).estimate)
    for name, value in found.items():
        close = value == claimed[name] or abs(value - claimed[name]) <= 1e-9 * abs(value)
        rule = f"{value:.12g}, as the estimator has it"
        defects.require(close, f"estimate.{name}", claimed[name], rule)


def _describe(value: Application | Network | Plan | Workload) -> tuple[str, str]:
    from thalweg.model import Application, Network, Workload

    if isinstance(value, Application):
        return "application", f"{len(value.operators)} operators, {len(value.streams)} streams"
    if isinstance(value, Network):
        return "network", f"{value.site_count:,} sites, {value.node_count:,} nodes"
    if isinstance(value, Workload):
        return "workload", f"{len(value):,} steps, {len(value.births):,} births"
    return "plan", f"{len(value.placement):,} instances by {value.strategy}"
