"""Generated vehicles keep to their roads, and have the figures that were measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.calibrate_vehicles import TARGET, compare, main, measure, write

from thalweg.errors import InvalidInput
from thalweg.files.routes_reader import load_routes
from thalweg.files.tracks_reader import load_tracks
from thalweg.files.tracks_writer import save_routes, save_tracks
from thalweg.scenarios.broker_tree import CITY_M
from thalweg.scenarios.vehicles import city_vehicles, vehicle_figures

LUXEMBOURG = Path(__file__).parents[3] / "shared/data/sumo_luxembourg"


@pytest.fixture(scope="module")
def made():
    return city_vehicles(600, 1000, seed=7)


def bytes_of(pair) -> list[bytes]:
    tracks, routes = pair
    arrays = [tracks.tracks.time_s, tracks.tracks.x_m, tracks.tracks.y_m, tracks.speed_ms]
    return [array.tobytes() for array in (*arrays, tracks.edge, routes.edge, routes.exit_s)]


def test_the_same_seed_gives_the_same_bytes():
    one = bytes_of(city_vehicles(20, 100, seed=3))
    assert one == bytes_of(city_vehicles(20, 100, seed=3))
    assert one != bytes_of(city_vehicles(20, 100, seed=4))


@settings(max_examples=25)
@given(
    vehicles=st.integers(1, 12),
    seconds=st.sampled_from([1, 30, 400]),
    step_s=st.sampled_from([0.5, 1.0, 7.0]),
    seed=st.integers(0, 2**32),
    area_m=st.sampled_from([CITY_M, (-50.0, 10.0, 20.0, 60.0), (1e5, 0.0, 1.02e5, 300.0)]),
)
def test_vehicles_are_where_their_roads_are(vehicles, seconds, step_s, seed, area_m):
    tracks, routes = city_vehicles(vehicles, seconds, seed=seed, step_s=step_s, area_m=area_m)
    assert tracks.names == routes.names == tuple(f"v{k}" for k in range(vehicles))
    west, south, east, north = area_m
    rows = tracks.tracks
    assert ((rows.x_m >= west) & (rows.x_m < east)).all()
    assert ((rows.y_m >= south) & (rows.y_m < north)).all()
    assert rows.time_s.min() >= 0
    assert rows.time_s.max() < seconds
    # Every position is on the road that it names, and that road is where the route is then.
    steps, along_m = routes.follow(tracks)
    assert np.array_equal(along_m, tracks.pos_m)
    assert np.array_equal(routes.edge[routes.first_step[rows.user] + steps], tracks.edge)
    assert (np.diff(steps)[np.diff(rows.user) == 0] >= 0).all()
    x_m, y_m = routes.positions_of(rows.user, steps, along_m, [0.0])
    off = np.hypot(x_m[:, 0] - rows.x_m, y_m[:, 0] - rows.y_m)
    assert off.max() < 1e-5


def test_a_route_leads_from_crossing_to_crossing(made):
    _, routes = made
    begin, end = routes.first_corner[:-1][routes.edge], routes.first_corner[1:][routes.edge] - 1
    inner = np.ones(routes.edge.size, dtype=bool)
    inner[routes.first_step[:-1]] = False
    at = np.flatnonzero(inner)
    for corner in (routes.corner_x_m, routes.corner_y_m):
        assert np.array_equal(corner[end[at - 1]], corner[begin[at]])


def test_a_vehicle_never_overtakes_its_speed(made):
    tracks, _ = made
    rows = tracks.tracks
    same = np.diff(rows.user) == 0
    way_m = np.hypot(np.diff(rows.x_m), np.diff(rows.y_m))[same]
    assert (np.diff(rows.time_s)[same] == 1.0).all()
    assert (way_m <= tracks.speed_ms[:-1][same] + 1e-6).all()


def test_a_vehicle_that_arrives_is_at_the_end_of_its_route(made):
    tracks, routes = made
    last = tracks.first_row[1:] - 1
    arrived = np.flatnonzero(tracks.tracks.time_s[last] < tracks.end_s)
    assert arrived.size > 20
    goal = routes.first_corner[routes.edge[routes.first_step[1:] - 1] + 1] - 1
    assert tracks.tracks.x_m[last[arrived]] == pytest.approx(routes.corner_x_m[goal[arrived]])
    assert tracks.tracks.y_m[last[arrived]] == pytest.approx(routes.corner_y_m[goal[arrived]])


def test_what_is_measured_on_generated_vehicles_is_what_they_were_made_from(made):
    found, figures = measure(*made), vehicle_figures()
    for name, within in (("speed_ms", 0.5), ("road_ms", 1.5)):
        # Roads have a few speeds only: where one ends and the next begins is a matter of luck.
        assert np.abs(np.array(found[name]) - getattr(figures, name)).mean() < within, name
    assert np.median(found["route_m"]) == pytest.approx(np.median(figures.route_m), rel=0.05)
    assert np.abs(np.array(found["departures"]) - figures.departures).max() < 0.03
    assert found["road_correlation"] == pytest.approx(figures.road_correlation, abs=0.08)
    assert found["bend"] == pytest.approx(figures.bend, abs=0.05)
    moved = np.abs(np.array(found["density"]) - figures.density).sum() / 2
    # Way points spread evenly would give about a half.
    assert moved < 0.35


def test_vehicles_and_routes_can_be_saved_and_loaded(tmp_path):
    tracks, routes = city_vehicles(12, 50, seed=1)
    save_tracks(tracks, tmp_path / "trace.parquet")
    save_routes(routes, tmp_path / "routes.parquet")
    again = load_tracks(tmp_path / "trace.parquet"), load_routes(tmp_path / "routes.parquet")
    assert again[0].names == tracks.names
    assert np.array_equal(again[0].tracks.x_m, tracks.tracks.x_m)
    assert np.array_equal(again[0].speed_ms, tracks.speed_ms)
    assert np.array_equal(again[1].exit_s, routes.exit_s)
    assert np.array_equal(again[1].follow(again[0])[0], routes.follow(tracks)[0])


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"vehicles": 0}, "vehicles"),
        ({"vehicles": 1_000_000}, "vehicles"),
        ({"seconds": float("nan")}, "seconds"),
        ({"step_s": 0}, "step_s"),
        ({"seed": -1}, "seed"),
        ({"area_m": (0, 0, 0, 1)}, "area_m"),
        ({"area_m": (0, 0, 1e12, 1e12)}, "area_m"),
    ],
)
def test_bad_parameters_are_refused(given, path):
    with pytest.raises(InvalidInput) as error:
        city_vehicles(**given)
    assert [defect.path for defect in error.value.defects] == [path]


def test_the_tool_needs_a_folder_with_a_trace(tmp_path, capsys):
    assert main([]) == 2
    assert main([str(tmp_path)]) == 2
    assert "an existing file" in capsys.readouterr().err


@pytest.mark.data
@pytest.mark.skipif(not LUXEMBOURG.exists(), reason="needs the trace of Luxembourg")
def test_the_figures_are_those_of_luxembourg_and_the_generated_vehicles_come_near(made):
    tracks = load_tracks(LUXEMBOURG / "fcd_compact.parquet")
    found = measure(tracks, load_routes(LUXEMBOURG / "planned_routes.parquet"))
    kept = json.loads(TARGET.read_text(encoding="utf-8"))
    fitted = {"jitter", "patience", "speed_shift", "way_points"}
    assert found.keys() == kept.keys()
    for name in kept.keys() - fitted:
        assert found[name] == kept[name], name
    assert TARGET.read_text(encoding="utf-8") == write(kept)
    rows = {name: pair for name, *pair in compare(tracks, made[0])}
    for name in ("hand-overs, 16 leaves", "hand-overs, 64 leaves", "hand-overs, 256 leaves"):
        assert rows[name][1] == pytest.approx(rows[name][0], rel=0.2), name
    assert rows["share standing"][1] == pytest.approx(rows["share standing"][0], abs=0.03)
    assert rows["driven m, 50 %"][1] == pytest.approx(rows["driven m, 50 %"][0], rel=0.12)
