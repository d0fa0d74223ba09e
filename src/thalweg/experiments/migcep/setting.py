"""The city of the experiments: its vehicles, its brokers, and what is known of where they drive.

All of it is made once in each process and kept: points of a sweep differ in little else than the
size of events and states.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from thalweg.errors import Defects
from thalweg.files.routes_reader import EDGES_FILE, load_routes
from thalweg.files.tracks_reader import load_tracks
from thalweg.migration.brokers import Brokers
from thalweg.migration.city import City, draw_city
from thalweg.migration.connections import Connections
from thalweg.migration.mobility import Predictor, predictor
from thalweg.migration.operators import MobileGraph
from thalweg.migration.predictors.learned import Transitions
from thalweg.model.graph import Floats
from thalweg.model.planned_routes import PlannedRoutes
from thalweg.model.vehicles import VehicleTracks
from thalweg.scenarios import BrokerFigures, broker_tree, flat_brokers, nearby_friends
from thalweg.scenarios.randomness import random_stream
from thalweg.scenarios.vehicles import city_vehicles

VEHICLES, SECONDS = 1000, 1000
TRACKS_FILE, ROUTES_FILE = "fcd_compact.parquet", "planned_routes.parquet"
TREES = ("quad", "flat")
FLAT_LEAVES = 40
# The same latency on all links, as in the paper; and room for everybody, of which it says nothing.
FIGURES = BrokerFigures(latency_growth=1.0, leaf_mips=100_000.0)
LEAST_EVENT_BYTES, MOST_EVENT_BYTES = 50.0, 250.0


def require_data(data: Path) -> Path:
    """The folder, if it has all files; as workers find it, whatever folder they run in."""
    defects = Defects()
    for name in (TRACKS_FILE, ROUTES_FILE, EDGES_FILE):
        there = (data / name).is_file()
        defects.require(there, "data", str(data), f"a folder with {name}")
    defects.raise_if_any()
    return data.resolve()


@lru_cache(maxsize=1)
def traffic(data: str, vehicles: int = VEHICLES) -> tuple[VehicleTracks, PlannedRoutes]:
    """The vehicles of a folder with SUMO's tables; generated ones where no folder is named."""
    if not data:
        return city_vehicles(vehicles, SECONDS)
    folder = Path(data)
    return load_tracks(folder / TRACKS_FILE), load_routes(folder / ROUTES_FILE)


@lru_cache(maxsize=len(TREES))
def brokers_of(tree: str) -> Brokers:
    """The quad-tree of 21 brokers, or a cloud over 40 leaves."""
    if tree == "quad":
        return Brokers.of(broker_tree(figures=FIGURES))
    return Brokers.of(flat_brokers(FLAT_LEAVES, figures=FIGURES))


@lru_cache(maxsize=len(TREES))
def connections_of(tree: str, data: str, vehicles: int = VEHICLES) -> Connections:
    """Which leaf each vehicle is connected to, second by second."""
    tracks, _ = traffic(data, vehicles)
    return Connections.of(tracks.names, tracks.tracks, brokers_of(tree))


@lru_cache(maxsize=8)
def predictor_of(knowledge: str, tree: str, data: str, vehicles: int = VEHICLES) -> Predictor:
    """Who knows where vehicles will be; what is learned is learned from even-numbered vehicles."""
    brokers, connections = brokers_of(tree), connections_of(tree, data, vehicles)
    if knowledge == "navigation":
        tracks, routes = traffic(data, vehicles)
        return predictor(knowledge, connections, brokers, routes=routes, vehicles=tracks)
    if knowledge == "learned":
        past = Transitions.of(connections, brokers, vehicles=connections.names[::2])
        return predictor(knowledge, connections, brokers, transitions=past)
    return predictor(knowledge, connections, brokers)


def draw_instances(
    connections: Connections,
    brokers: Brokers,
    *,
    event_bytes: float,
    state_bytes: float,
    instances: int,
    repetition: int,
    unseen: bool = False,
    stateless: bool = False,
) -> City:
    """Instances of the nearby-friends graph; the same vehicles and hosts for all sizes.

    `unseen` takes odd-numbered vehicles alone, from which nothing is learned. With `stateless`,
    `friends` keeps no events: it moves for nothing.
    """
    application = nearby_friends(event_bytes, state_bytes)
    if stateless:
        kept = [
            replace(o, window=None) if o.name == "friends" else o for o in application.operators
        ]
        application = replace(application, operators=kept)
    graph = MobileGraph.of(application)
    among = np.arange(1, connections.vehicles, 2, dtype=np.int32) if unseen else None
    rng = random_stream(repetition, "migcep", "instances")
    return draw_city(graph, brokers, connections, rng, instances=instances, among=among)


def with_changing_events(city: City, interval_s: float, repetition: int) -> City:
    """The city with events of another size every so often; the consumer's stream stays as it is.

    Sizes are uniform from the least to the most; the city's own event size is their mean, and
    each instance begins with it.
    """
    mean = (LEAST_EVENT_BYTES + MOST_EVENT_BYTES) / 2
    spread = (MOST_EVENT_BYTES - LEAST_EVENT_BYTES) / 2 / mean
    change = (np.arange(city.ticks) * city.tick_s / interval_s).astype(np.int64)
    rng = random_stream(repetition, "migcep", "event sizes")
    drawn = rng.uniform(1 - spread, 1 + spread, (city.instances, int(change[-1]) + 1))
    factor: Floats = np.ones((city.instances, len(city.graph.streams), city.ticks))
    for stream, ends in enumerate(city.graph.streams):
        if ends.target in city.graph.number:
            factor[:, stream] = drawn[:, change]
    factor[np.arange(city.instances), :, city.life[:, 0]] = 1.0
    return replace(city, factor=factor)
