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
    from thalweg.model.changes import Change, PlanChange, RateChange

    Held = Application | Network | Plan | Workload | tuple[Change, ...]


def validate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Applications, networks, plans, workloads and changes."
        ),
    ],
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Check files, and every application against the network given with it.

    All problems of all files are told at once. With one application and one network the pins are
    checked too, and every plan, workload and list of changes given with them is checked against
    both.
    """
    from thalweg.errors import Defects

    defects = Defects()
    with progress("reading"):
        loaded = [(path, defects.attempt("", partial(_load, path))) for path in files]
    values = [(path, value) for path, value in loaded if value is not None]
    defects.attempt("", lambda: _check_together(values))
    defects.raise_if_any()
    rows = [(str(path), *_describe(value)) for path, value in values]
    if format is Format.JSON:
        names = ("file", "kind", "holds")
        print_json({"files": [dict(zip(names, row, strict=True)) for row in rows]})
    else:
        print_table(["file", "kind", "holds"], rows)


def _load(path: Path) -> Held:
    """What a file holds; changes are read with the plans beside them."""
    from thalweg.errors import InvalidInput
    from thalweg.files.kinds import is_about_changes
    from thalweg.files.load import load_any, load_changes

    try:
        return load_any(path)
    except InvalidInput as error:
        if not is_about_changes(error):
            raise
    return load_changes(path)


def _check_together(values: list[tuple[Path, Held]]) -> None:
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
    for path, changes in values:
        if isinstance(changes, tuple):
            defects.attempt("", partial(_check_changes, path, changes, networks[0], posed))
    defects.raise_if_any()


def _check_changes(
    path: Path, changes: tuple[Change, ...], network: Network, posed: Problem | None
) -> None:
    """Hold changes against the network and, where there is one, the only application."""
    from thalweg.errors import Defects, InvalidInput
    from thalweg.files.load import find_lines
    from thalweg.model.changes import SpeedChange

    defects = Defects()
    for position, change in enumerate(changes):
        at = f"changes[{position}]"
        if isinstance(change, SpeedChange):
            change.find(defects, at, network)
        elif posed is not None:
            defects.attempt(at, partial(_check_change, change, posed))
    try:
        defects.raise_if_any()
    except InvalidInput as error:
        raise find_lines(error, path) from None


def _check_change(change: PlanChange | RateChange, posed: Problem) -> None:
    """Raise what does not fit in other rates or another plan."""
    from thalweg.errors import Defects
    from thalweg.model import Placement, Problem
    from thalweg.model.changes import RateChange
    from thalweg.model.deployment import deploy

    app, net = posed.application, posed.network
    defects = Defects()
    if change.application is not None:
        rule = f'"{app.name}", the application given with the changes'
        defects.require(change.application == app.name, "application", change.application, rule)
    defects.raise_if_any()
    if isinstance(change, RateChange):
        Problem(application=app, network=net, rates=change.rates)
        return
    plan = change.plan
    if isinstance(plan, Placement):
        deploy(posed, plan)
        return
    for part, name, wanted in (
        ("application", plan.application, app.name),
        ("network", plan.network, net.name),
    ):
        defects.require(name == wanted, "plan", name, f'a plan for the {part} "{wanted}"')
    defects.raise_if_any()
    deploy(posed, plan.placement)


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


def _describe(value: Held) -> tuple[str, str]:
    from thalweg.model import Application, Network, Workload

    if isinstance(value, Application):
        return "application", f"{len(value.operators)} operators, {len(value.streams)} streams"
    if isinstance(value, Network):
        return "network", f"{value.site_count:,} sites, {value.node_count:,} nodes"
    if isinstance(value, Workload):
        return "workload", f"{len(value):,} steps, {len(value.births):,} births"
    if isinstance(value, tuple):
        return "changes", _count_changes(value)
    return "plan", f"{len(value.placement):,} instances by {value.strategy}"


def _count_changes(changes: tuple[Change, ...]) -> str:
    noun = "change" if len(changes) == 1 else "changes"
    last_s = max(change.at_s for change in changes)
    return f"{len(changes):,} {noun}, the last one at {last_s:g} s"
