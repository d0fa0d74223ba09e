"""What the compiled loops read about a table of cuts and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thalweg.estimate.constraints import ROUNDING
from thalweg.estimate.demand import window_passes
from thalweg.model.graph import Floats, Graph
from thalweg.scheduling.cuts import Cuts
from thalweg.scheduling.traffic import StreamTraffic

if TYPE_CHECKING:
    from thalweg.scheduling.compiled.latency import Figures


def figures_of(traffic: StreamTraffic, cuts: Cuts, crossing_s: Floats) -> Figures:
    """What the compiled loops read; `crossing_s` (edges × streams) is from fog to cloud."""
    from thalweg.scheduling.compiled.latency import Figures

    problem = traffic.problem
    app, net, columns = problem.application, problem.network, problem.application.columns
    graph: Graph = app.graph
    cloud, node = traffic.cloud, traffic.node
    window = columns.window_length_s[:, None] * traffic.bytes_in
    grows = columns.memory_factor[:, None] * window
    first_in, in_edge = _by_end(graph.target, len(app.operators))
    first_out, out_edge = _by_end(graph.source, len(app.operators))
    passes = window_passes(columns)[:, None]
    return Figures(
        order=graph.order.astype(np.int64),
        first_in=first_in,
        in_edge=in_edge,
        first_out=first_out,
        out_edge=out_edge,
        source=graph.source.astype(np.int64),
        target=graph.target.astype(np.int64),
        is_transform=np.array(columns.is_transform),
        length_s=np.array(columns.window_length_s),
        slide_s=np.array(columns.window_slide_s),
        batch=np.array(columns.window_events),
        events=np.ascontiguousarray(traffic.events_in.T),
        total_events=traffic.events_in.sum(axis=1),
        work_per_event=np.ascontiguousarray(traffic.work_per_event.T),
        fed=np.ascontiguousarray(traffic.fed.T),
        crossing_s=np.ascontiguousarray(crossing_s.T),
        fog_ips=net.node_cpu_ips[node].astype(float),
        fog_others=net.node_operators[node].astype(float),
        edge_delay_s=net.site_edge_delay_s[traffic.site].astype(float),
        cloud_ips=float(net.node_cpu_ips[cloud]),
        cloud_others=float(net.node_operators[cloud]),
        members=np.array(cuts.members),
        memory=np.ascontiguousarray(grows.T),
        fixed_memory=np.where(traffic.fed, traffic.memory_bytes - grows, 0.0).max(axis=1),
        cpu=np.ascontiguousarray((traffic.events_in * traffic.work_per_event * passes).T),
        cloud_memory=float(net.node_memory_available_bytes[cloud]) * (1.0 + ROUNDING),
        cloud_cpu=float(net.node_cpu_available_ips[cloud]) * (1.0 + ROUNDING),
    )


def _by_end(
    end: npt.NDArray[np.int32], operators: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Edges grouped by one of their ends: where each group begins, and the edges."""
    order = np.argsort(end, kind="stable").astype(np.int64)
    first = np.searchsorted(end[order], np.arange(operators + 1)).astype(np.int64)
    return first, order
