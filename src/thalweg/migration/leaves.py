"""Which leaf owns a position on the map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, leaf
from thalweg.errors import Defects
from thalweg.model.graph import Floats, Index

MOST_CELLS = 100_000_000


class LeafIndex:
    """Finds the leaf that owns each of many positions, whatever the number of leaves.

    The edges of all areas cut the map into cells; a table says whose each cell is. An area owns
    its west and south edge, not its east and north edge.

    >>> index = LeafIndex(np.array([[0.0, 0.0, 10.0, 10.0], [10.0, 0.0, 30.0, 10.0]]))
    >>> index.find([0.0, 10.0, 30.0], [0.0, 9.9, 5.0]).tolist()
    [0, 1, -1]
    >>> leaf, distance_m = index.nearest([33.0], [14.0])
    >>> leaf.tolist(), distance_m.tolist()
    ([1], [5.0])
    """

    def __init__(self, areas_m: npt.ArrayLike, names: Sequence[str] = ()) -> None:
        areas = np.array(areas_m, dtype=float)
        _require_areas(areas)
        self.areas_m = areas
        self._x = np.unique(areas[:, [0, 2]])
        self._y = np.unique(areas[:, [1, 3]])
        defects = Defects()
        cells = self._x.size * self._y.size
        rule = f"edges that cut the map into at most {MOST_CELLS:,} cells"
        defects.require(cells <= MOST_CELLS, "areas_m", cells, rule, "line the areas up")
        defects.raise_if_any()
        columns = np.searchsorted(self._x, areas[:, [0, 2]])
        rows = np.searchsorted(self._y, areas[:, [1, 3]])
        self._owner = np.full((self._y.size, self._x.size), -1, dtype=np.int32)
        first, second = _fill(self._owner, columns, rows)
        pair = [names[k] if names else f"area {k}" for k in (first, second)]
        both = f"{pair[0]} and {pair[1]}, which overlap"
        defects.require(first < 0, "areas_m", both, "areas that do not overlap")
        defects.raise_if_any()
        for array in (self.areas_m, self._x, self._y, self._owner):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.areas_m)

    def find(self, x_m: npt.ArrayLike, y_m: npt.ArrayLike) -> Index:
        """The leaf that owns each position; −1 outside of all of them, and for NaN."""
        x, y = _require_positions(x_m, y_m)
        owner = np.empty(x.size, dtype=np.int32)
        _find(owner, x.reshape(-1), y.reshape(-1), self._x, self._y, self._owner)
        return owner.reshape(x.shape)

    def nearest(self, x_m: npt.ArrayLike, y_m: npt.ArrayLike) -> tuple[Index, Floats]:
        """The leaf that owns each position, or else the nearest one, and how far away it is.

        Ties: the first of the leaves. Meant for few positions outside: each is compared with all
        leaves.
        """
        x, y = _require_positions(x_m, y_m)
        defects = Defects()
        finite = bool(np.isfinite(x).all() and np.isfinite(y).all())
        defects.require(finite, "x_m, y_m", "NaN or ∞", "finite numbers")
        defects.raise_if_any()
        owner = self.find(x, y)
        distance_m = np.zeros(x.shape)
        outside = np.flatnonzero(owner.reshape(-1) < 0)
        found, away_m = _nearest(self.areas_m, x.reshape(-1)[outside], y.reshape(-1)[outside])
        owner.reshape(-1)[outside], distance_m.reshape(-1)[outside] = found, away_m
        return owner, distance_m


def _require_areas(areas: Floats) -> None:
    defects = Defects()
    if areas.ndim != 2 or areas.shape[1] != 4 or not len(areas):
        rule = "a row of west, south, east, north for each leaf, at least one"
        defects.add("areas_m", areas.shape, rule)
        defects.raise_if_any()
    west, south, east, north = areas.T
    good = (west < east) & (south < north) & np.isfinite(areas).all(axis=1)
    rule = "finite metres, west below east and south below north"
    for number in np.flatnonzero(~good)[:20].tolist():
        defects.add(f"areas_m[{number}]", areas[number].tolist(), rule)
    defects.raise_if_any()


def _require_positions(x_m: npt.ArrayLike, y_m: npt.ArrayLike) -> tuple[Floats, Floats]:
    x, y = (np.ascontiguousarray(values, dtype=np.float64) for values in (x_m, y_m))
    defects = Defects()
    shapes = (x.shape, y.shape)
    defects.require(x.shape == y.shape, "x_m, y_m", shapes, "as many y as x")
    defects.raise_if_any()
    return x, y


@kernel
def _fill(
    owner: Index, columns: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> tuple[int, int]:
    """Give each area its cells; the first two that want the same one, or −1, −1."""
    for number in range(len(columns)):
        for row in range(rows[number, 0], rows[number, 1]):
            for column in range(columns[number, 0], columns[number, 1]):
                if owner[row, column] >= 0:
                    return owner[row, column], number
                owner[row, column] = number
    return -1, -1


@kernel
def _find(
    found: Index, x: Floats, y: Floats, x_edges: Floats, y_edges: Floats, owner: Index
) -> None:
    for k in range(x.size):
        column, row = _cell(x_edges, x[k]), _cell(y_edges, y[k])
        found[k] = owner[row, column] if column >= 0 and row >= 0 else -1


@leaf
def _cell(edges: Floats, value: float) -> int:
    """The last edge that is not above the value; −1 outside of them all, and for NaN."""
    low, high = 0, edges.size - 1
    if not (value >= edges[0] and value < edges[high]):
        return -1
    while high - low > 1:
        middle = (low + high) // 2
        if edges[middle] <= value:
            low = middle
        else:
            high = middle
    return low


@kernel
def _nearest(areas: Floats, x: Floats, y: Floats) -> tuple[Index, Floats]:
    found = np.zeros(x.size, dtype=np.int32)
    away = np.full(x.size, np.inf)
    for k in range(x.size):
        for number in range(len(areas)):
            beside = max(areas[number, 0] - x[k], x[k] - areas[number, 2], 0.0)
            above = max(areas[number, 1] - y[k], y[k] - areas[number, 3], 0.0)
            distance = np.hypot(beside, above)
            if distance < away[k]:
                found[k], away[k] = number, distance
    return found, away
