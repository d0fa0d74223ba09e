"""What plans are compared with: nobody moves, everybody is greedy, and the best there could be."""

from __future__ import annotations

import numpy as np

from thalweg.errors import Defects
from thalweg.migration.city import City
from thalweg.migration.compiled.driving import follow_greedily, look_ahead_jointly
from thalweg.migration.compiled.pricing import add_stream
from thalweg.migration.drive import Drive, state_bytes, stream_ends
from thalweg.migration.fan import NOWHERE
from thalweg.migration.time_graph import Moves, TimeGraph, cheapest_path
from thalweg.model.graph import Floats, Index

GREEDY_EVERY_S = 5.0
_ONE = np.ones(1)


def nowhere(city: City) -> Index:
    """Hosts of all operators before anything is known of them."""
    shape = (city.instances, len(city.graph.operators), city.ticks)
    return np.full(shape, NOWHERE, dtype=np.int32)


def drive_static(city: City) -> Drive:
    """Operators stay where they are first."""
    hosts = nowhere(city)
    for k, (first, end) in enumerate(city.life.tolist()):
        hosts[k, :, first:end] = city.start[k][:, None]
    return Drive(city=city, approach="static", hosts=hosts)


def drive_greedy(city: City, every_s: float = GREEDY_EVERY_S) -> Drive:
    """Every few seconds each operator goes to the broker that is cheapest then.

    A broker that is too slow for an operator alone is not looked at.
    """
    every = max(1, round(every_s / city.tick_s))
    brokers, graph = city.brokers, city.graph
    everyone = np.arange(brokers.count, dtype=np.int32)
    steps = np.stack(
        [
            Moves.of(brokers, state_bytes=o.state_bytes, step_s=city.tick_s).steps_from(everyone)
            for o in graph.operators
        ]
    )
    demand = np.array([operator.demand_ips for operator in graph.operators])
    barred = brokers.capacity_ips[None, :] < np.maximum(demand, 1e-300)[:, None]
    hosts, ends = nowhere(city), stream_ends(graph)
    for k, (first, end) in enumerate(city.life.tolist()):
        found = np.empty((len(graph.operators), end - first), dtype=np.int32)
        leaf, carried = np.ascontiguousarray(city.leaves_of(k)), city.carried_bytes(k)
        follow_greedily(
            city.start[k], leaf, ends, carried, steps, brokers.delay_s, every, barred, found
        )
        hosts[k, :, first:end] = found
    return Drive(city=city, approach="greedy", hosts=hosts)


def drive_lookahead(city: City) -> Drive:
    """The whole run of each instance as one time graph: no policy can cost less.

    Its moves take one tick, and every broker has room and is fast enough: a lower bound. For one
    operator, or two that are planned jointly.
    """
    operators = len(city.graph.operators)
    defects = Defects()
    defects.require(
        operators <= 2, "operators", operators, "at most two operators for lookahead-optimal"
    )
    defects.raise_if_any()
    hosts = nowhere(city)
    for k, (first, end) in enumerate(city.life.tolist()):
        hosts[k, :, first:end] = _look_ahead(city, k)
    return Drive(city=city, approach="lookahead-optimal", hosts=hosts)


def _look_ahead(city: City, instance: int) -> Index:
    brokers = city.brokers
    first, end = city.life[instance].tolist()
    place, between = _prices(city, instance)
    state = state_bytes(city.graph)
    found = np.empty((len(state), end - first), dtype=np.int32)
    if len(state) == 1:
        moves = Moves.of(brokers, state_bytes=float(state[0]), step_s=1e9)
        start = int(city.start[instance, 0])
        path = cheapest_path(TimeGraph(moves=moves, place_cost=place[0], start=start))
        assert path is not None  # noqa: S101 - nothing is barred
        found[0] = path.hosts
        return found
    links = state[:, None] * brokers.link_delay_s
    start_a, start_b = city.start[instance].tolist()
    look_ahead_jointly(
        place[0], place[1], between, brokers.parent, links[0], links[1], brokers.delay_s,
        start_a, start_b, found,
    )  # fmt: skip
    return found


def _prices(city: City, instance: int) -> tuple[Floats, Floats]:
    """What each operator pays for its users at each tick and broker; bytes between operators."""
    leaf, carried = city.leaves_of(instance), city.carried_bytes(instance)
    operators, ticks = len(city.graph.operators), leaf.shape[1]
    place = np.zeros((operators, ticks, city.brokers.count))
    between = np.zeros(ticks)
    row_of, delay = city.brokers.rows_from(leaf)
    for stream, (a, b) in enumerate(stream_ends(city.graph).tolist()):
        if a >= 0 and b >= 0:
            between += carried[stream]
            continue
        operator, user = (a, -1 - b) if a >= 0 else (b, -1 - a)
        if operator < 0:
            continue  # From user to user: nobody decides about that.
        hosts = np.ascontiguousarray(leaf[user : user + 1])
        add_stream(place[operator], carried[stream], _ONE, hosts, row_of, delay)
    return place, between
