"""Have every strategy compile its loops, once: Numba keeps them beside the source.

Tests run in two processes, and each would compile them for itself.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

import thalweg as tw
from thalweg import migration
from thalweg.model import Problem
from thalweg.scenarios import (
    broker_tree,
    cloud_edge,
    fog_cloud,
    nearby_friends,
    random_application,
    small_city,
    small_taxi,
    taxi_fares,
)
from thalweg.scenarios.vehicles import city_vehicles
from thalweg.simulate.moving import execute
from thalweg.strategy import find_strategy


def main() -> None:
    """Plan small problems with every strategy that takes them; drive a small city."""
    drive_city()
    edge = cloud_edge(2, 3, 4, seed=1)
    cases = [
        (small_taxi(), small_city()),
        (taxi_fares(), fog_cloud(3)),
        (random_application("stats", edge, seed=6), edge),
    ]
    for name in tw.strategies():
        for app, net in cases:
            with suppress(tw.InvalidInput):
                # Not by `tw.plan`: over small problems it runs loops as they are.
                find_strategy(name)(Problem(application=app, network=net), None)
    for app, net in cases:
        tw.simulate(app, net, tw.plan(app, net), seconds=1)


def drive_city() -> None:
    """A minute of a few vehicles, with every way to know and to plan."""
    brokers = migration.Brokers.of(broker_tree())
    vehicles, routes = city_vehicles(20, 120, seed=1)
    there = migration.Connections.of(vehicles.names, vehicles.tracks, brokers)
    graph = migration.MobileGraph.of(nearby_friends())
    city = migration.draw_city(graph, brokers, there, np.random.default_rng(0), instances=3)
    for drive in (migration.drive_static, migration.drive_greedy, migration.drive_lookahead):
        execute(drive(city))
    transitions = migration.Transitions.of(there, brokers)
    for knowledge in migration.KNOWLEDGE:
        known = migration.predictor(
            knowledge, there, brokers, routes=routes, vehicles=vehicles, transitions=transitions
        )
        for name in migration.POLICIES:
            migration.drive_migcep(city, known, migration.policy(name))


if __name__ == "__main__":
    main()
