"""What runs where, with tokens and streams counted over all applications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defect, InvalidInput
from thalweg.model.deployment import Deployment, deploy
from thalweg.model.graph import Floats
from thalweg.model.network import Network
from thalweg.model.placement import Placement
from thalweg.model.problem import Problem
from thalweg.simulate.lineages import Lineages, trace_lineages
from thalweg.simulate.physics import Physics

Index = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Program:
    """One application that runs, and where its numbers begin among those of all."""

    problem: Problem
    placement: Placement
    physics: Physics
    lineages: Lineages
    number: int = 0
    first_token: int = 0
    first_stream: int = 0

    @cached_property
    def deployment(self) -> Deployment:
        """The placement unfolded."""
        return deploy(self.problem, self.placement)

    def placed(self, placement: Placement) -> Program:
        """The same application, placed otherwise."""
        return replace(self, placement=placement)


@dataclass(frozen=True, eq=False, kw_only=True)
class Condition:
    """How well nodes and links work: the part of their speed that is there; all, if not named."""

    node: dict[int, float] = field(default_factory=dict)
    link: dict[int, float] = field(default_factory=dict)
    """By the number of a directed link."""
    losing_nodes: frozenset[int] = frozenset()
    losing_links: frozenset[int] = frozenset()
    """Those that lose what is there."""

    def node_speed(self, node: int) -> float:
        """The part of a node's speed that is there."""
        return self.node.get(node, 1.0)

    def link_speed(self, link: int) -> float:
        """The part of a link's speed that is there."""
        return self.link.get(link, 1.0)


def number_programs(
    problems: Sequence[Problem], placements: Sequence[Placement], physics: Sequence[Physics]
) -> list[Program]:
    """Programs whose tokens and streams are counted one application after the other."""
    programs: list[Program] = []
    token = stream = 0
    for number, (problem, placement, own) in enumerate(
        zip(problems, placements, physics, strict=True)
    ):
        lineages = trace_lineages(problem)
        programs.append(
            Program(
                problem=problem,
                placement=placement,
                physics=own,
                lineages=lineages,
                number=number,
                first_token=token,
                first_stream=stream,
            )
        )
        token += lineages.count
        stream += len(problem.application.streams)
    return programs


def lan_name(network: Network, node: int, way: str) -> str:
    """What the link of a node to its site's gateway is called; `way` is "out" or "in"."""
    return f"LAN {network.node_name(node)} {way}"


def wan_name(network: Network, link: int) -> str:
    """What a directed link between two sites is called."""
    first, second = network.wan.link_ends(link)
    return f"WAN {network.site_names[first]} → {network.site_names[second]}"


def locate_tokens(program: Program) -> tuple[list[Index], list[Index]]:
    """Which instance gets the events of each token of an operator; which sends those of a stream.

    In the order of the tokens of the operator, and of the stream.
    """
    deployment, lineages = program.deployment, program.lineages
    app, births = program.problem.application, program.problem.births
    graph = app.graph
    home = {
        (int(o), int(s)): k
        for k, (o, s) in enumerate(zip(deployment.operator, deployment.origin, strict=True))
    }
    target = np.full(deployment.size + 1, -1, dtype=np.int32)
    nobody = np.empty(0, dtype=np.int32)
    at, sent_by = [nobody] * len(app.operators), [nobody] * len(app.streams)
    arriving: list[list[int]] = [[] for _ in app.operators]
    leaving: list[list[int]] = [[] for _ in app.operators]
    for stream, (a, b) in enumerate(zip(graph.source.tolist(), graph.target.tolist(), strict=True)):
        arriving[b].append(stream)
        leaving[a].append(stream)
    order = np.argsort(deployment.stream, kind="stable")
    bounds = np.searchsorted(deployment.stream[order], np.arange(len(app.streams) + 1))
    for operator in graph.order.tolist():
        born = np.flatnonzero(births.operator == operator)
        here = [home[operator, int(births.site[row])] for row in born.tolist()]
        parts = [np.array(here, dtype=np.int32)]
        for stream in arriving[operator]:
            edges = order[bounds[stream] : bounds[stream + 1]]
            target[deployment.graph.source[edges]] = deployment.graph.target[edges]
            parts.append(target[sent_by[stream]])
        if lineages.merged:
            # Whichever way an event of this birth came: a replica for its site, if there is one.
            row = np.full(births.operator.size, -1, dtype=np.int32)
            row[born] = parts[0]
            for part in parts[1:]:
                if ((part >= 0) & (row >= 0) & (part != row)).any():
                    _refuse_mixed(app.operators[operator].name)
                row = np.where(part >= 0, part, row)
            at[operator] = row
        else:
            at[operator] = np.concatenate(parts)
        for stream in leaving[operator]:
            sent_by[stream] = at[operator]
    return at, sent_by


def _refuse_mixed(operator: str) -> None:
    """Events that are told apart by their birth alone cannot go to two instances of an operator."""
    rule = "one instance for all events of a site, where so many ways lead through an application"
    raise InvalidInput([Defect(path="placement", value=operator, rule=rule)])


def count_operators(programs: Sequence[Program], net: Network) -> Floats:
    """How many operators share the CPU of each node, those that are not simulated included."""
    count = net.node_operators.astype(float)
    for program in programs:
        columns = program.problem.application.columns
        works = columns.is_transform[program.deployment.operator]
        count += np.bincount(program.deployment.node[works], minlength=net.node_count)
    return count
