"""What the benchmark of the runtime relies on to give a true answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.spark_runtime_backlog import FIRST_OPERATOR, Backlog
from benchmarks.spark_runtime_moves import (
    ALL_WINDOWS,
    ONE_WINDOW,
    RAW,
    ROUND,
    ROW_WISE,
    SHORT_ROUND,
    Output,
    Steps,
    find_outputs,
    find_pauses,
    kind_of,
)
from benchmarks.spark_runtime_sites import FOGS, PIPELINE, plan_application, same_cores
from benchmarks.spark_runtime_throughput import (
    PLANNED,
    THROUGHPUT_TARGET,
    WAYS,
    WHOLE,
    Pass,
    Race,
    tell_throughput,
)
from benchmarks.spark_runtime_throughput import (
    RAW as ALL_IN_CLOUD,
)
from benchmarks.spark_runtime_uplink import tell_differences
from benchmarks.spark_runtime_watching import Pair, Watcher, tell_watching
from thalweg.spark.deployment.hand_over import Drain, Fence, StartEpoch
from thalweg.spark.feed.gateway import END_OF_TIME
from thalweg.spark.log import Log
from thalweg.spark.log.names import EDGES, SOURCES
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.monitor.compare import Comparison
from thalweg.spark.query.clock import SITE_CLOCK, clock_table


def test_all_forms_of_a_backlog_have_the_same_rides(tmp_path: Path) -> None:
    backlog = Backlog(folder=tmp_path / "backlog", rides=7_000, rows_per_batch=3_000)
    backlog.write()
    log = tmp_path / "run" / "log"
    log.mkdir(parents=True)
    backlog.put_into_log(log, SOURCES)
    backlog.put_into_log(log, EDGES)
    files = tmp_path / "files"
    backlog.put_empty_file(files)
    assert pq.read_table(files).num_rows == 0
    backlog.put_files(files)
    born, sent = (Log(log).read(stream) for stream in ("sources/rides", "edges/rides+parse"))
    plain = pq.read_table(files)
    assert sorted(born["ride"].to_pylist()) == list(range(7_000))
    assert born.sort_by("ride").equals(sent.sort_by("ride"))
    early = plain.filter(pc.less(plain["pickup_time"], pa.scalar(END_OF_TIME)))
    assert early.num_rows == plain.num_rows - 1
    assert early.sort_by("ride").to_pylist() == born.sort_by("ride").to_pylist()


def test_plain_files_are_as_old_as_their_order_says(tmp_path: Path) -> None:
    backlog = Backlog(folder=tmp_path / "backlog", rides=40, rows_per_batch=3)
    backlog.write()
    backlog.put_empty_file(tmp_path / "files")
    backlog.put_files(tmp_path / "files")
    by_age = sorted((tmp_path / "files").iterdir(), key=lambda file: file.stat().st_mtime)
    assert [int(file.stem) for file in by_age] == list(range(16))


def test_no_site_says_a_time_before_its_rides_are_there(tmp_path: Path) -> None:
    backlog = Backlog(folder=tmp_path, rides=9_000, rows_per_batch=3_000)
    backlog.write()
    for fog in FOGS:
        clocks = {s.batch: s.latest_us for s in Log(tmp_path).segments(SITE_CLOCK, fog)}
        rides = Log(tmp_path).read("edges/rides+parse", fog)
        assert list(clocks) == [0, 1, 2, 3]
        for batch, told_us in list(clocks.items())[:-1]:
            seen = {fog: {"0": batch}}
            later = Log(tmp_path).read("edges/rides+parse", fog, after=seen)
            times = [] if not later.num_rows else later["pickup_time"].cast(pa.int64()).to_pylist()
            assert all(time_us >= (told_us or 0) for time_us in times)
        assert rides.num_rows > 0


def test_the_planned_cuts_are_for_the_fogs_and_differ_from_all_in_the_cloud() -> None:
    pytest.importorskip("pyspark")
    _, plan, cuts = plan_application()
    assert plan.feasible
    assert tuple(cuts) == FOGS
    assert all(cuts.values())


def output(epoch: int, batch: int, at_s: float, *, rows: bool = False, time_s: float = 0) -> Output:
    return Output(epoch=epoch, batch=batch, at_s=at_s, rows=rows, time_us=round(time_s * 1e6))


def test_a_pause_ends_with_news_and_not_with_what_was_known() -> None:
    old = [output(0, k, 10 + 0.2 * k, rows=True, time_s=1000 + k) for k in range(5)]
    held = [output(1, 0, 10.3, time_s=0.001), output(1, 1, 11.0, time_s=1004.0)]
    later = [output(1, 2, 11.5, time_s=1005.0), output(1, 3, 12.0, rows=True, time_s=1006.0)]
    later += [output(1, k, 10.8 + 0.4 * k, rows=True, time_s=1003 + k) for k in range(4, 9)]
    (pause,) = find_pauses([*old, *held, *later], ["no windows"])
    assert pause.seconds == pytest.approx(11.5 - 10.8)
    # A micro-batch is that of the slower of the two epochs.
    assert pause.steady_s == pytest.approx(0.4)
    assert pause.beyond_s == pytest.approx(0.3)


def test_rows_are_news_whatever_the_time() -> None:
    old = [output(0, k, float(k), time_s=1000 + k) for k in range(4)]
    new = [output(1, 0, 3.5, rows=True)]
    new += [output(1, k, 8.0 + k, time_s=2000.0 + k) for k in range(1, 4)]
    assert find_pauses([*old, *new], ["no windows"])[0].seconds == pytest.approx(0.5)


def test_an_output_is_there_when_the_last_of_its_streams_is(tmp_path: Path) -> None:
    rows = LogWriter(tmp_path, "edges/rides+parse", "fog-0", 0, durable=False)
    clock = LogWriter(tmp_path, SITE_CLOCK, "fog-0", 0, time="time", durable=False)
    first = rows.publish(0, pa.table({"ride": [1]}))
    then = clock.publish(0, clock_table(5_000))
    clock.publish(1, clock_table(6_000))
    found = find_outputs(Log(tmp_path), "fog-0")
    assert [(o.batch, o.rows, o.time_us) for o in found] == [
        (0, True, 5_000_000),
        (1, False, 6_000_000),
    ]
    assert found[0].at_s == max(s.folder.stat().st_ctime for s in (first, then))


@pytest.mark.parametrize("route", [ROUND, SHORT_ROUND])
def test_a_round_of_moves_has_every_kind_and_ends_where_it_began(
    route: tuple[tuple[str, ...], ...],
) -> None:
    moves = list(pairwise((RAW, *route)))
    assert route[-1] == RAW
    assert all(set(old) != set(new) for old, new in moves)
    kinds = {kind_of(*move) for move in moves}
    assert kinds == {"no windows", "windows come", "windows leave"}


@pytest.mark.parametrize("cut", [ROW_WISE, ONE_WINDOW, ALL_WINDOWS])
def test_every_cut_of_a_round_can_run_at_a_site(cut: tuple[str, ...]) -> None:
    pytest.importorskip("pyspark")
    from thalweg.spark.pipeline import load_pipeline

    assert load_pipeline(PIPELINE).crossing_edges(cut)


def test_a_step_lasts_until_the_next_one_or_the_end_of_its_move() -> None:
    steps = Steps()
    steps.taken = [
        (0.0, StartEpoch(site="fog-0", epoch=0, cut=(), start=None)),
        (5.0, Drain(site="fog-0", epoch=0, cut=("parse",))),
        (6.0, Fence(site="fog-0", epoch=0, last_batch=3)),
    ]
    assert list(steps.times_s([2.0, 6.5])) == [(StartEpoch, 2.0), (Drain, 1.0), (Fence, 0.5)]


def race_of(**seconds: tuple[float, ...]) -> Race:
    def passed(seconds: float) -> Pass:
        return Pass(seconds=seconds, cpu_s=2 * seconds, rows=1, fingerprint=1)

    backlog = Backlog(folder=Path(), rides=100, rows_per_batch=10)
    race = Race(sites=None, folder=Path(), cuts={}, backlog=backlog)  # type: ignore[arg-type]
    names = {"whole": WHOLE, "planned": PLANNED, "raw": ALL_IN_CLOUD}
    race.passes = {way: [passed(10.0)] * 3 for way in WAYS}
    race.passes |= {names[name]: [passed(s) for s in each] for name, each in seconds.items()}
    return race


def test_throughput_is_compared_turn_by_turn() -> None:
    # A machine that is slow for a turn is slow for both.
    race = race_of(whole=(10.0, 40.0, 10.0), planned=(12.5, 50.0, 10.0), raw=(20.0, 80.0, 20.0))
    planned, raw, *_ = tell_throughput(race)
    assert planned.value == pytest.approx(0.8)
    assert raw.value == pytest.approx(0.5)
    assert (planned.target, planned.met) == (THROUGHPUT_TARGET, False)


def test_watching_costs_what_is_more_than_without() -> None:
    def pair(slowness: float) -> Pair:
        return Pair(
            watched_cpu_s=11 * slowness,
            plain_cpu_s=10 * slowness,
            watched_s=22 * slowness,
            plain_s=20 * slowness,
        )

    # Whatever slows one of a pair down slows down the other.
    cpu, wall = tell_watching([pair(1.0), pair(2.0), pair(1.0)])
    assert cpu.value == pytest.approx(10.0)
    assert wall.value == pytest.approx(100 / 11)
    assert (cpu.met, wall.met) == (False, False)


def test_a_link_that_sends_less_than_planned_is_as_wrong_as_one_that_sends_more() -> None:
    def compared(kind: str, site: str, planned: float, measured: float) -> Comparison:
        return Comparison(kind=kind, name="x", site=site, planned=planned, measured=measured)

    found = [
        compared("link", "fog-0", 100.0, 85.0),
        compared("link", "fog-1", 100.0, 109.0),
        compared("rows in", "fog-0", 0.1, 0.9),
        compared("rows in", "fog-1", 10.0, 12.0),
    ]
    rows = list(tell_differences(found, {"fog-0": (), "fog-1": ("parse",)}))
    assert [(row.value, row.met) for row in rows] == [
        (pytest.approx(15.0), False),
        (pytest.approx(9.0), True),
        (pytest.approx(20.0), None),
    ]


def test_the_cores_are_given_back() -> None:
    before = os.sched_getaffinity(0)
    with same_cores():
        assert os.sched_getaffinity(0) <= before
        assert len(os.sched_getaffinity(0)) <= 2
    assert os.sched_getaffinity(0) == before


class EndedAndRunning:
    """A site where a query has ended whose records nobody asked for, and another one runs."""

    def __init__(self, rides: Sequence[int]) -> None:
        self.batch, self.rides = 0, list(rides)
        # The ended query had more batches, in the same epoch and role.
        self.waiting = [record_of_rides(batch, 0) for batch in range(20)]

    def read_more(self) -> None:
        """Finish a batch of the running query."""
        self.waiting.append(record_of_rides(self.batch, self.rides[self.batch]))
        self.batch += 1

    def records(self) -> list[dict[str, object]]:
        """What nobody has asked for yet."""
        told, self.waiting = self.waiting, []
        return told


def record_of_rides(batch: int, rides: int) -> dict[str, object]:
    return {
        "site": FOGS[0],
        "epoch": 0,
        "role": "cloud",
        "batch": batch,
        "at_s": float(batch),
        "rows_in": {FIRST_OPERATOR: rides},
    }


def test_records_of_an_ended_query_do_not_hide_those_of_the_next() -> None:
    pytest.importorskip("pyspark")
    site = EndedAndRunning([3_000, 3_000, 3_000])
    watcher = Watcher({FOGS[0]: site}, (FOGS[0],))  # type: ignore[arg-type]
    with watcher.running():
        for _ in site.rides:
            site.read_more()
    assert watcher.count("rides", 9_000).holds
    assert not watcher.count("rides", 9_001).holds


def test_a_way_with_other_results_does_not_count_as_right() -> None:
    race = race_of(whole=(1.0, 1.0, 1.0))
    assert all(count.holds for count in race.count_results())
    race.passes[PLANNED][1] = replace(race.passes[PLANNED][1], fingerprint=2)
    assert [count.name for count in race.count_results() if not count.holds] == [
        f"rows of the result, {PLANNED}, turn 2"
    ]
    for way in WAYS:
        race.passes[way] = [replace(each, rows=0, fingerprint=0) for each in race.passes[way]]
    assert not any(count.holds for count in race.count_results()), "no result is no agreement"
