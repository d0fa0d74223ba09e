"""What a query reads, computes and publishes, from its pipeline, its role and its cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from thalweg.errors import Defects
from thalweg.spark.log.names import EDGES, SINKS, edge_stream, sink_stream, source_stream
from thalweg.spark.pipeline.kinds import DEAD_LETTERS, Step
from thalweg.spark.query.spec import QuerySpec

if TYPE_CHECKING:
    from thalweg.spark.pipeline import Pipeline

Edge = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """The streams of the log that a query reads and writes, and the operators in between."""

    sources: Mapping[str, str]
    """Source → the stream with its rows."""
    inbox: Mapping[Edge, str]
    """Edge → the stream with the rows that other sites send along it."""
    operators: frozenset[str]
    outlets: Mapping[str, tuple[str, ...]]
    """Operator (or source, or the dead letters) → the streams that its output goes to."""
    shared: Mapping[Edge, str] = field(default_factory=dict)
    """Edge into an operator of the cut → the stream for rows of windows that are the cloud's."""
    carried: Mapping[Edge, str] = field(default_factory=dict)
    """Edge into an operator of the cut → the folder with the rows of its open windows."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """All streams that are read, in a fixed order."""
        return tuple(self.senders)

    @property
    def senders(self) -> dict[str, str]:
        """All streams that are read, with the source or operator whose rows they hold."""
        born = {stream: name for name, stream in self.sources.items()}
        return born | {stream: sender for (sender, _), stream in self.inbox.items()}


def plan_query(pipeline: Pipeline, spec: QuerySpec) -> QueryPlan:
    """What the query of this spec does.

    Raises:
        InvalidInput: where operators of the cut are unknown, cannot run at a site, or read what
            is not there.
    """
    return _plan_cloud(pipeline, spec) if spec.role == "cloud" else _plan_fog(pipeline, spec)


def _plan_fog(pipeline: Pipeline, spec: QuerySpec) -> QueryPlan:
    """The operators of the cut on the site's own rows; every edge out of them is published."""
    crossing = pipeline.crossing_edges(spec.cut)
    born = {step.name for step in pipeline.steps if _is_born(step, spec.site, "fog")}
    defects = Defects()
    for name in spec.cut:
        for source in pipeline.step(name).sources:
            if source.name not in born:
                rule = f"operators on what is born at {spec.site}"
                defects.add("cut", name, rule, f"{source.name} is not")
    for name in sorted(spec.gates):
        if name not in pipeline.openings or name not in spec.cut:
            defects.add("gates", name, "an operator of the cut that opens windows")
    rule = f"a pipeline with a source at {spec.site}"
    defects.require(bool(born), "pipeline", spec.pipeline, rule)
    defects.raise_if_any()
    outlets: dict[str, tuple[str, ...]] = {}
    for edge in crossing:
        if edge[0] in born or edge[0] in spec.cut:
            outlets[edge[0]] = (*outlets.get(edge[0], ()), edge_stream(*edge))
    return QueryPlan(
        sources={
            step.name: source_stream(step.name) for step in pipeline.steps if step.name in born
        },
        inbox={},
        operators=frozenset(spec.cut),
        outlets=outlets | _dead_letters(spec.cut, EDGES),
        shared={
            (sender, name): edge_stream(sender, name)
            for name in sorted(spec.gates)
            for sender in pipeline.openings[name].senders
        },
        carried={
            (sender, name): spec.carried[f"{sender}+{name}"]
            for name, opening in pipeline.openings.items()
            for sender in opening.senders
            if f"{sender}+{name}" in spec.carried
        },
    )


def _plan_cloud(pipeline: Pipeline, spec: QuerySpec) -> QueryPlan:
    """The whole graph, with an inbox at every edge that the sites may send rows along."""
    born = [step.name for step in pipeline.steps if _is_born(step, spec.site, "cloud")]
    inbox = {
        edge: edge_stream(*edge)
        for edge in pipeline.edges
        if _may_cross(pipeline.step(edge[0]), born)
    }
    steps = [step for step in pipeline.steps if step.role != "source"]
    names = [step.name for step in steps]
    return QueryPlan(
        sources={name: source_stream(name) for name in born},
        inbox=inbox,
        operators=frozenset(names),
        outlets={step.name: (sink_stream(step.name),) for step in steps if step.role == "sink"}
        | _dead_letters(names, SINKS),
    )


def _is_born(step: Step, site: str, tier: str) -> bool:
    """Whether a step is a source whose rows are born at this site of that tier."""
    pin = step.operator.pin
    if step.role != "source":
        return False
    if pin is None:
        return tier == "fog"
    if pin.tier is not None:
        # What is born below the fogs enters at them.
        return (pin.tier == "cloud") == (tier == "cloud")
    return site == (pin.site or str(pin.node).partition("/")[0])


def _may_cross(sender: Step, born_in_cloud: Collection[str]) -> bool:
    if sender.role == "source":
        return sender.name not in born_in_cloud
    return sender.operator.replicable and not any(s.name in born_in_cloud for s in sender.sources)


def _dead_letters(operators: Collection[str], kind: str) -> dict[str, tuple[str, ...]]:
    """An outlet for bad rows, wherever operators may find some; fenced off with its kind."""
    return {DEAD_LETTERS: (f"{kind}/{DEAD_LETTERS}",)} if operators else {}
