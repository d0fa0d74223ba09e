"""What is to be done for each operator, written down so that it can be done in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from thalweg.model.graph import Index
from thalweg.placement.compiled.advancing import HALVING, NEAR, PLAIN, Results, Steps
from thalweg.placement.compiled.pools import OUTSIDE
from thalweg.placement.greedy.scopes import MOST_FIGURES, Scope
from thalweg.placement.greedy.search import Search

ROUNDS = 3
"""How a stage looks: site by site, in the order of how near they are to the senders."""


class Stage(NamedTuple):
    """Where to look, how, and what to say if something is found; `{looked}` nodes are candidates.

    Least added latency decides, but a lower priority of a site (a column of the scope) goes first.
    """

    scope: Scope
    why: str
    mode: int = PLAIN
    priority: Index | None = None
    sinks: tuple[int, ...] = ()

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code takes this stage together with others."""
        return self.mode != ROUNDS


class Step(NamedTuple):
    """One operator: the stages of the search for its node, and where it goes if all fail."""

    operator: int
    stages: tuple[Stage, ...]
    scope: Scope


def count_compiled(step: Step) -> int:
    """How many stages compiled code can take: two at most, only the first of them not plain."""
    if not step.stages or not step.stages[0].is_compiled:
        return 0
    if len(step.stages) == 1:
        return 1
    plain = step.stages[1].mode == PLAIN and step.stages[1].priority is None
    return 2 if plain else 1


def write_steps(search: Search, steps: Sequence[Step]) -> tuple[Steps, list[int]]:
    """The steps as arrays, and how many stages of each they hold.

    Operators with very many edges are left out: their ways are looked up in smaller parts.
    """
    count = len(steps)
    mode = np.zeros(count, dtype=np.int8)
    where, node = np.zeros((2, count), dtype=np.int64), np.full(count, -1, dtype=np.int64)
    first, last = np.zeros((2, count), dtype=np.int64), np.zeros((2, count), dtype=np.int64)
    rank = np.zeros(count, dtype=np.int64)
    everywhere = search.scopes.everywhere()
    ranks, rank_of = [everywhere.no_priority], dict[int, int]()
    sinks: list[int] = []
    first_sink = [0]
    pools: dict[int, tuple[int, Index]] = {}
    end = 0
    instances = [search.instance_of[step.operator] for step in steps]
    held = []
    most_edges = MOST_FIGURES // everywhere.sites.size
    for k, step in enumerate(steps):
        held.append(count_compiled(step) if search.degree_of(instances[k]) <= most_edges else 0)
        for number, stage in enumerate(step.stages[: held[k]]):
            where[number, k] = stage.scope.where
            if number == 0:
                mode[k], node[k] = stage.mode, stage.scope.node
                sinks += stage.sinks
                if stage.priority is not None:
                    if id(stage.priority) not in rank_of:
                        rank_of[id(stage.priority)] = len(ranks)
                        ranks.append(_spread(stage.scope, stage.priority, everywhere))
                    rank[k] = rank_of[id(stage.priority)]
            if stage.mode == PLAIN:
                key = id(stage.scope)
                if key not in pools:
                    pools[key] = (end, stage.scope.groups)
                    end += stage.scope.groups.size
                first[number, k] = pools[key][0]
                last[number, k] = pools[key][0] + pools[key][1].size
        first_sink.append(len(sinks))
    groups = [groups for _, groups in pools.values()]
    return Steps(
        np.array(instances, dtype=np.int64),
        mode,
        first,
        last,
        where,
        rank,
        np.stack(ranks),
        node,
        np.concatenate([*groups, np.empty(0, dtype=np.int32)]),
        np.array(first_sink, dtype=np.int64),
        np.array(sinks, dtype=np.int32),
        search.scopes.index.by_cpu,
    ), held


def _spread(scope: Scope, priority: Index, everywhere: Scope) -> Index:
    """Priorities of the columns of a scope as those of all columns."""
    spread = np.full(everywhere.sites.size, OUTSIDE, dtype=np.int32)
    spread[everywhere.column[scope.sites]] = priority
    return spread


def no_results(count: int) -> Results:
    """Nothing is found yet."""
    return Results(
        np.full((2, count), -1, dtype=np.int64),
        np.zeros((2, count)),
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
    )


__all__ = [
    "HALVING",
    "NEAR",
    "PLAIN",
    "ROUNDS",
    "Stage",
    "Step",
    "count_compiled",
    "no_results",
    "write_steps",
]
