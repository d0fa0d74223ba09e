"""Goes on as a vehicle did in the last few seconds, ever less sure of it."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np

from thalweg.errors import Defects
from thalweg.migration.brokers import Brokers
from thalweg.migration.compiled.predicting import extrapolate, merge_equal
from thalweg.migration.connections import Connections
from thalweg.migration.fan import NOWHERE, Fan
from thalweg.model.graph import Floats

_MOST_POINTS = 1_000_000


class DeadReckoning:
    """A disc moves with the mean speed of the last seconds; its radius grows with time.

    The disc is a fixed pattern of points. Each traces its own way through the leaves; the share
    of points in a leaf is the share of the disc that the leaf covers. What lies outside of all
    areas counts for the nearest leaf.
    """

    name: ClassVar[str] = "dead-reckoning"

    def __init__(
        self,
        connections: Connections,
        brokers: Brokers,
        *,
        window_s: float = 5.0,
        radius_m: float = 10.0,
        growth_ms: float = 8.0,
        points: int = 32,
    ) -> None:
        defects = Defects()
        for name, value in (("radius_m", radius_m), ("growth_ms", growth_ms)):
            defects.require(0 <= value < np.inf, name, value, "a finite number >= 0")
        defects.require(0 < window_s < np.inf, "window_s", window_s, "a finite number > 0")
        good = 1 <= points <= _MOST_POINTS
        defects.require(good, "points", points, f"a number from 1 to {_MOST_POINTS}")
        defects.raise_if_any()
        self._connections, self._brokers = connections, brokers
        self._window = max(1, round(window_s / connections.step_s))
        self._disc_x, self._disc_y = spread_points(points)
        self._weight = np.full(points, 1.0 / points)
        self._bounds_m = _bounds(brokers.area_m[brokers.leaves])

        @lru_cache(maxsize=64)
        def ahead(steps: int, stride: int) -> tuple[Floats, Floats]:
            ahead_s: Floats = np.arange(steps, dtype=float) * (stride * connections.step_s)
            return ahead_s, radius_m + growth_ms * ahead_s

        self._ahead = ahead

    def predict(self, vehicle: int, tick: int, steps: int, stride: int = 1) -> Fan:
        """Leaves of the disc's points at `tick`, `tick + stride`, … for so many steps."""
        of = self._connections
        now = of.leaf[vehicle, tick]
        if now == NOWHERE:
            return Fan(weight=np.ones(1), hosts=np.full((1, steps), NOWHERE, np.int32))
        ahead_s, radius_m = self._ahead(steps, stride)
        x, y = extrapolate(
            of.x_m[vehicle],
            of.y_m[vehicle],
            tick,
            self._window,
            ahead_s,
            of.step_s,
            radius_m,
            self._disc_x,
            self._disc_y,
            self._bounds_m,
        )
        place = self._brokers.leaf_index.find(x, y)
        if place.min() < 0:
            place, _ = self._brokers.leaf_index.nearest(x, y)
        hosts = self._brokers.leaves[place]
        hosts[:, 0] = now
        merged, weight = merge_equal(hosts, self._weight, len(self._weight))
        return Fan(weight=weight, hosts=merged)


def _bounds(areas_m: Floats) -> Floats:
    """The rectangle that the areas fill, less the edges that it does not own; ∞ if they do not.

    Where they do, the leaf nearest to a position outside is that of the nearest position inside:
    found at once, however many leaves there are.
    """
    low, high = areas_m[:, :2].min(axis=0), areas_m[:, 2:].max(axis=0)
    filled = float(np.prod(areas_m[:, 2:] - areas_m[:, :2], axis=1).sum())
    if not np.isclose(filled, float(np.prod(high - low)), rtol=1e-9, atol=0.0):
        return np.array([-np.inf, -np.inf, np.inf, np.inf])
    return np.concatenate([low, np.nextafter(high, low)])


def spread_points(count: int) -> tuple[Floats, Floats]:
    """Points that cover the unit disc evenly, as the seeds of a sunflower do.

    >>> x, y = spread_points(1000)
    >>> bool(np.hypot(x, y).max() < 1), float(abs(x.mean()) + abs(y.mean())) < 0.01
    (True, True)
    """
    k = np.arange(count)
    radius = np.sqrt((k + 0.5) / count)
    angle = k * (np.pi * (3.0 - np.sqrt(5.0)))
    return radius * np.cos(angle), radius * np.sin(angle)
