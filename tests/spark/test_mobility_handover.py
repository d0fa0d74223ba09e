from __future__ import annotations

import itertools
import json
import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.threaded_site import Spoil, ThreadedSite
from thalweg.errors import InvalidInput
from thalweg.model.workload import Tracks
from thalweg.spark.keyed.mover import MoveFailed
from thalweg.spark.keyed.state import KeyedState
from thalweg.spark.log.reader import Log
from thalweg.spark.mobility.course import Move, to_rows
from thalweg.spark.mobility.handover import hand_over
from thalweg.spark.mobility.positions import WINDOW_S, distances
from thalweg.spark.mobility.recount import recount
from thalweg.spark.mobility.report import EventCounts, HandOverReport
from thalweg.spark.mobility.stream import TrackClock

Row = dict[str, Any]

PATIENCE_S = 60.0


def drive_about(vehicles: int, seconds: int, seed: int = 1) -> Tracks:
    """Vehicles on random walks, one position of each a second, some missing."""
    rng = np.random.default_rng(seed)
    user, time_s = np.divmod(np.arange(vehicles * seconds), seconds)
    steps = rng.normal(0.0, 12.0, (2, vehicles, seconds))
    x_m, y_m = np.cumsum(steps, axis=2).reshape(2, -1)
    seen = rng.random(user.size) < 0.9
    seen[0] = seen[-1] = True
    times = time_s.astype(np.float64)
    return Tracks(user=user[seen], time_s=times[seen], x_m=x_m[seen], y_m=y_m[seen])


def one_by_one(rows: pa.Table) -> tuple[list[Row], dict[int, list[tuple[float, ...]]]]:
    """What `distances` means, said as plainly as possible: outputs by seq, positions kept."""
    kept: dict[int, list[tuple[float, ...]]] = {}
    output = []
    for row in sorted(rows.to_pylist(), key=lambda row: row["seq"]):
        before = kept.get(row["vehicle"], [])
        t, x, y = row["time_s"], row["x_m"], row["y_m"]
        driven = 0.0
        if before:
            _, x0, y0, driven = before[-1]
            driven += math.sqrt((x - x0) * (x - x0) + (y - y0) * (y - y0))
        window = [p for p in before if p[0] > t - WINDOW_S] + [(t, x, y, driven)]
        kept[row["vehicle"]] = window
        _, x1, y1, driven1 = window[0]
        away = math.sqrt((x - x1) * (x - x1) + (y - y1) * (y - y1))
        figures = {"driven_m": driven, "window_m": driven - driven1, "away_m": away}
        output.append({k: row[k] for k in ("seq", "vehicle", "time_s")} | figures)
    return output, kept


def kept_in(state: pa.Table) -> dict[int, list[tuple[float, ...]]]:
    return {
        row["vehicle"]: [tuple(p) for p in np.frombuffer(row["positions"]).reshape(-1, 4).tolist()]
        for row in state.to_pylist()
    }


# The operator


positions = st.lists(
    st.tuples(st.integers(-2, 3), st.integers(0, 400), st.floats(-1e4, 1e4), st.floats(-1e4, 1e4)),
    min_size=1,
    max_size=40,
    unique_by=lambda position: position[:2],
)


def tracks_of(given_: list[tuple[int, int, float, float]]) -> Tracks:
    user, time_s, x_m, y_m = zip(*sorted(given_), strict=True)
    moments, x, y = (np.array(values, dtype=np.float64) for values in (time_s, x_m, y_m))
    return Tracks(user=np.array(user), time_s=moments, x_m=x, y_m=y)


@settings(max_examples=60)
@given(positions, st.lists(st.integers(0, 40), max_size=6), st.randoms())
def test_in_whatever_batches_rows_come_the_distances_are_those_of_a_plain_loop(
    given_: list[tuple[int, int, float, float]], cuts: list[int], random: Any
) -> None:
    rows = to_rows(tracks_of(given_))
    expected, kept = one_by_one(rows)
    state = KeyedState(distances.state, distances.key)
    output: list[Row] = []
    ends = sorted({0, rows.num_rows, *(cut for cut in cuts if cut < rows.num_rows)})
    for begin, end in itertools.pairwise(ends):
        places = list(range(begin, end))
        random.shuffle(places)
        batch = rows.take(pa.array(places))
        vehicles = list(dict.fromkeys(batch["vehicle"].to_pylist()))
        change = distances.work(batch, state.find(vehicles))
        state.change(change.updated, [])
        output += change.output.to_pylist()
    assert sorted(output, key=lambda row: row["seq"]) == expected
    assert kept_in(state.to_table()) == kept
    recounted, recounted_state = recount(rows, WINDOW_S)
    assert recounted.to_pylist() == expected
    assert kept_in(recounted_state) == kept
    whole = state.to_table().sort_by("vehicle")
    assert whole.equals(recounted_state.cast(whole.schema))


def test_a_window_is_left_by_what_is_as_old_as_it_is_long() -> None:
    times = [0.0, 1.0, WINDOW_S, WINDOW_S + 0.5]
    rows = {"seq": range(4), "vehicle": [7] * 4, "time_s": times, "x_m": [0, 3, 3, 3]}
    table = pa.table(rows | {"y_m": [0.0, 4.0, 4.0, 4.0]}).cast(distances.rows)
    change = distances.work(table, distances.state.empty_table())
    assert change.output["driven_m"].to_pylist() == [0.0, 5.0, 5.0, 5.0]
    assert change.output["window_m"].to_pylist() == [0.0, 5.0, 0.0, 0.0]
    assert change.output["away_m"].to_pylist() == [0.0, 5.0, 0.0, 0.0]
    (kept,) = kept_in(change.updated).values()
    assert [position[0] for position in kept] == times[1:]


def test_nothing_comes_of_nothing() -> None:
    change = distances.work(distances.rows.empty_table(), distances.state.empty_table())
    assert change.output.num_rows == change.updated.num_rows == 0


# What is told


def test_rows_are_numbered_by_time_then_by_vehicle() -> None:
    tracks = Tracks(
        user=np.array([1, 1, 4]),
        time_s=np.array([0.0, 2.0, 0.0]),
        x_m=np.array([1.0, 2.0, 3.0]),
        y_m=np.zeros(3),
    )
    rows = to_rows(tracks)
    assert rows.select(["seq", "vehicle", "x_m"]).to_pydict() == {
        "seq": [0, 1, 2],
        "vehicle": [1, 4, 1],
        "x_m": [1.0, 3.0, 2.0],
    }


BOTH = {"broker-a": ThreadedSite(), "broker-b": ThreadedSite()}


def refuse(moves: Any, tracks: Any, folder: Path, **options: Any) -> set[str]:
    with pytest.raises(InvalidInput) as caught:
        hand_over(moves, tracks, folder=folder, **({"hosts": BOTH} | options))
    return {defect.path for defect in caught.value.defects}


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "of another run").touch()
    tracks = drive_about(2, 20)
    moves = [(5.0, "broker-b"), (4.0, "broker-c"), (30.0, "broker-a"), (math.nan, "broker-b")]
    wrong = {"speedup": 0, "lead_s": -1.0, "heap_mb": 3, "start": "broker-x", "patience_s": 0}
    told = refuse(moves, tracks, tmp_path, **wrong, hosts={"broker-a": ThreadedSite()})
    assert told == {
        "start",
        "speedup",
        "lead_s",
        "patience_s",
        "hosts",
        "folder",
        "heap_mb",
        "moves[1].at_s",
        "moves[1].to",
        "moves[2].at_s",
        "moves[3].at_s",
    }


def test_no_move_no_tracks_and_no_sites_are_refused(tmp_path: Path) -> None:
    nothing = np.zeros(0)
    empty = Tracks(user=nothing.astype(np.int64), time_s=nothing, x_m=nothing, y_m=nothing)
    assert refuse([], empty, tmp_path, sites=()) == {"moves", "tracks.user", "sites"}


def test_a_move_to_where_it_is_or_prepared_too_late_is_refused(tmp_path: Path) -> None:
    tracks = drive_about(2, 20)
    late = Move(at_s=5.0, to="broker-b", prepare_s=6.0)
    told = refuse([(3.0, "broker-a"), late], tracks, tmp_path, sites=["broker-a", "broker-b"])
    assert told == {"moves[0].to", "moves[1].prepare_s"}
    same = ["../x", "broker-a", "broker-a"]
    told = refuse([(3.0, "broker-a")], tracks, tmp_path, sites=same, start="broker-b")
    assert told == {"sites[0]", "sites[2]", "start"}


def test_positions_that_cannot_be_are_refused(tmp_path: Path) -> None:
    class Twice:
        user = np.array([1, 1])
        time_s = np.array([2.0, 2.0])
        x_m = y_m = np.zeros(2)

    class Odd:
        user = np.array([0.5])
        time_s = np.array([np.nan])
        x_m = y_m = np.zeros(2)

    assert refuse([(1.0, "broker-b")], Twice(), tmp_path) == {"tracks.time_s"}
    told = refuse([(1.0, "broker-b")], Odd(), tmp_path)
    assert told == {"tracks.user", "tracks.time_s", "tracks.x_m", "tracks.y_m"}


@given(st.lists(st.integers(0, 30)), st.sets(st.integers(0, 20)))
def test_events_are_counted_by_their_numbers(arrived: list[int], sent: set[int]) -> None:
    counts = EventCounts.of(np.array(sorted(sent), int), np.array(arrived, int))
    assert counts.lost == sum(1 for event in sent if event not in arrived)
    assert counts.duplicated == sum(max(0, arrived.count(event) - 1) for event in sent)
    assert counts.delivered + counts.lost == counts.sent == len(sent)


# The whole of it, with threads in place of Spark


class HeldClock(TrackClock):
    """A clock that stops soon after the moment of a move until the move is done.

    Rows come all through a move, and some are left for after it, however slow the machine is.
    """

    limits: ClassVar[list[float]] = []
    _lock = threading.Lock()

    @property
    def now_s(self) -> float:
        with self._lock:
            now_s, limit_s = super().now_s, min([*self.limits, math.inf])
            if now_s > limit_s and self._started is not None:
                self._started += (now_s - limit_s) / self._speedup
            return min(now_s, limit_s)


def carry_out(
    moves: Sequence[tuple[float, str]], tracks: Tracks, folder: Path, **options: Any
) -> HandOverReport:
    log = Log(folder / "log")
    told: list[str] = []

    def tell(_at_s: float, step: str) -> None:
        told.append(step.split()[0])
        if told[-1] == "prepare":
            # Every epoch puts out something before the next one is begun. And of what the first
            # batch has put out, nothing is put out again by whoever takes over from the second.
            epoch = told.count("prepare") - 1
            wait_for_batches(log, epoch, 1 if epoch else 2)
        if told[-1] == "stop":
            HeldClock.limits.pop(0)

    limits = [at_s + 10.0 for at_s, _ in moves]
    with (
        patch.object(HeldClock, "limits", limits),
        patch("thalweg.spark.mobility.handover.TrackClock", HeldClock),
    ):
        report = hand_over(moves, tracks, folder=folder, on_step=tell, **options)
    assert told == ["start"] + len(moves) * ["prepare", "wait", "fence", "wait", "stop"]
    return report


def wait_for_batches(log: Log, epoch: int, batches: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while [s.epoch for s in log.segments("sinks/distances")].count(epoch) < batches:
        assert time.monotonic() < deadline, "the output does not come"
        time.sleep(0.02)


def check_moves(report: HandOverReport, tracks: Tracks, folder: Path) -> None:
    """Of two moves, there and back: what has to be so, wherever they were carried out."""
    everything = tracks.user.size
    assert report.events == EventCounts(sent=everything, delivered=everything, lost=0, duplicated=0)
    assert (report.outputs_equal, report.state_equal, report.ok) == (True, True, True)
    expected, _ = one_by_one(to_rows(tracks))
    output = Log(folder / "log").read("sinks/distances").sort_by("seq")
    assert output.to_pylist() == expected
    there, back = report.moves
    assert (there.source, there.target) == (back.target, back.source) == ("broker-a", "broker-b")
    assert back.sent_bytes > there.sent_bytes
    for move in report.moves:
        assert move.prepared_s <= move.handed_over_s <= move.released_s
        assert move.late_s >= 0.0
        assert move.ahead_bytes > 0
        assert move.sent_bytes > move.state_bytes > 0
        assert move.take_over_s > 0.0
        assert move.pause_s is not None
        assert move.pause_s > 0.0
        assert move.events.sent == move.events.delivered > 0
        assert move.events.lost == move.events.duplicated == 0
    epochs = {segment.epoch for segment in Log(folder / "log").segments("sinks/distances")}
    assert epochs == {0, 1, 2}


def on_threads(spoil: Spoil | None = None) -> dict[str, Any]:
    return {
        "hosts": {"broker-a": ThreadedSite(spoil), "broker-b": ThreadedSite(spoil)},
        "speedup": 60.0,
    }


def test_a_plan_of_moves_is_carried_out_and_measured(tmp_path: Path) -> None:
    tracks, folder, threads = drive_about(20, 100), tmp_path / "run", on_threads()
    moves = [(30.0, "broker-b"), (70.0, "broker-a")]
    report = carry_out(moves, tracks, folder, **threads)
    check_moves(report, tracks, folder)
    assert json.loads(json.dumps(report.to_dict()))["moves"][1]["target"] == "broker-a"
    names, rows = report.table()
    assert [len(row) for row in rows] == 2 * [len(names)]
    assert threads["hosts"]["broker-a"].told == [
        "start distances.broker-a@0",
        "stop distances.broker-a@0",
        "start distances.broker-a@2",
        "stop distances.broker-a@2",
    ]


def test_the_state_is_sent_when_the_plan_says(tmp_path: Path) -> None:
    moves = [Move(at_s=40.0, to="broker-b", prepare_s=30.0)]
    folder = tmp_path / "run"
    report = hand_over(moves, drive_about(2, 60), folder=folder, **on_threads())
    (move,) = report.moves
    assert move.prepared_s >= 30.0
    assert move.handed_over_s >= 40.0


def test_what_is_lost_and_what_comes_twice_is_measured(tmp_path: Path) -> None:
    def spoil(output: pa.Table) -> pa.Table:
        kept = output.filter(pc.not_equal(output["seq"], 0))
        return pa.concat_tables([kept, *2 * [output.filter(pc.equal(output["seq"], 1))]])

    tracks, moves = drive_about(10, 60), [(30.0, "broker-b")]
    report = carry_out(moves, tracks, tmp_path / "run", **on_threads(spoil))
    count = tracks.user.size
    assert report.events == EventCounts(sent=count, delivered=count - 1, lost=1, duplicated=2)
    assert (report.outputs_equal, report.state_equal, report.ok) == (False, True, False)


def test_rows_that_never_come_out_are_not_waited_for_without_end(tmp_path: Path) -> None:
    def spoil(output: pa.Table) -> pa.Table:
        return output.filter(pc.not_equal(output["seq"], 0))

    tracks, moves = drive_about(10, 30), [(10.0, "broker-b")]
    threads = on_threads(spoil)
    report = carry_out(moves, tracks, tmp_path / "run", **threads, patience_s=2.0)
    assert report.events.lost == 1
    assert report.events.duplicated == 0


def test_a_wrong_figure_is_no_loss_and_still_told(tmp_path: Path) -> None:
    def spoil(output: pa.Table) -> pa.Table:
        wrong = pc.if_else(pc.equal(output["seq"], 0), 1e-9, output["away_m"])
        return output.set_column(output.column_names.index("away_m"), "away_m", wrong)

    tracks, moves = drive_about(3, 30), [(20.0, "broker-b")]
    report = carry_out(moves, tracks, tmp_path / "run", **on_threads(spoil))
    assert report.events.lost == report.events.duplicated == 0
    assert (report.outputs_equal, report.state_equal, report.ok) == (False, True, False)


def test_a_dead_site_is_told(tmp_path: Path) -> None:
    hosts = {"broker-a": ThreadedSite(), "broker-b": ThreadedSite()}
    hosts["broker-b"].alive = False
    hosts["broker-b"].start = lambda query: None  # type: ignore[method-assign]
    with pytest.raises(MoveFailed, match="has died"):
        hand_over(
            [(5.0, "broker-b")],
            drive_about(2, 10),
            folder=tmp_path / "run",
            speedup=60.0,
            hosts=hosts,
        )
    hosts["broker-a"].stop("distances.broker-a@0")


# With Spark


@pytest.mark.jvm
def test_there_and_back_between_two_sparks_loses_nothing_and_keeps_the_state(
    tmp_path: Path,
) -> None:
    pytest.importorskip("pyspark")
    tracks, folder = drive_about(40, 60), tmp_path / "run"
    moves = [(20.0, "broker-b"), (40.0, "broker-a")]
    report = carry_out(moves, tracks, folder, speedup=12.0)
    check_moves(report, tracks, folder)
