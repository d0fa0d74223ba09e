"""Brokers in a quad-tree that is finer where more positions are."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model import Network
from thalweg.model.graph import Floats, Index
from thalweg.scenarios.broker_tree import (
    BROKER_FIGURES,
    CITY_M,
    MOST_BROKERS,
    BrokerFigures,
    broker_network,
    require_area,
)
from thalweg.scenarios.parameters import require_amounts, require_count
from thalweg.scenarios.rectangles import Area, cut_rectangles

# Beyond, a quarter of a quarter… of a city is smaller than a vehicle.
MOST_LEVELS = 24
MOST_SHARE = 1 / 16


def adaptive_brokers(
    x_m: npt.ArrayLike,
    y_m: npt.ArrayLike,
    *,
    most_share: float | None = None,
    leaves: int | None = None,
    most_levels: int = 8,
    name: str = "adaptive-brokers",
    area_m: Area = CITY_M,
    figures: BrokerFigures = BROKER_FIGURES,
) -> Network:
    """A cloud over brokers whose areas are cut in four, time and again, where most positions are.

    The leaf with the most positions is cut first; ties: the one made first, of the same cut the
    south-western one. It ends when no leaf has more than `most_share` of the positions, or one
    more cut would make more than `leaves` leaves; 1/16 of the positions, where neither is given. A
    leaf `most_levels − 1` links below the cloud is not cut, nor one without positions. Positions
    outside of `area_m` count as if they were on its edge.

    Speed, memory and links are those of `broker_tree` with as many levels: a leaf high up is as
    strong as a parent beside it. Broker `broker-2-5` is the sixth two links below the cloud, in the
    order of the parents. The deepest brokers come first, the cloud is last.

    >>> rng = np.random.default_rng(1)
    >>> adaptive_brokers(rng.normal(2_000, 300, 999), rng.normal(900, 300, 999), leaves=10)
    <Network adaptive-brokers: 13 nodes in 12 fog, 1 cloud sites>
    """
    x, y = _require(x_m, y_m, most_share, leaves, most_levels, area_m)
    west, south, east, north = area_m
    # An area does not own its east and north edge: positions there belong right inside.
    x = np.clip(x, west, np.nextafter(east, west))
    y = np.clip(y, south, np.nextafter(north, south))
    if most_share is None:
        most_share = MOST_SHARE if leaves is None else 0.0
    most_leaves = leaves or MOST_BROKERS * 3 // 4
    tree = _Tree(area_m, x, y)
    while tree.leaf_count + 3 <= most_leaves:
        if not tree.cut_fullest(max(most_share * x.size, 0.0), most_levels):
            break
    areas, parents = tree.levels()
    return broker_network(name, areas, parents, figures)


class _Tree:
    """Areas in the order in which they were made; the children of one stand side by side."""

    def __init__(self, area_m: Area, x: Floats, y: Floats) -> None:
        self._x, self._y = x, y
        self._area = [np.array(area_m, dtype=float)]
        self._depth = [0]
        self._child = [-1]
        self._own = {0: np.arange(x.size)}
        self._fullest = [(-x.size, 0)]
        self.leaf_count = 1

    def cut_fullest(self, enough: float, most_levels: int) -> bool:
        """Cut the leaf with the most positions, if there is one with more than enough."""
        while self._fullest and -self._fullest[0][0] > enough:
            _, leaf = heapq.heappop(self._fullest)
            own = self._own.pop(leaf)
            if self._depth[leaf] + 1 < most_levels:
                self._cut(leaf, own)
                return True
        return False

    def _cut(self, leaf: int, own: npt.NDArray[np.int64]) -> None:
        parts = cut_rectangles(self._area[leaf][None], columns=2, rows=2)
        x_middle, y_middle = parts[3, :2]
        quarter = (self._x[own] >= x_middle) + 2 * (self._y[own] >= y_middle)
        self._child[leaf] = len(self._area)
        for number in range(4):
            child = len(self._area)
            self._area.append(parts[number])
            self._depth.append(self._depth[leaf] + 1)
            self._child.append(-1)
            self._own[child] = own[quarter == number]
            heapq.heappush(self._fullest, (-self._own[child].size, child))
        self.leaf_count += 3

    def levels(self) -> tuple[list[Floats], list[Index]]:
        """The areas at each depth in the order of their parents, and the parents' numbers."""
        areas, parents = [self._area[0][None]], [np.full(1, -1, dtype=np.int32)]
        above = [0]
        while True:
            cut = [(k, self._child[at]) for k, at in enumerate(above) if self._child[at] >= 0]
            if not cut:
                return areas, parents
            above = [first + number for _, first in cut for number in range(4)]
            areas.append(np.array([self._area[at] for at in above]))
            parents.append(np.repeat(np.array([k for k, _ in cut], dtype=np.int32), 4))


def _require(
    x_m: npt.ArrayLike,
    y_m: npt.ArrayLike,
    most_share: float | None,
    leaves: int | None,
    most_levels: int,
    area_m: Area,
) -> tuple[Floats, Floats]:
    x, y = (np.asarray(values, dtype=float).reshape(-1) for values in (x_m, y_m))
    defects = Defects()
    defects.require(x.size == y.size > 0, "x_m, y_m", (x.size, y.size), "as many y as x, not none")
    finite = bool(np.isfinite(x).all() and np.isfinite(y).all())
    defects.require(finite, "x_m, y_m", "NaN or ∞", "finite numbers")
    if most_share is not None:
        require_amounts(defects, most=1.0, most_share=most_share)
    if leaves is not None:
        require_count(defects, "leaves", leaves, 1, MOST_BROKERS * 3 // 4)
    require_count(defects, "most_levels", most_levels, 1, MOST_LEVELS)
    require_area(defects, area_m)
    defects.raise_if_any()
    return x, y
