"""How many events of what size pass each instance and each flow between two.

Formulas (1)–(6) of da Silva Veith et al., Latency-Aware Strategies for Deploying Data Stream
Processing Applications on Large Cloud-Edge Infrastructure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from thalweg.model.deployment import Deployment
from thalweg.model.graph import Floats

SizeRule = Literal["mean", "formula-5"]


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
    app, graph = deployment.problem.application, deployment.graph
    columns = app.columns
    is_source = columns.is_source[deployment.operator]
    selectivity = np.where(is_source, 1.0, columns.selectivity[deployment.operator])
    compression = np.where(is_source, 1.0, columns.compression[deployment.operator])
    probability = app.probability[deployment.stream]
    senders = np.maximum(np.bincount(graph.target, minlength=graph.size), 1)

    events_in = deployment.birth_rate.copy()
    size_in = np.where(is_source, columns.event_size[deployment.operator], 0.0)
    events_out, size_out = np.zeros(graph.size), np.zeros(graph.size)
    arriving_bytes, arriving_sizes = np.zeros(graph.size), np.zeros(graph.size)
    flow = np.zeros(graph.source.size)
    for vertices, edges in graph.downstream():
        source, target = graph.source[edges], graph.target[edges]
        flow[edges] = events_out[source] * probability[edges]
        weight = flow[edges] if sizes == "mean" else probability[edges]
        np.add.at(events_in, target, flow[edges])
        np.add.at(arriving_bytes, target, weight * size_out[source])
        np.add.at(arriving_sizes, target, size_out[source])
        fed = vertices[~is_source[vertices]]
        size_in[fed] = (
            _mean(arriving_bytes[fed], events_in[fed], arriving_sizes[fed] / senders[fed])
            if sizes == "mean"
            else arriving_bytes[fed]
        )
        events_out[vertices] = events_in[vertices] * selectivity[vertices]
        size_out[vertices] = size_in[vertices] * compression[vertices]
    return Rates(events_in, events_out, size_in, size_out, flow, size_out[graph.source])


def _mean(total: Floats, weight: Floats, otherwise: Floats) -> Floats:
    return np.divide(total, weight, out=otherwise.copy(), where=weight > 0)
