"""The operators between moving users: what flows between them, what they carry when they move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thalweg.errors import Defects, nearest
from thalweg.estimate.rates import Rates, follow_events
from thalweg.model import Application, Operator, TimeWindow
from thalweg.model.graph import Floats

BITS = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MobileOperator:
    """One operator that may move."""

    name: str
    immutable_bytes: float
    """Code and read-only data."""
    mutable_bytes: float
    """Queued events that are still needed: those of its window."""
    window_s: float
    demand_ips: float
    """Instructions per second that it needs."""
    instructions: float
    """For one event."""
    share: float
    """Its part of the latency that a way from a source to a consumer may take."""

    @property
    def state_bytes(self) -> float:
        """What a move sends; what was computed from it is computed again at the target."""
        return self.immutable_bytes + self.mutable_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MobileStream:
    """What flows from one user or operator to another."""

    source: str
    target: str
    events_per_s: float
    event_bytes: float

    @property
    def bytes_per_s(self) -> float:
        """The bandwidth it needs."""
        return self.events_per_s * self.event_bytes


@dataclass(frozen=True, eq=False, kw_only=True)
class MobileGraph:
    """Operators and streams; its sources and sinks are users.

    Where users are is told by their tracks; pins of sources and sinks are not looked at.
    """

    name: str
    users: tuple[str, ...]
    operators: tuple[MobileOperator, ...]
    streams: tuple[MobileStream, ...]
    latency_s: float
    """The most a way from a source to a consumer may take."""

    @classmethod
    def of(cls, application: Application) -> MobileGraph:
        """The operators of an application between its sources and its sinks."""
        graph = application.graph
        everyone = np.arange(len(application.operators), dtype=np.int32)
        rates = follow_events(
            application,
            graph,
            everyone,
            np.arange(len(application.streams), dtype=np.int32),
            np.array([operator.rate or 0.0 for operator in application.operators]),
        )
        defects = Defects()
        inner = [k for k, o in enumerate(application.operators) if o.kind == "transform"]
        defects.require(bool(inner), "operators", "only sources and sinks", "one that can move")
        for k in inner:
            pin = application.operators[k].pin
            rule = "no pin: the operators between users are those that move"
            defects.require(pin is None, f"operators[{k}].pin", pin and str(pin), rule)
        defects.raise_if_any()
        one, zero = np.array([o.kind == "transform" for o in application.operators], float), 0.0
        nothing = np.full(graph.source.size, zero)
        longest = graph.longest_to(one, nothing) + graph.longest_from(one, nothing) - one
        return cls(
            name=application.name,
            users=tuple(o.name for o in application.operators if o.kind != "transform"),
            operators=tuple(
                _mobile(application.operators[k], rates, k, float(longest[k])) for k in inner
            ),
            streams=tuple(
                MobileStream(
                    source=stream.source,
                    target=stream.target,
                    events_per_s=float(rates.flow[k]),
                    event_bytes=float(rates.flow_size[k]),
                )
                for k, stream in enumerate(application.streams)
            ),
            latency_s=application.limits.response_time_s,
        )

    @cached_property
    def number(self) -> dict[str, int]:
        """The position of each operator by name."""
        return {operator.name: position for position, operator in enumerate(self.operators)}

    def find(self, operator: str) -> int:
        """The position of an operator."""
        defects = Defects()
        known = operator in self.number
        hint = nearest(operator, self.number)
        defects.require(known, "operator", operator, "an operator between users", hint)
        defects.raise_if_any()
        return self.number[operator]

    @cached_property
    def streams_of(self) -> tuple[tuple[int, ...], ...]:
        """The streams into and out of each operator."""
        return tuple(
            tuple(k for k, s in enumerate(self.streams) if operator.name in (s.source, s.target))
            for operator in self.operators
        )

    def other_end(self, stream: int, operator: int) -> str:
        """Who is at the other end of a stream of an operator."""
        found = self.streams[stream]
        mine = self.operators[operator].name
        return found.source if found.target == mine else found.target

    @cached_property
    def bytes_per_s(self) -> Floats:
        """The bandwidth of each stream."""
        return np.array([stream.bytes_per_s for stream in self.streams])


def _mobile(operator: Operator, rates: Rates, position: int, longest: float) -> MobileOperator:
    rate, size = float(rates.events_in[position]), float(rates.size_in[position])
    instructions = operator.cpu_per_event + operator.cpu_per_byte * size
    window_s = 0.0
    if isinstance(operator.window, TimeWindow):
        window_s = operator.window.length
    elif operator.window is not None and rate > 0:
        window_s = operator.window.events / rate
    return MobileOperator(
        name=operator.name,
        immutable_bytes=operator.state,
        mutable_bytes=window_s * rate * size,
        window_s=window_s,
        demand_ips=rate * instructions,
        instructions=instructions,
        share=1.0 / longest,
    )
