"""How long each stream takes at each cut, and what the load of the cloud adds to it.

Formulas (15)–(23) and (27) of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators for
IoT Edge Analytics. The way on the fog and over the uplink depends on the stream's own cut alone and
is worked out once, for all cuts; the way through the cloud depends on the cuts of all streams.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.estimate.response import window_latency_s
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats
from thalweg.scheduling.cuts import Cuts
from thalweg.scheduling.traffic import StreamTraffic


@dataclass(frozen=True, eq=False)
class CutLatencies:
    """Seconds until a stream's events have come up to each operator in the cloud."""

    traffic: StreamTraffic
    cuts: Cuts
    arrival_s: Floats
    """(cuts, operators, streams); −∞ where no edge of the cut leads to the operator."""

    def __post_init__(self) -> None:
        freeze(self)

    def stream_s(self, onward_s: Floats) -> Floats:
        """L_j of every cut and stream, given the way from each operator through the cloud."""
        edge_delay_s = self.traffic.problem.network.site_edge_delay_s[self.traffic.site]
        slowest: Floats = (self.arrival_s + onward_s[None, :, None]).max(axis=1)
        return edge_delay_s + slowest

    def onward_s(self, choice: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
        """The slowest way from each operator in the cloud to a sink, its own latency included.

        In the cloud an operator gets what is left of all streams whose cut leaves it there.
        """
        traffic = self.traffic
        app, net = traffic.problem.application, traffic.problem.network
        columns = app.columns
        in_cloud = ~self.cuts.members[choice].T & columns.is_transform[:, None]
        events = np.where(in_cloud, traffic.events_in, 0.0).sum(axis=1)
        work = np.where(in_cloud, traffic.events_in * traffic.work_per_event, 0.0).sum(axis=1)
        silent = traffic.work_per_event.mean(axis=1)
        per_event = np.divide(work, events, out=silent, where=events > 0)
        sharing = np.count_nonzero(in_cloud.any(axis=1)) + net.node_operators[traffic.cloud]
        share_ips = np.full(events.shape, net.node_cpu_ips[traffic.cloud] / max(sharing, 1))
        own_s = operator_latency_s(traffic, per_event[:, None], events[:, None], share_ips[:, None])
        edges = np.zeros(app.graph.source.size)
        return app.graph.longest_from(np.where(in_cloud.any(axis=1), own_s[:, 0], 0.0), edges)


def measure_latencies(traffic: StreamTraffic, cuts: Cuts) -> CutLatencies:
    """The way on the fog and over the uplink, for every cut and stream."""
    problem = traffic.problem
    app, net, columns = problem.application, problem.network, problem.application.columns
    cloud = np.full_like(traffic.node, traffic.cloud)
    free_bps = net.available_bps(traffic.node, cloud)
    with np.errstate(divide="ignore", invalid="ignore"):
        sending = np.where(traffic.emission_bits > 0, traffic.emission_bits / free_bps, 0.0)
    crossing_s = net.latency_s(traffic.node, cloud) + sending
    shape = (len(cuts), len(app.operators), traffic.site.size)
    arrival = np.full(shape, -np.inf)
    for size in range(int(cuts.sizes.max()) + 1):
        rows = np.flatnonzero(cuts.sizes == size)
        sharing = np.maximum(size + net.node_operators[traffic.node], 1)
        own_s = operator_latency_s(
            traffic,
            traffic.work_per_event,
            traffic.events_in,
            net.node_cpu_ips[traffic.node] / sharing,
        )
        done = np.zeros((rows.size, *shape[1:]))
        for operator in app.graph.order.tolist():
            if not columns.is_source[operator]:
                senders = app.graph.source[app.graph.target == operator]
                done[:, operator] = done[:, senders].max(axis=1) + own_s[operator]
        for edge, (x, y) in enumerate(zip(app.graph.source, app.graph.target, strict=True)):
            at = np.flatnonzero(cuts.crossing[rows, edge])
            up = done[at, x] + crossing_s[edge]
            arrival[rows[at], y] = np.maximum(arrival[rows[at], y], up)
    return CutLatencies(traffic, cuts, arrival)


def operator_latency_s(
    traffic: StreamTraffic, work_per_event: Floats, events_in: Floats, share_ips: Floats
) -> Floats:
    """Waiting + working time of one window of each operator; sources and sinks take none."""
    columns = traffic.problem.application.columns
    latency = window_latency_s(
        work_per_event,
        events_in,
        share_ips,
        length_s=columns.window_length_s[:, None],
        slide_s=columns.window_slide_s[:, None],
        batch=columns.window_events[:, None],
    )
    return np.where(columns.is_transform[:, None], latency, 0.0)
