"""What nodes are worth a look, and what every operator and every pair costs on them at the least.

Nodes of one group differ in LAN latency alone. Some optimum uses of every group the nodes nearest
to their LAN, at most as many as operators move: a farther one could be exchanged for one that is
free. So a group is one place for the bounds, and a few nodes for the search. A node where
something is bound to run is a place of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.estimate.constraints import ROUNDING
from thalweg.model.graph import Floats, concatenated_ranges
from thalweg.placement.local_search.figures import (
    CPU,
    FREE_CPU,
    FREE_MEMORY,
    MEMORY,
    MOVABLE,
    PIN_SPOT,
    PIN_TIER,
    Figures,
    Integers,
)

Flags = npt.NDArray[np.bool_]

_ALLOWANCE = 1.0 + ROUNDING


@dataclass(frozen=True, eq=False)
class Places:
    """Place p has the nodes node[first[p]] … node[first[p + 1] − 1], nearest to the LAN first."""

    first: Integers
    node: Integers
    free_cpu: Floats
    free_memory: Floats
    """What each node of the place has besides what is bound to run there."""

    @property
    def count(self) -> int:
        """How many places there are."""
        return self.first.size - 1

    @cached_property
    def nearest(self) -> Integers:
        """The first node of each place."""
        return self.node[self.first[:-1]]

    @cached_property
    def second(self) -> Integers:
        """The second node of each place; −1 where there is none."""
        alone = np.diff(self.first) < 2
        at = np.minimum(self.first[:-1] + 1, self.node.size - 1)
        return np.where(alone, -1, self.node[at])


def find_places(figures: Figures, bound: Integers) -> Places:
    """All places; `bound` is the node of every copy, −1 for those that may move."""
    f = figures
    most = int((bound < 0).sum())
    fixed = np.unique(bound[bound >= 0])
    # Nodes with a bound copy leave their groups, which stay in order without them.
    order, is_fixed = f.order.astype(np.int64), np.zeros(len(f.node), dtype=bool)
    is_fixed[fixed] = True
    group = np.repeat(np.arange(f.group_spot.size), np.diff(f.group_first))
    free = ~is_fixed[order]
    order, group = order[free], group[free]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.minimum(np.append(starts[1:], order.size), starts + max(most, 1))
    node = np.concatenate([order[concatenated_ranges(starts, ends)], fixed])
    sizes = np.concatenate([ends - starts, np.ones(fixed.size, dtype=np.int64)])
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    nearest = node[first[:-1]]
    used = np.zeros((len(f.node), 2)) if fixed.size else np.zeros((1, 2))
    free_cpu, free_memory = f.node[nearest, FREE_CPU], f.node[nearest, FREE_MEMORY]
    if fixed.size:
        there = bound >= 0
        np.add.at(used, bound[there], f.copy[there][:, [CPU, MEMORY]])
        # Allowing for rounding: what is taken from ∞ leaves ∞.
        free_cpu = free_cpu * _ALLOWANCE - used[nearest, 0]
        free_memory = free_memory * _ALLOWANCE - used[nearest, 1]
    return Places(first, node.astype(np.int64), free_cpu, free_memory)


def allowed_places(figures: Figures, places: Places, copy: int) -> Flags:
    """The places that the copy's pin, its CPU and its memory allow."""
    f, nearest = figures, places.nearest
    spot = f.spot[nearest]
    fits: Flags = f.copy[copy, CPU] <= places.free_cpu
    fits = fits & (f.copy[copy, MEMORY] <= places.free_memory)
    if f.pin[copy, PIN_SPOT] >= 0:
        fits &= spot == f.pin[copy, PIN_SPOT]
    if f.pin[copy, PIN_TIER] >= 0:
        fits &= f.tier[spot] == f.pin[copy, PIN_TIER]
    return fits


def can_share(figures: Figures, places: Places, a: int, b: int) -> Flags:
    """The places where two copies fit on one node."""
    cpu = figures.copy[a, CPU] + figures.copy[b, CPU]
    memory = figures.copy[a, MEMORY] + figures.copy[b, MEMORY]
    fits: Flags = (cpu <= places.free_cpu) & (memory <= places.free_memory)
    return fits


def bound_nodes(figures: Figures, nodes: Integers) -> Integers:
    """The nodes of the copies that may not move; −1 for those that may."""
    return np.where(figures.pin[:, MOVABLE] > 0, -1, nodes)
