"""Where vehicles mean to drive: roads in their order, when each is to be left, and their shapes.

A vehicle's place is a step of its route and metres along the road of that step. The plan gives
that place a time on the vehicle's own clock; so many seconds later it is where the plan is then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.figures import freeze, require_figures
from thalweg.model.graph import Floats, Index
from thalweg.model.route_positions import advance, follow
from thalweg.model.vehicles import VehicleTracks

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class PlannedRoutes:
    """The steps of vehicle v are first_step[v]…first_step[v + 1] − 1; each is on one road.

    Road e has the corners first_corner[e]…first_corner[e + 1] − 1 of `corner_x_m`, `corner_y_m`.
    """

    names: tuple[str, ...]
    depart_s: Floats
    first_step: Rows
    edge: Index
    """The road of each step, a position in `edge_names`."""
    exit_s: Floats
    """When the road of each step is to be left, if nothing holds the vehicle up."""
    edge_names: tuple[str, ...]
    length_m: Floats
    first_corner: Rows
    corner_x_m: Floats
    corner_y_m: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "edge_names", tuple(self.edge_names))
        defects = Defects()
        vehicles, steps, roads = len(self.names), self.edge.size, len(self.edge_names)
        distinct = len(set(self.names)) == vehicles and len(set(self.edge_names)) == roads
        defects.require(distinct, "names", "a name twice", "each vehicle and each road once")
        _require_parts(defects, "first_step", self.first_step, vehicles, steps, least=1)
        corners = self.corner_x_m.size
        _require_parts(defects, "first_corner", self.first_corner, roads, corners, least=2)
        require_figures(defects, "depart_s", self.depart_s, (vehicles,), finite=True)
        require_figures(defects, "exit_s", self.exit_s, (steps,), finite=True)
        require_figures(defects, "length_m", self.length_m, (roads,), finite=True)
        for name in ("corner_x_m", "corner_y_m"):
            values = getattr(self, name)
            good = values.shape == (corners,) and bool(np.isfinite(values).all())
            defects.require(good, name, values.shape, f"{corners} finite numbers")
        inside = not steps or bool(self.edge.min() >= 0 and self.edge.max() < roads)
        defects.require(inside, "edge", "a road that is not there", "positions in edge_names")
        defects.raise_if_any()
        rising = bool((self.exit_s >= self.enter_s).all())
        defects.require(rising, "exit_s", "a step that ends before it begins", "rising times")
        defects.raise_if_any()
        freeze(self)

    def __repr__(self) -> str:
        roads = len(self.edge_names)
        return f"<PlannedRoutes: {self.count} vehicles, {self.edge.size} steps on {roads} roads>"

    @property
    def count(self) -> int:
        """How many vehicles there are."""
        return len(self.names)

    @cached_property
    def enter_s(self) -> Floats:
        """When the road of each step is to be entered."""
        entered = np.empty(self.exit_s.size)
        entered[1:] = self.exit_s[:-1]
        entered[self.first_step[:-1]] = self.depart_s
        return entered

    @cached_property
    def corner_m(self) -> Floats:
        """How far each corner is along the shape of its road."""
        way = np.hypot(np.diff(self.corner_x_m), np.diff(self.corner_y_m))
        along = np.concatenate([np.zeros(1), np.cumsum(way)])[: self.corner_x_m.size]
        begin, corners = self.first_corner[:-1], np.diff(self.first_corner)
        found: Floats = along - np.repeat(along[begin], corners)
        return found

    def find(self, names: Sequence[str]) -> Rows:
        """The number of each of these vehicles here; −1 where there is no route for it."""
        number = {name: k for k, name in enumerate(self.names)}
        return np.array([number.get(name, -1) for name in names], dtype=np.int64)

    def locate(self, vehicle: int, edge: int, time_s: float) -> int:
        """The step (from 0) of a vehicle's route on a road; −1 where the route does not use it.

        Of several, the one planned nearest to `time_s`; ties: the earliest. Of a vehicle that is
        late, give the time less its delay.
        """
        steps = slice(int(self.first_step[vehicle]), int(self.first_step[vehicle + 1]))
        found = np.flatnonzero(self.edge[steps] == edge)
        if not found.size:
            return -1
        early = self.enter_s[steps][found] - time_s
        late = time_s - self.exit_s[steps][found]
        return int(found[np.argmin(np.maximum(np.maximum(early, late), 0.0))])

    def follow(self, tracks: VehicleTracks) -> tuple[Index, Floats]:
        """The step of its route and the metres along its road, of each row of the tracks.

        A road that is there twice: the next step on it, as vehicles do not turn back on a route
        (only where there is none, the last one before); at the first row, the one planned nearest
        to its time. On a road off the route, such as inside a junction, a vehicle is at the end of
        the step before (before the first one: at its beginning). Step −1: there is no route for
        the vehicle.
        """
        defects = Defects()
        for name in ("edge", "pos_m"):
            known = getattr(tracks, name) is not None
            defects.require(known, name, None, "tracks that know the road and the metres along it")
        defects.raise_if_any()
        assert tracks.edge is not None and tracks.pos_m is not None  # noqa: S101
        number = {name: k for k, name in enumerate(self.edge_names)}
        known_edge = [number.get(name, -1) for name in tracks.edge_names]
        edge = np.array([*known_edge, -1], dtype=np.int32)[tracks.edge]
        return follow(
            tracks.first_row,
            self.find(tracks.names),
            tracks.tracks.time_s,
            edge,
            tracks.pos_m,
            self.first_step,
            self.edge,
            self.enter_s,
            self.exit_s,
            self.length_m,
        )

    def positions(
        self, vehicle: int, step: int, pos_m: float, ahead_s: npt.ArrayLike
    ) -> tuple[Floats, Floats]:
        """Where a vehicle at `pos_m` along a step of its route will be so many seconds later.

        It drives each road in the planned time, evenly along its shape, and stays at the end of
        its route.
        """
        one = (np.array([vehicle]), np.array([step]), np.array([float(pos_m)]))
        x_m, y_m = self.positions_of(*one, ahead_s)
        return x_m[0], y_m[0]

    def positions_of(
        self,
        vehicle: npt.ArrayLike,
        step: npt.ArrayLike,
        pos_m: npt.ArrayLike,
        ahead_s: npt.ArrayLike,
    ) -> tuple[Floats, Floats]:
        """`positions` of many vehicles at once: a row for each, a column for each of `ahead_s`."""
        of = np.ascontiguousarray(vehicle, dtype=np.int64)
        steps = np.ascontiguousarray(step, dtype=np.int64)
        along_m = np.ascontiguousarray(pos_m, dtype=np.float64)
        ahead = np.ascontiguousarray(ahead_s, dtype=np.float64)
        self._require_places(of, steps, along_m, ahead)
        x_m, y_m = np.empty((of.size, ahead.size)), np.empty((of.size, ahead.size))
        advance(
            x_m,
            y_m,
            self.first_step[of] + steps,
            self.first_step[of + 1],
            along_m,
            ahead,
            self.edge,
            self.enter_s,
            self.exit_s,
            self.length_m,
            self.first_corner,
            self.corner_m,
            self.corner_x_m,
            self.corner_y_m,
        )
        return x_m, y_m

    def _require_places(self, of: Rows, steps: Rows, along_m: Floats, ahead: Floats) -> None:
        defects = Defects()
        equal = of.ndim == 1 and of.shape == steps.shape == along_m.shape
        shapes = (of.shape, steps.shape, along_m.shape)
        defects.require(equal, "vehicle, step, pos_m", shapes, "three rows of the same length")
        good = ahead.ndim == 1 and bool((ahead >= 0).all() and np.isfinite(ahead).all())
        defects.require(good, "ahead_s", ahead.shape, "a row of finite numbers >= 0")
        defects.require(bool(np.isfinite(along_m).all()), "pos_m", "NaN or ∞", "finite numbers")
        known = not of.size or bool(of.min() >= 0 and of.max() < self.count)
        defects.require(known, "vehicle", "no such vehicle", f"numbers 0…{self.count - 1}")
        if known and equal and of.size:
            many = np.diff(self.first_step)[of]
            there = bool((steps >= 0).all() and (steps < many).all())
            defects.require(there, "step", "no such step", "a step of the vehicle's route")
        defects.raise_if_any()


def _require_parts(
    defects: Defects, path: str, first: Rows, parts: int, total: int, least: int
) -> None:
    good = first.shape == (parts + 1,) and int(first[0]) == 0 and int(first[-1]) == total
    good = good and bool((np.diff(first) >= least).all())
    rule = f"{parts + 1} rising numbers from 0 to {total}, at least {least} apart"
    defects.require(good, path, first.shape, rule)
