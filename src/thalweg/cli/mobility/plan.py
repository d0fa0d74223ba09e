"""`thalweg mobility plan`: where will the operators of one instance be, when, and why?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.mobility.case import (
    AppArgument,
    EdgesOption,
    FillOption,
    LearnFromOption,
    LengthOption,
    RoutesOption,
    TracksOption,
    TreeArgument,
    VehiclesOption,
)
from thalweg.cli.mobility.planning import (
    DecayOption,
    FixedOption,
    InstancesOption,
    RangeOption,
    StepOption,
    TogetherOption,
)
from thalweg.cli.options import DURATION, HorizonOption, SeedOption, output_option
from thalweg.cli.output import Format, FormatOption, print_json, print_table, progress, say

if TYPE_CHECKING:
    from thalweg.cli.mobility.case import Ground
    from thalweg.errors import Defects
    from thalweg.migration.city import City
    from thalweg.migration.plan import MigrationPlan
    from thalweg.model import Application

NOT_FEASIBLE = 3


def plan(
    application: AppArgument = None,
    network: TreeArgument = None,
    tracks: TracksOption = None,
    routes: RoutesOption = None,
    edges: EdgesOption = None,
    fill_gaps: FillOption = False,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", help="Vehicle of a source; repeatable, in their order."),
    ] = None,
    consumer: Annotated[
        list[str] | None,
        typer.Option("--consumer", help="Vehicle of a sink; repeatable, in their order."),
    ] = None,
    instance: Annotated[
        int | None, typer.Option("--instance", help="One of those that `run` has with this seed.")
    ] = None,
    instances: InstancesOption = None,
    start: Annotated[
        str | None,
        typer.Option("--start", help="Broker where all operators are first; else drawn."),
    ] = None,
    operator: Annotated[str | None, typer.Option("--operator", help="Only this one.")] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar=DURATION, help="When in the trace; else at its beginning."),
    ] = None,
    knowledge: Annotated[
        str, typer.Option("--knowledge", help="What is known about where vehicles will be.")
    ] = "perfect",
    policy: Annotated[
        str, typer.Option("--policy", help="How to plan with what is uncertain.")
    ] = "weighted-sum",
    learn_from: LearnFromOption = None,
    step: StepOption = "1 s",
    horizon: HorizonOption = 500,
    fixed_horizon: FixedOption = True,
    range_: RangeOption = None,
    decay: DecayOption = None,
    together: TogetherOption = False,
    vehicles: VehiclesOption = 1000,
    length: LengthOption = "1000 s",
    seed: SeedOption = 0,
    output: Annotated[Path | None, output_option("the plan (.json)")] = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Plan the moves of one instance's operators, and say why. Exit code 3: a limit is not kept."""
    from thalweg.cli.mobility.case import (
        TraceAsked,
        in_options,
        read_app,
        read_ground,
        read_predictor,
        read_transitions,
    )
    from thalweg.cli.mobility.planning import read_policy, read_settings
    from thalweg.cli.mobility.quantities import read_seconds
    from thalweg.cli.output_files import require_place
    from thalweg.errors import Defects
    from thalweg.migration.plan import plan_instance

    defects = Defects()
    asked = TraceAsked(
        tracks=tracks,
        routes=routes,
        edges=edges,
        fill_gaps=fill_gaps,
        vehicles=vehicles,
        length=length,
        seed=seed,
    )
    with progress("loading"):
        require_place(defects, output, (".json",))
        app = read_app(defects, application)
        chosen = read_policy(defects, policy)
        settings = read_settings(
            defects,
            step=step,
            horizon=horizon,
            fixed=fixed_horizon,
            range_=range_,
            decay=decay,
            together=together,
        )
        at_s = None if at is None else read_seconds(defects, "--at", at)
        ground = read_ground(defects, network, asked)
        transitions = read_transitions(defects, learn_from, ground)
        predictor = read_predictor(defects, knowledge, ground, transitions)
        _require_operator(defects, app, operator)
        given = (source or [], consumer or [])
        city = None
        if app is not None and ground is not None:
            drawn = draw_instances(defects, app, ground, seed, instances)
            city = _choose(defects, app, ground, drawn, given, instance, start)
        defects.raise_if_any()
    assert city is not None and predictor is not None  # noqa: S101 - told before
    assert chosen is not None and settings is not None  # noqa: S101
    number = instance or 0
    begin_s = city.connections.start_s + float(city.life[number, 0]) * city.tick_s
    with progress("planning"):
        moment_s = begin_s if at_s is None else at_s
        plans = in_options(
            lambda: plan_instance(city, number, moment_s, predictor, chosen, settings)
        )
    shown = [found for found in plans if operator in (None, found.operator)]
    vehicle_names = (city.connections.names[v] for v in city.vehicles[number].tolist())
    users = dict(zip(city.graph.users, vehicle_names, strict=True))
    known = {"knowledge": knowledge, "policy": policy, "seed": seed}
    _tell(shown, users, known, output, format)
    if any(found.violations for found in shown):
        raise typer.Exit(NOT_FEASIBLE)


def _tell(
    shown: Sequence[MigrationPlan],
    users: Mapping[str, str],
    known: Mapping[str, object],
    output: Path | None,
    format: Format,  # noqa: A002 - the name of the option
) -> None:
    """Save and print the plans."""
    from thalweg.cli.output_files import write_beside

    told = {"users": users, **known, "plans": [found.to_dict() for found in shown]}
    if output is not None:
        text = json.dumps({"thalweg": 1, **told}, indent=2, ensure_ascii=False, allow_nan=False)
        write_beside(output, lambda path: _write(path, text + "\n"))
    if format is Format.JSON:
        print_json(told)
        return
    names = ", ".join(f"{user}: {vehicle}" for user, vehicle in users.items())
    typer.echo(f"{names}; {known['knowledge']} knowledge, {known['policy']}")
    for found in shown:
        _print(found)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _require_operator(defects: Defects, app: Application | None, operator: str | None) -> None:
    from thalweg.errors import nearest

    if app is None or operator is None:
        return
    known = [each.name for each in app.operators if each.kind == "transform"]
    rule = f"an operator of {app.name} that can move"
    defects.require(operator in known, "--operator", operator, rule, nearest(operator, known))


def _choose(
    defects: Defects,
    app: Application,
    ground: Ground,
    drawn: City | None,
    given: tuple[list[str], list[str]],
    instance: int | None,
    start: str | None,
) -> City | None:
    """The instance between the given vehicles, or all that were drawn; first where told."""
    from dataclasses import replace

    import numpy as np

    from thalweg.errors import nearest

    brokers, named = ground.brokers, any(given)
    if start is not None and start not in brokers.number:
        rule, hint = f"one of the {brokers.count} brokers", nearest(start, brokers.names)
        defects.add("--start", start, rule, hint)
    if named and instance is not None:
        rule = "left out where --source and --consumer say which"
        defects.add("--instance", instance, rule)
    users = _find_users(defects, app, ground, *given) if named else None
    if drawn is None or defects:
        return None
    good = 0 <= (instance or 0) < drawn.instances
    defects.require(good, "--instance", instance, f"a number from 0 to {drawn.instances - 1}")
    if users is not None:
        rows, hosts = np.array([users], dtype=np.int32), drawn.start[:1]
        drawn = defects.attempt("", partial(replace, drawn, vehicles=rows, start=hosts))
    if drawn is not None and start is not None:
        hosts = np.full_like(drawn.start, brokers.number[start])
        return replace(drawn, start=hosts)
    return drawn


def draw_instances(
    defects: Defects, app: Application, ground: Ground, seed: int, instances: int | None
) -> City | None:
    """The city that `mobility run` has with this seed."""
    import numpy as np

    from thalweg.cli.mobility.case import in_options
    from thalweg.migration.city import draw_city
    from thalweg.migration.operators import MobileGraph

    good = 0 <= seed < 2**63
    defects.require(good, "--seed", seed, "a whole number from 0 to 2^63 − 1")
    if not good:
        return None
    make = partial(
        draw_city,
        MobileGraph.of(app),
        ground.brokers,
        ground.connections,
        np.random.default_rng(seed),
        instances=instances,
    )
    city = defects.attempt("", lambda: in_options(make))
    if city is not None and city.lonely:
        some = ", ".join(city.lonely[:5]) + (" …" if len(city.lonely) > 5 else "")
        say(f"{len(city.lonely)} vehicles meet nobody and have no instance: {some}")
    return city


def _find_users(
    defects: Defects, app: Application, ground: Ground, source: list[str], consumer: list[str]
) -> list[int] | None:
    """The vehicle of each user of the graph, in its order."""
    from thalweg.errors import nearest

    number = ground.connections.number
    given = {"source": iter(source), "sink": iter(consumer)}
    good = True
    for option, kind, vehicles in (
        ("--source", "source", source),
        ("--consumer", "sink", consumer),
    ):
        wanted = [each.name for each in app.operators if each.kind == kind]
        fits = len(vehicles) == len(wanted)
        rule = f"a vehicle for each of {', '.join(wanted)}"
        defects.require(fits, option, vehicles or None, rule)
        good &= fits
        for vehicle in vehicles:
            known = vehicle in number
            rule = f"one of the {len(number)} vehicles of the trace"
            defects.require(known, option, vehicle, rule, nearest(vehicle, number))
            good &= known
    if not good:
        return None
    return [number[next(given[each.kind])] for each in app.operators if each.kind in given]


def _print(found: MigrationPlan) -> None:
    """The steps at which the host changes, and why."""
    from thalweg.cli.mobility.quantities import show_bytes, show_cost

    typer.echo("")
    rows = [[f"{found.begin_s:g} s", found.steps[0].host, "-", "-", "-", "-"]]
    rows += [
        [
            f"{move.at_s:g} s",
            move.target,
            f"{move.begin_s:g} s",
            show_bytes(move.state_bytes),
            show_cost(move.cost),
            show_cost(move.saves),
        ]
        for move in found.moves
    ]
    names = ["from", "host", "transfer from", "state", "move costs", "move saves"]
    print_table(names, rows, title=found.operator)
    for line in found.explain():
        typer.echo(line)
