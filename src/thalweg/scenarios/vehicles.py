"""Vehicles that drive through a city, generated: random way points on a grid of roads.

Made from figures that were measured on SUMO's floating-car data of Luxembourg and stand in
`vehicles.json`; `python -m tools.calibrate_vehicles FOLDER` measures them anew and prints how near
the generated vehicles come. Each vehicle departs at a measured time, drives along the grid from
way point to way point until its route is as long as a measured one, and ends there. It stands and
drives for measured durations; how fast it drives follows the road that it is on, and itself a
moment ago. Its planned route is the same route without any standing, at the speed of the roads.
Vehicles do not see each other, and they do not brake or accelerate: they go at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats
from thalweg.model.planned_routes import PlannedRoutes
from thalweg.model.vehicles import VehicleTracks
from thalweg.model.workload import Tracks
from thalweg.scenarios.broker_tree import CITY_M, require_area
from thalweg.scenarios.driving import drive
from thalweg.scenarios.parameters import require_amounts, require_count, require_seed
from thalweg.scenarios.randomness import random_stream
from thalweg.scenarios.rectangles import Area
from thalweg.scenarios.road_grid import RoadGrid, road_grid

FIGURES_FILE = "vehicles.json"
MOST_POSITIONS = 20_000_000
_AT_ONCE = 2_000_000

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class VehicleFigures:
    """What was measured; figures in many steps are quantiles at even steps from 0 to 1.

    - `departures`: when vehicles depart, as a share of the time measured.
    - `route_m`: how long planned routes are; `block_m`: how long a road of a route is on average.
    - `bend`: metres to the east or west and to the north or south, for each metre driven; `jitter`:
      by how much of a block crossings are off their place to make that.
    - `road_ms`: the planned speeds of roads, by metres driven on them.
    - `speed_ms`: speeds of vehicles that drive; `drive_s`, `stand_s`: how long they drive and stand
      without a break.
    - `road_correlation`: of the normal scores of speed and road speed, while driving.
    - `persistence`: the correlation of what else makes the speed, from one second to the next.
    - `haste`: the part of a speed's own score that a vehicle keeps all the time; `patience`: how
      much shorter a hasty vehicle stands, as the power of e for a score of 1.
    - `speed_shift`: added to the scores of speeds, as more time is spent where it is slow.
    - `density`: share of the positions in each cell of a map, from the south-west, row by row;
      `way_points`: how likely way points are there to make that density.
    """

    departures: Floats
    route_m: Floats
    block_m: float
    bend: float
    jitter: float
    road_ms: Floats
    speed_ms: Floats
    drive_s: Floats
    stand_s: Floats
    road_correlation: float
    persistence: float
    haste: float
    patience: float
    speed_shift: float
    density: Floats
    way_points: Floats

    def __post_init__(self) -> None:
        freeze(self)

    @classmethod
    def of(cls, data: dict[str, Any]) -> VehicleFigures:
        """The figures as JSON has them."""
        lists = {k: np.array(v, dtype=float) for k, v in data.items() if isinstance(v, list)}
        numbers = {k: float(v) for k, v in data.items() if not isinstance(v, list)}
        return cls(**lists, **numbers)  # type: ignore[arg-type]


@cache
def vehicle_figures() -> VehicleFigures:
    """The figures that were measured in Luxembourg."""
    text = files("thalweg.scenarios").joinpath(FIGURES_FILE).read_text(encoding="utf-8")
    return VehicleFigures.of(json.loads(text))


def city_vehicles(
    vehicles: int = 1000,
    seconds: float = 1000,
    *,
    seed: int = 0,
    area_m: Area = CITY_M,
    step_s: float = 1.0,
    figures: VehicleFigures | None = None,
) -> tuple[VehicleTracks, PlannedRoutes]:
    """So many vehicles `v0`, `v1`… that drive within so many seconds, and their planned routes.

    There is a position every `step_s` from 0 on, before `seconds`; the last one of a vehicle that
    arrives is the end of its route.

    >>> tracks, routes = city_vehicles(vehicles=5, seconds=60, seed=1)
    >>> tracks.count, routes.names == tracks.names, tracks.end_s
    (5, True, 59.0)
    """
    defects = Defects()
    require_count(defects, "vehicles", vehicles, 1, 1_000_000)
    require_amounts(defects, most=1e9, seconds=seconds, step_s=step_s)
    require_seed(defects, seed)
    require_area(defects, area_m)
    defects.raise_if_any()
    moments = int(np.ceil(seconds / step_s))
    most = f"vehicles × seconds / step_s of at most {MOST_POSITIONS:,}"
    defects.require(vehicles * moments <= MOST_POSITIONS, "vehicles", vehicles, most)
    figures = vehicle_figures() if figures is None else figures
    rng = random_stream(seed, "vehicles", "roads")
    grid = road_grid(rng, area_m, figures.block_m, figures.jitter, figures.road_ms)
    defects.require(grid is not None, "area_m", area_m, "an area of at most 1,000,000 roads")
    defects.raise_if_any()
    assert grid is not None  # noqa: S101
    rng = random_stream(seed, "vehicles", "departures")
    depart_s = _quantile(figures.departures, rng.random(vehicles)) * seconds
    depart = np.minimum(np.sort((depart_s / step_s).astype(np.int64)), moments - 1)
    rng = random_stream(seed, "vehicles", "routes")
    goal_m = _quantile(figures.route_m, rng.random(vehicles))
    first_step, edge = _draw_routes(rng, grid, figures, goal_m)
    names = tuple(f"v{number}" for number in range(vehicles))
    routes = _planned(names, grid, depart * step_s, first_step, edge)
    rng = random_stream(seed, "vehicles", "driving")
    return _drive_all(
        rng, names, grid, figures, (depart, first_step, edge), moments, step_s
    ), routes


def _quantile(quantiles: Floats, share: Floats) -> Floats:
    return np.interp(share, np.linspace(0.0, 1.0, quantiles.size), quantiles)


def _draw_routes(
    rng: np.random.Generator, grid: RoadGrid, figures: VehicleFigures, goal_m: Floats
) -> tuple[Rows, npt.NDArray[np.int32]]:
    """The first step of each route and the roads of all: between way points, until long enough."""
    vehicles = goal_m.size
    column, row = _draw_points(rng, grid, figures.way_points, vehicles)
    way_m = np.zeros(vehicles)
    legs: list[list[npt.NDArray[Any]]] = []
    active = np.arange(vehicles)
    while active.size:
        to_column, to_row = _draw_points(rng, grid, figures.way_points, active.size)
        from_column, from_row = column[active], row[active]
        # Of both ways with one turn, the one that turns where more vehicles are is likelier.
        busy = [
            _density_at(grid, figures.density, to_column, from_row),
            _density_at(grid, figures.density, from_column, to_row),
        ]
        east_first = rng.random(active.size) * (busy[0] + busy[1]) < busy[0]
        mid_column = np.where(east_first, to_column, from_column)
        mid_row = np.where(east_first, from_row, to_row)
        legs.append([active, from_column, from_row, mid_column, mid_row])
        legs.append([active, mid_column, mid_row, to_column, to_row])
        column[active], row[active] = to_column, to_row
        way_m[active] += np.abs(to_column - from_column) * grid.width_m
        way_m[active] += np.abs(to_row - from_row) * grid.height_m
        active = active[way_m[active] < goal_m[active]]
    leg = np.array([np.concatenate(parts) for parts in zip(*legs, strict=True)])
    leg = leg[:, np.argsort(leg[0], kind="stable")]
    vehicle, edge = grid.expand(leg)
    # The route ends with the road on which it gets long enough.
    length_m = grid.length_m[edge]
    before_m = np.cumsum(length_m) - length_m
    begin = np.searchsorted(vehicle, np.arange(vehicles))
    keep = before_m - before_m[begin][vehicle] < goal_m[vehicle]
    keep[begin] = True
    vehicle, edge = vehicle[keep], edge[keep]
    return np.searchsorted(vehicle, np.arange(vehicles + 1)).astype(np.int64), edge


def _density_at(grid: RoadGrid, density: Floats, column: Rows, row: Rows) -> Floats:
    rows, columns = density.shape
    found: Floats = density[row * rows // (grid.rows + 1), column * columns // (grid.columns + 1)]
    return found + (1e-3 * float(density.max()) + 1e-300)


def _draw_points(
    rng: np.random.Generator, grid: RoadGrid, way_points: Floats, count: int
) -> tuple[Rows, Rows]:
    """Crossings: a cell of the map by its weight, a place in it, the crossing next to that."""
    rows, columns = way_points.shape
    # Every cell has a chance: no city is so small that there is nowhere else to go.
    weights = way_points.reshape(-1) + 1e-3 * way_points.max() + 1e-300
    cell = np.searchsorted(np.cumsum(weights / weights.sum())[:-1], rng.random(count), "right")
    x = (cell % columns + rng.random(count)) / columns
    y = (cell // columns + rng.random(count)) / rows
    return (
        (x * (grid.columns + 1)).astype(np.int64),
        (y * (grid.rows + 1)).astype(np.int64),
    )


def _planned(
    names: tuple[str, ...], grid: RoadGrid, depart_s: Floats, first_step: Rows, edge: Any
) -> PlannedRoutes:
    took_s = grid.length_m[edge] / grid.speed_ms[edge]
    total_s = np.cumsum(took_s)
    before_s = (total_s - took_s)[first_step[:-1]]
    many = np.diff(first_step)
    exit_s = total_s - np.repeat(before_s, many) + np.repeat(depart_s, many)
    return PlannedRoutes(
        names=names,
        depart_s=depart_s,
        first_step=first_step,
        edge=edge,
        # Sums of many numbers: a last digit must not put an exit before its entry.
        exit_s=np.maximum(exit_s, np.repeat(depart_s, many)),
        edge_names=grid.names(),
        length_m=grid.length_m,
        first_corner=2 * np.arange(grid.length_m.size + 1, dtype=np.int64),
        corner_x_m=grid.ends_m[:, [0, 2]].reshape(-1),
        corner_y_m=grid.ends_m[:, [1, 3]].reshape(-1),
    )


def _drive_all(
    rng: np.random.Generator,
    names: tuple[str, ...],
    grid: RoadGrid,
    figures: VehicleFigures,
    trips: tuple[Rows, Rows, Any],
    moments: int,
    step_s: float,
) -> VehicleTracks:
    depart, first_step, edge = trips
    at_once = max(1, _AT_ONCE // moments)
    # Some roads are slow and some are fast; the rest of a speed is the vehicle's own.
    own = np.sqrt(1 - figures.road_correlation**2)
    kept, changing = own * figures.haste, own * np.sqrt(1 - figures.haste**2)
    shares = np.array([figures.road_correlation, kept, changing])
    found = []
    for first in range(0, depart.size, at_once):
        some = slice(first, first + at_once)
        count = depart[some].size
        rows, place, pos_m, speed_ms, user = drive(
            depart[some],
            first_step[first : first + count + 1],
            edge,
            grid.length_m,
            grid.score,
            figures.speed_ms,
            figures.drive_s,
            figures.stand_s,
            shares,
            figures.persistence**step_s,
            figures.speed_shift,
            figures.patience,
            step_s,
            rng.standard_normal(count),
            rng.standard_normal((count, moments)),
            rng.random((count, moments)),
        )
        found.append((rows, edge[place], pos_m, speed_ms, user + first))
    moment, road, pos_m, speed_ms, user = (
        np.concatenate(parts) for parts in zip(*found, strict=True)
    )
    west, south, east, north = grid.ends_m[road].T
    share = pos_m / grid.length_m[road]
    return VehicleTracks(
        names=names,
        tracks=Tracks(
            user=user,
            time_s=moment * step_s,
            x_m=west + share * (east - west),
            y_m=south + share * (north - south),
        ),
        speed_ms=speed_ms,
        angle_deg=grid.angle_deg[road],
        edge=road.astype(np.int32),
        edge_names=grid.names(),
        pos_m=pos_m,
    )
