"""Follows the changes that other vehicles made: from leaf to leaf, after their mean stay."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.files.transitions_table import NONE, Change, TransitionTable
from thalweg.migration.brokers import Brokers
from thalweg.migration.compiled.predicting import merge_equal, now_in, rests, walk
from thalweg.migration.connections import Connections
from thalweg.migration.fan import NOWHERE, Fan
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index

Order = Literal[1, 2]
Stays = Literal["mean", "spread"]
Whole = npt.NDArray[np.int64]
_MOST_SHOWN = 5
_PRIOR = 3.0
_LEAST_RELATIVE_VARIANCE = 1e-4


class Transitions(TransitionTable):
    """A table of changes that can be counted from connections."""

    @classmethod
    def of(
        cls,
        connections: Connections,
        brokers: Brokers,
        *,
        vehicles: Collection[str] | None = None,
    ) -> Self:
        """Count the stays of these vehicles (all of them, unless given).

        A stay that goes on at the last moment of the trace is left out: nobody knows its end.
        """
        wanted = set(connections.names if vehicles is None else vehicles)
        defects = Defects()
        for name in sorted(wanted - set(connections.names))[:_MOST_SHOWN]:
            defects.add("vehicles", name, "vehicles of the connections")
        defects.raise_if_any()
        rows = np.array([name in wanted for name in connections.names], dtype=bool)
        changes, *sums = _count_stays(connections.leaf[rows])
        names = (*brokers.names, "")
        return cls.of_sums(
            {
                (names[before], names[leaf], names[after]): (count, ticks, squares)
                for (before, leaf, after), count, ticks, squares in zip(
                    changes.T.tolist(), *(column.tolist() for column in sums), strict=True
                )
            },
            connections.step_s,
        )

    @classmethod
    def of_sums(cls, sums: Mapping[Change, tuple[int, int, int]], step_s: float) -> Self:
        """From how many stays there are, their ticks in sum, and the sum of the ticks' squares.

        Whole numbers, so that the figures do not depend on the order in which stays are added.
        """
        rows = {
            change: (
                count,
                ticks * step_s / count,
                math.sqrt(count * squares - ticks * ticks) / count * step_s,
            )
            for change, (count, ticks, squares) in sums.items()
        }
        return cls.of_rows(rows)


def _count_stays(leaf: Index) -> tuple[Whole, Whole, Whole, Whole]:
    """Columns (previous, leaf, next) of the changes; count, ticks and their squares of each."""
    vehicles, steps = leaf.shape
    begins = np.ones((vehicles, steps + 1), dtype=bool)
    begins[:, 1:-1] = leaf[:, 1:] != leaf[:, :-1]
    # A column of nowhere at the end, so that every stay is followed by something in its own row.
    wide = np.concatenate([leaf, np.full((vehicles, 1), NOWHERE, leaf.dtype)], axis=1)
    vehicle, at = np.nonzero(begins)
    here = wide[vehicle, at]
    stays = np.flatnonzero((here != NOWHERE) & (np.append(at[1:], steps) < steps))
    before = np.where(at[stays] > 0, here[stays - 1], NOWHERE)
    changes = np.stack([before, here[stays], here[stays + 1]]).astype(np.int64)
    took = at[stays + 1] - at[stays]
    changes, which = np.unique(changes, axis=1, return_inverse=True)
    count, ticks, squares = np.zeros((3, changes.shape[1]), dtype=np.int64)
    for sums, values in ((count, np.ones_like(took)), (ticks, took), (squares, took * took)):
        np.add.at(sums, which.ravel(), values)
    return changes, count, ticks, squares


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph:
    """States with their edges, the likeliest first: a state for each leaf, then for each pair.

    A pair is a leaf and the one before; a trip's first leaf has `NOWHERE` before it. Where a pair
    was never seen, the leaf alone stands for it.
    """

    first: Whole
    after: Index
    share: Floats
    stay_s: Floats
    log_mean: Floats
    """Of the stays' logarithms, as if they were log-normal."""
    log_spread: Floats
    state_after: Index
    """−1 where nothing is known of what comes after."""
    state: dict[tuple[int, int], int]
    """By (previous, leaf), and by (leaf, leaf) for the leaf alone; in numbers of brokers."""

    def __post_init__(self) -> None:
        freeze(self)

    def at(self, previous: int, leaf: int) -> int:
        """The state of a vehicle in a leaf that came from another one; −1 where none is known."""
        return self.state.get((previous, leaf), self.state.get((leaf, leaf), -1))

    @classmethod
    def of(cls, table: TransitionTable, brokers: Brokers, order: Order, *, ends: bool) -> Graph:
        """The graph of a table in numbers of brokers; with `ends`, trips may end in a leaf."""
        number = _numbers(table, brokers)
        keep = np.arange(table.leaf.size) if ends else np.flatnonzero(table.next != NONE)
        previous, leaf, after = (
            number[places[keep]] for places in (table.previous, table.leaf, table.next)
        )
        # The leaf alone is written as a pair with itself, which no change can be.
        owner, target = [leaf], [after]
        before = [leaf]
        rows = [keep]
        if order == 2:
            owner, target = [leaf, leaf], [after, after]
            before, rows = [leaf, previous], [keep, keep]
        keys = np.stack([np.concatenate(part) for part in (before, owner, target)])
        row = np.concatenate(rows)
        keys, which = np.unique(keys, axis=1, return_inverse=True)
        which = which.ravel()
        count = np.bincount(which, weights=table.count[row]).astype(float)
        stay_s = np.bincount(which, weights=table.count[row] * table.stay_s[row]) / count
        square = table.spread_s[row] ** 2 + (table.stay_s[row] - stay_s[which]) ** 2
        variance = np.bincount(which, weights=table.count[row] * square) / count
        log_mean, log_spread = _logarithms(count, stay_s, variance)
        pairs, state = np.unique(keys[:2], axis=1, return_inverse=True)
        state = state.ravel()
        by = np.lexsort((keys[2], -count, state))
        of = {(a, b): k for k, (a, b) in enumerate(pairs.T.tolist())}
        chance = count / np.bincount(state, weights=count)[state]
        then = [
            of.get((a, b), of.get((b, b), -1)) if b != NOWHERE else -1
            for a, b in keys[1:, by].T.tolist()
        ]
        return cls(
            first=np.searchsorted(state[by], np.arange(pairs.shape[1] + 1)).astype(np.int64),
            after=keys[2, by].astype(np.int32),
            share=chance[by],
            stay_s=stay_s[by],
            log_mean=log_mean[by],
            log_spread=log_spread[by],
            state_after=np.array(then, dtype=np.int32),
            state=of,
        )


def _logarithms(count: Floats, stay_s: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Mean and spread of the logarithms of log-normal stays with these means and variances.

    A few stays say little about how they differ: what all of them show counts as `_PRIOR` more.
    """
    relative = variance / stay_s**2
    overall = float((count * relative).sum() / count.sum()) if count.size else 1.0
    shrunk = (count * relative + _PRIOR * overall) / (count + _PRIOR)
    square = np.log1p(np.maximum(shrunk, _LEAST_RELATIVE_VARIANCE))
    return np.log(stay_s) - 0.5 * square, np.sqrt(square)


def _numbers(table: TransitionTable, brokers: Brokers) -> Whole:
    """The broker of each place of a table; the last one stands for `NONE`."""
    leaves = set(brokers.leaves.tolist())
    found = [brokers.number.get(name, -1) for name in table.leaves]
    unknown = [n for n, k in zip(table.leaves, found, strict=True) if k not in leaves]
    defects = Defects()
    for name in unknown[:_MOST_SHOWN]:
        defects.add("transitions", name, "leaves of the brokers", "count them for these brokers")
    defects.raise_if_any()
    return np.array([*found, NOWHERE], dtype=np.int64)


class Learned:
    """Follows the paths in a graph of changes from where a vehicle is now.

    With `stays` of "mean", the time that it has spent in its leaf is taken off the mean stay there,
    down to one tick. With "spread", stays are log-normal: given that it is still there, other
    changes may be more likely, and each comes after one of `parts` rests. A path is as likely as
    the product of its changes; those below `threshold` are dropped, and of the others at most
    `most` sequences are kept. With `order` 2 a change depends on the leaf before as well. With
    `ends`, trips may end as often as they did.
    """

    name: ClassVar[str] = "learned"

    def __init__(
        self,
        connections: Connections,
        brokers: Brokers,
        transitions: TransitionTable,
        *,
        order: Order = 2,
        stays: Stays = "spread",
        parts: int = 4,
        threshold: float = 0.02,
        most: int = 16,
        ends: bool = False,
    ) -> None:
        defects = Defects()
        defects.require(order in (1, 2), "order", order, "1 or 2")
        defects.require(stays in ("mean", "spread"), "stays", stays, '"mean" or "spread"')
        defects.require(1 <= parts <= 100, "parts", parts, "a number from 1 to 100")
        good = 1e-4 <= threshold <= 1
        defects.require(good, "threshold", threshold, "a number from 0.0001 to 1")
        defects.require(most >= 1, "most", most, "a number >= 1")
        defects.raise_if_any()
        self.graph = Graph.of(transitions, brokers, order, ends=ends)
        self._leaf, self._step_s = connections.leaf, connections.step_s
        self._threshold, self._most = float(threshold), most
        self._stays, self._parts = stays, parts

    def predict(self, vehicle: int, tick: int, steps: int, stride: int = 1) -> Fan:
        """The likeliest paths at `tick`, `tick + stride`, … for so many steps."""
        leaf = self._leaf[vehicle]
        now = int(leaf[tick])
        if now == NOWHERE:
            return Fan(weight=np.ones(1), hosts=np.full((1, steps), NOWHERE, np.int32))
        spent, previous = now_in(leaf, tick)
        graph, step_s = self.graph, self._step_s
        state = graph.at(previous, now)
        chance, rest_s = self._next(state, spent * step_s)
        hosts, weight = walk(
            state,
            now,
            chance,
            rest_s,
            steps,
            stride * step_s,
            step_s,
            self._threshold,
            graph.first,
            graph.after,
            graph.share,
            graph.stay_s,
            graph.state_after,
        )
        merged, shares = merge_equal(hosts, weight, self._most)
        return Fan(weight=shares, hosts=merged)

    def _next(self, state: int, spent_s: float) -> tuple[Floats, Floats]:
        """How likely each change is, and the rests of the stay before it, a row for each."""
        graph = self.graph
        begin, end = (int(k) for k in graph.first[state : state + 2]) if state >= 0 else (0, 0)
        if self._stays == "mean" or begin == end:
            return graph.share[begin:end], graph.stay_s[begin:end, None] - spent_s
        share, log_mean, log_spread = graph.share, graph.log_mean, graph.log_spread
        return rests(begin, end, spent_s, self._parts, share, log_mean, log_spread)
