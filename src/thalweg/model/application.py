"""What is to run: operators, the streams between them, and what the application must keep."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from thalweg.errors import Defects, nearest
from thalweg.model.columns import OperatorColumns, operator_columns
from thalweg.model.graph import CycleFound, Floats, Graph, build_graph
from thalweg.model.names import require_name, require_unique
from thalweg.model.operator import Operator

if TYPE_CHECKING:
    import networkx as nx

Kind = Literal["source", "transform", "sink"]

_MOST_CYCLES = 20
_LONGEST_SHOWN = 76


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Events flow from one operator to another.

    `probability` is the chance that an event put out by `source` goes along this stream; with 1
    (the default) every stream of an operator carries its full output.
    """

    source: str
    target: str
    probability: float = 1.0

    def __post_init__(self) -> None:
        defects = Defects()
        for name in ("source", "target"):
            end = getattr(self, name)
            defects.require(isinstance(end, str), name, end, "the name of an operator")
        in_range = _is_number(self.probability) and 0 < self.probability <= 1
        rule = "a number above 0 and at most 1"
        defects.require(in_range, "probability", self.probability, rule)
        defects.raise_if_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a deployment of the application must keep; without a value, no limit.

    `response_time_s` is the largest response time, `uplink_bps` the most the application may send
    up to the cloud in all (and `uplink_least_bps` the least, which only some strategies heed),
    `usage` the usage cost above which a running deployment is adapted.
    """

    response_time_s: float = math.inf
    uplink_bps: float = math.inf
    uplink_least_bps: float = 0.0
    usage: float = math.inf

    def __post_init__(self) -> None:
        defects = Defects()
        for name in ("response_time_s", "uplink_bps", "uplink_least_bps", "usage"):
            value = getattr(self, name)
            defects.require(_is_number(value) and value >= 0, name, value, "a number >= 0")
        if not defects and self.uplink_least_bps > self.uplink_bps:
            rule = f"at most uplink_bps, {self.uplink_bps:g}"
            defects.add("uplink_least_bps", self.uplink_least_bps, rule)
        defects.raise_if_any()


@dataclass(frozen=True, kw_only=True)
class Application:
    """A directed acyclic graph of operators, every one on a way from a source to a sink.

    `limits=None` means no limits, as leaving them out does.

    >>> from thalweg.model import Application, Operator, Pin, Stream
    >>> app = Application(
    ...     name="count",
    ...     operators=[
    ...         Operator(name="rides", kind="source", rate=100.0, event_size=80.0,
    ...                  pin=Pin(tier="edge")),
    ...         Operator(name="count", cpu_per_event=2000.0),
    ...         Operator(name="store", kind="sink", pin=Pin(tier="cloud")),
    ...     ],
    ...     streams=[Stream(source="rides", target="count"),
    ...              Stream(source="count", target="store")],
    ... )
    >>> app.operator("count").kind, app.path_count
    ('transform', 1)
    """

    name: str
    operators: Sequence[Operator]
    streams: Sequence[Stream]
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operators", tuple(self.operators))
        object.__setattr__(self, "streams", tuple(self.streams))
        defects = Defects()
        object.__setattr__(self, "limits", _require_limits(defects, self.limits))
        require_name(defects, "name", self.name)
        require_unique(defects, "operators", [operator.name for operator in self.operators])
        _require_ends(defects, self.operators)
        _require_known_ends(defects, self)
        if not defects:
            _require_no_cycle(defects, self)
        if not defects:
            _require_connected(defects, self)
        defects.raise_if_any()

    def operator(self, name: str) -> Operator:
        """The operator of that name; `KeyError` where there is none."""
        return self.operators[self.index[name]]

    def to_networkx(self) -> nx.DiGraph:
        """Operators and streams as a directed graph of networkx, by the operators' names."""
        from thalweg.model.networkx_graph import application_graph

        return application_graph(self)

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each operator by name."""
        return {operator.name: position for position, operator in enumerate(self.operators)}

    @cached_property
    def graph(self) -> Graph:
        """Operators and streams as arrays, in the order in which they were given."""
        return build_graph(
            len(self.operators),
            [self.index[stream.source] for stream in self.streams],
            [self.index[stream.target] for stream in self.streams],
        )

    @cached_property
    def columns(self) -> OperatorColumns:
        """The operators' figures as arrays, in the order in which they were given."""
        return operator_columns(self.operators)

    @cached_property
    def probability(self) -> Floats:
        """The streams' probabilities, in the order in which they were given."""
        return np.array([stream.probability for stream in self.streams], dtype=float)

    @property
    def sources(self) -> tuple[Operator, ...]:
        """The operators where events are born."""
        return tuple(o for o in self.operators if o.kind == "source")

    @property
    def sinks(self) -> tuple[Operator, ...]:
        """The operators where events end."""
        return tuple(o for o in self.operators if o.kind == "sink")

    @cached_property
    def path_count(self) -> int:
        """How many ways lead from a source to a sink, exactly."""
        ways = [1 if o.kind == "source" else 0 for o in self.operators]
        leaving: list[list[int]] = [[] for _ in self.operators]
        for s, t in zip(self.graph.source.tolist(), self.graph.target.tolist(), strict=True):
            leaving[s].append(t)
        for vertex in self.graph.order.tolist():
            for target in leaving[vertex]:
                ways[target] += ways[vertex]
        return sum(
            w for w, operator in zip(ways, self.operators, strict=True) if operator.kind == "sink"
        )


def _is_number(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= 10**300  # A whole number of 400 digits has no float.
    return isinstance(value, float) and not math.isnan(value)


def _require_limits(defects: Defects, given: object) -> Limits:
    """The limits as given; none where they are None."""
    known = isinstance(given, Limits)
    defects.require(known or given is None, "limits", given, "a Limits, or None for no limits")
    return given if isinstance(given, Limits) else Limits()


def _require_ends(defects: Defects, operators: Sequence[Operator]) -> None:
    kinds = [operator.kind for operator in operators]
    for kind, role in (("source", "where events are born"), ("sink", "where events end")):
        defects.require(
            kind in kinds,
            "operators",
            f"no {kind}",
            f"at least one operator of kind {kind}",
            f"a {kind} is {role}",
        )


def _require_known_ends(defects: Defects, app: Application) -> None:
    kind = {operator.name: operator.kind for operator in app.operators}
    seen: dict[tuple[str, str], int] = {}
    for position, stream in enumerate(app.streams):
        path = f"streams[{position}]"
        for end, name in (("source", stream.source), ("target", stream.target)):
            if name not in kind:
                defects.add(f"{path}.{end}", name, "the name of an operator", nearest(name, kind))
        defects.require(
            kind.get(stream.source) != "sink",
            f"{path}.source",
            stream.source,
            "an operator that puts out events",
            "nothing flows out of a sink",
        )
        defects.require(
            kind.get(stream.target) != "source",
            f"{path}.target",
            stream.target,
            "an operator that takes in events",
            "nothing flows into a source",
        )
        ends = (stream.source, stream.target)
        if ends in seen:
            defects.add(
                path,
                f"{stream.source} → {stream.target}",
                "one stream between two operators",
                f"streams[{seen[ends]}] is the same",
            )
        seen.setdefault(ends, position)


def _require_no_cycle(defects: Defects, app: Application) -> None:
    """Remember cycles that share no stream, so that each of them needs a cut of its own."""
    ends: list[tuple[int, int]] | None = None
    for _ in range(_MOST_CYCLES):
        try:
            if ends is None:
                _ = app.graph
            else:
                build_graph(len(app.operators), [s for s, _ in ends], [t for _, t in ends])
            return
        except CycleFound as found:
            cycle = found.cycle
        names = [app.operators[vertex].name for vertex in cycle]
        shown = " → ".join(names if len(names) <= 12 else [*names[:6], "…", *names[-5:]])
        value, hint = shown, "take out one of these streams"
        if len(shown) > _LONGEST_SHOWN:
            value, hint = f"a cycle of {len(names) - 1}", f"take out one of the streams {shown}"
        defects.add("streams", value, "a graph without cycles", hint)
        streams = ((app.index[stream.source], app.index[stream.target]) for stream in app.streams)
        cut = set(pairwise(cycle))
        ends = [end for end in (streams if ends is None else ends) if end not in cut]


def _require_connected(defects: Defects, app: Application) -> None:
    from_source = _reach(app, "source", [(s.source, s.target) for s in app.streams])
    to_sink = _reach(app, "sink", [(s.target, s.source) for s in app.streams])
    for position, operator in enumerate(app.operators):
        path = f"operators[{position}]"
        if operator.name not in from_source:
            defects.add(
                path,
                operator.name,
                "an operator that a source reaches",
                "add a stream into it, or take it out",
            )
        if operator.name not in to_sink:
            defects.add(
                path,
                operator.name,
                "an operator that reaches a sink",
                "add a stream out of it, or take it out",
            )


def _reach(app: Application, kind: Kind, edges: list[tuple[str, str]]) -> set[str]:
    following: dict[str, list[str]] = {}
    for near, far in edges:
        following.setdefault(near, []).append(far)
    reached = {operator.name for operator in app.operators if operator.kind == kind}
    waiting = deque(reached)
    while waiting:
        for name in following.get(waiting.popleft(), []):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return reached
