"""Applications with random figures on given graphs.

The figures are those of Table 4 of da Silva Veith et al., Latency-Aware Strategies for Deploying
Data Stream Processing Applications on Large Cloud-Edge Infrastructure, its instruction counts taken
for each event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from thalweg.errors import Defects, nearest
from thalweg.model import Application, CountWindow, Network, Operator, Pin, Stream, Tier
from thalweg.scenarios.graph_shape import GraphShape
from thalweg.scenarios.graphs import GRAPHS
from thalweg.scenarios.parameters import (
    Counts,
    Range,
    require_count,
    require_counts,
    require_ranges,
    require_seed,
)
from thalweg.scenarios.randomness import random_stream

DRAWS_PER_GRAPH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRanges:
    """Bounds of the uniform draws of an application's figures.

    Rates, sizes, instructions and window lengths are whole numbers, both bounds included.
    `window_share` of the transforms have a count window: exactly so many, rounded, but at least
    one where the share is not 0.
    """

    cpu_per_event: Counts = (1_000, 10_000)
    compression: Range = (0.1, 1.0)
    memory_bytes: Counts = (100, 7_500)
    event_bytes: Counts = (100, 2_500)
    selectivity: Range = (0.1, 1.0)
    rate: Counts = (1_000, 10_000)
    window_events: Counts = (1, 100)
    window_share: float = 0.2

    def __post_init__(self) -> None:
        defects = Defects()
        for field in fields(self):
            if field.type == "Counts":
                least = 1 if field.name in ("event_bytes", "window_events") else 0
                require_counts(defects, field.name, getattr(self, field.name), least, 10**12)
        require_ranges(
            defects, most=1e6, compression=self.compression, selectivity=self.selectivity
        )
        share = self.window_share
        good = isinstance(share, (int, float)) and not isinstance(share, bool) and 0 <= share <= 1
        defects.require(good, "window_share", share, "a number from 0 to 1")
        defects.raise_if_any()


TABLE_4 = OperatorRanges()


def random_application(
    graph: str,
    network: Network,
    seed: int = 0,
    *,
    draw: int = 0,
    ranges: OperatorRanges = TABLE_4,
    splitters: Literal["share", "copy"] = "share",
) -> Application:
    """The graph of that name with random figures, its ends pinned to nodes of the network.

    Sources and sinks are pinned to edge nodes, drawn uniformly; only the sink of the critical
    path, the one with most operators, is pinned to a cloud node. The figures of the operators do
    not depend on the network, and different values of `draw` are independent.

    An operator with several streams out sends each event along one of them, all equally likely
    (`splitters="share"`), or every event along all of them (`"copy"`).

    >>> from thalweg.scenarios import cloud_edge
    >>> app = random_application("etl", cloud_edge(1, 2, 4))
    >>> app.name, [operator.name for operator in app.operators][:3]
    ('etl-0', ['observations', 'parse', 'range-filter'])
    """
    defects = Defects()
    if not isinstance(graph, str) or graph not in GRAPHS:
        defects.add("graph", graph, "the name of a graph", nearest(str(graph), GRAPHS))
    require_seed(defects, seed)
    require_count(defects, "draw", draw, 0, 2**32)
    defects.require(splitters in ("share", "copy"), "splitters", splitters, '"share" or "copy"')
    for tier in (Tier.EDGE, Tier.CLOUD):
        present = bool((network.site_tier[network.node_site] == tier).any())
        rule = f"at least one node in the {tier.label} tier"
        defects.require(present, "network", network.name, rule)
    defects.raise_if_any()
    figures = _Figures(seed, graph, draw)
    shape = GRAPHS[graph]
    operators = [
        *_draw_sources(shape, network, figures, ranges),
        *_draw_transforms(shape, figures, ranges),
        *_draw_sinks(shape, network, figures),
    ]
    leaving = Counter(source for source, _ in shape.edges)
    streams = [
        Stream(source=a, target=b, probability=1 / leaving[a] if splitters == "share" else 1.0)
        for a, b in shape.edges
    ]
    return Application(name=f"{graph}-{draw}", operators=operators, streams=streams)


def applications(
    network: Network,
    seed: int = 0,
    *,
    ranges: OperatorRanges = TABLE_4,
    splitters: Literal["share", "copy"] = "share",
) -> Iterator[Application]:
    """The 130 applications of the evaluation: every graph with ten draws, graph by graph."""
    for graph in GRAPHS:
        for draw in range(DRAWS_PER_GRAPH):
            yield random_application(
                graph, network, seed, draw=draw, ranges=ranges, splitters=splitters
            )


@dataclass(frozen=True, slots=True)
class _Figures:
    """Draws for one application, each figure from a random stream of its own."""

    seed: int
    graph: str
    draw: int

    def stream(self, figure: str) -> np.random.Generator:
        return random_stream(self.seed, self.graph, self.draw, figure)

    def whole(self, figure: str, bounds: Counts, count: int) -> list[int]:
        drawn: list[int] = self.stream(figure).integers(*bounds, count, endpoint=True).tolist()
        return drawn

    def real(self, figure: str, bounds: Range, count: int) -> list[float]:
        drawn: list[float] = self.stream(figure).uniform(*bounds, count).tolist()
        return drawn

    def pins(self, figure: str, network: Network, tier: Tier, count: int) -> list[Pin]:
        nodes = network.nodes_in_tier(tier)
        chosen = nodes[self.stream(figure).integers(nodes.size, size=count)]
        return [Pin(node=network.node_name(int(node))) for node in chosen]


def _draw_sources(
    shape: GraphShape, network: Network, figures: _Figures, ranges: OperatorRanges
) -> list[Operator]:
    count = len(shape.sources)
    rates = figures.whole("rate", ranges.rate, count)
    sizes = figures.whole("event_bytes", ranges.event_bytes, count)
    pins = figures.pins("sources", network, Tier.EDGE, count)
    return [
        Operator(name=name, kind="source", rate=float(rate), event_size=float(size), pin=pin)
        for name, rate, size, pin in zip(shape.sources, rates, sizes, pins, strict=True)
    ]


def _draw_transforms(
    shape: GraphShape, figures: _Figures, ranges: OperatorRanges
) -> list[Operator]:
    count = len(shape.transforms)
    with_window = round(ranges.window_share * count)
    with_window = max(with_window, 1) if ranges.window_share > 0 else 0
    windowed = set(figures.stream("windowed").permutation(count)[:with_window].tolist())
    cpu = figures.whole("cpu_per_event", ranges.cpu_per_event, count)
    memory = figures.whole("memory_bytes", ranges.memory_bytes, count)
    window = figures.whole("window_events", ranges.window_events, count)
    selectivity = figures.real("selectivity", ranges.selectivity, count)
    compression = figures.real("compression", ranges.compression, count)
    return [
        Operator(
            name=name,
            selectivity=selectivity[k],
            compression=compression[k],
            cpu_per_event=float(cpu[k]),
            memory=float(memory[k]),
            window=CountWindow(window[k]) if k in windowed else None,
        )
        for k, name in enumerate(shape.transforms)
    ]


def _draw_sinks(shape: GraphShape, network: Network, figures: _Figures) -> list[Operator]:
    pins = figures.pins("sinks", network, Tier.EDGE, len(shape.sinks))
    (in_cloud,) = figures.pins("cloud-sink", network, Tier.CLOUD, 1)
    return [
        Operator(name=name, kind="sink", pin=in_cloud if name == shape.critical_sink else pin)
        for name, pin in zip(shape.sinks, pins, strict=True)
    ]
