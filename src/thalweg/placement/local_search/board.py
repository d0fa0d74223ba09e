"""Placements of one problem as arrays of nodes, one for each copy, and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thalweg.model.deployment import Deployment, deploy
from thalweg.model.placement import Placement
from thalweg.model.problem import Problem
from thalweg.placement.greedy.workload import single_instances
from thalweg.placement.local_search.figures import (
    MOVABLE,
    Figures,
    Integers,
    draw_figures,
)
from thalweg.placement.local_search.ways import Ways, find_ways


@dataclass(frozen=True, eq=False)
class Board:
    """A problem with its copies, and the sites between which they can be moved."""

    problem: Problem
    skeleton: Deployment
    ways: Ways

    @classmethod
    def of(cls, problem: Problem, placement: Placement | None) -> Board | None:
        """The board on which a placement can be improved; None where its sites are too many."""
        skeleton = single_instances(problem)
        operators = problem.application.operators
        fixed = [problem.network.node_site[problem.births.node]]
        for pin in (o.pin for o in operators if o.pin is not None):
            if pin.node is not None:
                fixed.append(problem.network.node_site[[problem.network.node_index(pin.node)]])
            elif pin.site is not None:
                fixed.append(np.array([problem.network.site_index[pin.site]], dtype=np.int32))
        if placement is not None:
            fixed.append(problem.network.node_site[deploy(problem, placement).node])
        ways = find_ways(problem.network, np.concatenate(fixed))
        return None if ways is None else cls(problem, skeleton, ways)

    @cached_property
    def figures(self) -> Figures:
        """What the compiled loops read."""
        return draw_figures(self.problem, self.skeleton, self.ways)

    @cached_property
    def movable(self) -> dict[int, str]:
        """The copies that may move, by index, with the names of their operators."""
        operators = self.problem.application.operators
        return {
            copy: operators[int(self.skeleton.operator[copy])].name
            for copy in np.flatnonzero(self.figures.pin[:, MOVABLE]).tolist()
        }

    def nodes_of(self, placement: Placement) -> Integers | None:
        """The node of every copy; None for replicas, and for sites that are not on the board.

        Sources that a placement has outside of where they are born are put there, and operators
        that are pinned to a node on that.
        """
        given = deploy(self.problem, placement)
        if not has_single_instances(given):
            return None
        node = given.node.astype(np.int64)
        home = self.skeleton.node.astype(np.int64)
        net, operators = self.problem.network, self.problem.application.operators
        for copy, operator in enumerate(given.operator.tolist()):
            pin = operators[operator].pin
            if pin is not None and pin.node is not None:
                node[copy] = net.node_index(pin.node)
            elif given.origin[copy] >= 0 and net.node_site[node[copy]] != given.origin[copy]:
                node[copy] = home[copy]
        known = self.ways.place[net.node_site[node]] >= 0
        return node if bool(known.all()) else None

    def place(self, node: Integers) -> Placement:
        """The placement with every copy on its node."""
        return Placement.from_indices(
            self.problem, self.skeleton.operator, node, self.skeleton.origin
        )

    def anywhere(self) -> Integers:
        """Every copy on the first node that its pin allows: a placement to begin with."""
        node = self.skeleton.node.astype(np.int64)
        for copy, operator in enumerate(self.skeleton.operator.tolist()):
            if self.problem.application.operators[operator].kind == "source":
                continue
            allowed = self.problem.allowed_nodes(operator)
            sites = self.problem.network.node_site
            pool = np.arange(sites.size) if allowed is None else allowed
            node[copy] = pool[np.argmax(self.ways.place[sites[pool]] >= 0)]
        return node


def has_single_instances(deployment: Deployment) -> bool:
    """Whether every operator but sources runs once, for all events."""
    is_source = deployment.problem.application.columns.is_source[deployment.operator]
    return bool((deployment.origin[~is_source] < 0).all())
