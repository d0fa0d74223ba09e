"""`thalweg mobility run`: a whole city, with operators that stay, chase or plan ahead."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from thalweg.cli.options import HorizonOption, SeedOption, output_option, plot_option
from thalweg.cli.output import Format, FormatOption, counting, print_json, progress

if TYPE_CHECKING:
    from thalweg.cli.mobility.case import Ground
    from thalweg.errors import Defects
    from thalweg.files.transitions_table import TransitionTable
    from thalweg.migration.city import City
    from thalweg.migration.drive import Drive
    from thalweg.migration.settings import Settings
    from thalweg.simulate.moving import Execution

APPROACHES = ("static", "greedy", "migcep", "lookahead-optimal")
BY_DEFAULT = ("static", "greedy", "migcep")
MIGCEP = "migcep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """One way to keep operators near their users, how to get there, and what it knows."""

    name: str
    knowledge: str | None
    policy: str | None
    drive: Callable[[City], Drive]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it."""

    trip: Trip
    drive: Drive
    execution: Execution
    seconds: float
    """How long it took to decide, by the clock."""


def run(
    application: AppArgument = None,
    network: TreeArgument = None,
    tracks: TracksOption = None,
    routes: RoutesOption = None,
    edges: EdgesOption = None,
    fill_gaps: FillOption = False,
    instances: InstancesOption = None,
    approach: Annotated[
        list[str] | None,
        typer.Option(
            "--approach", help=f"{', '.join(APPROACHES)}; repeatable; else all but the last."
        ),
    ] = None,
    knowledge: Annotated[
        list[str] | None,
        typer.Option("--knowledge", help="What migcep knows; repeatable; else perfect."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", help="How migcep plans; repeatable; else weighted-sum."),
    ] = None,
    learn_from: LearnFromOption = None,
    step: StepOption = "1 s",
    horizon: HorizonOption = 500,
    fixed_horizon: FixedOption = False,
    range_: RangeOption = None,
    decay: DecayOption = None,
    together: TogetherOption = False,
    vehicles: VehiclesOption = 1000,
    length: LengthOption = "1000 s",
    seed: SeedOption = 0,
    output: Annotated[Path | None, output_option("all tables and a manifest")] = None,
    plot: Annotated[Path | None, plot_option(".html, the moving city")] = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the name of the option
) -> None:
    """Run a whole city, and compare what each approach costs, moves and delivers."""
    from thalweg.cli.mobility.case import TraceAsked, read_app, read_ground, read_transitions
    from thalweg.cli.mobility.comparison import print_comparison, to_plain
    from thalweg.cli.mobility.plan import draw_instances
    from thalweg.cli.mobility.planning import read_settings
    from thalweg.cli.output_files import require_folder, require_place, write_beside
    from thalweg.errors import Defects

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
        require_place(defects, plot, (".html",))
        require_folder(defects, output)
        settings = read_settings(
            defects,
            step=step,
            horizon=horizon,
            fixed=fixed_horizon,
            range_=range_,
            decay=decay,
            together=together,
        )
        app = read_app(defects, application)
        ground = read_ground(defects, network, asked)
        transitions = read_transitions(defects, learn_from, ground)
        wanted = (approach or BY_DEFAULT, knowledge or ["perfect"], policy or ["weighted-sum"])
        trips = _read_trips(defects, wanted, settings, ground, transitions)
        city = None
        if app is not None and ground is not None:
            city = draw_instances(defects, app, ground, seed, instances)
        defects.raise_if_any()
    assert city is not None and settings is not None  # noqa: S101 - told before
    static_bdp, outcomes = _run(city, trips, seed)
    told: dict[str, Any] = {
        "instances": city.instances,
        "brokers": city.brokers.count,
        "vehicles": city.connections.vehicles,
        "seconds": city.ticks * city.tick_s,
        "seed": seed,
        "approaches": [to_plain(outcome, static_bdp) for outcome in outcomes],
    }
    if output is not None:
        from thalweg.cli.mobility.saving import save_outcomes

        files = [*(path for path in (application, network, learn_from) if path), *asked.files]
        save_outcomes(outcomes, output, told, settings, files)
    if plot is not None:
        from thalweg.migration.view.page import render_page

        with progress("drawing"):
            html = render_page([outcome.drive for outcome in outcomes], title=city.graph.name)
        write_beside(plot, partial(_write, html))
    if format is Format.JSON:
        print_json(told)
    else:
        print_comparison(city, told["approaches"])


def _write(html: str, path: Path) -> None:
    path.write_text(html, encoding="utf-8")


def _read_trips(
    defects: Defects,
    wanted: tuple[Sequence[str], Sequence[str], Sequence[str]],
    settings: Settings | None,
    ground: Ground | None,
    transitions: TransitionTable | None,
) -> list[Trip]:
    """Every approach that is asked for, `migcep` with each knowledge and each policy."""
    from thalweg.cli.mobility.case import read_predictor
    from thalweg.cli.mobility.planning import read_policy
    from thalweg.errors import nearest
    from thalweg.migration.approaches import BASELINES, drive_migcep

    approaches, knowledge, policies = (list(dict.fromkeys(names)) for names in wanted)
    known = {name: read_predictor(defects, name, ground, transitions) for name in knowledge}
    rules = {name: read_policy(defects, name) for name in policies}
    trips = []
    for approach in approaches:
        if approach in BASELINES:
            drive = BASELINES[approach]
            trips.append(Trip(name=approach, knowledge=None, policy=None, drive=drive))
            continue
        if approach != MIGCEP:
            rule, hint = " or ".join(APPROACHES), nearest(approach, APPROACHES)
            defects.add("--approach", approach, rule, hint)
            continue
        alone = len(known) * len(rules) == 1
        for know, predictor in known.items():
            for how, chosen in rules.items():
                if predictor is None or chosen is None or settings is None:
                    continue
                name = MIGCEP if alone else f"{MIGCEP} {know} {how}"
                go = partial(
                    drive_migcep, predictor=predictor, policy=chosen, settings=settings, name=name
                )
                trips.append(Trip(name=name, knowledge=know, policy=how, drive=go))
    return trips


def _run(city: City, trips: list[Trip], seed: int) -> tuple[float, list[Outcome]]:
    """The mean of what is on its way when nobody moves, and what came of each trip."""
    from thalweg.migration.baselines import drive_static
    from thalweg.simulate.moving import execute

    outcomes = []
    with counting("driving") as on_progress:
        for done, trip in enumerate(trips):
            on_progress(done, len(trips))
            began = time.perf_counter()
            drive = trip.drive(city)
            took = time.perf_counter() - began
            outcomes.append(
                Outcome(trip=trip, drive=drive, execution=execute(drive, seed=seed), seconds=took)
            )
    return drive_static(city).mean_bdp_bytes, outcomes
