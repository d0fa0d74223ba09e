"""Traces of vehicles: every way to write them, what is wrong with them, gaps, and back again."""

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
from thalweg.files.tracks_reader import load_tracks
from thalweg.files.tracks_writer import save_tracks
from thalweg.model.vehicles import VehicleTracks
from thalweg.model.workload import Tracks

TRACE = Path(__file__).parents[3] / "shared/data/sumo_luxembourg/fcd_compact.parquet"

HEADER = "t,vehicle,x,y,speed,angle,edge,pos"
ROWS = (
    "0,v2,0,0,10,90,a,5",
    "1,v2,10,0,10,90,a,15",
    "2,v2,20,0,10,90,b,5",
    "0.5,v10,1,1,0,350,b,1",
    "1.5,v10,1,2,1,10,b,2",
)


def csv_file(folder: Path, *rows: str, header: str = HEADER, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def defects_of(path: Path, **options):
    with pytest.raises(InvalidInput) as error:
        load_tracks(path, **options)
    assert all(defect.file == str(path) for defect in error.value.defects)
    return error.value.defects


def require_same(one: VehicleTracks, other: VehicleTracks) -> None:
    assert one.names == other.names
    for name in ("user", "time_s", "x_m", "y_m"):
        assert np.array_equal(getattr(one.tracks, name), getattr(other.tracks, name)), name
    for name in ("speed_ms", "angle_deg", "pos_m"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert (ours is None) == (theirs is None), name
        assert ours is None or np.array_equal(ours, theirs), name
    assert (one.edge is None) == (other.edge is None)
    if one.edge is not None:
        assert roads_of(one) == roads_of(other)


def roads_of(tracks: VehicleTracks) -> list[str]:
    return [tracks.edge_names[k] if k >= 0 else "" for k in tracks.edge.tolist()]


def test_rows_come_by_vehicle_and_time_with_everything_that_is_known(tmp_path):
    found = load_tracks(csv_file(tmp_path, *ROWS))
    assert found.names == ("v2", "v10")
    assert found.tracks.user.tolist() == [0, 0, 0, 1, 1]
    assert found.tracks.time_s.tolist() == [0, 1, 2, 0.5, 1.5]
    assert found.speed_ms.tolist() == [10, 10, 10, 0, 1]
    assert found.angle_deg.tolist() == [90, 90, 90, 350, 10]
    assert roads_of(found) == ["a", "a", "b", "b", "b"]
    assert found.pos_m.tolist() == [5, 15, 5, 1, 2]
    assert (found.count, found.span_s, found.filled) == (2, 2.0, 0)
    assert found.first_row.tolist() == [0, 3, 5]
    assert found.at(1).y_m.tolist() == found.at("v10").y_m.tolist() == [1, 2]


@given(order=st.permutations(range(len(ROWS))))
def test_rows_may_come_in_any_order(order):
    with TemporaryDirectory() as folder:
        plain = load_tracks(csv_file(Path(folder), *ROWS))
        require_same(load_tracks(csv_file(Path(folder), *(ROWS[k] for k in order))), plain)


def test_what_sumo_writes_is_read(tmp_path):
    header = (
        "timestep_time;vehicle_angle;vehicle_id;vehicle_lane;vehicle_pos;vehicle_slope;"
        "vehicle_speed;vehicle_type;vehicle_x;vehicle_y"
    )
    rows = (
        "0.00;;;;;;;;;",
        "1.00;76.12;veh:0.5;-31742#1_0;5.10;0.00;23.71;car;1706.42;753.50",
        "2.00;71.00;veh:0.5;:-2936_1_0;28.10;0.00;22.99;car;1728.61;759.61",
    )
    found = load_tracks(csv_file(tmp_path, *rows, header=header))
    assert found.names == ("veh:0.5",)
    assert found.tracks.x_m.tolist() == [1706.42, 1728.61]
    assert roads_of(found) == ["-31742#1", ":-2936_1"]
    assert found.angle_deg.tolist() == [76.12, 71.0]


@pytest.mark.parametrize(
    "header", ["time_s,user,x_m,y_m", "t,vehicle_id,vehicle_x,y", "\ufefft,vehicle,x,y"]
)
def test_columns_have_other_names_as_well(tmp_path, header):
    found = load_tracks(csv_file(tmp_path, "0,7,1,2", "1,7,2,2", header=header))
    assert found.names == ("7",)
    assert found.tracks.x_m.tolist() == [1, 2]
    assert found.speed_ms is None
    assert found.edge is None


def test_parquet_is_read_whatever_the_width_of_its_numbers(tmp_path):
    table = pa.table(
        {
            "t": pa.array([1, 0, 0], pa.int16()),
            "vehicle": pa.array([10, 10, 9], pa.int64()),
            "x": pa.array([1.5, 0.5, 3.0], pa.float32()),
            "y": pa.array([0, 0, 0], pa.int8()),
            "edge": pa.array(["b", None, "a"]).dictionary_encode(),
            "beside": pa.array([[1], [], [2]]),
        }
    )
    pq.write_table(table, tmp_path / "trace.parquet")
    found = load_tracks(tmp_path / "trace.parquet")
    assert found.names == ("9", "10")
    assert found.tracks.x_m.tolist() == [3.0, 0.5, 1.5]
    assert roads_of(found) == ["a", "", "b"]


numbers = st.floats(-1e4, 1e4, allow_subnormal=False)


@st.composite
def tracks_of_any_sort(draw):
    names = draw(st.lists(st.integers(0, 300), min_size=1, max_size=6, unique=True))
    rows = [draw(st.integers(1, 8)) for _ in names]
    total = sum(rows)

    def figures():
        return np.array(draw(st.lists(numbers, min_size=total, max_size=total)))

    tracks = Tracks(
        user=np.repeat(np.arange(len(names)), rows),
        time_s=np.concatenate([np.arange(count) * 0.1 + 3 for count in rows]),
        x_m=figures(),
        y_m=figures(),
    )
    roads = ("--1#0", "a b", 'the "inner", ring')
    has = draw(st.tuples(*[st.booleans()] * 4))
    edge = np.array(draw(st.lists(st.integers(-1, 2), min_size=total, max_size=total)), np.int32)
    return VehicleTracks(
        names=tuple(f"v{name}" for name in sorted(names)),
        tracks=tracks,
        speed_ms=figures() if has[0] else None,
        angle_deg=figures() if has[1] else None,
        edge=edge if has[2] else None,
        edge_names=roads if has[2] else (),
        pos_m=figures() if has[3] else None,
    )


@settings(max_examples=60)
@given(tracks=tracks_of_any_sort(), ending=st.sampled_from(["csv", "parquet"]))
def test_what_was_saved_is_loaded_again(tracks, ending):
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"trace.{ending}"
        save_tracks(tracks, path)
        require_same(load_tracks(path, most_speed_ms=1e9), tracks)


def test_a_place_that_is_none_is_refused(tmp_path):
    tracks = load_tracks(csv_file(tmp_path, *ROWS))
    for name in ("trace.json", "nowhere/trace.csv"):
        with pytest.raises(InvalidInput):
            save_tracks(tracks, tmp_path / name)


# Gaps


def fill_obviously(rows, step_s):
    """Rows of one vehicle with those between them, one by one."""
    made = []
    for (t0, x0, angle0, edge0, pos0), (t1, x1, angle1, edge1, pos1) in pairwise(rows):
        made.append((t0, x0, angle0, edge0, pos0))
        if t1 - t0 > 1.5 * step_s:
            parts = round((t1 - t0) / step_s)
            turn = angle1 - angle0
            turn -= 360 * round(turn / 360)
            for k in range(1, parts):
                share = k / parts
                pos = pos0 + share * (pos1 - pos0) if edge0 == edge1 else pos0
                angle = (angle0 + share * turn) % 360
                made.append((t0 + share * (t1 - t0), x0 + share * (x1 - x0), angle, edge0, pos))
    return [*made, rows[-1]]


@settings(max_examples=60)
@given(data=st.data())
def test_gaps_are_filled_on_a_straight_line(data):
    # More whole steps than gaps: the median step is 2 s.
    steps = data.draw(
        st.permutations([2] * 7 + data.draw(st.lists(st.integers(4, 40), max_size=5)))
    )
    times = np.cumsum([0, *steps])
    rows = [
        (
            int(time),
            data.draw(st.integers(-50, 50)),
            data.draw(st.integers(0, 359)),
            data.draw(st.sampled_from("ab")),
            data.draw(st.integers(0, 90)),
        )
        for time in times
    ]
    with TemporaryDirectory() as folder:
        lines = [f"{t},v,{x},0,{angle},{edge},{pos}" for t, x, angle, edge, pos in rows]
        path = csv_file(Path(folder), *lines, header="t,vehicle,x,y,angle,edge,pos")
        found = load_tracks(path, gaps="fill")
    expected = fill_obviously(rows, 2.0)
    assert found.filled == len(expected) - len(rows)
    assert found.tracks.time_s.tolist() == pytest.approx([row[0] for row in expected])
    assert found.tracks.x_m.tolist() == pytest.approx([row[1] for row in expected])
    assert roads_of(found) == [row[3] for row in expected]
    assert found.pos_m.tolist() == pytest.approx([row[4] for row in expected])
    # Half a turn may go either way.
    off = (found.angle_deg - np.array([row[2] for row in expected]) + 180) % 360 - 180
    turns = np.abs(np.diff([row[2] for row in rows])) % 360
    assert np.abs(off).max() < 1e-6 or (turns == 180).any()


def test_gaps_are_refused_unless_told_otherwise(tmp_path):
    rows = [f"{t},v,{t},0" for t in (0, 1, 2, 3, 7, 8)]
    path = csv_file(tmp_path, *rows, header="t,vehicle,x,y")
    (defect,) = defects_of(path)
    assert defect.path == "t of v at 7 s"
    assert defect.value == "nothing for 4 s before"
    assert "--fill-gaps" in defect.hint
    assert load_tracks(path, most_gap_s=4.0).tracks.time_s.size == 6
    filled = load_tracks(path, gaps="fill")
    assert filled.tracks.time_s.tolist() == list(range(9))
    assert filled.tracks.x_m.tolist() == list(range(9))
    assert filled.filled == 3


def test_gaps_that_would_take_too_many_rows_are_refused(tmp_path):
    rows = ["0,v,0,0", "1,v,0,0", "2,v,0,0", "500000000,v,0,0"]
    path = csv_file(tmp_path, *rows, header="t,vehicle,x,y")
    (defect,) = defects_of(path, gaps="fill")
    assert "can fill" in defect.rule


# What is wrong


def test_all_problems_are_told_at_once(tmp_path):
    rows = (
        "0,twice,0,0",
        "1,twice,1,0",
        "1,twice,2,0",
        "0,jumps,0,0",
        "1,jumps,500,0",
        "0,waits,0,0",
        "9,waits,1,0",
        "0,lost,nan,0",
        "1,lost,0,inf",
        "-1,early,0,0",
        "1,,3,4",
    )
    found = defects_of(csv_file(tmp_path, *rows, header="t,vehicle,x,y"))
    told = {(d.path, d.value) for d in found}
    assert ("t of twice at 1 s", 1.0) in told
    assert ("position of jumps at 1 s", "500 m in 1 s") in told
    assert ("t of waits at 9 s", "nothing for 9 s before") in told
    assert ("y of lost at 1 s", math.inf) in told
    assert any(d.path == "x of lost at 0 s" and math.isnan(d.value) for d in found)
    assert ("t of early at -1 s", -1.0) in told
    assert ("vehicle of  at 1 s", "") in told
    assert len(found) == 7
    assert all(d.rule for d in found)


def test_a_bad_row_is_not_told_as_a_gap_as_well(tmp_path):
    rows = [f"{t},v,{'nan' if t == 2 else t},0" for t in range(6)]
    (defect,) = defects_of(csv_file(tmp_path, *rows, header="t,vehicle,x,y"))
    assert defect.path == "x of v at 2 s"


def test_of_many_vehicles_five_are_told_and_all_are_counted(tmp_path):
    rows = [f"{t},v{k},{t * 999},0" for k in range(12) for t in range(3)]
    found = defects_of(csv_file(tmp_path, *rows, header="t,vehicle,x,y"))
    assert [d.path for d in found[:5]] == [f"position of v{k} at 1 s" for k in range(5)]
    assert found[5].value == "24 such rows of 12 vehicles, the first 5 vehicles above"
    assert len(found) == 6


def test_a_vehicle_may_be_as_fast_as_allowed(tmp_path):
    path = csv_file(tmp_path, "0,v,0,0", "2,v,60,80", header="t,vehicle,x,y")
    assert load_tracks(path, most_speed_ms=50.0).count == 1
    (defect,) = defects_of(path, most_speed_ms=49.0)
    assert defect.rule == "at most 49 m/s"


def test_missing_columns_are_told_with_the_nearest_name(tmp_path):
    found = defects_of(csv_file(tmp_path, "0,v,1,2", header="tme_s,vehicel,x,why"))
    assert [d.path for d in found] == ["t", "vehicle", "y"]
    assert found[0].hint == 'did you mean "tme_s"?'
    assert found[1].hint == 'did you mean "vehicel"?'
    assert found[2].hint == "the file has tme_s, vehicel, x, why"


def test_two_columns_for_one_thing_are_refused(tmp_path):
    (defect,) = defects_of(csv_file(tmp_path, "0,v,1,2,3", header="t,vehicle,x,y,x_m"))
    assert (defect.path, defect.value) == ("x", "x, x_m")


def test_bad_cells_of_a_csv_are_told_by_line(tmp_path):
    rows = ("0,v,1,2", "", "1,v,1 m,2", "2,v,x,y")
    found = defects_of(csv_file(tmp_path, *rows, header="t,vehicle,x,y"))
    assert [(d.path, d.line, d.value) for d in found] == [
        ("x", 4, "1 m"),
        ("x", 5, "x"),
        ("y", 5, "y"),
    ]


def test_rows_of_another_width_are_told_by_line(tmp_path):
    (defect,) = defects_of(csv_file(tmp_path, "0,v,1,2", "1,v,1", header="t,vehicle,x,y"))
    assert (defect.line, defect.value) == (3, "3 cells")


def test_columns_of_another_type_are_refused(tmp_path):
    table = pa.table({"t": ["0"], "vehicle": ["v"], "x": [True], "y": [1.0]})
    pq.write_table(table, tmp_path / "trace.parquet")
    found = defects_of(tmp_path / "trace.parquet")
    assert [(d.path, d.value) for d in found] == [("t", "the type string"), ("x", "the type bool")]


def test_an_empty_cell_of_a_parquet_file_is_no_position(tmp_path):
    table = pa.table({"t": [0, 1], "vehicle": ["v", "v"], "x": [1.0, None], "y": [1.0, 1.0]})
    pq.write_table(table, tmp_path / "trace.parquet")
    (defect,) = defects_of(tmp_path / "trace.parquet")
    assert defect.path == "x of v at 1 s"


def test_a_column_that_is_known_in_part_is_refused(tmp_path):
    rows = ("0,v,1,2,5", "1,v,1,2,")
    (defect,) = defects_of(csv_file(tmp_path, *rows, header="t,vehicle,x,y,speed"))
    assert defect.path == "speed of v at 1 s"
    assert "column" in defect.hint


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("trace.parquet", b"PAR1 no PAR1"),
        ("trace.parquet", b""),
        ("trace.parquet", b"t,vehicle,x,y\n"),
        ("trace.csv", b""),
        ("trace.csv", b"t,vehicle,x,y\n"),
        ("trace.csv", b"t,vehicle,x,y\n0,\xff\xfe,1,2\n"),
        ("trace.txt", b"t,vehicle,x,y\n0,v,1,2\n"),
    ],
)
def test_files_that_are_no_traces_are_refused(tmp_path, name, contents):
    (tmp_path / name).write_bytes(contents)
    assert len(defects_of(tmp_path / name)) == 1


def test_files_that_are_not_there_are_refused(tmp_path):
    csv_file(tmp_path, *ROWS)
    (defect,) = defects_of(tmp_path / "trase.csv")
    assert defect.hint == 'did you mean "trace.csv"?'
    (tmp_path / "folder.csv").mkdir()
    assert defects_of(tmp_path / "folder.csv")[0].value == "a folder"


def test_too_many_rows_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("thalweg.files.vehicle_table.MOST_ROWS", 4)
    path = csv_file(tmp_path, *ROWS)
    assert defects_of(path)[0].value == "5 rows"
    pq.write_table(pa.table({"t": list(range(5))}), tmp_path / "trace.parquet")
    assert defects_of(tmp_path / "trace.parquet")[0].value == "5 rows"


@pytest.mark.parametrize(
    "options", [{"most_speed_ms": 0}, {"gaps": "drop"}, {"most_gap_s": math.nan}]
)
def test_bad_options_are_refused(tmp_path, options):
    with pytest.raises(InvalidInput) as error:
        load_tracks(csv_file(tmp_path, *ROWS), **options)
    assert [defect.path for defect in error.value.defects] == list(options)


def test_tracks_that_do_not_fit_are_refused():
    rows = Tracks(user=np.array([0, 2]), time_s=np.zeros(2), x_m=np.zeros(2), y_m=np.zeros(2))
    with pytest.raises(InvalidInput) as error:
        VehicleTracks(
            names=("a", "a"), tracks=rows, speed_ms=np.zeros(3), edge=np.array([0, 1], np.int32)
        )
    paths = [defect.path for defect in error.value.defects]
    assert paths == ["names", "tracks.user", "speed_ms", "edge"]


@pytest.mark.data
@pytest.mark.skipif(not TRACE.exists(), reason="needs the trace of Luxembourg")
def test_the_trace_of_luxembourg_is_read(tmp_path):
    found = load_tracks(TRACE)
    assert (found.count, found.tracks.user.size, found.span_s) == (1000, 812_957, 999.0)
    assert found.names[:3] == ("v0", "v1", "v2")
    table = pq.read_table(TRACE, filters=[("vehicle", "==", "v731")]).sort_by("t")
    assert found.at("v731").x_m.tolist() == table["x"].to_pylist()
    save_tracks(found, tmp_path / "trace.parquet")
    require_same(load_tracks(tmp_path / "trace.parquet"), found)
