"""The search itself: all placements of the copies that may move, but for what bounds rule out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from thalweg.placement.branch_and_bound.bounds import Bounds
from thalweg.placement.branch_and_bound.elimination import Term
from thalweg.placement.local_search.figures import CPU, Integers

if TYPE_CHECKING:
    from thalweg.placement.branch_and_bound.compiled.tree import Tables, Walk

# Placements looked at between two looks at the clock.
_STEPS = 20_000


@dataclass(frozen=True)
class Answer:
    """What is known about the best placement."""

    node: Integers | None
    """The best that was found, if it is better than what was known."""
    best_s: float
    least_s: float
    """No placement that violates nothing costs less."""
    proven: bool
    """Whether nothing is left to look at."""
    steps: int


def search_all(bounds: Bounds, *, gap: float, deadline: float, most_steps: int) -> Answer:
    """Look for a placement better than the known one until none is left, or time is up.

    A placement so good that no other is better by more than the gap ends the search, too.
    """
    known = bounds.known_s
    if not np.isfinite(bounds.least_s):
        return Answer(None, known, np.inf, True, 0)
    if not bounds.copies:
        node = None if np.isfinite(known) else bounds.nodes.copy()
        return Answer(node, bounds.fixed_s, bounds.fixed_s, True, 0)
    if _close(known, bounds.least_s, gap) or not bounds.is_small:
        return Answer(None, known, bounds.least_s, _close(known, bounds.least_s, gap), 0)
    steps = 0
    if not np.isfinite(known):
        first = find_feasible(bounds, deadline=deadline, most_steps=most_steps // 2)
        steps = first.steps
        if first.proven and first.node is None:
            return replace(first, least_s=np.inf)
        if first.node is not None:
            bounds = Bounds(bounds.figures, first.node, first.best_s)
    order, made = bounds.tabulate()
    if _close(bounds.known_s, bounds.least_s, gap):
        answer = Answer(None, bounds.known_s, bounds.least_s, True, 0)
    else:
        answer = _Tree(bounds, order, made, gap).run(deadline, most_steps - steps)
    node = answer.node
    if node is None and bounds.known_s < known:
        node = bounds.nodes
    return replace(answer, node=node, steps=answer.steps + steps)


def find_feasible(bounds: Bounds, *, deadline: float, most_steps: int) -> Answer:
    """Any placement that violates nothing, the copies with fewest nodes to choose from first.

    Ties: the one that needs most CPU. Where there is none, that is found out sooner in this order
    than in the one that makes small tables.
    """
    sizes = np.diff(bounds.places.first)
    cpu = bounds.figures.copy[:, CPU]
    order = sorted(
        range(len(bounds.copies)),
        key=lambda k: (int(sizes[bounds.values[k]].sum()), -float(cpu[bounds.copies[k]]), k),
    )
    return _Tree(bounds, order, [], math.inf).run(deadline, most_steps)


def _close(best_s: float, least_s: float, gap: float) -> bool:
    return least_s >= best_s * (1 - 1e-12) / (1 + gap)


@dataclass
class _Tree:
    bounds: Bounds
    order: list[int]
    made: list[Term]
    gap: float
    tables: Tables = field(init=False)
    walk: Walk = field(init=False)

    def __post_init__(self) -> None:
        self.tables = self._make_tables()
        self.walk = self._make_walk()

    def run(self, deadline: float, most_steps: int) -> Answer:
        from thalweg.placement.branch_and_bound.compiled.tree import walk
        from thalweg.placement.branch_and_bound.places import bound_nodes
        from thalweg.placement.local_search.compiled.state import make_state

        figures, w = self.bounds.figures, self.walk
        state = make_state(figures)
        state.at[:] = bound_nodes(figures, self.bounds.nodes)
        proven = False
        while w.best[2] < most_steps:
            steps = int(min(_STEPS, most_steps - w.best[2]))
            proven = bool(walk(figures, state, self.tables, w, steps))
            if proven or perf_counter() >= deadline:
                break
        best_s = float(w.best[0])
        found = w.best_node.copy() if best_s < self.bounds.known_s else None
        least_s = best_s / (1 + self.gap) if proven else self._least_open()
        least_s = max(least_s, self.bounds.least_s) if np.isfinite(best_s) else least_s
        return Answer(found, best_s, min(least_s, best_s), proven, int(w.best[2]))

    def _least_open(self) -> float:
        """The least bound of all that is not looked at yet."""
        w = self.walk
        least = float(w.best[0]) / (1 + self.gap)
        for level in range(int(w.level[0]) + 1):
            if w.turn[level] < w.children[level]:
                least = min(least, float(w.bound[level, w.turn[level]]))
        return least

    def _make_tables(self) -> Tables:
        from thalweg.placement.branch_and_bound.compiled.tree import Tables

        bounds, levels = self.bounds, len(self.order)
        values = [bounds.values[k] for k in self.order]
        made: list[list[int]] = [[] for _ in range(levels)]
        read: list[list[int]] = [[] for _ in range(levels)]
        axes: list[tuple[int, int]] = []
        axis_first = [0]
        for number, term in enumerate(self.made):
            made[term.made_at].append(number)
            if term.scope:
                read[term.scope[-1]].append(number)
            steps = np.array(term.table.strides, dtype=np.int64) // 8
            axes += zip(term.scope, steps.tolist(), strict=True)
            axis_first.append(len(axes))
        flat = [np.ascontiguousarray(term.table).reshape(-1) for term in self.made]
        begin = np.concatenate([[0], np.cumsum([part.size for part in flat])])
        return Tables(
            copy=np.array([bounds.copies[k] for k in self.order], dtype=np.int64),
            value_first=_firsts([value.size for value in values]),
            value_place=np.concatenate(values).astype(np.int64),
            place_first=bounds.places.first,
            place_node=bounds.places.node,
            message=np.concatenate(flat) if flat else np.zeros(1),
            begin=begin.astype(np.int64),
            axis_first=np.array(axis_first, dtype=np.int64),
            axis=np.array(axes, dtype=np.int64).reshape(-1, 2),
            made_first=_firsts([len(numbers) for numbers in made]),
            made=np.array([k for numbers in made for k in numbers], dtype=np.int64),
            read_first=_firsts([len(numbers) for numbers in read]),
            read=np.array([k for numbers in read for k in numbers], dtype=np.int64),
        )

    def _make_walk(self) -> Walk:
        from thalweg.placement.branch_and_bound.compiled.tree import Walk

        bounds, levels = self.bounds, len(self.order)
        size = np.diff(bounds.places.first)
        most = max(int(size[bounds.values[k]].sum()) for k in self.order)
        ahead = np.zeros(levels + 1)
        ahead[0] = sum(float(term.table) for term in self.made if not term.scope)
        return Walk(
            bound=np.zeros((levels, most)),
            node=np.zeros((levels, most), dtype=np.int64),
            value=np.zeros((levels, most), dtype=np.int64),
            children=np.zeros(levels, dtype=np.int64),
            turn=np.zeros(levels, dtype=np.int64),
            chosen=np.zeros(levels, dtype=np.int64),
            ahead=ahead,
            level=np.full(1, -1, dtype=np.int64),
            best=np.array([bounds.known_s, self.gap, 0.0]),
            best_node=bounds.nodes.copy(),
        )


def _firsts(counts: list[int]) -> Integers:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@cache
def load_compiled_search() -> None:
    """Compile the loops, or load them compiled, before the clock starts."""
    from thalweg.placement.local_search.board import Board
    from thalweg.placement.local_search.search import small_problem

    board = Board.of(small_problem(), None)
    if board is not None:
        bounds = Bounds(board.figures, board.anywhere(), math.inf)
        search_all(bounds, gap=0.0, deadline=math.inf, most_steps=10)
