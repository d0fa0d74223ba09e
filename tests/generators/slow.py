"""Slow, obvious versions of the estimators: one instance and one path at a time, no arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from thalweg.model import CountWindow, Deployment, TimeWindow


@dataclass(frozen=True)
class Edge:
    """One flow between two instances, by position."""

    source: int
    target: int
    probability: float


class SlowTraffic:
    """Rates and sizes of a deployment by recursion: whoever is asked asks those upstream."""

    def __init__(self, deployment: Deployment, *, sizes: str = "mean") -> None:
        self.deployment = deployment
        self.sizes = sizes
        app = deployment.problem.application
        self.operators = [app.operators[o] for o in deployment.operator.tolist()]
        self.edges = [
            Edge(s, t, app.streams[k].probability)
            for s, t, k in zip(
                deployment.graph.source.tolist(),
                deployment.graph.target.tolist(),
                deployment.stream.tolist(),
                strict=True,
            )
        ]
        self.events_in = cache(self._events_in)
        self.size_in = cache(self._size_in)

    def arriving(self, instance: int) -> list[Edge]:
        return [edge for edge in self.edges if edge.target == instance]

    def _events_in(self, instance: int) -> float:
        if self.operators[instance].kind == "source":
            return float(self.deployment.birth_rate[instance])
        return sum(self.flow(edge) for edge in self.arriving(instance))

    def _size_in(self, instance: int) -> float:
        if self.operators[instance].kind == "source":
            return float(self.operators[instance].event_size or 0.0)
        arriving = self.arriving(instance)
        if self.sizes == "formula-5":
            return sum(self.size_out(edge.source) * edge.probability for edge in arriving)
        rate = sum(self.flow(edge) for edge in arriving)
        if rate == 0:
            return sum(self.size_out(edge.source) for edge in arriving) / len(arriving)
        return sum(self.flow(edge) * self.size_out(edge.source) for edge in arriving) / rate

    def events_out(self, instance: int) -> float:
        operator = self.operators[instance]
        grown = 1.0 if operator.kind == "source" else operator.selectivity
        return self.events_in(instance) * grown

    def size_out(self, instance: int) -> float:
        operator = self.operators[instance]
        grown = 1.0 if operator.kind == "source" else operator.compression
        return self.size_in(instance) * grown

    def flow(self, edge: Edge) -> float:
        return self.events_out(edge.source) * edge.probability

    def bps(self, edge: Edge) -> float:
        return self.flow(edge) * self.size_out(edge.source) * 8

    def emission_events(self, edge: Edge, source_period_s: float = 1.0) -> float:
        """The events that the sender puts on the edge at once."""
        operator = self.operators[edge.source]
        window, rate = operator.window, self.events_in(edge.source)
        if operator.kind == "source":
            return self.flow(edge) * source_period_s
        if isinstance(window, TimeWindow):
            return self.flow(edge) * window.slide
        if isinstance(window, CountWindow):
            worked_on = float(window.events) if rate > 0 else 0.0
        else:
            inputs = self.arriving(edge.source)
            worked_on = sum(self.emission_events(each, source_period_s) for each in inputs)
        return worked_on * operator.selectivity * edge.probability

    def emission_bytes(self, edge: Edge, source_period_s: float = 1.0) -> float:
        return self.emission_events(edge, source_period_s) * self.size_out(edge.source)

    def work(self, instance: int) -> float:
        """Instructions for one event."""
        operator = self.operators[instance]
        return operator.cpu_per_event + operator.cpu_per_byte * self.size_in(instance)

    def passes(self, instance: int) -> float:
        window = self.operators[instance].window
        return window.length / window.slide if isinstance(window, TimeWindow) else 1.0

    def window_bytes(self, instance: int) -> float:
        window = self.operators[instance].window
        if isinstance(window, CountWindow):
            return window.events * self.size_in(instance)
        if isinstance(window, TimeWindow):
            return window.length * self.events_in(instance) * self.size_in(instance)
        return 0.0

    def memory(self, instance: int) -> float:
        operator = self.operators[instance]
        return operator.memory + operator.memory_factor * self.window_bytes(instance)

    def paths(self) -> Iterator[list[Edge | int]]:
        """Every way from a source to a sink: its first instance, then its edges."""

        def follow(walked: list[Edge | int], at: int) -> Iterator[list[Edge | int]]:
            onward = [edge for edge in self.edges if edge.source == at]
            if not onward:
                yield walked
            for edge in onward:
                yield from follow([*walked, edge], edge.target)

        for instance, operator in enumerate(self.operators):
            if operator.kind == "source":
                yield from follow([instance], instance)

    def path_sum(
        self, path: list[Edge | int], at: dict[int, float], along: dict[Edge, float]
    ) -> float:
        """What instances and edges cost along a path."""
        first = path[0]
        total = at[first] if isinstance(first, int) else math.nan
        for edge in path[1:]:
            if isinstance(edge, Edge):
                total += along[edge] + at[edge.target]
        return total
