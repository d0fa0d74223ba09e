"""What each stream would put on every operator and edge if it were alone, and what that needs.

The streams of an application are the events born in each site. All operators are linear in the
rate, so what an operator gets in the cloud is the sum over the streams that reach it there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.estimate.response import ResponseModel
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index, distinct
from thalweg.model.network import Tier
from thalweg.model.problem import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamTraffic:
    """Figures of operators × streams and of edges × streams; streams by site, ascending."""

    problem: Problem
    site: Index
    node: Index
    """The fog node of each stream."""
    cloud: int
    """The cloud node that takes what the fogs send up."""
    events_in: Floats
    bytes_in: Floats
    """Events/s and bytes/s that come in, (operators, streams)."""
    memory_bytes: Floats
    work_per_event: Floats
    flow_bps: Floats
    """Bits/s on each edge, (edges, streams)."""
    emission_bits: Floats
    """What one emission puts on each edge."""
    born_bps: Floats
    """|S_j|: raw data of each stream."""
    fed: npt.NDArray[np.bool_]
    """Whether an operator gets events of a stream: it, or a source before it, is born there."""

    def __post_init__(self) -> None:
        freeze(self)


def measure_streams(problem: Problem, model: ResponseModel | None = None) -> StreamTraffic:
    """The traffic of every stream.

    Raises `InvalidInput` unless sources are born in fogs and one cloud node can run every sink.
    """
    from thalweg.scheduling.compiled.following import follow_streams

    model = model or ResponseModel()
    cloud = find_cloud(problem)
    app, births = problem.application, problem.births
    columns, graph = app.columns, app.graph
    site = distinct(births.site)
    stream = np.searchsorted(site, births.site)
    node = np.empty(site.size, dtype=np.int32)
    node[stream] = births.node
    shape = (len(app.operators), site.size)
    events_in, size = np.zeros(shape), np.zeros(shape)
    events_in[births.operator, stream] = births.rate
    size[columns.is_source] = columns.event_size[columns.is_source, None]
    fed = _find_fed(problem, stream, site.size)
    bytes_in, flow_bytes, emission = follow_streams(
        graph.order.astype(np.int64),
        graph.source.astype(np.int64),
        graph.target.astype(np.int64),
        columns.is_source,
        columns.selectivity,
        columns.compression,
        app.probability,
        np.where(columns.is_source, model.source_period_s, columns.window_slide_s),
        columns.window_events,
        fed,
        events_in,
        size,
    )
    window = columns.window_length_s[:, None] * bytes_in + columns.window_events[:, None] * size
    born = bytes_in[columns.is_source].sum(axis=0) * 8.0
    return StreamTraffic(
        problem=problem,
        site=site,
        node=node,
        cloud=cloud,
        events_in=events_in,
        bytes_in=bytes_in,
        memory_bytes=np.where(
            fed, columns.memory[:, None] + columns.memory_factor[:, None] * window, 0.0
        ),
        work_per_event=columns.cpu_per_event[:, None] + columns.cpu_per_byte[:, None] * size,
        flow_bps=flow_bytes * 8.0,
        emission_bits=emission * 8.0,
        born_bps=born,
        fed=fed,
    )


def _find_fed(
    problem: Problem, stream: npt.NDArray[np.integer[Any]], streams: int
) -> npt.NDArray[np.bool_]:
    """(operators, streams): what the sources of each stream reach."""
    graph = problem.application.graph
    fed = np.zeros((len(problem.application.operators), streams), dtype=bool)
    fed[problem.births.operator, stream] = True
    for x in graph.order.tolist():
        fed[x] |= fed[graph.source[graph.target == x]].any(axis=0)
    return fed


def find_cloud(problem: Problem) -> int:
    """The cloud node that takes what the fogs send up: the lowest that every sink may run on.

    Raises `InvalidInput` where the streams of the problem cannot be cut between fog and cloud.
    """
    app, net = problem.application, problem.network
    defects = Defects()
    tier = net.site_tier[problem.births.site]
    for position, operator in enumerate(app.operators):
        born = tier[problem.births.operator == position]
        if operator.kind == "source" and (born != Tier.FOG).any():
            defects.add(f"operators[{position}].pin", operator.name, "a source born in fog sites")
        if operator.kind == "transform" and operator.pin is not None:
            hint = "cuts decide where it runs"
            defects.add(f"operators[{position}].pin", str(operator.pin), "no pin", hint)
    clouds = net.cloud_nodes
    defects.require(bool(clouds.size), "network", net.name, "a network with a cloud site")
    for position, operator in enumerate(app.operators):
        allowed = problem.allowed_nodes(position) if operator.kind == "sink" else None
        common = clouds if allowed is None else clouds[np.isin(clouds, allowed)]
        if clouds.size and not common.size:
            hint = "streams are cut between fog and cloud, and end in one cloud"
            rule = "a sink that the cloud node of all other sinks can run"
            defects.add(f"operators[{position}].pin", str(operator.pin), rule, hint)
        clouds = common if common.size else clouds
    defects.raise_if_any()
    return int(clouds[0])
