"""Descents from the placement given, from other strategies' plans, and from random changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from time import perf_counter

import numpy as np

from thalweg.errors import InvalidInput
from thalweg.estimate.evaluate import make_plan
from thalweg.model.deployment import deploy
from thalweg.model.placement import Placement
from thalweg.model.plan import Plan, Reason
from thalweg.model.problem import Problem
from thalweg.placement.greedy.workload import single_instances
from thalweg.placement.local_search.board import Board, has_single_instances
from thalweg.placement.local_search.search import Search, load_compiled, small_problem
from thalweg.strategy import find_strategy, strategies

STARTS = ("aels-rp-la-free", "aels", "aels-rp", "cloud-only", "tcep-best-fit")
"""Whose plans are improved, too, in this order."""


@dataclass(frozen=True, eq=False)
class Found:
    """What the descents came to, and the placement that they began with."""

    board: Board
    search: Search
    first: Placement


@dataclass(frozen=True, eq=False)
class Kept:
    """A placement that cannot be searched, and why."""

    placement: Placement
    why: str

    def plan(self, problem: Problem, strategy: str, started: float) -> Plan:
        """The plan that keeps it as it is."""
        names = [o.name for o in problem.application.operators if o.kind != "source"]
        return make_plan(
            problem,
            self.placement,
            strategy=strategy,
            reasons=[Reason(operator=name, why=self.why) for name in names],
            seconds=perf_counter() - started,
        )


@cache
def load_all_compiled() -> None:
    """Compile the loops, or load them compiled, before the clock starts: others' too."""
    load_compiled()
    for _ in _start_plans(small_problem()):
        pass


def search_locally(
    problem: Problem, current: Placement | None, *, deadline: float, seed: int, restarts: int
) -> Found | Kept:
    """Descend from `current`, from the plans of other strategies, then from random changes.

    The plans are made and weighed before the first descent, as far as there is time: what is found
    is no worse than any of them.
    """
    if current is not None and not has_single_instances(deploy(problem, current)):
        return Kept(current, "kept as it is: replicas are not moved")
    plans = _start_plans(problem)
    first = current
    if first is None:
        plan = next(plans, None)
        first = _first_nodes(problem) if plan is None else plan.placement
    board = Board.of(problem, first)
    if board is None:
        return Kept(first, "kept as it is: more sites are in use than can be searched")
    search = Search(board.figures, deadline)
    starts = [board.nodes_of(first)]
    while perf_counter() < deadline and (plan := next(plans, None)) is not None:
        starts.append(board.nodes_of(plan.placement))
    known = [nodes for nodes in starts if nodes is not None]
    for nodes in known:
        search.weigh(nodes)
    for nodes in known:
        if not search.descend_from(nodes):
            break
    search.restart(np.random.default_rng(seed), restarts)
    return Found(board, search, first)


def _start_plans(problem: Problem) -> Iterator[Plan]:
    """The plans of other strategies, each made when it is asked for."""
    known = strategies()
    for name in STARTS:
        if name not in known:
            continue
        try:
            plan = find_strategy(name)(problem)
        except InvalidInput:  # It needs a cloud, for instance.
            continue
        yield plan


def _first_nodes(problem: Problem) -> Placement:
    """Every operator on the first node that its pin allows."""
    skeleton = single_instances(problem)
    node = skeleton.node.copy()
    for copy, operator in enumerate(skeleton.operator.tolist()):
        if problem.application.operators[operator].kind != "source":
            allowed = problem.allowed_nodes(operator)
            node[copy] = 0 if allowed is None else allowed[0]
    return Placement.from_indices(problem, skeleton.operator, node, skeleton.origin)
