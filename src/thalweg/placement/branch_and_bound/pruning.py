"""Places that cannot be part of a placement better than one that is known.

Of the pairs of copies a tree is kept and the others cost nothing; on a tree the least cost with one
copy on one place is known for all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from thalweg.model.graph import Floats

Message = Callable[[int, int, Floats], Floats]
"""(from, to, cost of each place of the first) → the least for each place of the second."""


def spanning_tree(
    count: int, pairs: Sequence[tuple[int, int]], weights: Sequence[float]
) -> list[tuple[int, int]]:
    """(copy, parent) of a forest of the heaviest pairs, parents before children; roots have −1."""
    group = list(range(count))

    def find(k: int) -> int:
        while group[k] != k:
            group[k] = group[group[k]]
            k = group[k]
        return k

    kept: list[list[int]] = [[] for _ in range(count)]
    for k in sorted(range(len(pairs)), key=lambda k: (-weights[k], k)):
        a, b = (find(end) for end in pairs[k])
        if a != b:
            group[a] = b
            kept[pairs[k][0]].append(pairs[k][1])
            kept[pairs[k][1]].append(pairs[k][0])
    order: list[tuple[int, int]] = []
    seen = [False] * count
    for root in range(count):
        if seen[root]:
            continue
        seen[root] = True
        waiting = [(root, -1)]
        while waiting:
            k, parent = waiting.pop()
            order.append((k, parent))
            for other in kept[k]:
                if not seen[other]:
                    seen[other] = True
                    waiting.append((other, k))
    return order


def least_with_each(
    own: Sequence[Floats], tree: Sequence[tuple[int, int]], message: Message
) -> tuple[list[Floats], float]:
    """For each copy and place the least cost of all with it there, and the least of all."""
    up = [np.array(cost) for cost in own]
    sent: dict[int, Floats] = {}
    for k, parent in reversed(tree):
        if parent >= 0:
            sent[k] = message(k, parent, up[k])
            up[parent] = up[parent] + sent[k]
    total = [up[k].copy() for k in range(len(own))]
    roots = 0.0
    for k, parent in tree:
        if parent >= 0:
            with np.errstate(invalid="ignore"):
                rest = total[parent] - sent[k]
            # ∞ − ∞: the parent's place is ruled out anyway.
            total[k] = total[k] + message(parent, k, np.where(np.isnan(rest), np.inf, rest))
        else:
            roots += float(total[k].min(initial=np.inf))
    root_of: dict[int, int] = {}
    for k, parent in tree:
        root_of[k] = k if parent < 0 else root_of[parent]
    if not np.isfinite(roots):
        return total, roots
    return [total[k] + (roots - float(total[root_of[k]].min())) for k in range(len(own))], roots
