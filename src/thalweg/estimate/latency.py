"""How long events take from source to sink, with a queue at every operator and every transfer.

Formulas (7), (8), (17) and (18) of da Silva Veith et al., Latency-Aware Strategies for Deploying
Data Stream Processing Applications on Large Cloud-Edge Infrastructure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thalweg.estimate.demand import Demand
from thalweg.estimate.queueing import mm1_sojourn_s
from thalweg.estimate.rates import Rates, estimate_rates
from thalweg.model.deployment import Deployment
from thalweg.model.graph import Floats


@dataclass(frozen=True, eq=False)
class Latencies:
    """Seconds at each instance and on each edge; ∞ where a queue cannot keep up."""

    service_s: Floats
    communication_s: Floats


@dataclass(frozen=True, slots=True)
class Path:
    """One way from a source to a sink."""

    instances: tuple[str, ...]
    latency_s: float


def service_time_s(deployment: Deployment, rates: Rates, demand: Demand) -> Floats:
    """Formula (7): time in an M/M/1 queue, plus the time a window takes to fill.

    The service rate is what nobody else uses of the node's CPU over the work per event. A count
    window fills in events / rate (nothing waits where nothing arrives), a time window hands on
    once per slide.
    """
    cpu_ips = deployment.problem.network.node_cpu_available_ips[deployment.node]
    work = demand.work_per_event * demand.passes
    with np.errstate(over="ignore"):
        service_rate = np.divide(cpu_ips, work, out=np.full_like(cpu_ips, np.inf), where=work > 0)
    queue_s = np.where(work > 0, mm1_sojourn_s(service_rate, rates.events_in), 0.0)
    return queue_s + window_time_s(deployment, rates)


def window_time_s(deployment: Deployment, rates: Rates) -> Floats:
    """The part of formula (7) that no placement changes: how long each instance's window takes."""
    columns, operator = deployment.problem.application.columns, deployment.operator
    events = rates.events_in
    with np.errstate(over="ignore"):
        fill_s = np.divide(
            columns.window_events[operator], events, out=np.zeros_like(events), where=events > 0
        )
    return np.asarray(fill_s + columns.window_slide_s[operator])


def communication_time_s(deployment: Deployment, rates: Rates) -> Floats:
    """Formula (8): an M/M/1 queue before the narrowest link of the way, plus the way's latency.

    Nothing between two instances on one node.
    """
    graph = deployment.graph
    same_node = deployment.node[graph.source] == deployment.node[graph.target]
    return transfer_time_s(
        deployment.edge_available_bps,
        deployment.edge_latency_s,
        rates.flow,
        rates.flow_size,
        same_node,
    )


def transfer_time_s(
    available_bps: Floats,
    latency_s: Floats,
    flow: Floats,
    size_bytes: Floats,
    same_node: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
) -> Floats:
    """Formula (8) on arrays that broadcast: 1 / (bandwidth / (8 · size) − rate) + latency."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        transfers = np.where(size_bytes > 0, available_bps / (8.0 * size_bytes), np.inf)
    waiting = np.where(np.isinf(transfers), 0.0, mm1_sojourn_s(transfers, flow))
    return np.where(same_node, 0.0, waiting + latency_s)


def estimate_latencies(deployment: Deployment, rates: Rates, demand: Demand) -> Latencies:
    """Seconds at each instance and on each edge."""
    return Latencies(
        service_time_s(deployment, rates, demand), communication_time_s(deployment, rates)
    )


def aggregate_latency_s(deployment: Deployment, latencies: Latencies) -> float:
    """Formula (18), the sum over all source→sink paths, without walking a single path.

    Each instance and each edge counts as often as paths go through it.
    """
    through_instance, through_edge = deployment.graph.path_counts
    return _weighted_sum(through_instance, latencies.service_s) + _weighted_sum(
        through_edge, latencies.communication_s
    )


def aggregate_window_s(deployment: Deployment) -> float:
    """The part of formula (18) that is spent waiting for windows to end."""
    through_instance, _ = deployment.graph.path_counts
    return _weighted_sum(through_instance, window_time_s(deployment, estimate_rates(deployment)))


def _weighted_sum(count: Floats, seconds: Floats) -> float:
    """Σ count · seconds; what takes no time adds none, however many paths go through it."""
    slow = seconds > 0
    with np.errstate(over="ignore"):
        return float(count[slow] @ seconds[slow])


def worst_latency_s(deployment: Deployment, latencies: Latencies) -> float:
    """The latency of the slowest path."""
    arrival = deployment.graph.longest_to(latencies.service_s, latencies.communication_s)
    return float(arrival.max(initial=0.0))


def walk_paths(deployment: Deployment, latencies: Latencies) -> Iterator[Path]:
    """Every source→sink path with its latency: upstream first, then by edge order.

    There may be exponentially many; take as many as you need (`itertools.islice`).
    """
    graph = deployment.graph
    leaving: list[list[int]] = [[] for _ in range(graph.size)]
    for edge, source in enumerate(graph.source.tolist()):
        leaving[source].append(edge)
    waiting: list[tuple[tuple[int, ...], float]] = [
        ((root,), float(latencies.service_s[root]))
        for root in np.flatnonzero(graph.roots)[::-1].tolist()
    ]
    while waiting:
        walked, so_far = waiting.pop()
        if not leaving[walked[-1]]:
            yield Path(tuple(deployment.instance_name(v) for v in walked), so_far)
        for edge in reversed(leaving[walked[-1]]):
            target = int(graph.target[edge])
            step = latencies.communication_s[edge] + latencies.service_s[target]
            waiting.append(((*walked, target), so_far + float(step)))
