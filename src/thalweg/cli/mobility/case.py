"""What the commands about mobility are given: brokers, vehicles, operators, and what is known."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.inputs import name_options, read_duration
from thalweg.cli.options import for_option

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from thalweg.errors import Defects
    from thalweg.files.transitions_table import TransitionTable
    from thalweg.migration.brokers import Brokers
    from thalweg.migration.connections import Connections
    from thalweg.migration.mobility import Predictor
    from thalweg.model import Application
    from thalweg.model.planned_routes import PlannedRoutes
    from thalweg.model.vehicles import VehicleTracks

    Made = TypeVar("Made")

AppArgument = Annotated[
    Path | None,
    typer.Argument(metavar="APP", help="Application file; else vehicles that look for friends."),
]
TreeArgument = Annotated[
    Path | None,
    typer.Argument(metavar="NETWORK", help="Network file, a tree; else a quad-tree of brokers."),
]
NetworkOption = Annotated[
    Path | None,
    typer.Option("--network", metavar="FILE", help="Network file, a tree; else a quad-tree."),
]
TracksOption = Annotated[
    Path | None,
    typer.Option("--tracks", help="Where vehicles were (.parquet or .csv); else generated."),
]
RoutesOption = Annotated[
    Path | None, typer.Option("--routes", help="Where they mean to drive (.parquet or .csv).")
]
EdgesOption = Annotated[
    Path | None, typer.Option("--edges", help="Roads of the routes; else edges.parquet beside.")
]
FillOption = Annotated[
    bool, typer.Option("--fill-gaps", help="Fill gaps in tracks on a straight line.")
]
VehiclesOption = Annotated[int, typer.Option("--vehicles", help="How many to generate.")]
LengthOption = Annotated[str, for_option("a generated trace is")]
LearnFromOption = Annotated[
    Path | None,
    typer.Option("--learn-from", help="Past trace, or what `mobility learn` made of some."),
]

_OPTIONS = {
    "ahead_s": "--ahead",
    "at_s": "--at",
    "every_s": "--interval",
    "instance": "--instance",
    "instances": "--instances",
    "seconds": "--for",
    "seed": "--seed",
    "step_s": "--step",
    "vehicles": "--vehicles",
}
# Only `learn` writes a column of this name.
_LEARNED_COLUMN = "previous"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAsked:
    """Which trace is asked for: files, or so many vehicles for so long."""

    tracks: Path | None = None
    routes: Path | None = None
    edges: Path | None = None
    fill_gaps: bool = False
    vehicles: int = 1000
    length: str = "1000 s"
    seed: int = 0

    @property
    def files(self) -> list[Path]:
        """What is read."""
        return [path for path in (self.tracks, self.routes, self.edges) if path is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Brokers, and the vehicles that are connected to them."""

    brokers: Brokers
    vehicles: VehicleTracks
    routes: PlannedRoutes | None
    connections: Connections


def in_options(make: Callable[[], Made]) -> Made:
    """What `make` returns; its problems are about the options that the figures came from."""
    return name_options(make, _OPTIONS)


def read_app(defects: Defects, path: Path | None) -> Application | None:
    """The application of a file, or the scenario; it has an operator that can move."""
    from thalweg.errors import InvalidInput
    from thalweg.files.load import load_application
    from thalweg.migration.operators import MobileGraph
    from thalweg.scenarios import nearby_friends

    if path is None:
        return nearby_friends()
    app = defects.attempt("", lambda: load_application(path))
    if app is not None:
        try:
            MobileGraph.of(app)
        except InvalidInput as error:
            defects.absorb(error.in_file(os.fspath(path)))
            return None
    return app


def read_brokers(defects: Defects, path: Path | None) -> Brokers | None:
    """The brokers of a network file, or those of the scenario."""
    from thalweg.errors import InvalidInput
    from thalweg.files.load import load_network
    from thalweg.migration.brokers import Brokers
    from thalweg.scenarios import BrokerFigures, broker_tree

    if path is None:
        return Brokers.of(broker_tree(figures=BrokerFigures(latency_growth=1.0)))
    network = defects.attempt("", lambda: load_network(path))
    if network is None:
        return None
    try:
        return Brokers.of(network)
    except InvalidInput as error:
        defects.absorb(error.in_file(os.fspath(path)))
        return None


def read_ground(defects: Defects, network: Path | None, asked: TraceAsked) -> Ground | None:
    """Brokers and vehicles; None where something is wrong with them, and all of it remembered."""
    from thalweg.errors import InvalidInput
    from thalweg.migration.connections import Connections

    brokers = read_brokers(defects, network)
    vehicles, routes = _read_trace(defects, brokers, asked)
    if brokers is None or vehicles is None:
        return None
    try:
        connections = Connections.of(vehicles.names, vehicles.tracks, brokers)
    except InvalidInput as error:
        defects.absorb(error if asked.tracks is None else error.in_file(os.fspath(asked.tracks)))
        return None
    return Ground(brokers=brokers, vehicles=vehicles, routes=routes, connections=connections)


def _read_trace(
    defects: Defects, brokers: Brokers | None, asked: TraceAsked
) -> tuple[VehicleTracks | None, PlannedRoutes | None]:
    from thalweg.files.routes_reader import load_routes
    from thalweg.files.tracks_reader import load_tracks

    tracks, routes = asked.tracks, asked.routes
    rule = "given together with --tracks: a generated trace has routes of its own"
    defects.require(tracks is not None or routes is None, "--routes", str(routes), rule)
    rule = "given together with --routes"
    defects.require(routes is not None or asked.edges is None, "--edges", str(asked.edges), rule)
    if tracks is None:
        return _generate(defects, brokers, asked)
    vehicles = defects.attempt(
        "", lambda: load_tracks(tracks, gaps="fill" if asked.fill_gaps else "refuse")
    )
    if routes is None:
        return vehicles, None
    return vehicles, defects.attempt("", lambda: load_routes(routes, asked.edges))


def _generate(
    defects: Defects, brokers: Brokers | None, asked: TraceAsked
) -> tuple[VehicleTracks | None, PlannedRoutes | None]:
    """Vehicles that drive where the brokers are."""
    from thalweg.scenarios.vehicles import city_vehicles

    if brokers is None:
        return None, None
    areas = brokers.area_m[brokers.leaves]
    low, high = areas[:, :2].min(axis=0).tolist(), areas[:, 2:].max(axis=0).tolist()
    area_m = (low[0], low[1], high[0], high[1])
    seconds = defects.attempt("", lambda: read_duration(asked.length, "--for"))
    if seconds is None:
        return None, None
    make = partial(city_vehicles, asked.vehicles, seconds, seed=asked.seed, area_m=area_m)
    made = defects.attempt("", lambda: in_options(make))
    return (None, None) if made is None else made


def read_transitions(
    defects: Defects, path: Path | None, ground: Ground | None
) -> TransitionTable | None:
    """What a file says about the past: a table of transitions, or a trace to count them in."""
    from thalweg.errors import InvalidInput
    from thalweg.files.tracks_reader import load_tracks
    from thalweg.files.transitions_table import load_transitions
    from thalweg.migration.connections import Connections
    from thalweg.migration.predictors.learned import Transitions

    if path is None:
        return None
    if _LEARNED_COLUMN in _columns(path):
        return defects.attempt("", lambda: load_transitions(path))
    past = defects.attempt("", lambda: load_tracks(path, gaps="fill"))
    if past is None or ground is None:
        return None
    brokers = ground.brokers
    try:
        connections = Connections.of(past.names, past.tracks, brokers)
    except InvalidInput as error:
        defects.absorb(error.in_file(os.fspath(path)))
        return None
    return defects.attempt("--learn-from", lambda: Transitions.of(connections, brokers))


def _columns(path: Path) -> list[str]:
    """The columns of a table; none where it cannot be read: whoever reads it whole says why."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix.lower() == ".parquet":
            return [str(name) for name in pq.read_schema(path).names]
        with path.open(encoding="utf-8") as lines:
            return lines.readline(10_000).strip().replace('"', "").split(",")
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return []


def read_predictor(
    defects: Defects, name: str, ground: Ground | None, transitions: TransitionTable | None
) -> Predictor | None:
    """The predictor of this name; what it needs and was not given is told by its option."""
    from thalweg.errors import nearest
    from thalweg.migration.mobility import KNOWLEDGE, predictor

    if name not in KNOWLEDGE:
        defects.add("--knowledge", name, " or ".join(KNOWLEDGE), nearest(name, KNOWLEDGE))
        return None
    if ground is None:
        return None
    missing = missing_input(name, ground, transitions)
    if missing:
        defects.add("--knowledge", name, "what it knows from", missing)
        return None
    return defects.attempt(
        "--knowledge",
        lambda: predictor(
            name,
            ground.connections,
            ground.brokers,
            routes=ground.routes,
            vehicles=ground.vehicles,
            transitions=transitions,
        ),
    )


def missing_input(name: str, ground: Ground, transitions: TransitionTable | None) -> str:
    """What would have to be given for a predictor; "" where all is there."""
    if name == "learned" and transitions is None:
        return "give --learn-from: a past trace, or what `thalweg mobility learn` wrote"
    if name != "navigation":
        return ""
    if ground.routes is None:
        return "give --routes: where the vehicles of --tracks mean to drive"
    if ground.vehicles.edge is None or ground.vehicles.pos_m is None:
        return "give --tracks that know edge and pos, the road and the metres along it"
    return ""
