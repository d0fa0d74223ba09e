"""Descents from several placements, the best of what they reach, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from thalweg.errors import StrategyError
from thalweg.model.problem import Problem
from thalweg.placement.local_search.figures import MOVABLE, Figures, Integers

if TYPE_CHECKING:
    from thalweg.placement.local_search.compiled.state import State

# Nodes weighed between two looks at the clock: a few milliseconds.
_BUDGET = 30_000
# Copies whose next best node is found even when the time is up.
_MOST_EXPLAINED = 200


@dataclass
class Search:
    """The best placement so far; nodes by copy, as in `single_instances`."""

    figures: Figures
    deadline: float
    """On the clock of `perf_counter`."""
    state: State = field(init=False)
    best: Integers | None = None
    violation: float = np.inf
    latency_s: float = np.inf
    first_latency_s: float = np.nan
    """Of the first placement weighed."""
    descents: int = 0
    """How many came to a local optimum."""
    stopped: bool = False
    """Whether the time was up before that."""

    def __post_init__(self) -> None:
        from thalweg.placement.local_search.compiled.state import make_state

        self.state = make_state(self.figures)

    @property
    def best_nodes(self) -> Integers:
        """The node of every copy in the best placement."""
        if self.best is None:
            raise StrategyError("nothing was searched yet")
        return self.best

    @property
    def candidates(self) -> int:
        """How many nodes were weighed."""
        return int(self.state.counters[0])

    def put(self, node: Integers) -> tuple[float, float]:
        """Place all copies; violation and aggregate latency."""
        from thalweg.placement.local_search.compiled.state import evaluate

        self.state.at[:] = node
        evaluate(self.figures, self.state)
        return float(self.state.total[0]), float(self.state.total[1])

    def weigh(self, node: Integers) -> None:
        """Remember a placement if it is the best so far."""
        _, latency_s = self.put(node)
        if self.best is None:
            self.first_latency_s = latency_s
        self._keep()

    def descend_from(self, node: Integers) -> bool:
        """Descend from a placement; False where the time was up before a local optimum."""
        self.weigh(node)
        return not self._time_is_up() and self._descend()

    def restart(self, rng: np.random.Generator, times: int) -> None:
        """Perturb the best placement and descend, so many times or until the time is up.

        A quarter of these have to do as long as something is violated: as a rule nothing helps.
        """
        from thalweg.placement.local_search.compiled.descent import perturb

        for turn in range(times):
            if self.violation > 0 and 4 * turn >= times:
                return
            if self.stopped or self.best is None or not self.figures.pin[:, MOVABLE].any():
                return
            if self._time_is_up():
                return
            self.put(self.best)
            perturb(self.figures, self.state, rng.random(3 * self.best.size + 2))
            self._descend()

    def _descend(self) -> bool:
        from thalweg.placement.local_search.compiled.descent import descend

        cursor = np.zeros(3, dtype=np.int64)
        while not descend(self.figures, self.state, cursor, _BUDGET):
            if self._time_is_up():
                break
        else:
            self.descents += 1
        self._keep()
        return not self.stopped

    def _time_is_up(self) -> bool:
        self.stopped = self.stopped or perf_counter() >= self.deadline
        return self.stopped

    def _keep(self) -> None:
        from thalweg.placement.local_search.compiled.moves import is_better

        violation, latency_s = float(self.state.total[0]), float(self.state.total[1])
        if self.best is None or is_better(violation, latency_s, self.violation, self.latency_s):
            self.best = self.state.at.copy()
            self.violation, self.latency_s = violation, latency_s

    def runners_up(self) -> Iterator[tuple[int, int, float, int]]:
        """(copy, node, aggregate latency there, nodes weighed) of the next best place of each.

        Only for a best placement that violates nothing; node −1 where no other is feasible. Of many
        copies those for which there is time.
        """
        from thalweg.placement.local_search.compiled.moves import find_best

        if self.best is None or self.violation > 0:
            return
        self.put(self.best)
        for turn, copy in enumerate(np.flatnonzero(self.figures.pin[:, MOVABLE]).tolist()):
            if turn >= _MOST_EXPLAINED and self._time_is_up():
                return
            before = self.candidates
            change, node = find_best(
                self.figures, self.state, np.array([copy], dtype=np.int64), 1, np.inf
            )
            yield copy, int(node), self.latency_s + float(change), self.candidates - before


@cache
def load_compiled() -> None:
    """Compile the loops, or load them compiled, before the clock starts."""
    from thalweg.placement.local_search.board import Board

    board = Board.of(small_problem(), None)
    if board is not None:
        search = Search(board.figures, math.inf)
        search.descend_from(board.anywhere())
        search.restart(np.random.default_rng(0), 1)
        list(search.runners_up())


def small_problem() -> Problem:
    """Two operators that may move between two nodes."""
    from thalweg.model import Application, Node, Operator, Pin, Site, Stream, build_network

    nodes = tuple(Node(name=name, cpu_ips=1e9, memory_bytes=1e9) for name in ("a", "b"))
    operators = [
        Operator(name="a", kind="source", rate=1.0, event_size=1.0, pin=Pin(site="site")),
        Operator(name="b"),
        Operator(name="c", kind="sink"),
    ]
    streams = [Stream(source="a", target="b"), Stream(source="b", target="c")]
    return Problem(
        application=Application(name="small", operators=operators, streams=streams),
        network=build_network("small", [Site(name="site", tier="cloud", nodes=nodes)], []),
    )
