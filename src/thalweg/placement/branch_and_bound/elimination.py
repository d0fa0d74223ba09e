"""The least that copies not placed yet can cost, as tables over those that are.

Costs are sums over copies and over pairs of them. Taking one copy after the other out of such a
sum, with its best value for every choice of its neighbours, leaves a table over these (bucket
elimination; Dechter 1999). Where a table would get too large the sum is cut into parts that are
minimised one by one, which can only lower it: a bound all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.model.graph import Floats

MOST_ENTRIES = 2_000_000
"""The largest table, with the copy that is taken out."""


@dataclass(frozen=True, eq=False)
class Term:
    """A part of the cost: a table with one axis for each level in its scope, ascending."""

    scope: tuple[int, ...]
    table: Floats
    made_at: int = -1
    """The level that was taken out for it."""


def order_levels(sizes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[int]:
    """The copies, last one taken out first: each time the one with the smallest table goes.

    Ties: the lower index goes first.
    """
    around: list[set[int]] = [set() for _ in sizes]
    for a, b in pairs:
        around[a].add(b)
        around[b].add(a)
    left = set(range(len(sizes)))
    gone: list[int] = []
    weight = [float(np.log(max(size, 1))) for size in sizes]
    while left:
        chosen = min(left, key=lambda k: (weight[k] + sum(weight[o] for o in around[k]), k))
        left.remove(chosen)
        gone.append(chosen)
        for other in around[chosen]:
            around[other] |= around[chosen]
            around[other] -= {other, chosen}
    return gone[::-1]


def eliminate(
    sizes: Sequence[int], terms: Sequence[Term], most_entries: int = MOST_ENTRIES
) -> list[Term]:
    """The tables that taking out the levels makes, the last level first."""
    buckets: list[list[Term]] = [[] for _ in sizes]
    for term in terms:
        buckets[term.scope[-1]].append(term)
    made: list[Term] = []
    for level in range(len(sizes) - 1, -1, -1):
        for part in _parts(buckets[level], sizes, most_entries):
            term = _take_out(part, level)
            made.append(term)
            if term.scope:
                buckets[term.scope[-1]].append(term)
    return made


def _parts(terms: list[Term], sizes: Sequence[int], most_entries: int) -> list[list[Term]]:
    """The terms of one level in as few parts as can be, none with too large a table."""
    parts: list[tuple[set[int], list[Term]]] = []
    for term in sorted(terms, key=lambda term: -term.table.size):
        for scope, part in parts:
            union = scope | set(term.scope)
            if union == scope or np.prod([float(sizes[k]) for k in union]) <= most_entries:
                scope |= union
                part.append(term)
                break
        else:
            parts.append((set(term.scope), [term]))
    return [part for _, part in parts]


def _take_out(part: list[Term], level: int) -> Term:
    scope = sorted({k for term in part for k in term.scope})
    total: Floats = np.zeros([1] * len(scope))
    for term in part:
        at = [scope.index(k) for k in term.scope]
        shape = [1] * len(scope)
        for axis, size in zip(at, term.table.shape, strict=True):
            shape[axis] = size
        total = total + term.table.reshape(shape)
    axis = scope.index(level)
    return Term(tuple(k for k in scope if k != level), total.min(axis=axis), level)
