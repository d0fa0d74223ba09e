"""Measures the figures that `thalweg.scenarios.vehicles.city_vehicles` is made from.

    python -m tools.calibrate_vehicles FOLDER

reads fcd_compact.parquet, planned_routes.parquet and edges.parquet in the folder, writes
src/thalweg/scenarios/vehicles.json, and prints what was measured beside what is then generated.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from thalweg.errors import InvalidInput
from thalweg.files.routes_reader import load_routes
from thalweg.files.tracks_reader import load_tracks
from thalweg.migration.leaves import LeafIndex
from thalweg.model.planned_routes import PlannedRoutes
from thalweg.model.vehicles import VehicleTracks
from thalweg.scenarios import broker_tree
from thalweg.scenarios.broker_tree import CITY_M
from thalweg.scenarios.vehicles import FIGURES_FILE, VehicleFigures, city_vehicles

TARGET = Path(__file__).parents[1] / "src/thalweg/scenarios" / FIGURES_FILE
STEPS = 101
SPAN_S = 1000.0
# Below this a vehicle stands.
STANDING_MS = 0.1
# The memory of speeds is measured over so many seconds.
LAG_S = 5
MAP = (8, 16)
ROUNDS = 12


def measure(tracks: VehicleTracks, routes: PlannedRoutes) -> dict[str, Any]:
    """The figures of a trace with one row a second, and of its planned routes."""
    speed = tracks.speed_ms
    driving = speed >= STANDING_MS
    length_m = routes.length_m[routes.edge]
    road_ms = length_m / np.maximum(routes.exit_s - routes.enter_s, 1e-9)
    drive_s, stand_s = _runs(tracks, driving)
    correlation, persistence, haste = _correlations(tracks, routes, road_ms, driving)
    per_route_m = np.add.reduceat(length_m, routes.first_step[:-1])
    begin = tracks.first_row[:-1]
    density = _density(tracks)
    return {
        "departures": _quantiles(tracks.tracks.time_s[begin] / SPAN_S, 4),
        "route_m": _quantiles(per_route_m, 1),
        "block_m": round(float(length_m.mean()), 2),
        "bend": round(_bend(tracks), 4),
        "jitter": 0.3,
        "road_ms": _weighted_quantiles(road_ms, length_m),
        "speed_ms": _quantiles(speed[driving], 3),
        "drive_s": _quantiles(drive_s, 2),
        "stand_s": _quantiles(stand_s, 2),
        "road_correlation": round(correlation, 4),
        "persistence": round(persistence, 4),
        "haste": round(haste, 4),
        "patience": 0.3,
        "speed_shift": 0.0,
        "density": np.round(density, 6).tolist(),
        "way_points": np.round(density, 6).tolist(),
    }


def fit(figures: dict[str, Any], spread: float) -> dict[str, Any]:
    """The figures, with those that nobody can measure such that the others come out."""
    found = VehicleFigures.of(figures)
    goal_ms = float(np.mean(found.speed_ms))
    for turn in range(ROUNDS):
        # Another seed each time: the density of one of them is a matter of luck.
        tracks, _ = city_vehicles(2000, SPAN_S, seed=1000 + turn, figures=found)
        made = _density(tracks)
        ratio = (found.density + 1e-4) / (made + 1e-4)
        way_points = found.way_points * np.clip(ratio, 0.2, 5.0) ** 0.5
        made_ms = float(tracks.speed_ms[tracks.speed_ms >= STANDING_MS].mean())
        # Half of what a normal score is worth in metres a second, about the middle.
        shift = found.speed_shift + 0.5 * (goal_ms - made_ms) / float(np.std(found.speed_ms))
        jitter = found.jitter + found.bend - _bend(tracks)
        patience = found.patience + 2 * (spread - _standing_spread(tracks))
        found = replace(
            found,
            way_points=way_points / way_points.sum(),
            speed_shift=shift,
            jitter=min(max(jitter, 0.0), 0.45),
            patience=max(patience, 0.0),
        )
    return figures | {
        "jitter": round(found.jitter, 4),
        "patience": round(found.patience, 4),
        "speed_shift": round(found.speed_shift, 4),
        "way_points": np.round(found.way_points, 6).tolist(),
    }


def compare(tracks: VehicleTracks, made: VehicleTracks) -> list[tuple[str, float, float]]:
    """What both have, under a name: the measured one, the generated one."""
    rows: list[tuple[str, float, float]] = []
    parts = [_summary(tracks), _summary(made)]
    rows += [(name, parts[0][name], parts[1][name]) for name in parts[0]]
    moved = float(np.abs(_density(tracks) - _density(made)).sum() / 2)
    rows.append(("positions in another cell", 0.0, moved))
    return rows


def _summary(tracks: VehicleTracks) -> dict[str, float]:
    rows = tracks.tracks
    same = np.diff(rows.user) == 0
    way_m = np.hypot(np.diff(rows.x_m), np.diff(rows.y_m)) * same
    driven_m = np.bincount(rows.user[1:], way_m, tracks.count)
    first, last = tracks.first_row[:-1], tracks.first_row[1:] - 1
    took_s = rows.time_s[last] - rows.time_s[first]
    driving = tracks.speed_ms >= STANDING_MS
    found = {
        "positions": float(rows.user.size),
        "share standing": float(1 - driving.mean()),
        "its spread over vehicles": _standing_spread(tracks),
        "metres east and north for one": _bend(tracks),
        "mean departure s": float(rows.time_s[first].mean()),
        "share there at the end": float((rows.time_s[last] == tracks.end_s).mean()),
    }
    for share in (10, 50, 90):
        found[f"speed m/s, {share} % while driving"] = _at(tracks.speed_ms[driving], share)
    for share in (10, 50, 90):
        found[f"driven m, {share} %"] = _at(driven_m, share)
    for share in (10, 50, 90):
        found[f"trip s, {share} %"] = _at(took_s, share)
    for levels in (3, 4, 5):
        leaves = 4 ** (levels - 1)
        found[f"hand-overs, {leaves} leaves"] = hand_overs(tracks, levels)
    return found


def hand_overs(tracks: VehicleTracks, levels: int) -> float:
    """How often a vehicle changes its leaf of a quad-tree, on average."""
    network = broker_tree(levels)
    index = LeafIndex(network.site_area_m[: 4 ** (levels - 1)])
    leaf, _ = index.nearest(tracks.tracks.x_m, tracks.tracks.y_m)
    same = np.diff(tracks.tracks.user) == 0
    return float(np.count_nonzero(np.diff(leaf)[same]) / tracks.count)


def _at(values: Any, share: int) -> float:
    return float(np.quantile(values, share / 100))


def _runs(tracks: VehicleTracks, driving: Any) -> tuple[Any, Any]:
    """How long vehicles drive, and how long they stand, each time."""
    user = tracks.tracks.user
    change = np.flatnonzero((np.diff(user) != 0) | (np.diff(driving.astype(int)) != 0)) + 1
    begin = np.append(0, change)
    length = np.diff(np.append(begin, user.size)).astype(float)
    # Runs that the trace cuts off count as well: left out, long ones would be too few.
    return length[driving[begin]], length[~driving[begin]]


def _correlations(
    tracks: VehicleTracks, routes: PlannedRoutes, road_ms: Any, driving: Any
) -> tuple[float, float, float]:
    """Of the scores of speed and road speed; of what else there is; what a vehicle keeps of it."""
    steps, _ = routes.follow(tracks)
    route = routes.find(tracks.names)[tracks.tracks.user]
    road = road_ms[routes.first_step[route] + steps]
    scores = np.zeros((2, driving.size))
    for k, values in enumerate((tracks.speed_ms, road)):
        ranks = rankdata(values[driving])
        scores[k, driving] = ndtri((ranks - 0.5) / ranks.size)
    correlation = float(np.corrcoef(scores[:, driving])[0, 1])
    own = (scores[0] - correlation * scores[1]) / np.sqrt(1 - correlation**2)
    user, many = tracks.tracks.user, np.bincount(tracks.tracks.user[driving])
    kept = np.bincount(user[driving], own[driving]) / many
    haste = float(np.sqrt(np.average(kept**2, weights=many)))
    own -= kept[user]
    both = driving[LAG_S:] & driving[:-LAG_S]
    both &= user[LAG_S:] == user[:-LAG_S]
    lagged = float(np.corrcoef(own[LAG_S:][both], own[:-LAG_S][both])[0, 1])
    return correlation, max(lagged, 0.0) ** (1 / LAG_S), haste


def _bend(tracks: VehicleTracks) -> float:
    rows = tracks.tracks
    same = np.diff(rows.user) == 0
    x_m, y_m = np.diff(rows.x_m)[same], np.diff(rows.y_m)[same]
    return float((np.abs(x_m) + np.abs(y_m)).sum() / np.hypot(x_m, y_m).sum())


def _standing_spread(tracks: VehicleTracks) -> float:
    """How much vehicles differ in the share of time that they stand: the standard deviation."""
    user = tracks.tracks.user
    stands = np.bincount(user, tracks.speed_ms < STANDING_MS)
    return float((stands / np.bincount(user)).std())


def _density(tracks: VehicleTracks) -> Any:
    west, south, east, north = CITY_M
    rows, columns = MAP
    x = np.clip((tracks.tracks.x_m - west) / (east - west) * columns, 0, columns - 1e-9)
    y = np.clip((tracks.tracks.y_m - south) / (north - south) * rows, 0, rows - 1e-9)
    cell = y.astype(int) * columns + x.astype(int)
    counts = np.bincount(cell, minlength=rows * columns).reshape(MAP)
    return counts / counts.sum()


def _quantiles(values: Any, digits: int) -> list[float]:
    return np.round(np.quantile(values, np.linspace(0.0, 1.0, STEPS)), digits).tolist()


def _weighted_quantiles(values: Any, weights: Any) -> list[float]:
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order])
    at = np.searchsorted(share / share[-1], np.linspace(0.0, 1.0, STEPS))
    return np.round(values[order][np.minimum(at, values.size - 1)], 2).tolist()


def write(figures: dict[str, Any]) -> str:
    """The figures as JSON, a figure on each line."""
    lines = ",\n".join(f'  "{name}": {json.dumps(value)}' for name, value in figures.items())
    return "{\n" + lines + "\n}\n"


def main(words: list[str]) -> int:
    """Measure the folder that is named, and write what was found."""
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(words[0])
    try:
        tracks = load_tracks(folder / "fcd_compact.parquet")
        routes = load_routes(folder / "planned_routes.parquet")
    except InvalidInput as error:
        print(error, file=sys.stderr)
        return 2
    figures = fit(measure(tracks, routes), _standing_spread(tracks))
    TARGET.write_text(write(figures), encoding="utf-8")
    print(f"wrote {TARGET}")
    made, _ = city_vehicles(1000, SPAN_S, seed=0, figures=VehicleFigures.of(figures))
    print(f"{'':36}{'measured':>12}{'generated':>12}")
    for name, measured, generated in compare(tracks, made):
        print(f"{name:36}{measured:12.4g}{generated:12.4g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
