"""Knows the route of each vehicle, its planned times, and how traffic keeps to such times now."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from thalweg.errors import Defects
from thalweg.migration.brokers import Brokers
from thalweg.migration.compiled.predicting import look_up
from thalweg.migration.compiled.sampling import sample_rows
from thalweg.migration.connections import Connections
from thalweg.migration.fan import NOWHERE, Fan
from thalweg.model.graph import Floats, Index
from thalweg.model.planned_routes import PlannedRoutes
from thalweg.model.vehicles import VehicleTracks

_LOOKS_PER_STEP = 4
"""How finely a planned route is cut, in parts of a step."""
_MOST_SHOWN = 5
_OTHERS_S = 15.0
"""As much as a vehicle's last seconds of this length counts how all others keep to their plans."""

Pace = Literal["live", "planned"]


class Navigation:
    """From where a vehicle is on its route now, it goes on along its route: one sequence.

    With the `planned` pace in planned times, which know no traffic. With the `live` one as much
    slower (or faster) than planned as it was within the last `window_s` seconds; at the beginning
    of its trip, as all vehicles were. At the end of its route a vehicle stays in the last leaf,
    since nobody knows the moment well; with `ends` it is nowhere from then on.
    """

    name: ClassVar[str] = "navigation"

    def __init__(
        self,
        connections: Connections,
        brokers: Brokers,
        routes: PlannedRoutes,
        vehicles: VehicleTracks,
        *,
        pace: Pace = "live",
        window_s: float = 60.0,
        ends: bool = False,
    ) -> None:
        route = routes.find(connections.names)
        track = _find(vehicles.names, connections.names)
        defects = Defects()
        for path, found in (("routes", route), ("vehicles", track)):
            without = np.flatnonzero(found < 0)
            names = ", ".join(connections.names[k] for k in without[:_MOST_SHOWN])
            more = f" and {without.size - _MOST_SHOWN} more" if without.size > _MOST_SHOWN else ""
            rule = "one for every vehicle of the connections"
            defects.require(without.size == 0, path, f"none for {names}{more}", rule)
        defects.require(pace in ("live", "planned"), "pace", pace, '"live" or "planned"')
        defects.require(0 < window_s < np.inf, "window_s", window_s, "a finite number > 0")
        defects.raise_if_any()
        self._leaf = connections.leaf
        self._pace_s = connections.step_s
        self._grain_s = connections.step_s / _LOOKS_PER_STEP
        self._first, self._planned = _planned_leaves(route, routes, brokers, self._grain_s, ends)
        self._clock_s = _clock(connections, routes, vehicles)[track]
        self._pace = np.ones(self._clock_s.shape)
        if pace == "live":
            window = max(1, round(window_s / connections.step_s))
            self._pace = live_pace(self._clock_s, connections.leaf, connections.step_s, window)

    def predict(self, vehicle: int, tick: int, steps: int, stride: int = 1) -> Fan:
        """The planned leaves at `tick`, `tick + stride`, … for so many steps."""
        hosts = np.full((1, steps), NOWHERE, dtype=np.int32)
        now = self._leaf[vehicle, tick]
        if now != NOWHERE:
            hosts[0, 0] = now
            look_up(
                self._planned,
                self._first[vehicle],
                self._first[vehicle + 1],
                stride * self._pace_s * self._pace[vehicle, tick] / self._grain_s,
                self._clock_s[vehicle, tick] / self._grain_s,
                hosts[0],
            )
        return Fan(weight=np.ones(1), hosts=hosts)


def _find(names: tuple[str, ...], wanted: tuple[str, ...]) -> Index:
    number = {name: k for k, name in enumerate(names)}
    return np.array([number.get(name, -1) for name in wanted], dtype=np.int32)


def _planned_leaves(
    route: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    routes: PlannedRoutes,
    brokers: Brokers,
    grain_s: float,
    ends: bool,
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], Index]:
    """Leaves along each route at moments `grain_s` apart, one route after the other."""
    exit_s = routes.exit_s[routes.first_step[1:] - 1]
    moments = [np.arange(0.0, exit_s[k] - routes.depart_s[k] + grain_s, grain_s) for k in route]
    pieces = [routes.positions(k, 0, 0.0, at_s) for k, at_s in zip(route, moments, strict=True)]
    sizes = np.array([at_s.size + ends for at_s in moments], dtype=np.int64)
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    x, y = (np.concatenate([piece[axis] for piece in pieces]) for axis in (0, 1))
    place, _ = brokers.leaf_index.nearest(x, y)
    if not ends:
        return first, brokers.leaves[place]
    planned = np.full(int(first[-1]), NOWHERE, dtype=np.int32)
    planned[np.delete(np.arange(first[-1]), first[1:] - 1)] = brokers.leaves[place]
    return first, planned


def live_pace(clock_s: Floats, leaf: Index, step_s: float, window: int) -> Floats:
    """Planned seconds per second that each vehicle made within the last `window` ticks.

    Those of all vehicles together count as much as `_OTHERS_S` of its own; where none of them has
    moved yet, plans are kept to. Only what was known at a tick enters its figure.
    """
    tick = np.arange(leaf.shape[1])[None, :]
    there = leaf != NOWHERE
    begun = np.argmax(there, axis=1)[:, None]
    back = np.minimum(np.maximum(tick - window, begun), tick)
    passed_s = np.where(there, clock_s - np.take_along_axis(clock_s, back, axis=1), 0.0)
    took_s = np.where(there, (tick - back) * step_s, 0.0)
    total_s = took_s.sum(axis=0)
    others = np.divide(passed_s.sum(axis=0), total_s, out=np.ones(total_s.size), where=total_s > 0)
    found: Floats = (passed_s + _OTHERS_S * others) / (took_s + _OTHERS_S)
    return np.maximum(found, 0.0)


def _clock(connections: Connections, routes: PlannedRoutes, vehicles: VehicleTracks) -> Floats:
    """Seconds that the plan gives each vehicle from its departure to where it is, per tick."""
    step, along_m = routes.follow(vehicles)
    own = routes.find(vehicles.names)[vehicles.tracks.user]
    at = np.where(step >= 0, routes.first_step[own] + step, 0)
    length_m = routes.length_m[routes.edge[at]]
    share = np.divide(along_m, length_m, out=np.zeros(at.size), where=length_m > 0)
    passed_s = routes.enter_s[at] + share * (routes.exit_s - routes.enter_s)[at]
    passed_s -= routes.depart_s[own]
    start_s, step_s, steps = connections.start_s, connections.step_s, connections.steps
    row = sample_rows(vehicles.tracks.time_s, vehicles.first_row, start_s, step_s, steps)
    found: Floats = np.where(row >= 0, passed_s[row], 0.0)
    return found
