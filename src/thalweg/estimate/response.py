"""The response time of a deployment between fog and cloud, windows as units of work.

Formulas (15)–(23) and (27) of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators for
IoT Edge Analytics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from thalweg.errors import Defects, nearest
from thalweg.estimate.demand import Demand
from thalweg.estimate.queueing import dm1_wait_s, md1_wait_s
from thalweg.estimate.rates import Rates
from thalweg.model.deployment import Deployment
from thalweg.model.figures import sum_at
from thalweg.model.graph import Floats
from thalweg.model.network import Network


@dataclass(frozen=True, kw_only=True)
class ResponseModel:
    """What the formulas leave open.

    `source_period_s`: raw source data crosses in batches of this length. `probes`: measured
    (seconds, bytes) of one transfer between two sites by name; where given, formula (18) scales
    it to the emission instead of dividing by the available bandwidth.
    """

    source_period_s: float = 1.0
    probes: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        defects = Defects()
        period = self.source_period_s
        defects.require(
            np.isfinite(period) and period > 0, "source_period_s", period, "a duration > 0"
        )
        for (a, b), (seconds, size_bytes) in self.probes.items():
            good = np.isfinite(seconds) and seconds >= 0 and size_bytes > 0
            defects.require(
                bool(good), f"probes[{a}, {b}]", (seconds, size_bytes), "seconds >= 0, bytes > 0"
            )
        defects.raise_if_any()

    def require_sites(self, network: Network) -> None:
        """Raise `InvalidInput` for probes between sites that the network does not have."""
        defects = Defects()
        for a, b in self.probes:
            for name in dict.fromkeys((a, b)):
                if name not in network.site_index:
                    hint = nearest(str(name), network.site_names)
                    defects.add(f"probes[{a}, {b}]", name, f"a site of {network.name}", hint)
        defects.raise_if_any()


@dataclass(frozen=True, eq=False)
class Response:
    """Latency of each instance and each crossing, and of each source instance's stream."""

    operator_s: Floats
    crossing_s: Floats
    stream_s: Floats
    """L_j of each source instance, in the order of the instances."""
    response_time_s: float
    """T, the largest of them."""
    emission_bytes: Floats
    """Bytes of one emission on each edge."""


def estimate_response(
    deployment: Deployment, rates: Rates, demand: Demand, model: ResponseModel | None = None
) -> Response:
    """The slowest way from a device of each area through its source to a sink."""
    model = model or ResponseModel()
    operator_s = operator_latency_s(deployment, rates, demand)
    emission = emission_bytes(deployment, rates, model)
    crossing_s = crossing_delay_s(deployment, emission, model)
    to_sink = deployment.graph.longest_from(operator_s, crossing_s)
    born = np.flatnonzero(deployment.graph.roots)
    edge_delay_s = deployment.problem.network.site_edge_delay_s[deployment.origin[born]]
    stream_s = edge_delay_s + to_sink[born]
    slowest_s = float(stream_s.max(initial=0.0))
    return Response(operator_s, crossing_s, stream_s, slowest_s, emission)


def operator_latency_s(deployment: Deployment, rates: Rates, demand: Demand) -> Floats:
    """Formulas (19)–(23): waiting + working time of one window.

    The node's CPU is shared evenly by the operators on it, of all applications (formula 20).
    Time windows come once per slide and form a D/M/1 queue, count windows an M/D/1 queue; an
    operator without a window works on each event as a count window of one. Sources and sinks
    take no time and no share.
    """
    columns, operator = deployment.problem.application.columns, deployment.operator
    net, node = deployment.problem.network, deployment.node
    works = columns.is_transform[operator]
    _, position = np.unique(node, return_inverse=True)
    sharing = sum_at(position, works.astype(float), node.size)[position] + net.node_operators[node]
    share_ips = net.node_cpu_ips[node] / np.maximum(sharing, 1)
    latency = window_latency_s(
        demand.work_per_event,
        rates.events_in,
        share_ips,
        length_s=columns.window_length_s[operator],
        slide_s=columns.window_slide_s[operator],
        batch=columns.window_events[operator],
    )
    return np.where(works, latency, 0.0)


def window_latency_s(
    work_per_event: Floats,
    events_in: Floats,
    share_ips: Floats,
    *,
    length_s: Floats,
    slide_s: Floats,
    batch: Floats,
) -> Floats:
    """Waiting + working time of one window on a share of the CPU; arrays broadcast.

    A time window has a slide, a count window a batch; with neither every event is a window.
    """
    in_time = slide_s > 0
    batch = np.maximum(batch, 1.0)
    work = work_per_event * np.where(in_time, length_s * events_in, batch)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        windows_per_s = np.where(work > 0, share_ips / work, np.inf)
    waiting = np.where(
        in_time,
        dm1_wait_s(windows_per_s, np.where(in_time, slide_s, 1.0)),
        md1_wait_s(windows_per_s, events_in / batch),
    )
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(work > 0, waiting + 1.0 / windows_per_s, 0.0)


def emission_bytes(deployment: Deployment, rates: Rates, model: ResponseModel) -> Floats:
    """Bytes of one emission on each edge: the events of one emission of the sender × their size."""
    return _emission_events(deployment, rates, model) * rates.flow_size


def _emission_events(deployment: Deployment, rates: Rates, model: ResponseModel) -> Floats:
    """Events of one emission on each edge, one level of the graph at a time.

    A source emits what it creates in `source_period_s`, a time window what it puts out in a
    slide, a count window the result of one full window. An operator without a window emits the
    result of one emission of each of its inputs, so it keeps their period.
    """
    columns, graph = deployment.problem.application.columns, deployment.graph
    operator = deployment.operator[graph.source]
    events_in = rates.events_in[graph.source]
    # Events out per event in first: the time between two events may be beyond any number.
    share = np.divide(rates.flow, events_in, out=np.zeros_like(events_in), where=events_in > 0)
    slide, batch = columns.window_slide_s, columns.window_events
    period_s = np.where(columns.is_source, model.source_period_s, slide)[operator]
    events = np.where(period_s > 0, rates.flow * period_s, share * batch[operator])
    unwindowed = columns.is_transform & (slide == 0) & (batch == 0)
    follows_inputs = unwindowed[operator]
    if not follows_inputs.any():
        return events
    arriving = np.zeros(deployment.size)
    for vertices, edges, starts in graph.downstream():
        follows = follows_inputs[edges]
        if follows.any():
            own = edges[follows]
            events[own] = arriving[graph.source[own]] * share[own]
        arriving[vertices] = np.add.reduceat(events[edges], starts)
    return events


def crossing_delay_s(deployment: Deployment, emission: Floats, model: ResponseModel) -> Floats:
    """Formulas (17) and (18): propagation + transmission of one emission; 0 on the same node."""
    graph, net = deployment.graph, deployment.problem.network
    a, b = deployment.node[graph.source], deployment.node[graph.target]
    available = deployment.edge_available_bps / 8.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        transmission = np.where(emission > 0, emission / available, 0.0)
    model.require_sites(net)
    for (first, second), (seconds, size_bytes) in model.probes.items():
        here = (net.node_site[a] == net.site_index[first]) & (
            net.node_site[b] == net.site_index[second]
        )
        transmission = np.where(here, seconds * emission / size_bytes, transmission)
    return np.where(a == b, 0.0, deployment.edge_latency_s + transmission)
