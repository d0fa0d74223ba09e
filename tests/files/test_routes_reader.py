"""Planned routes: how they are read, and where vehicles will be, against one that drives along."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.files.routes_reader import load_routes
from thalweg.files.tracks_reader import load_tracks
from thalweg.files.tracks_writer import save_routes
from thalweg.model.planned_routes import PlannedRoutes
from thalweg.model.vehicles import VehicleTracks
from thalweg.model.workload import Tracks

LUXEMBOURG = Path(__file__).parents[3] / "shared/data/sumo_luxembourg"
ARRAYS = ("depart_s", "first_step", "edge", "exit_s", "length_m", "first_corner")


def write_files(folder: Path, routes: dict, edges: dict) -> Path:
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    pq.write_table(pa.table(routes), folder / "routes.parquet")
    return folder / "routes.parquet"


def some_edges() -> dict:
    return {
        "edge": ["a", "b", "c"],
        "length_m": [10.0, 20.0, 5.0],
        "x0": [0.0, 10.0, 10.0],
        "y0": [0.0, 0.0, 15.0],
        "x1": [10.0, 10.0, 15.0],
        "y1": [0.0, 15.0, 15.0],
        "shape": [[0.0, 0.0, 10.0, 0.0], [10.0, 0.0, 15.0, 5.0, 10.0, 15.0], None],
    }


def some_routes() -> dict:
    return {
        "vehicle": ["v10", "v9", "v9", "v9", "v10"],
        "depart": [1.0, 0.0, 0.0, 0.0, 1.0],
        "seq": [1, 2, 0, 1, 0],
        "edge": ["c", "c", "a", "b", "b"],
        "planned_exit_s": [4.0, 8.0, 2.0, 6.0, 3.0],
        "actual_exit_s": [math.nan] * 5,
    }


def test_routes_come_by_vehicle_and_step(tmp_path):
    found = load_routes(write_files(tmp_path, some_routes(), some_edges()))
    assert found.names == ("v9", "v10")
    assert found.depart_s.tolist() == [0.0, 1.0]
    assert found.first_step.tolist() == [0, 3, 5]
    assert [found.edge_names[k] for k in found.edge] == ["a", "b", "c", "b", "c"]
    assert found.exit_s.tolist() == [2.0, 6.0, 8.0, 3.0, 4.0]
    assert found.enter_s.tolist() == [0.0, 2.0, 6.0, 1.0, 3.0]
    # A road without a shape is straight.
    assert found.corner_x_m.tolist() == [0.0, 10.0, 10.0, 15.0, 10.0, 10.0, 15.0]
    assert found.corner_m[-2:].tolist() == pytest.approx([0.0, 5.0])
    assert found.find(["v10", "nobody"]).tolist() == [1, -1]


def test_routes_and_straight_roads_may_be_csv(tmp_path):
    routes, edges = some_routes(), some_edges()
    del edges["shape"], routes["actual_exit_s"]
    for name, table in (("routes.csv", routes), ("roads.csv", edges)):
        rows = zip(*table.values(), strict=True)
        lines = [",".join(table), *(",".join(map(str, row)) for row in rows)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    found = load_routes(tmp_path / "routes.csv", tmp_path / "roads.csv")
    assert found.exit_s.tolist() == [2.0, 6.0, 8.0, 3.0, 4.0]
    assert found.positions(0, 1, 10.0, [0.0])[1].tolist() == [7.5]


# Where vehicles will be


def walk(routes: PlannedRoutes, vehicle: int, step: int, pos_m: float, ahead_s: float):
    """Drive the rest of the route, road by road."""
    at = int(routes.first_step[vehicle]) + step
    end = int(routes.first_step[vehicle + 1])
    share = min(max(pos_m / routes.length_m[routes.edge[at]], 0.0), 1.0)
    left = ahead_s
    while True:
        begin = (
            routes.exit_s[at - 1] if at > routes.first_step[vehicle] else routes.depart_s[vehicle]
        )
        took = routes.exit_s[at] - begin
        rest = (1 - share) * took
        if left < rest or at == end - 1:
            share = min(share + left / took, 1.0) if took > 0 else 1.0
            break
        left, at, share = left - rest, at + 1, 0.0
    road = routes.edge[at]
    corners = range(int(routes.first_corner[road]), int(routes.first_corner[road + 1]))
    points = [(routes.corner_x_m[k], routes.corner_y_m[k]) for k in corners]
    legs = [math.dist(*pair) for pair in pairwise(points)]
    goal = share * sum(legs)
    for (a, b), leg in zip(pairwise(points), legs, strict=True):
        if goal <= leg and leg > 0:
            return tuple(p + goal / leg * (q - p) for p, q in zip(a, b, strict=True))
        goal -= leg
    return points[-1]


@st.composite
def any_routes(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    roads, vehicles = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    corners, steps = rng.integers(2, 6, roads), rng.integers(1, 9, vehicles)
    first_corner = np.append(0, np.cumsum(corners))
    first_step = np.append(0, np.cumsum(steps))
    depart_s = rng.integers(0, 9, vehicles).astype(float)
    # Some steps take no time.
    took_s = rng.choice([0.0, 1.0, 2.5, 7.0], steps.sum())
    exit_s = np.concatenate(
        [
            depart + np.cumsum(took_s[begin:end])
            for depart, (begin, end) in zip(depart_s, pairwise(first_step), strict=True)
        ]
    )
    return PlannedRoutes(
        names=tuple(f"v{k}" for k in range(vehicles)),
        depart_s=depart_s,
        first_step=first_step,
        edge=rng.integers(0, roads, steps.sum()).astype(np.int32),
        exit_s=exit_s,
        edge_names=tuple(f"r{k}" for k in range(roads)),
        length_m=rng.uniform(1, 90, roads),
        first_corner=first_corner,
        # Coarse: some corners are in the same place.
        corner_x_m=rng.integers(0, 3, corners.sum()) * 30.0,
        corner_y_m=rng.integers(0, 3, corners.sum()) * 20.0,
    )


@settings(max_examples=150)
@given(routes=any_routes(), seed=st.integers(0, 2**32))
def test_a_vehicle_will_be_where_one_that_drives_along_gets(routes, seed):
    rng = np.random.default_rng(seed)
    vehicle = rng.integers(0, routes.count, 6)
    step = rng.integers(0, np.diff(routes.first_step)[vehicle])
    pos_m = rng.uniform(-5, 100, 6)
    # Never right at a change of roads, where a last digit decides for one of two.
    ahead_s = rng.uniform(0, 40, 5)
    x_m, y_m = routes.positions_of(vehicle, step, pos_m, ahead_s)
    for k in range(6):
        one = routes.positions(int(vehicle[k]), int(step[k]), pos_m[k], ahead_s)
        assert np.array_equal(one, (x_m[k], y_m[k]))
        for column, ahead in enumerate(ahead_s):
            expected = walk(routes, vehicle[k], step[k], pos_m[k], ahead)
            assert (x_m[k, column], y_m[k, column]) == pytest.approx(expected, abs=1e-6)


def test_a_vehicle_stays_at_the_end_of_its_route(tmp_path):
    routes = load_routes(write_files(tmp_path, some_routes(), some_edges()))
    x_m, y_m = routes.positions(0, 0, 5.0, [0.0, 1.0, 6.0, 7.0, 1e6])
    assert (x_m.tolist(), y_m.tolist()) == (
        [5.0, 10.0, 12.5, 15.0, 15.0],
        [0.0, 0.0, 15.0, 15.0, 15.0],
    )


@pytest.mark.parametrize(
    ("places", "path"),
    [
        (([2], [0], [0.0], [1.0]), "vehicle"),
        (([0], [3], [0.0], [1.0]), "step"),
        (([0], [-1], [0.0], [1.0]), "step"),
        (([0], [0], [math.nan], [1.0]), "pos_m"),
        (([0], [0], [0.0], [-1.0]), "ahead_s"),
        (([0, 0], [0], [0.0], [1.0]), "vehicle, step, pos_m"),
    ],
)
def test_places_that_are_none_are_refused(tmp_path, places, path):
    routes = load_routes(write_files(tmp_path, some_routes(), some_edges()))
    with pytest.raises(InvalidInput) as error:
        routes.positions_of(*places)
    assert [defect.path for defect in error.value.defects] == [path]


# On which step a vehicle is


def loop_routes() -> PlannedRoutes:
    """Roads 0 1 2 0 1 3: the first two are there twice, left every 10 s."""
    return PlannedRoutes(
        names=("v",),
        depart_s=np.array([5.0]),
        first_step=np.array([0, 6]),
        edge=np.array([0, 1, 2, 0, 1, 3], np.int32),
        exit_s=np.arange(15.0, 75.0, 10.0),
        edge_names=("a", "b", "c", "d"),
        length_m=np.full(4, 100.0),
        first_corner=np.arange(0, 10, 2),
        corner_x_m=np.arange(8.0),
        corner_y_m=np.zeros(8),
    )


def test_of_a_road_that_is_there_twice_the_step_planned_nearest_is_taken():
    routes = loop_routes()
    assert [routes.locate(0, 0, t) for t in (0.0, 15.0, 24.9, 25.0, 25.1, 99.0)] == [
        0,
        0,
        0,
        0,
        3,
        3,
    ]
    assert routes.locate(0, 2, 99.0) == 2
    assert PlannedRoutes.locate(routes, 0, 9, 0.0) == -1


def track(roads: str, pos_m, times=None, name="v") -> VehicleTracks:
    count = len(roads)
    names = ("a", "b", "c", "d", ":x")
    return VehicleTracks(
        names=(name,),
        tracks=Tracks(
            user=np.zeros(count, np.int64),
            time_s=np.arange(count) * 1.0 if times is None else np.array(times, dtype=float),
            x_m=np.zeros(count),
            y_m=np.zeros(count),
        ),
        edge=np.array(["abcdx".find(letter) for letter in roads], np.int32),
        edge_names=names,
        pos_m=np.array(pos_m, dtype=float),
    )


def test_a_vehicle_is_followed_along_its_route():
    steps, along_m = loop_routes().follow(track("xaxb.cabd", [7, 30, 7, 20, 7, 1, 140, 5, 9]))
    assert steps.tolist() == [0, 0, 0, 1, 1, 2, 3, 4, 5]
    # Off the route it is at the end of the road before; never beyond the end of its road.
    assert along_m.tolist() == [0, 30, 100, 20, 100, 1, 100, 5, 9]


def test_where_it_is_first_seen_the_plan_decides_which_step_it_is():
    steps, _ = loop_routes().follow(track("ab", [1, 1], times=[40, 41]))
    assert steps.tolist() == [3, 4]


def test_a_vehicle_goes_on_and_only_back_where_it_cannot():
    steps, _ = loop_routes().follow(track("abad", [1, 1, 1, 1]))
    assert steps.tolist() == [0, 1, 3, 5]
    steps, _ = loop_routes().follow(track("dab", [1, 1, 1], times=[60, 61, 62]))
    assert steps.tolist() == [5, 3, 4]


def test_a_vehicle_without_a_route_has_no_step():
    steps, _ = loop_routes().follow(track("ab", [1, 1], name="w"))
    assert steps.tolist() == [-1, -1]
    rows = track("ab", [1, 1]).tracks
    with pytest.raises(InvalidInput) as error:
        loop_routes().follow(VehicleTracks(names=("v",), tracks=rows))
    assert [defect.path for defect in error.value.defects] == ["edge", "pos_m"]


# Files


@settings(max_examples=50)
@given(routes=any_routes(), ending=st.sampled_from(["csv", "parquet"]))
def test_what_was_saved_is_loaded_again(routes, ending):
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"routes.{ending}"
        save_routes(routes, path)
        found = load_routes(path)
    assert (found.names, found.edge_names) == (routes.names, routes.edge_names)
    for name in (*ARRAYS, "corner_x_m", "corner_y_m"):
        assert np.array_equal(getattr(found, name), getattr(routes, name)), name


def test_roads_are_not_saved_as_csv(tmp_path):
    with pytest.raises(InvalidInput, match=r"\.parquet"):
        save_routes(loop_routes(), tmp_path / "routes.csv", tmp_path / "roads.csv")


def spoil(table: dict, **cells) -> dict:
    for name, (row, value) in cells.items():
        table[name][row] = value
    return table


@pytest.mark.parametrize(
    ("cells", "path", "value"),
    [
        ({"seq": (0, 2)}, "seq of v10 in step 2", 2.0),
        ({"seq": (1, 1)}, "seq of v9 in step 1", 1.0),
        ({"seq": (1, 0.5)}, "seq of v9 in step 0.5", 0.5),
        ({"depart": (4, 2.0)}, "depart of v10 in step 1", 1.0),
        ({"depart": (0, math.nan)}, "depart of v10 in step 1", math.nan),
        ({"planned_exit_s": (1, 5.0)}, "planned_exit_s of v9 in step 2", 5.0),
        ({"planned_exit_s": (4, 0.5)}, "planned_exit_s of v10 in step 0", 0.5),
        ({"planned_exit_s": (1, math.inf)}, "planned_exit_s of v9 in step 2", math.inf),
        ({"edge": (2, "aa")}, "edge of v9 in step 0", "aa"),
        ({"vehicle": (2, "\x07")}, "vehicle of \x07 in step 0", "\x07"),
    ],
)
def test_bad_routes_are_refused(tmp_path, cells, path, value):
    file = write_files(tmp_path, spoil(some_routes(), **cells), some_edges())
    with pytest.raises(InvalidInput) as error:
        load_routes(file)
    found = {defect.path: defect for defect in error.value.defects}
    assert repr(found[path].value) == repr(value)
    assert found[path].file == str(file)


@pytest.mark.parametrize(
    ("cells", "path"),
    [
        ({"edge": (1, "a")}, "edge of a"),
        ({"edge": (1, "")}, "edge of "),
        ({"length_m": (0, 0.0)}, "length_m of a"),
        ({"length_m": (0, math.nan)}, "length_m of a"),
        ({"shape": (0, [1.0, 2.0])}, "shape of a"),
        ({"shape": (0, [1.0, 2.0, 3.0, 4.0, 5.0])}, "shape of a"),
        ({"shape": (1, [1.0, 2.0, 3.0, math.nan])}, "shape of b"),
        ({"x1": (2, math.nan)}, "shape of c"),
    ],
)
def test_bad_roads_are_refused(tmp_path, cells, path):
    file = write_files(tmp_path, some_routes(), spoil(some_edges(), **cells))
    with pytest.raises(InvalidInput) as error:
        load_routes(file)
    assert [defect.path for defect in error.value.defects] == [path]
    assert error.value.defects[0].file == str(tmp_path / "edges.parquet")


def test_what_is_wrong_with_both_files_is_told_at_once(tmp_path):
    routes, edges = some_routes(), some_edges()
    routes["sequence"] = routes.pop("seq")
    del edges["length_m"]
    with pytest.raises(InvalidInput) as error:
        load_routes(write_files(tmp_path, routes, edges))
    assert [defect.path for defect in error.value.defects] == ["seq", "length_m"]
    assert "sequence" in error.value.defects[0].hint


def test_roads_that_are_not_there_are_refused(tmp_path):
    path = write_files(tmp_path, some_routes(), some_edges())
    with pytest.raises(InvalidInput, match="an existing file"):
        load_routes(path, tmp_path / "other.parquet")


@pytest.mark.data
@pytest.mark.skipif(not LUXEMBOURG.exists(), reason="needs the trace of Luxembourg")
def test_the_routes_of_luxembourg_lead_where_the_vehicles_are():
    routes = load_routes(LUXEMBOURG / "planned_routes.parquet")
    tracks = load_tracks(LUXEMBOURG / "fcd_compact.parquet")
    assert (routes.count, routes.edge.size, len(routes.edge_names)) == (1000, 80_099, 2904)
    assert routes.names == tracks.names
    steps, along_m = routes.follow(tracks)
    assert (np.diff(steps)[np.diff(tracks.tracks.user) == 0] >= 0).all()
    some = np.arange(0, steps.size, 101)
    x_m, y_m = routes.positions_of(tracks.tracks.user[some], steps[some], along_m[some], [0.0])
    off = np.hypot(x_m[:, 0] - tracks.tracks.x_m[some], y_m[:, 0] - tracks.tracks.y_m[some])
    # Lanes are beside the middle of the road, junctions wide.
    assert np.quantile(off, 0.5) < 5.0
    assert np.quantile(off, 0.99) < 40.0
