"""Groups of nodes to look through, and the two best candidates found so far."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thalweg.compiling import leaf
from thalweg.placement.compiled.room import Floats, Index, Longs

Bytes = npt.NDArray[np.int8]

ROOM_FOR_ALL, ROOM_ON_NODE, NO_ROOM = 0, 1, 2
"""What is asked of a candidate: room everywhere; CPU, memory and stable queues; nothing."""
ANYWHERE, OUTSIDE_CLOUDS, IN_TIER = -1, -2, -3
"""Less the tier's number for a tier."""
_CLOUD = 2
LAST = 2**40
"""A priority behind all others."""
OUTSIDE = 2**30
"""The priority of sites that are not in the pool."""


class Groups(NamedTuple):
    """Groups of nodes as in `thalweg.placement.network_index`, and where each one's search starts.

    What is before `start` has too little CPU left for any operator that needs some.
    """

    order: Index
    first: Index
    site: Index
    lowest: Index
    start: Index
    least_cpu_ips: float


class Pool(NamedTuple):
    """Where to look: groups, or one node; lower priorities go before lower costs."""

    groups: Index
    node: int
    column: Index
    """The column of each site; −1 outside of the pool."""
    priority: Index
    verdict: Bytes
    """For each column: −1 where the WAN is known not to carry it, 1 where it does, 0 unknown."""
    where: int
    """What keeps nodes at other ends out: a site, or one of the numbers below."""
    tier: npt.NDArray[np.uint8]
    """The tier of each site."""
    one_per_site: bool
    """Of each site only the node with room that has least LAN latency is a candidate."""


class Found(NamedTuple):
    """The best candidate and the next best; node −1 where there is none."""

    priority: Longs
    cost_s: Floats
    node: Longs
    group: Longs


@leaf
def no_candidates() -> Found:
    """Nothing is found yet."""
    return Found(np.full(2, LAST), np.full(2, math.inf), np.full(2, -1), np.full(2, -1))


@leaf
def offer(found: Found, priority: int, cost_s: float, node: int, group: int) -> None:
    """Keep the candidate if it is among the two best by priority, cost and node."""
    for k in range(2):
        better = found.node[k] < 0 or priority < found.priority[k]
        if not better and priority == found.priority[k]:
            better = cost_s < found.cost_s[k] or (
                cost_s == found.cost_s[k] and node < found.node[k]
            )
        if better:
            if k == 0:
                found.priority[1], found.cost_s[1] = found.priority[0], found.cost_s[0]
                found.node[1], found.group[1] = found.node[0], found.group[0]
            found.priority[k], found.cost_s[k] = priority, cost_s
            found.node[k], found.group[k] = node, group
            return


@leaf
def is_in(where: int, tier: npt.NDArray[np.uint8], site: int) -> bool:
    """Whether a site is where one may look."""
    if where >= 0:
        return site == where
    if where == ANYWHERE:
        return True
    if where == OUTSIDE_CLOUDS:
        return bool(tier[site] != _CLOUD)
    return bool(tier[site] == IN_TIER - where)
