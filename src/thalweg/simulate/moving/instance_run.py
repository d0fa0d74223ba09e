"""All events of one instance, from users through operators to users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.migration.city import City
from thalweg.migration.drive import Drive
from thalweg.migration.operators import MobileGraph, MobileOperator
from thalweg.model.graph import Floats, Index
from thalweg.simulate.moving.operator_pass import (
    FIGURES,
    MUTABLE_BYTES,
    SOURCE,
    TARGET,
    pass_operator,
)

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Events:
    """Events on a stream, in the order in which they were sent."""

    sent_s: Floats
    born_s: Floats
    """When the event was born that made it."""
    at: Index
    """The broker from which it was sent."""
    size: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class InstanceRun:
    """What came of the events of one instance."""

    latency_s: Floats
    born: int
    lost: int
    duplicated: int
    short: int
    placement_cost: float
    migration_cost: float
    moves: tuple[Floats, ...]
    """Of each operator, as `pass_operator` tells them."""


def run_instance(drive: Drive, instance: int, phases: Floats, bandwidth: Floats) -> InstanceRun:
    """Follow the events of an instance through its operators, upstream ones first."""
    city = drive.city
    graph, delay = city.graph, city.brokers.delay_s
    first, end = city.life[instance].tolist()
    leaf, hosts = city.leaves_of(instance), drive.hosts[instance, :, first:end]
    place = dict(zip(graph.users, leaf, strict=True)) | {
        operator.name: hosts[k] for k, operator in enumerate(graph.operators)
    }
    flows = {
        k: _births(city, instance, k, phases[k], place[stream.source])
        for k, stream in enumerate(graph.streams)
        if stream.source in graph.users
    }
    born = sum(flow.sent_s.size for flow in flows.values())
    wrong, moves = np.zeros(3, dtype=np.int64), []
    migration = 0.0
    for number in _upstream_first(graph):
        operator = graph.operators[number]
        taken = _merge([flows[k] for k in _streams(graph, operator.name, into=True)])
        left_s, ran_at, served, found, short = _serve(
            city, operator, taken, place[operator.name], bandwidth
        )
        wrong += [int((served == 0).sum()), int((served > 1).sum()), short]
        moves.append((number, found))
        sent = operator.immutable_bytes + found[:, MUTABLE_BYTES]
        migration += float(sent @ delay[found[:, SOURCE].astype(int), found[:, TARGET].astype(int)])
        for k in _streams(graph, operator.name, into=False):
            flows[k] = _results(city, instance, k, taken, left_s, ran_at)
    placement, latency = 0.0, [np.empty(0)]
    for k, stream in enumerate(graph.streams):
        flow = flows[k]
        target = place[stream.target][_ticks(flow.sent_s, city.tick_s, end - first)]
        way_s = delay[flow.at, target]
        placement += float(flow.size @ way_s)
        if stream.target in graph.users:
            latency.append(flow.sent_s + way_s - flow.born_s)
    return InstanceRun(
        latency_s=np.concatenate(latency),
        born=born,
        lost=int(wrong[0]),
        duplicated=int(wrong[1]),
        short=int(wrong[2]),
        placement_cost=placement,
        migration_cost=migration,
        moves=tuple(found for _, found in sorted(moves, key=lambda pair: pair[0])),
    )


def _streams(graph: MobileGraph, name: str, *, into: bool) -> list[int]:
    return [k for k, s in enumerate(graph.streams) if (s.target if into else s.source) == name]


def _upstream_first(graph: MobileGraph) -> list[int]:
    """The operators, each after all that send to it; ties: as they were given."""
    waiting, order = list(range(len(graph.operators))), list[int]()
    while waiting:
        for k in waiting:
            sources = {
                graph.streams[s].source for s in _streams(graph, graph.operators[k].name, into=True)
            }
            if not sources & {graph.operators[other].name for other in waiting}:
                order.append(k)
                waiting.remove(k)
                break
    return order


def _ticks(time_s: Floats, tick_s: float, ticks: int) -> Rows:
    return np.minimum((time_s / tick_s).astype(np.int64), ticks - 1)


def _sizes(city: City, instance: int, stream: int, time_s: Floats) -> Floats:
    size = np.full(time_s.size, city.graph.streams[stream].event_bytes)
    if city.factor is None:
        return size
    first, end = city.life[instance].tolist()
    factor = city.factor[instance, stream, first:end]
    return np.asarray(size * factor[_ticks(time_s, city.tick_s, end - first)])


def _births(city: City, instance: int, stream: int, phase: float, leaf: Index) -> Events:
    """What a user sends, evenly spaced; times count from the beginning of the instance."""
    rate = city.graph.streams[stream].events_per_s
    life_s = leaf.size * city.tick_s
    count = int(np.ceil(life_s * rate - phase)) if rate > 0 else 0
    time_s: Floats = (np.arange(max(count, 0), dtype=float) + phase) / max(rate, 1e-300)
    at = leaf[_ticks(time_s, city.tick_s, leaf.size)]
    size = _sizes(city, instance, stream, time_s)
    return Events(sent_s=time_s, born_s=time_s, at=at, size=size)


def _merge(flows: list[Events]) -> Events:
    """Several streams as one, in the order in which events were sent; ties: as the streams are."""
    if len(flows) == 1:
        return flows[0]
    order = np.argsort(np.concatenate([flow.sent_s for flow in flows]), kind="stable")
    columns = {
        name: np.concatenate([getattr(flow, name) for flow in flows])[order]
        for name in ("sent_s", "born_s", "at", "size")
    }
    return Events(**columns)


def _serve(
    city: City, operator: MobileOperator, taken: Events, hosts: Index, bandwidth: Floats
) -> tuple[Floats, Index, Rows, Floats, int]:
    count = taken.sent_s.size
    served = np.zeros(count, dtype=np.int64)
    left_s, ran_at = np.zeros(count), np.empty(count, dtype=np.int32)
    moves = np.empty((int((np.diff(hosts) != 0).sum()) + 1, FIGURES))
    with np.errstate(divide="ignore", invalid="ignore"):
        work_s = operator.instructions / city.brokers.speed_ips
    work_s = np.where(operator.instructions > 0, work_s, 0.0)
    made, short = pass_operator(
        taken.sent_s, taken.at, taken.size, np.ascontiguousarray(hosts), city.tick_s,
        operator.window_s, operator.immutable_bytes, city.brokers.delay_s, bandwidth, work_s,
        left_s, ran_at, served, moves,
    )  # fmt: skip
    return left_s, ran_at, served, moves[:made], short


def _results(
    city: City, instance: int, stream: int, taken: Events, left_s: Floats, ran_at: Index
) -> Events:
    """What an operator sends along a stream: as many for each event as rates say, evenly."""
    graph = city.graph
    source = graph.streams[stream].source
    into = sum(graph.streams[k].events_per_s for k in _streams(graph, source, into=True))
    ratio = graph.streams[stream].events_per_s / into if into > 0 else 0.0
    # A little more than exact, so that a ratio of one never loses one to rounding.
    sent = np.floor((np.arange(left_s.size) + 1) * ratio + 1e-9).astype(np.int64)
    which = np.repeat(np.arange(left_s.size), np.diff(sent, prepend=0))
    time_s = left_s[which]
    return Events(
        sent_s=time_s,
        born_s=taken.born_s[which],
        at=ran_at[which],
        size=_sizes(city, instance, stream, time_s),
    )
