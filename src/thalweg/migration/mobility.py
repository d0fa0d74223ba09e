"""Where vehicles will connect: ways to know it, by name."""

from __future__ import annotations

from typing import Any, Protocol

from thalweg.errors import Defects, nearest
from thalweg.files.transitions_table import TransitionTable
from thalweg.migration.brokers import Brokers
from thalweg.migration.connections import Connections
from thalweg.migration.fan import Fan
from thalweg.migration.predictors.dead_reckoning import DeadReckoning
from thalweg.migration.predictors.learned import Learned
from thalweg.migration.predictors.navigation import Navigation
from thalweg.migration.predictors.perfect import Perfect
from thalweg.model.planned_routes import PlannedRoutes
from thalweg.model.vehicles import VehicleTracks

KNOWLEDGE = ("perfect", "navigation", "dead-reckoning", "learned")


class Predictor(Protocol):
    """Tells where a vehicle will connect, from what is known up to a moment."""

    @property
    def name(self) -> str:
        """How it is called."""

    def predict(self, vehicle: int, tick: int, steps: int, stride: int = 1) -> Fan:
        """The leaf at `tick`, `tick + stride`, …, `tick + (steps − 1) · stride` of the trace.

        Hosts are numbers of brokers. The first one is what is known now, and certain; of a vehicle
        that is not on the map only `perfect` knows more than that.
        """


def predictor(
    name: str,
    connections: Connections,
    brokers: Brokers,
    *,
    routes: PlannedRoutes | None = None,
    vehicles: VehicleTracks | None = None,
    transitions: TransitionTable | None = None,
    **options: Any,
) -> Predictor:
    """The predictor called so, one of `KNOWLEDGE`, with its own options.

    `navigation` needs routes and vehicles whose roads are known, `learned` transitions.

    Raises:
        InvalidInput: with everything that is missing.
    """
    defects = Defects()
    defects.require(name in KNOWLEDGE, "knowledge", name, "a known name", nearest(name, KNOWLEDGE))
    known = _OPTIONS.get(name, ())
    for option in options if name in KNOWLEDGE else ():
        rule = f"an option of {name}"
        defects.require(option in known, option, options[option], rule, nearest(option, known))
    if name == "navigation":
        hint = "load_routes reads them"
        defects.require(routes is not None, "routes", routes, "the planned routes", hint)
        rule, hint = "the tracks of the vehicles", "load_tracks reads them"
        defects.require(vehicles is not None, "vehicles", vehicles, rule, hint)
        for column in ("edge", "pos_m") if vehicles is not None else ():
            there = getattr(vehicles, column) is not None
            rule = "tracks that know the road and the metres along it"
            defects.require(there, f"vehicles.{column}", None, rule)
    if name == "learned":
        hint = "count_transitions or Transitions.of counts them in past traces"
        defects.require(transitions is not None, "transitions", transitions, "them", hint)
    defects.raise_if_any()
    if name == "perfect":
        return Perfect(connections)
    if name == "dead-reckoning":
        return DeadReckoning(connections, brokers, **options)
    if name == "learned":
        assert transitions is not None  # noqa: S101
        return Learned(connections, brokers, transitions, **options)
    assert routes is not None and vehicles is not None  # noqa: S101
    return Navigation(connections, brokers, routes, vehicles, **options)


_OPTIONS = {
    "navigation": ("pace", "window_s", "ends"),
    "dead-reckoning": ("window_s", "radius_m", "growth_ms", "points"),
    "learned": ("order", "stays", "parts", "threshold", "most", "ends"),
}
