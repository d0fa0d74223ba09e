"""How many events of what size pass each instance and each flow between two.

Formulas (1)–(6) of da Silva Veith et al., Latency-Aware Strategies for Deploying Data Stream
Processing Applications on Large Cloud-Edge Infrastructure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np

from thalweg.model.application import Application
from thalweg.model.deployment import Deployment
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Graph, Index
from thalweg.model.problem import Problem

SizeRule = Literal["mean", "formula-5"]

# Problems are frozen, so what was found for one stays true as long as it lives.
_KNOWN: WeakKeyDictionary[Problem, dict[SizeRule, Rates]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Rates:
    """Events/s and bytes per event; a source's input is what is born in it."""

    events_in: Floats
    events_out: Floats
    size_in: Floats
    size_out: Floats
    flow: Floats
    """Events/s on each edge of the deployment."""
    flow_size: Floats
    """Bytes per event on each edge."""

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def flow_bps(self) -> Floats:
        """Bits/s on each edge."""
        return self.flow * self.flow_size * 8.0


def estimate_rates(deployment: Deployment, *, sizes: SizeRule = "mean") -> Rates:
    """Rates and sizes in the whole deployment, one level of the graph at a time.

    An operator puts out selectivity × what comes in, and each stream carries its probability's
    share of that. With `sizes="mean"` the size of the events that come in is the mean over what
    arrives, weighted by rate (unweighted where nothing arrives); `"formula-5"` takes the paper's
    sum of the sizes × probabilities, which makes a join's events as large as its inputs together.
    """
    problem = deployment.problem
    if deployment.graph is not problem.application.graph:
        return _follow(deployment, sizes)
    # One copy of each operator: rates are the same wherever the copies run.
    known = _KNOWN.setdefault(problem, {})
    if sizes not in known:
        known[sizes] = _follow(deployment, sizes)
    return known[sizes]


def _follow(deployment: Deployment, sizes: SizeRule) -> Rates:
    """Follow the events from where they are born to the sinks."""
    return follow_events(
        deployment.problem.application,
        deployment.graph,
        deployment.operator,
        deployment.stream,
        deployment.birth_rate,
        sizes=sizes,
    )


def follow_events(
    app: Application,
    graph: Graph,
    operator: Index,
    stream: Index,
    birth_rate: Floats,
    *,
    sizes: SizeRule = "mean",
) -> Rates:
    """Rates in any graph of instances: the operator of each vertex, the stream of each edge."""
    columns = app.columns
    is_source = columns.is_source[operator]
    selectivity = np.where(is_source, 1.0, columns.selectivity[operator])
    compression = np.where(is_source, 1.0, columns.compression[operator])
    probability = app.probability[stream]

    events_in = birth_rate.copy()
    size_in = np.where(is_source, columns.event_size[operator], 0.0)
    events_out, size_out = events_in.copy(), size_in.copy()
    flow = np.zeros(graph.source.size)
    for vertices, edges, starts in graph.downstream():
        sender = graph.source[edges]
        moving, size = events_out[sender] * probability[edges], size_out[sender]
        flow[edges] = moving
        arriving = np.add.reduceat(moving, starts)
        if sizes == "mean":
            total = np.add.reduceat(moving * size, starts)
            if not arriving.all():
                plain = np.add.reduceat(size, starts) / np.diff(starts, append=edges.size)
                total = np.where(arriving > 0, total, plain)
            size_in[vertices] = total / np.where(arriving > 0, arriving, 1.0)
        else:
            size_in[vertices] = np.add.reduceat(size * probability[edges], starts)
        events_in[vertices] = arriving
        events_out[vertices] = arriving * selectivity[vertices]
        size_out[vertices] = size_in[vertices] * compression[vertices]
    return Rates(events_in, events_out, size_in, size_out, flow, size_out[graph.source])
