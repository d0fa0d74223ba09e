"""The graph that is really run: replicas, the rest in the cloud, and unions where streams meet.

An operator in the cloud that gets one stream from several senders (replicas on fogs, or replicas
and the copy in the cloud) has a union in front of it, one for each of its inputs, so that a join
still tells its inputs apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from thalweg.model.application import Application
from thalweg.model.placement import Placement
from thalweg.model.table import format_table


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One thing that runs: a copy of an operator, or a union in front of one."""

    name: str
    """`operator`, `operator@site` for a replica, `union(sender → receiver)` for a union."""
    operator: str
    """The operator; for a union the one it stands in front of."""
    node: str
    origin: str | None
    """The site whose events it works on; None for everything that reaches it."""
    kind: Literal["source", "transform", "sink", "union"]


@dataclass(frozen=True, slots=True)
class DeployableGraph:
    """Parts in the order of the application's operators, and who sends to whom, by name."""

    parts: tuple[Part, ...]
    streams: tuple[tuple[str, str], ...]

    @property
    def unions(self) -> tuple[Part, ...]:
        """The unions alone."""
        return tuple(part for part in self.parts if part.kind == "union")

    def senders_to(self, name: str) -> tuple[str, ...]:
        """The names of the parts that send to the one of that name."""
        return tuple(source for source, target in self.streams if target == name)

    def __str__(self) -> str:
        rows = [
            [part.name, part.kind, part.node, ", ".join(self.senders_to(part.name))]
            for part in self.parts
        ]
        return format_table(["part", "kind", "node", "gets from"], rows)


@dataclass(frozen=True, slots=True)
class Changes:
    """How many operators a new deployment starts and stops; unions count, sources do not."""

    started: int
    stopped: int

    @property
    def total(self) -> int:
        """The rescheduling cost."""
        return self.started + self.stopped


def rewrite(application: Application, placement: Placement) -> DeployableGraph:
    """The deployable graph of a placement.

    >>> from thalweg.scenarios import fog_cloud, taxi_fares
    >>> import thalweg as tw
    >>> app, net = taxi_fares(), fog_cloud(2)
    >>> graph = rewrite(app, tw.plan(app, net, "ru-min-cut").placement)
    >>> [union.name for union in graph.unions]
    ['union(rank-zones → fare-board)']
    """
    copies = _copies(placement)
    parts: list[Part] = []
    streams: list[tuple[str, str]] = []
    arriving: dict[str, list[tuple[str, str | None, list[str]]]] = {}
    for stream in application.streams:
        reached: dict[str | None, list[str]] = {}
        for origin in copies.get(stream.source, {}):
            target = origin if origin in copies.get(stream.target, {}) else None
            reached.setdefault(target, []).append(_label(stream.source, origin))
        for target, senders in reached.items():
            arriving.setdefault(stream.target, []).append((stream.source, target, senders))
    for operator in application.operators:
        for sender, target, senders in arriving.get(operator.name, ()):
            receiver = _label(operator.name, target)
            if len(senders) > 1 and target in copies[operator.name]:
                node = copies[operator.name][target]
                name = f"union({sender} → {receiver})"
                parts.append(Part(name, operator.name, node, target, "union"))
                streams.append((name, receiver))
                receiver = name
            streams += [(name, receiver) for name in senders]
        for origin, node in copies.get(operator.name, {}).items():
            name = _label(operator.name, origin)
            parts.append(Part(name, operator.name, node, origin, operator.kind))
    return DeployableGraph(tuple(parts), tuple(streams))


def count_changes(application: Application, before: Placement | None, after: Placement) -> Changes:
    """What has to be started and stopped to get from one deployment to another.

    A part that runs on another node than before counts as stopped and started.
    """
    old = frozenset() if before is None else _running(application, before)
    new = _running(application, after)
    return Changes(started=len(new - old), stopped=len(old - new))


def _running(
    application: Application, placement: Placement
) -> frozenset[tuple[str, str | None, str, str]]:
    """Operators and unions with their origin and node; what `rewrite` names, without the graph."""
    copies = _copies(placement)
    sources = {o.name for o in application.operators if o.kind == "source"}
    running = [
        (operator, origin, node, "")
        for operator, nodes in copies.items()
        if operator not in sources
        for origin, node in nodes.items()
    ]
    for stream in application.streams:
        receivers = copies.get(stream.target, {})
        # Only the copy for all gets a stream from several: a replica has the senders of its site.
        senders = sum(origin not in receivers for origin in copies.get(stream.source, {}))
        senders += None in receivers and None in copies.get(stream.source, {})
        if None in receivers and senders > 1:
            running.append((stream.target, None, receivers[None], stream.source))
    return frozenset(running)


def _copies(placement: Placement) -> dict[str, dict[str | None, str]]:
    """For each operator: the node of its copy for each origin."""
    found: dict[str, dict[str | None, str]] = {}
    for instance in placement:
        found.setdefault(instance.operator, {})[instance.origin] = instance.node
    return found


def _label(operator: str, origin: str | None) -> str:
    return operator if origin is None else f"{operator}@{origin}"
