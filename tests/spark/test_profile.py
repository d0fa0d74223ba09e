from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg
from spark.site_session import MANY_PLANS
from thalweg.errors import InvalidInput
from thalweg.files.load import load_application
from thalweg.model import Link, Node, Pin, Site, TimeWindow, build_network
from thalweg.scenarios import rides
from thalweg.spark.pipeline import Pipeline
from thalweg.spark.pipeline.mergeable import count
from thalweg.spark.profile import Profile, profile
from thalweg.spark.profile.calibration import Calibration, calibrate, reference_table, run_reference
from thalweg.spark.profile.fit import Measured, fit_line, fit_ratio, measured_from
from thalweg.spark.profile.report import draw_profile, plot_profile, profile_table, save_application
from thalweg.spark.profile.sample import at_rate, event_times_us, growing_counts

pytest.importorskip("pyspark")
from pyspark.sql import functions as sql

pytestmark = pytest.mark.jvm

START = datetime(2024, 1, 1, tzinfo=UTC)
ROWS = 6000
SPEED = Calibration(speed_ips=Measured(2e9, 2e9, 2e9), rounds=1, repeat=1)
WINDOW = TimeWindow("10 s", "5 s")

known = Pipeline("known")
numbers = known.source(
    "numbers",
    schema="number long, key int, time timestamp",
    key="key",
    time="time",
    delay="1 s",
    rate=100.0,
    event_size=20.0,
    pin=Pin(tier="cloud"),
)


@known.operator(numbers, kind="row-wise", selectivity=0.25, compression=2.4, must="number >= 0")
def keep_quarter(numbers: Any) -> Any:
    """One row in four, with 28 bytes more."""
    return numbers.where("number % 4 = 0").withColumn("text", sql.lit("x" * 24))


@known.operator(
    keep_quarter, kind="partitioned", by="key", window=WINDOW, selectivity=0.9, cpu_per_byte=7.0
)
def by_key(keep_quarter: Any) -> Any:
    """Five keys in each window."""
    return keep_quarter.groupBy("window", "key").agg(sql.count(sql.lit(1)).alias("rows"))


@known.operator(by_key, kind="row-wise", selectivity=0.5)
def drop_all(by_key: Any) -> Any:
    """Nothing."""
    return by_key.where("key < 0")


halves = known.aggregate(
    "halves", keep_quarter, window=TimeWindow("10 s"), columns={"rows": count()}, selectivity=0.5
)
known.sink("board", drop_all)
known.sink("total", halves)


def number_rows(rows: int = ROWS) -> pa.Table:
    """A hundred rows a second; keys in turn, so that each quarter has all five."""
    times = [START + timedelta(milliseconds=10 * n) for n in range(rows)]
    return pa.table(
        {
            "number": pa.array(range(rows), pa.int64()),
            "key": pa.array([n // 4 % 5 for n in range(rows)], pa.int32()),
            "time": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture(scope="module")
def session(shared_session: Callable[..., Any]) -> Any:
    return shared_session(MANY_PLANS)


@pytest.fixture(scope="module")
def numbers_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "numbers.parquet"
    pq.write_table(number_rows(), path)
    return path


@pytest.fixture(scope="module")
def found(session: Any, numbers_file: Path) -> Profile:
    return profile(known, data=numbers_file, repeat=2, sites=2, session=session, calibration=SPEED)


# Fits


@given(
    slope=st.floats(0, 1e3),
    fixed=st.floats(0, 1e3),
    events=st.lists(st.integers(1, 10**6), min_size=2, max_size=8, unique=True),
)
def test_a_line_without_noise_is_found_again(slope: float, fixed: float, events: list[int]) -> None:
    line = fit_line(events, [fixed + slope * n for n in events])
    # A slope is known as well as the largest amount is, over the shortest way between events.
    noise = 1e-9 * (fixed + slope * max(events) + 1.0)
    assert line.slope == pytest.approx(slope, abs=noise)
    assert line.fixed == pytest.approx(fixed, abs=noise * max(events))


@given(
    points=st.lists(
        st.tuples(st.integers(0, 1000), st.floats(0, 1e3)), min_size=2, max_size=8
    ).filter(lambda points: len({x for x, _ in points}) > 1)
)
def test_a_line_is_the_one_that_numpy_fits(points: list[tuple[int, float]]) -> None:
    x, y = np.array(points).T
    solution = np.linalg.lstsq(np.column_stack([x, np.ones_like(x)]), y, rcond=None)[0]
    line = fit_line(x.tolist(), y.tolist())
    assert [line.slope, line.fixed] == pytest.approx(solution.tolist(), rel=1e-6, abs=1e-6)


def test_a_ratio_leaves_out_what_is_there_without_events_and_tells_its_spread() -> None:
    even = fit_ratio([10, 20, 40], [9, 14, 24])
    assert (even.low, even.value, even.high) == pytest.approx((0.5, 0.5, 0.5))
    uneven = fit_ratio([10, 20, 30], [5, 9, 15])
    assert (uneven.low, uneven.value, uneven.high) == pytest.approx((0.4, 0.5, 0.6))
    assert fit_ratio([0, 0, 0], [0, 0, 0]) == Measured(0.0, 0.0, 0.0)


def test_the_median_of_one_measurement_is_itself() -> None:
    assert measured_from([3.0]) == Measured(3.0, 3.0, 3.0)


# Calibration


def reference_by_hand(rounds: int) -> int:
    """The reference program in plain Python."""
    most, table = 2**64 - 1, [int(word) for word in reference_table()]
    state, total = 0x9E3779B97F4A7C15, 0
    for _ in range(rounds):
        state ^= state >> 12
        state ^= (state << 25) & most
        state ^= state >> 27
        state ^= table[(state * 0x2545F4914F6CDD1D) & most & (len(table) - 1)]
        total = (total + state) & most
    return total


@pytest.mark.parametrize("rounds", [1, 2, 5000])
def test_the_reference_program_does_all_of_its_rounds(rounds: int) -> None:
    assert run_reference(rounds) == reference_by_hand(rounds)


def test_speed_is_instructions_over_cpu_seconds() -> None:
    ticks = iter([0.0, 2.0, 10.0, 11.0, 20.0, 24.0])
    speed = calibrate(rounds=1000, repeat=3, clock=lambda: next(ticks)).speed_ips
    assert speed == Measured(6500.0, 4875.0, 9750.0)


def test_calibration_needs_rounds_and_runs() -> None:
    with pytest.raises(InvalidInput) as raised:
        calibrate(rounds=0, repeat=0)
    assert [defect.path for defect in raised.value.defects] == ["rounds", "repeat"]


# Samples


def test_parts_of_a_sample_end_where_windows_do() -> None:
    times = event_times_us(number_rows(), "time")
    assert growing_counts(6000, times, 10.0, 3) == [2000, 4000, 6000]
    # 20.5 s, 41 s and 61.5 s, to the next end of five seconds.
    assert growing_counts(6150, event_times_us(number_rows(6150), "time"), 5.0, 3) == [
        2000,
        4000,
        6000,
    ]
    assert growing_counts(30, None, 10.0, 3) == [10, 20, 30]
    # Too short for windows.
    assert growing_counts(300, event_times_us(number_rows(300), "time"), 10.0, 3) == [100, 200, 300]


def test_rows_can_come_at_another_rate() -> None:
    fast = event_times_us(at_rate(number_rows(), "time", 6000.0), "time")
    assert fast is not None
    assert fast[-1] - fast[0] == 1_000_000
    assert (np.diff(fast) > 0).all()


# Figures


def test_selectivity_and_sizes_are_what_is_known(found: Profile) -> None:
    quarter, keys = found.step("keep-quarter"), found.step("by-key")
    assert found.rows == {"numbers": ROWS}
    assert found.rate["numbers"] == pytest.approx(100.0)
    # long + int + timestamp; and a text of 24 letters with its offset.
    assert found.step("numbers").size_out_bytes == 20.0
    assert found.application.operator("numbers").event_size == 20.0
    assert quarter.selectivity.to_dict() == pytest.approx(
        {"value": 0.25, "low": 0.25, "high": 0.25}
    )
    # A batch's offsets are one more than its rows.
    assert quarter.size_out_bytes == pytest.approx(48.0, rel=0.01)
    assert quarter.measured.compression == pytest.approx(2.4, rel=0.01)
    # Five keys each five seconds, of 25 rows a second; what is unfinished at the ends adds none.
    assert keys.measured.selectivity == 0.04
    assert keys.measured.compression == pytest.approx((16 + 4 + 8) / 48.0, rel=0.01)
    # 25 rows a second, for ten seconds.
    assert keys.window_events == pytest.approx(250.0)
    assert keys.window_bytes == pytest.approx(250.0 * 48.0, rel=0.01)


def test_a_part_of_the_rows_is_aggregated_at_every_site(found: Profile) -> None:
    # A row for each site and ten seconds, of 250; then one of two.
    assert found.step("halves-partial").measured.selectivity == 0.008
    assert found.step("halves").measured.selectivity == 0.5


def test_what_lets_nothing_through_keeps_its_declared_compression(found: Profile) -> None:
    assert found.application.operator("drop-all").selectivity == 0.0
    assert found.application.operator("drop-all").compression == 1.0


def test_work_is_cpu_time_at_the_speed_of_the_machine_for_each_window(found: Profile) -> None:
    quarter, keys = found.step("keep-quarter"), found.step("by-key")
    assert 0 <= quarter.cpu_s.low <= quarter.cpu_s.value <= quarter.cpu_s.high
    assert quarter.cpu_s.high > 0
    assert quarter.work.value == pytest.approx(quarter.cpu_s.value * 2e9)
    assert keys.work.value == pytest.approx(keys.cpu_s.value * 2e9 / 2)
    assert keys.measured.cpu_per_byte == 0.0


def test_state_is_that_of_the_windows_open_at_a_time(found: Profile) -> None:
    keys = found.step("by-key")
    # Two windows of ten seconds are open, and those that are a second late: 11 rows of state.
    assert keys.state_bytes is not None
    assert 11 * 28 < keys.state_bytes < 11 * 2000
    assert keys.measured.memory_factor == pytest.approx(
        keys.state_bytes / keys.window_bytes, rel=1e-3
    )
    assert found.step("keep-quarter").state_bytes is None


def test_declared_figures_that_are_off_are_reported(found: Profile) -> None:
    wrong = {(d.operator, d.figure) for d in found.differences()}
    assert wrong == {
        ("by-key", "selectivity"),
        ("by-key", "compression"),
        ("drop-all", "selectivity"),
        ("halves-partial", "selectivity"),
        ("halves-partial", "compression"),
        ("halves", "selectivity"),
    }
    quarter = next(d for d in found.differences() if d.operator == "by-key")
    assert (quarter.declared, quarter.measured) == (0.9, 0.04)
    assert quarter.off == pytest.approx(21.5)


rides_only = Pipeline("rides-only")
born = rides_only.source("rides", schema=rides.SCHEMA, key="zone", time="pickup_time", rate=500.0)


@rides_only.operator(born, kind="row-wise")
def from_low_zones(rides: Any) -> Any:
    """Rides from the zones with the lower numbers."""
    return rides.where("zone <= 132")


rides_only.sink("board", from_low_zones)


def test_rides_are_generated_at_the_declared_rate_or_made_of_trips(
    session: Any, tmp_path: Path
) -> None:
    generated = profile(rides_only, 2000, seed=5, repeat=1, session=session, calibration=SPEED)
    assert generated.rate["rides"] == pytest.approx(500.0, rel=0.05)
    zones = rides.generate_rides(2000, 5, seconds=4.0)["zone"].to_pylist()
    assert generated.step("from-low-zones").rows_out == sum(zone <= 132 for zone in zones)
    times = pa.array([START + timedelta(seconds=n) for n in range(100)], pa.timestamp("us"))
    trips = {"tpep_pickup_datetime": times, "tpep_dropoff_datetime": times}
    trips |= {
        name: [n % 2 * 200 + 1 for n in range(100)] for name in ("PULocationID", "DOLocationID")
    }
    trips |= {name: [1.0] * 100 for name in ("trip_distance", "fare_amount", "tip_amount")}
    pq.write_table(pa.table(trips), tmp_path / "trips.parquet")
    read = profile(
        rides_only, data=tmp_path / "trips.parquet", repeat=1, session=session, calibration=SPEED
    )
    assert read.rate["rides"] == pytest.approx(1.0)
    assert read.step("from-low-zones").rows_out == 50


# What is written


def test_the_written_file_has_the_measured_figures_and_plans(
    found: Profile, tmp_path: Path
) -> None:
    path = tmp_path / "known.yaml"
    save_application(found, path)
    again = load_application(path)
    assert again == found.application
    assert "# keep-quarter: selectivity 0.25 to 0.25" in path.read_text()
    network = build_network(
        "two",
        [
            Site(
                name="cloud",
                tier="cloud",
                nodes=(Node(name="c", cpu_ips=1e12, memory_bytes=1e12),),
            ),
            Site(name="fog", tier="fog", nodes=(Node(name="f", cpu_ips=1e9, memory_bytes=1e9),)),
        ],
        [Link(a="fog", b="cloud", latency_s=0.01, bandwidth_bps=1e9)],
    )
    assert thalweg.plan(again, network).feasible


def test_a_report_has_a_row_for_each_operator_and_is_plain_data(
    found: Profile, tmp_path: Path
) -> None:
    names, rows = profile_table(found)
    assert [row[0] for row in rows] == [step.name for step in found.steps]
    assert {len(row) for row in rows} == {len(names)}
    assert rows[1][2] == "0.25 → 0.25"
    data = json.loads(json.dumps(found.to_dict()))
    assert data["operators"][1]["selectivity"]["value"] == pytest.approx(0.25)
    pytest.importorskip("matplotlib")
    plot_profile(found, tmp_path / "known.png")
    assert (tmp_path / "known.png").read_bytes().startswith(b"\x89PNG")
    panels = draw_profile(found).axes
    assert [tick.get_text() for tick in panels[0].get_yticklabels()] == [
        step.name for step in found.steps[1:]
    ]
    with pytest.raises(InvalidInput, match="a place that can be written"):
        plot_profile(found, tmp_path / "nowhere" / "known.png")


# Bad input


def test_all_missing_columns_are_told_at_once_before_spark_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    csv.write_csv(number_rows(20).rename_columns(["numbr", "key", "when"]), path)
    with pytest.raises(InvalidInput) as raised:
        profile(known, 3, data=path, repeat=0, sites=0, rate=-1.0, master="spark://far:7077")
    assert [defect.path for defect in raised.value.defects] == [
        "rows",
        "rate",
        "sites",
        "repeat",
        "master",
        "number",
        "time",
    ]
    assert 'did you mean "numbr"?' in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_pipeline_of_ones_own_needs_rows(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="a file with rows of the source numbers"):
        profile(known)
    with pytest.raises(InvalidInput, match="the name of a source of known"):
        profile(known, data={"numbers": tmp_path / "none.parquet", "numbrs": "x.parquet"})
    with pytest.raises(InvalidInput, match="a file that ends in"):
        profile(known, data=tmp_path / "rows.xls")


def test_columns_of_another_type_and_too_few_rows_are_told(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    rows = [{"number": "one", "key": "two", "time": "2024-01-01 00:00:00"} for _ in range(20)]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(InvalidInput) as raised:
        profile(known, data=path, session=session)
    assert [defect.path for defect in raised.value.defects] == ["number", "key"]
    pq.write_table(number_rows(3), tmp_path / "few.parquet")
    with pytest.raises(InvalidInput, match="at least 10 rows"):
        profile(known, data=tmp_path / "few.parquet", session=session)
