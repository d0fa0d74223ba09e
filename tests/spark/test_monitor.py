from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.errors import InvalidInput, ThalwegError
from thalweg.model import Application, Operator, Pin, Stream
from thalweg.scenarios import fog_cloud, taxi_fares
from thalweg.spark.log import Log
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.monitor import Monitor, read_monitor
from thalweg.spark.monitor.compare import (
    compare_planned,
    measured_problem,
    place_cuts,
)
from thalweg.spark.monitor.counting import Counting, RowCounts
from thalweg.spark.monitor.figures import find_quantile
from thalweg.spark.monitor.record import (
    Published,
    arrival_of,
    complete_record,
    published_in,
    record_of,
)
from thalweg.spark.monitor.store import MonitorStore
from thalweg.spark.monitor.window import share_within
from thalweg.spark.query.spec import QuerySpec

TICK_S = 0.25
WINDOW = 20
"""Ticks of the window: five seconds."""
FOGS = ("fog-0", "fog-1", "fog-2")


def small_application() -> Application:
    return Application(
        name="small",
        operators=[
            Operator(
                name="rides", kind="source", rate=300.0, event_size=100.0, pin=Pin(tier="fog")
            ),
            Operator(name="clean", kind="transform", selectivity=0.5),
            Operator(name="dear", kind="transform", selectivity=0.2, compression=0.5),
            Operator(name="board", kind="sink", pin=Pin(tier="cloud")),
        ],
        streams=[
            Stream(source="rides", target="clean"),
            Stream(source="clean", target="dear"),
            Stream(source="dear", target="board"),
        ],
    )


APP = small_application()


def record(
    site: str = "fog-0", batch: int = 0, at_s: float = 10.0, **others: Any
) -> dict[str, Any]:
    role = "cloud" if site == "cloud" else "fog"
    return {"site": site, "epoch": 0, "role": role, "batch": batch, "at_s": at_s, **others}


def feed(*records: dict[str, Any], **options: Any) -> Monitor:
    monitor = Monitor(APP, **options)
    for each in records:
        assert monitor.take(each)
    return monitor


def test_figures_say_which_batch_they_are_of_and_can_leave_sites_out() -> None:
    flow = {"rows_in": {"dear": 5}, "rows": {"dear": 5}, "link_bytes": {"edges/dear+board": 9}}
    monitor = feed(
        *(record(site, 0, 8.0, batch_s=1.0, lag_s=1.0) for site in FOGS[:2]),
        *(record(site, 1, at_s, batch_s=1.0, lag_s=2.0, **flow) for site, at_s in ENDS.items()),
        {**record("fog-1", 0, 12.0, rows={"rides": 7}), "role": "gateway"},
    )
    figures = monitor.figures(13.0)
    assert figures.batch_end_s == ENDS
    assert figures.lag_s == dict.fromkeys(ENDS, 2.0)
    assert figures.without(()) == figures
    left = figures.without({"fog-1"})
    assert left.batch_end_s.keys() == left.lag_s.keys() == left.load.keys() == {"fog-0"}
    assert left.links.keys() == {"fog-0"}
    assert left.operators.keys() == {("dear", "fog-0")}
    # What arrives at a site does so whether it is there or not.
    assert left.sources == figures.sources


ENDS = {"fog-0": 10.0, "fog-1": 11.0}


# Rates

gaps = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 1000), st.integers(1, 8)), min_size=1, max_size=12
)


def slow_rate(batches: list[tuple[int, int, int]]) -> Fraction | None:
    """Rows per tick in the window, tick by tick; None where no time has passed."""
    at = 0
    start = -batches[0][2]
    by_tick: Counter[int] = Counter()
    for position, (gap, rows, _) in enumerate(batches):
        before = start if position == 0 else at
        at = 0 if position == 0 else at + gap
        ticks = list(range(before + 1, at + 1)) or [at]
        for tick in ticks:
            by_tick[tick] += Fraction(rows, len(ticks))  # type: ignore[assignment]
    inside = sum(rows for tick, rows in by_tick.items() if at - WINDOW < tick <= at)
    return Fraction(inside, min(WINDOW, at - start))


@given(st.integers(0, 19), st.integers(40, 400), st.integers(8, 60))
def test_rates_of_bursts_do_not_depend_on_how_many_fall_into_the_window(
    phase: int, batches: int, window: int
) -> None:
    """A window's rows come every fifth second, with batches of a quarter of a second."""
    records = [
        record(
            batch=number,
            at_s=1e9 + number * TICK_S,
            batch_s=TICK_S,
            rows={"dear": 110 if number % 20 == phase else 0},
        )
        for number in range(batches)
    ]
    monitor = feed(*records, window_s=window * TICK_S)
    flow = monitor.figures().operators["dear", "fog-0"]
    # As soon as there are two of them in it.
    if sum(each["rows"]["dear"] > 0 for each in records[-window:]) > 1:
        assert flow.rows_out_per_s == pytest.approx(22.0)
    # Where no other burst comes, it was the last one.
    quiet = [record(batch=batches + n, at_s=1e9 + (batches + n) * TICK_S) for n in range(1000)]
    for each in quiet:
        monitor.take(each)
    assert monitor.figures().operators["dear", "fog-0"].rows_out_per_s == 0.0


@given(
    st.lists(st.tuples(st.integers(2, 24), st.integers(1, 500)), min_size=3, max_size=12),
    st.integers(8, 80),
)
def test_what_a_burst_brought_is_spread_over_the_time_since_the_one_before(
    bursts: list[tuple[int, int]], window: int
) -> None:
    """However unevenly windows are put out, and in however many batches."""
    by_tick: dict[int, float] = {}
    rows: list[int] = []
    for number, (gap, value) in enumerate(bursts):
        rows += [0] * (gap - 1) + [value]
        if number:
            by_tick |= {len(rows) - k: value / gap for k in range(gap)}
    records = [
        record(batch=n, at_s=1e9 + n * TICK_S, batch_s=TICK_S, rows={"dear": count})
        for n, count in enumerate(rows)
    ]
    flow = feed(*records, window_s=window * TICK_S).figures().operators["dear", "fog-0"]
    if sum(count > 0 for count in rows[-window:]) < 2:
        return
    # The slow way: tick by tick, in the window up to the last burst.
    inside = [share for tick, share in by_tick.items() if tick > len(rows) - window]
    assert flow.rows_out_per_s == pytest.approx(sum(inside) / (len(inside) * TICK_S))


@given(st.dictionaries(st.sampled_from(FOGS), gaps, min_size=1), st.randoms())
def test_rates_are_those_of_rows_spread_tick_by_tick(
    sites: dict[str, list[tuple[int, int, int]]], random: Any
) -> None:
    records, wanted, ends = [], {}, {}
    for site, batches in sites.items():
        at = 0
        for number, (gap, rows, length) in enumerate(batches):
            at = 0 if number == 0 else at + gap
            records.append(
                record(
                    site, number, 1e9 + at * TICK_S, batch_s=length * TICK_S, rows={"rides": rows}
                )
            )
        ends[site] = (at, batches[-1][2])
        wanted[site] = slow_rate(batches)
    # Sites report in any order, each its own batches in turn.
    order = [site for site, batches in sites.items() for _ in batches]
    random.shuffle(order)
    queues = {site: [each for each in records if each["site"] == site] for site in sites}
    monitor = feed(*(queues[site].pop(0) for site in order), window_s=WINDOW * TICK_S)
    found = monitor.figures().sources
    now = max(at for at, _ in ends.values())
    for site, (at, length) in ends.items():
        silent = now - at > WINDOW + 2 * length
        rate = 0.0 if silent else float(wanted[site] or 0) / TICK_S
        assert found["rides", site] == pytest.approx(rate, rel=1e-6, abs=1e-6)


def test_a_moment_at_the_beginning_of_a_window_is_outside_and_one_at_its_end_inside() -> None:
    assert [share_within(at, at, 1.0, 2.0) for at in (1.0, 1.5, 2.0)] == [0.0, 1.0, 1.0]


def test_a_batch_longer_than_the_window_gives_the_rate_of_its_time() -> None:
    monitor = feed(
        record(batch=0, at_s=10.0, batch_s=1.0, rows={"rides": 100}),
        record(batch=1, at_s=30.0, batch_s=20.0, rows={"rides": 2000}),
        # The other site goes on; the slow one is within its next batch.
        record("fog-1", 0, at_s=50.0, batch_s=1.0),
        window_s=5.0,
    )
    assert monitor.figures().sources["rides", "fog-0"] == pytest.approx(100.0)
    assert monitor.figures().load["fog-0"] == pytest.approx(1.0)


def test_a_site_that_falls_silent_has_rates_of_zero() -> None:
    monitor = feed(
        record(batch=0, at_s=10.0, batch_s=0.5, rows={"rides": 100}, rows_in={"clean": 100}),
        window_s=5.0,
    )
    assert monitor.figures(at_s=15.9).sources["rides", "fog-0"] > 0
    late = monitor.figures(at_s=16.1)
    assert late.sources["rides", "fog-0"] == 0
    assert late.operators["clean", "fog-0"].rows_in_per_s == 0
    assert late.operators["clean", "fog-0"].selectivity is None
    assert late.load["fog-0"] == 0


def test_selectivity_traffic_load_lag_and_latency_of_a_site() -> None:
    batches = [
        record(
            batch=number,
            at_s=10.0 + number,
            batch_s=0.25,
            rows={"rides": 100, "clean": 40},
            rows_in={"clean": 100},
            bytes={"edges/clean+dear": 4000, "edges/clean+other": 1000, "edges/clock": 0},
            lag_s=0.5 * number,
            watermark_s=9.0 + number,
        )
        for number in range(8)
    ]
    figures = feed(*batches).figures()
    clean = figures.operators["clean", "fog-0"]
    assert clean.rows_in_per_s == pytest.approx(100)
    assert clean.rows_out_per_s == pytest.approx(40)
    assert clean.selectivity == pytest.approx(0.4)
    assert figures.links == {"fog-0": pytest.approx(5000)}
    assert figures.load["fog-0"] == pytest.approx(0.25)
    assert figures.lag_s == {"fog-0": 3.5}
    assert figures.watermark_s == {"fog-0": 16.0}
    assert ("rides", "fog-0") not in figures.operators


def test_gateways_tell_the_rate_at_which_rows_arrive_even_if_they_are_not_read() -> None:
    gateway = {"site": "fog-0", "epoch": 0, "role": "gateway"}
    monitor = feed(
        *(
            {**gateway, "batch": n, "at_s": 10.0 + n, "batch_s": 0.0, "rows": {"rides": 500}}
            for n in range(7)
        ),
        record(batch=0, at_s=15.5, batch_s=5.0, rows={"rides": 600}),
    )
    figures = monitor.figures()
    assert figures.sources == {("rides", "fog-0"): pytest.approx(500)}
    assert monitor.totals.arrived == {("rides", "fog-0"): 3500}
    assert monitor.totals.rows == {("rides", "fog-0"): 600}


def test_a_source_has_no_rate_in_a_cloud_where_it_is_not_born() -> None:
    monitor = feed(record("cloud", at_s=5.0, batch_s=1.0, rows={"rides": 0, "clean": 5}))
    assert monitor.figures().sources == {}


def test_a_longer_window_can_be_asked_for() -> None:
    monitor = feed(
        *(
            record(batch=n, at_s=float(n), batch_s=1.0, rows={"rides": 100 if n < 50 else 0})
            for n in range(100)
        )
    )
    assert monitor.figures().sources["rides", "fog-0"] == 0
    assert monitor.figures(window_s=100.0).sources["rides", "fog-0"] == pytest.approx(50.0)


def test_what_is_older_than_the_time_kept_is_forgotten_but_stays_in_the_totals() -> None:
    monitor = feed(
        *(record(batch=n, at_s=float(n), batch_s=0.1, rows={"rides": 100}) for n in range(100)),
        keep_s=10.0,
    )
    assert monitor.figures(window_s=1e6).sources["rides", "fog-0"] == pytest.approx(100.0)
    assert sum(1 for _ in monitor._chains["fog-0", "fog"]) == 10
    assert monitor.totals.rows["rides", "fog-0"] == 10_000
    assert monitor.totals.batches["fog-0"] == 100


def test_a_batch_that_is_done_again_counts_once() -> None:
    monitor = feed(record(batch=3, rows={"rides": 10}))
    assert not monitor.take(record(batch=3, at_s=11.0, rows={"rides": 10}))
    assert not monitor.take(record(batch=2, at_s=11.0, rows={"rides": 10}))
    assert monitor.take(record(batch=0, at_s=12.0, rows={"rides": 10}) | {"epoch": 1})
    assert monitor.totals.rows["rides", "fog-0"] == 20


def test_all_that_is_wrong_with_a_record_is_told_at_once() -> None:
    bad = {"site": "", "epoch": -1, "role": "fog", "at_s": float("nan"), "rows": {"a": 1.5}}
    with pytest.raises(InvalidInput) as caught:
        complete_record({**bad, "bytes": [], "lag_s": "late"})
    paths = {defect.path for defect in caught.value.defects}
    assert paths == {"site", "epoch", "batch", "at_s", "rows[a]", "bytes", "lag_s"}


def test_a_monitor_needs_a_window_and_keeps_at_least_that() -> None:
    with pytest.raises(InvalidInput) as caught:
        Monitor(APP, window_s=0.0, keep_s=-1.0, save_every_s=-1.0)
    assert len(caught.value.defects) == 3


# Latency


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 20), st.integers(0, 20)),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([0.0, 0.25, 0.5, 0.95, 1.0]),
)
@example(spans=[(1, 3, 0), (1, 10, 0)], share=0.25)
def test_a_quantile_is_that_of_many_rows_spread_evenly(
    spans: list[tuple[int, int, int]], share: float
) -> None:
    fine = 400
    rows = np.sort(
        np.concatenate(
            [
                np.repeat(low + length * (np.arange(fine) + 0.5) / fine, weight)
                for weight, low, length in spans
            ]
        )
    )
    found = find_quantile([(w, low, low + length) for w, low, length in spans], share)
    assert found is not None
    # As many rows are below as there should be, within the few that share a place.
    below, upto = np.sum(rows < found - 0.06), np.sum(rows <= found + 0.06)
    assert below - 1 <= share * rows.size <= upto + 1


def test_without_rows_there_is_no_quantile() -> None:
    assert find_quantile([(0, 1.0, 2.0)], 0.5) is None


def test_latency_is_from_event_time_to_publication_in_the_window() -> None:
    def sink(batch: int, at_s: float, earliest_s: float, latest_s: float) -> dict[str, Any]:
        return record(
            "cloud",
            batch,
            at_s,
            stream_rows={"sinks/board": 10, "edges/a+b": 5},
            event_spans={"sinks/board": (earliest_s, latest_s), "edges/a+b": (0.0, 0.0)},
        )

    monitor = feed(sink(0, 90.0, 0.0, 0.0), sink(1, 100.0, 96.0, 98.0))
    (latency,) = monitor.figures().latencies.values()
    assert latency.p50_s == pytest.approx(3.0)
    assert latency.p95_s == pytest.approx(3.9)


# Parquet


def test_records_are_kept_read_back_and_counted_in_again(tmp_path: Path) -> None:
    batches = [
        record(
            batch=n,
            at_s=float(n),
            batch_s=0.5,
            rows={"rides": n},
            rows_in={"clean": n},
            bytes={"edges/rides+clean": 10 * n},
            input_rows=n,
            watermark_s=None if n == 0 else n - 1.0,
        )
        for n in range(30)
    ]
    monitor = feed(*batches, folder=tmp_path, save_every_s=10.0)
    # What came since is not kept yet.
    assert read_monitor(tmp_path).num_rows == 21
    monitor.save()
    table = read_monitor(tmp_path)
    assert table.column("batch").to_pylist() == list(range(30))
    assert dict(table.column("bytes")[7].as_py()) == {"edges/rides+clean": 70}
    assert table.column("watermark_s").to_pylist()[:2] == [None, 0.0]
    again = Monitor(APP, tmp_path)
    assert again.totals == monitor.totals
    assert again.figures() == monitor.figures()
    assert not again.take(batches[-1])
    again.take(record(batch=30, at_s=30.0))
    again.save()
    assert read_monitor(tmp_path).num_rows == 31


def test_full_files_are_followed_by_others_and_the_oldest_go(tmp_path: Path) -> None:
    store = MonitorStore(tmp_path, rows_per_file=10, files=3)
    for n in range(50):
        store.append([complete_record(record(batch=n, at_s=float(n)))])
    store.append([])
    assert len(list(tmp_path.iterdir())) == 3
    assert read_monitor(tmp_path).column("batch").to_pylist() == list(range(20, 50))


def test_a_folder_that_cannot_be_written_is_told_and_the_monitor_goes_on(tmp_path: Path) -> None:
    monitor = feed(record(), folder=tmp_path / "kept", save_every_s=0.0)
    assert monitor.error is None
    (tmp_path / "kept" / "monitor-00000000.parquet").unlink()
    (tmp_path / "kept").rmdir()
    (tmp_path / "kept").write_text("")
    assert monitor.take(record(batch=1, at_s=11.0, rows={"rides": 5}))
    assert "cannot keep" in str(monitor.error)
    assert monitor.totals.rows["rides", "fog-0"] == 5
    with pytest.raises(ThalwegError, match="cannot keep"):
        monitor.save()
    with pytest.raises(ThalwegError, match="cannot keep"):
        Monitor(APP, tmp_path / "kept")


def test_a_file_that_is_no_parquet_is_told(tmp_path: Path) -> None:
    (tmp_path / "monitor-00000000.parquet").write_text("no")
    with pytest.raises(ThalwegError, match="cannot read"):
        read_monitor(tmp_path)


# Records from Spark and from the log


def spec(**others: Any) -> QuerySpec:
    given: dict[str, Any] = {"site": "fog-0", "epoch": 2, "role": "fog", "pipeline": "a:b"}
    return QuerySpec(**given, log=Path("/log"), checkpoint=Path("/checkpoint"), **others)


PROGRESS = {
    "timestamp": "2026-01-01T00:00:10.500Z",
    "batchId": 7,
    "batchDuration": 250,
    "numInputRows": 999,
    "eventTime": {"watermark": "2026-01-01T00:00:08.000Z"},
    "observedMetrics": {},
}


def test_a_record_joins_what_spark_counted_with_what_was_published() -> None:
    start_s = 1767225600.0
    found = record_of(
        PROGRESS,
        spec(cut=("clean",)),
        {
            "edges/clean+dear": Published(40, 4000, 2500, start_s, start_s + 9),
            "edges/dead-letters": Published(3, 300, 400),
        },
        counts=RowCounts(
            rows={"rides": 100, "clean": 40},
            rows_in={"clean": 100},
            input_rows=100,
            output_bytes={"parse": 7000},
        ),
        newest_s=start_s + 10,
        cpu_s=0.125,
    )
    assert found == {
        "site": "fog-0",
        "epoch": 2,
        "role": "fog",
        "batch": 7,
        "at_s": start_s + 10.75,
        "batch_s": 0.25,
        "rows": {"rides": 100, "clean": 40},
        "rows_in": {"clean": 100},
        "stream_rows": {"edges/clean+dear": 40, "edges/dead-letters": 3},
        "bytes": {"edges/clean+dear": 4000, "edges/dead-letters": 300},
        "link_bytes": {"edges/clean+dear": 2500, "edges/dead-letters": 400},
        "output_bytes": {"parse": 7000},
        "cpu_s": 0.125,
        "input_rows": 100,
        "lag_s": 2.0,
        "watermark_s": start_s + 8,
        "event_spans": {"edges/clean+dear": (start_s, start_s + 9)},
    }
    assert complete_record(found) == found


def test_of_a_query_that_is_not_watched_there_are_no_rows_of_operators() -> None:
    progress = PROGRESS | {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}
    found = record_of(progress, spec(), {"sinks/board": Published(55, 900, 700)}, newest_s=5.0)
    assert found["rows"] == found["rows_in"] == {}
    assert found["input_rows"] == 999
    assert found["watermark_s"] is None
    assert found["lag_s"] is None


def test_in_the_cloud_rows_of_other_sites_are_no_output_and_sinks_are() -> None:
    counting = Counting(
        senders={"clean": ["rides"], "far": ["clean"], "board": ["far"]},
        inbox={("rides", "clean"): "edges/rides+clean", ("clean", "far"): "edges/clean+far"},
        published=("board",),
        keepers=("far",),
    )
    assert counting.observed == {"clean"}
    observed = {"thalweg/rows/clean": {"rows": 15}, "thalweg/broken/clean+far": {"rows": 5}}
    counts = counting.count(
        {"observedMetrics": observed},
        {"edges/rides+clean": 30, "edges/clean+far": 40},
        {"sinks/board": 50, "sinks/dead-letters": 5},
    )
    assert counts.rows == {"clean": 15, "far": 50, "board": 50}
    assert counts.rows_in == {"clean": 30, "far": 55, "board": 50}
    assert counts.input_rows == 70


def test_a_site_counts_what_it_sends_where_it_sends_it() -> None:
    counting = Counting(
        senders={"clean": ["rides"]}, sources={"rides": "sources/rides"}, published=("clean",)
    )
    assert counting.observed == set()
    counts = counting.count({}, {"sources/rides": 80}, {"edges/clean+a": 60, "edges/clean+b": 60})
    assert counts.rows == {"rides": 80, "clean": 60}
    assert counts.rows_in == {"clean": 80}
    assert counts.input_rows == 80


def test_what_is_not_published_has_the_bytes_of_its_columns_and_texts() -> None:
    counting = Counting(
        senders={"parse": ["rides"], "note": ["parse"], "dear": ["note"]},
        sources={"rides": "sources/rides"},
        published=("dear",),
        keepers=("parse", "note"),
        fixed_bytes={"parse": 56.0, "note": 60.0, "dear": 8.0},
        variable=("note",),
    )
    assert counting.measured == {"note"}
    observed = {"thalweg/rows/note": {"rows": 80, "bytes": 400}}
    counts = counting.count(
        {"observedMetrics": observed}, {"sources/rides": 80}, {"edges/dear+x": 9}
    )
    assert counts.output_bytes == {"parse": 80 * 56, "note": 80 * 60 + 400}
    # Without an answer from Spark nothing is known of texts.
    without = counting.count({}, {"sources/rides": 80}, {"edges/dear+x": 9})
    assert without.output_bytes == {"parse": 80 * 56}


def test_a_site_without_operators_counts_what_it_is_given() -> None:
    counting = Counting(senders={}, sources={"rides": "sources/rides"})
    counts = counting.count({}, {"sources/rides": 80}, {"edges/rides+clean": 80})
    assert counts.rows == {"rides": 80}
    assert counts.input_rows == 80


def test_records_of_segments_have_their_rows_bytes_and_times(tmp_path: Path) -> None:
    at = pa.array([1_000_000, 3_500_000], pa.timestamp("us", "UTC"))
    rows = pa.table({"n": [1, 2], "at": at})
    LogWriter(tmp_path, "sources/rides", "fog-0", 4, time="at").publish(0, rows)
    (segment,) = Log(tmp_path).segments("sources/rides")
    found = arrival_of(segment, at_s=12.0)
    assert complete_record(found)["rows"] == {"rides": 2}
    assert (found["site"], found["epoch"], found["batch"], found["at_s"]) == ("fog-0", 4, 0, 12.0)
    put = Published(2, segment.data_bytes, segment.file_bytes, 1.0, 3.5)
    assert published_in(segment) == put
    LogWriter(tmp_path, "sources/rides", "fog-1", 0).publish(0, rows)
    (other,) = (s for s in Log(tmp_path).segments("sources/rides") if s.site == "fog-1")
    assert published_in(other) == Published(2, other.data_bytes, other.file_bytes)


# Beside the model


def cuts_of(plan: Any) -> dict[str, tuple[str, ...]]:
    kinds = {o.name: o.kind for o in taxi_fares().operators}
    found: dict[str, tuple[str, ...]] = {}
    for each in plan.placement:
        if each.origin and kinds[each.operator] != "source" and each.node == each.origin:
            found[each.origin] = (*found.get(each.origin, ()), each.operator)
    return found


@pytest.mark.parametrize("share", [1.0, 0.02, 0.0])
def test_cuts_mean_the_placement_that_the_strategy_found(share: float) -> None:
    net = fog_cloud(3)
    free = net.node_memory_bytes * [share, 1.0, share, 1.0]
    net = net.with_available(node_memory_available_bytes=free)
    plan = tw.plan(taxi_fares(), net, "atsoo")
    placement = place_cuts(taxi_fares(), net, cuts_of(plan))
    assert sorted(map(str, placement)) == sorted(map(str, plan.placement))


def test_cuts_with_unknown_names_are_refused_with_a_hint() -> None:
    with pytest.raises(InvalidInput, match=r'"fog-2"\?\n.*"clean"'):
        place_cuts(APP, fog_cloud(3), {"fog-9": ("clean",), "fog-1": ("claen",)})


def model_records(
    cut: tuple[str, ...], rates: dict[str, int], seconds: int
) -> list[dict[str, Any]]:
    """What the sites would report of `small_application` if it behaved as its figures say."""
    records = []
    out = {"rides": 1.0, "clean": 0.5, "dear": 0.1}
    size = {"rides": 100, "clean": 100, "dear": 50}
    last = ("rides", *cut)[-1]
    reader = {"rides": "clean", "clean": "dear", "dear": "board"}
    before = {"clean": "rides", "dear": "clean", "board": "dear"}
    for second in range(seconds):
        for site, rate in rates.items():
            here = ("rides", *cut)
            records.append(
                record(
                    site,
                    second,
                    1000.0 + second,
                    batch_s=1.0,
                    rows={name: int(rate * out[name]) for name in here},
                    rows_in={name: int(rate * out[before[name]]) for name in cut},
                    bytes={f"edges/{last}+{reader[last]}": int(rate * out[last]) * size[last]},
                )
            )
        total = sum(rates.values())
        there = [name for name in ("clean", "dear") if name not in cut]
        records.append(
            record(
                "cloud",
                second,
                1000.0 + second,
                batch_s=1.0,
                rows={name: int(total * out[name]) for name in there},
                rows_in={name: int(total * out[before[name]]) for name in [*there, "board"]},
            )
        )
    return records


@pytest.mark.parametrize("cut", [(), ("clean",), ("clean", "dear")])
def test_a_deployment_that_does_what_was_planned_shows_no_difference(cut: tuple[str, ...]) -> None:
    net = fog_cloud(3)
    rates = {"fog-0": 1000, "fog-1": 400, "fog-2": 0}
    figures = feed(*model_records(cut, rates, 20)).figures()
    placement = place_cuts(APP, net, dict.fromkeys(FOGS, cut))
    rows = compare_planned(APP, net, placement, figures)
    for row in rows:
        assert row.measured == pytest.approx(row.planned), row
    fogs_too = 2 * 3 * len(cut)
    cloud = 2 * (2 - len(cut)) + 1
    assert len(rows) == fogs_too + cloud + 3
    links = {row.site: row.planned for row in rows if row.kind == "link"}
    per_ride = {(): 100.0, ("clean",): 50.0, ("clean", "dear"): 5.0}[cut]
    assert links == {site: pytest.approx(per_ride * rate) for site, rate in rates.items()}


def test_what_differs_from_the_plan_is_shown_as_a_part_of_it() -> None:
    net = fog_cloud(3)
    placement = place_cuts(APP, net, dict.fromkeys(FOGS, ("clean",)))
    batches = model_records(("clean",), dict.fromkeys(FOGS, 1000), 20)
    for each in batches:
        if each["site"] == "fog-1":
            each["rows"]["clean"] = 600
            each["bytes"] = {"edges/clean+dear": 30_000}
        if each["site"] == "fog-2":
            each["rows_in"]["stranger"] = 1
            each["rows_in"]["dear"] = 7
    rows = compare_planned(APP, net, placement, feed(*batches).figures())
    found = {(row.kind, row.name, row.site): row for row in rows}
    assert found["rows out", "clean", "fog-1"].difference == pytest.approx(0.2)
    assert found["link", "cloud", "fog-1"].difference == pytest.approx(-0.4)
    assert found["rows in", "clean", "fog-1"].difference == pytest.approx(0.0)
    unplanned = found["rows in", "dear", "fog-2"]
    assert unplanned.planned == 0.0
    assert unplanned.measured == pytest.approx(7.0)
    assert unplanned.difference is None


def test_a_strategy_can_be_asked_at_the_measured_rates() -> None:
    net = fog_cloud(3)
    figures = feed(*model_records((), dict.fromkeys(FOGS, 1000), 10)).figures()
    problem = measured_problem(APP, net, figures)
    assert problem.births.rate.tolist() == pytest.approx([1000.0] * 3)
    plan = tw.plan(APP, net, "atsoo", rates=problem.rates)
    assert plan.feasible
