"""Generated rides have the figures that were measured, and those are what the data say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import ks_2samp, spearmanr
from tools.calibrate_rides import TARGET, main, measure, write

from thalweg.errors import InvalidInput
from thalweg.scenarios.readings import BROKEN, MISSING, UNITS, generate_messages
from thalweg.scenarios.rides import (
    ZONES,
    generate_rides,
    read_rides,
    ride_figures,
    split_by_key,
)
from thalweg.scenarios.trip_files import read_trips

TRIPS = Path(__file__).parents[3] / "shared/data/nyc/yellow_tripdata_2018_2020_sample360k.parquet"
WEEK_S = 7 * 86_400.0


@pytest.fixture(scope="module")
def made() -> pa.Table:
    return generate_rides(60_000, seed=4, seconds=WEEK_S)


def as_trips(rides: pa.Table) -> pa.Table:
    """Rides as the trips that they would have been read from."""
    to, seconds, miles, fare, tip = meter_of(rides).T
    start = np.asarray(rides["pickup_time"].cast(pa.int64()))
    times = {"pickup_time": start, "drop_off_time": start + (seconds * 1e6).astype("int64")}
    numbers = {"zone": rides["zone"], "drop_off_zone": to, "miles": miles, "fare": fare, "tip": tip}
    columns = {name: pa.array(us, pa.timestamp("us")) for name, us in times.items()} | numbers
    return pa.table(columns)


def meter_of(rides: pa.Table) -> Any:
    return np.array([line.split(",") for line in rides["record"].to_pylist()], dtype=float)


@pytest.fixture(scope="module")
def found(made: pa.Table) -> dict[str, Any]:
    return measure(as_trips(made))


def test_zones_and_hours_have_the_measured_shares(found: dict[str, Any]) -> None:
    figures = ride_figures()
    for name in ("zones", "drop_off_zones", "hours"):
        # Half the sum of the differences: the share of rides that would have to change places.
        moved = np.abs(np.array(found[name]) - getattr(figures, name)).sum() / 2
        assert moved < 0.025, name


def test_the_meter_has_the_measured_distributions_and_correlations(found: dict[str, Any]) -> None:
    figures = ride_figures()
    inner = slice(5, 96)
    for name, tolerance in (("miles", 0.05), ("dollars", 0.05), ("tip", 0.05), ("seconds", 0.12)):
        wanted = getattr(figures, name)[inner]
        assert np.array(found[name])[inner] == pytest.approx(wanted, rel=tolerance), name
    assert np.array(found["correlation"]) == pytest.approx(figures.correlation, abs=0.04)
    assert found["tipped"] == pytest.approx(figures.tipped, abs=0.01)
    assert np.array(found["odd"]) == pytest.approx(figures.odd, abs=0.003)


def test_slow_zones_are_slow(found: dict[str, Any]) -> None:
    figures = ride_figures()
    busy = figures.zones > 0.005
    correlation = spearmanr(np.array(found["zone_mph"])[busy], figures.zone_mph[busy]).statistic
    assert busy.sum() > 30
    assert correlation > 0.8


def test_rides_are_numbered_in_the_order_of_their_times_within_the_span() -> None:
    start = datetime(2024, 5, 1, 17, 30, 30, tzinfo=UTC)
    rides = generate_rides(500, seed=2, start=start, seconds=90.0, first=1000)
    times = rides["pickup_time"].to_pylist()
    assert rides["ride"].to_pylist() == list(range(1000, 1500))
    assert times == sorted(times)
    assert times[0] >= start
    assert (times[-1] - start).total_seconds() < 90.0
    # A short span is filled evenly.
    middle = sum((time - start).total_seconds() < 45.0 for time in times)
    assert 200 < middle < 300


def test_the_same_seed_gives_the_same_rides_and_another_one_others() -> None:
    assert generate_rides(200, seed=5).equals(generate_rides(200, seed=5))
    assert not generate_rides(200, seed=5).equals(generate_rides(200, seed=6))
    assert generate_rides(0).num_rows == 0


def test_figures_are_shares_and_rising_quantiles() -> None:
    figures = ride_figures()
    assert figures.zones.size == figures.drop_off_zones.size == figures.zone_mph.size == ZONES
    assert figures.hours.size == 168
    for shares in (figures.zones, figures.drop_off_zones, figures.hours):
        assert shares.sum() == pytest.approx(1.0, abs=1e-3)
    for quantiles in (figures.miles, figures.seconds, figures.dollars, figures.tip):
        assert quantiles.size == 101
        assert (np.diff(quantiles) >= 0).all()
    # Wednesday at 19:00 is busy, at 4:00 it is not.
    assert figures.hours[2 * 24 + 19] > 5 * figures.hours[2 * 24 + 4]


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": -1},
        {"count": 1.5},
        {"seed": -1},
        {"seconds": 0.0},
        {"start": "now"},
        {"first": -1},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        generate_rides(**{"count": 10, **wrong})


def test_splitting_keeps_every_row_once_and_keys_together(made: pa.Table) -> None:
    parts = split_by_key(made, "zone", ["a", "b", "c"])
    assert list(parts) == ["a", "b", "c"]
    zones = [set(part["zone"].to_pylist()) for part in parts.values()]
    assert not any(one & other for one in zones for other in zones if one is not other)
    rides = sorted(ride for part in parts.values() for ride in part["ride"].to_pylist())
    assert rides == list(range(made.num_rows))
    assert min(part.num_rows for part in parts.values()) > made.num_rows / 5
    for wrong in ({"key": "zonne", "sites": ["a"]}, {"key": "zone", "sites": []}):
        with pytest.raises(InvalidInput):
            split_by_key(made, **wrong)  # type: ignore[arg-type]


# Trip files


def official(**columns: Any) -> pa.Table:
    """A file of two trips, the later one first, with the Commission's own column names."""
    start = [datetime(2024, 1, 1, 0, 5), datetime(2024, 1, 1, 0, 1)]
    end = [datetime(2024, 1, 1, 0, 15), datetime(2024, 1, 1, 0, 2)]
    table: dict[str, Any] = {
        "VendorID": [1, 2],
        "tpep_pickup_datetime": pa.array(start, pa.timestamp("us")),
        "tpep_dropoff_datetime": pa.array(end, pa.timestamp("us")),
        "PULocationID": pa.array([161, 7], pa.int32()),
        "DOLocationID": pa.array([50, 8], pa.int32()),
        "trip_distance": [2.5, 0.4],
        "fare_amount": [14.2, 4.0],
        "tip_amount": [3.0, 0.0],
    } | columns
    return pa.table({name: column for name, column in table.items() if column is not None})


def test_official_files_are_read_in_the_order_of_their_times(tmp_path: Path) -> None:
    pq.write_table(official(), tmp_path / "trips.parquet")
    rides = read_rides(tmp_path / "trips.parquet")
    assert rides.schema.equals(generate_rides(1).schema)
    assert rides.to_pylist() == [
        {
            "ride": 0,
            "zone": 7,
            "pickup_time": datetime(2024, 1, 1, 0, 1, tzinfo=UTC),
            "record": "8,60,0.40,4.00,0.00",
        },
        {
            "ride": 1,
            "zone": 161,
            "pickup_time": datetime(2024, 1, 1, 0, 5, tzinfo=UTC),
            "record": "50,600,2.50,14.20,3.00",
        },
    ]
    assert read_rides(tmp_path / "trips.parquet", most=1).equals(rides[:1])


def test_trips_that_lack_a_value_are_left_out(tmp_path: Path) -> None:
    pq.write_table(official(fare_amount=[None, 4.0]), tmp_path / "trips.parquet")
    assert read_rides(tmp_path / "trips.parquet")["zone"].to_pylist() == [7]


def test_files_that_are_no_trips_are_told_all_that_is_wrong(tmp_path: Path) -> None:
    wrong = official(PULocationID=None, fare_amount=["a", "b"], tpep_pickup_datetime=[1, 2])
    pq.write_table(wrong.append_column("PULocationId", [[1, 2]]), tmp_path / "trips.parquet")
    with pytest.raises(InvalidInput) as error:
        read_trips(tmp_path / "trips.parquet")
    text = str(error.value)
    for part in (
        "trips.parquet: PULocationID",
        'did you mean "PULocationId"?',
        'fare_amount: got "string", need a column of numbers',
        "tpep_pickup_datetime",
    ):
        assert part in text
    (tmp_path / "text.parquet").write_text("no Parquet")
    for path in ("text.parquet", "none.parquet"):
        with pytest.raises(InvalidInput, match=f"{path}: got .* a readable Parquet file"):
            read_trips(tmp_path / path)


def test_the_command_writes_what_it_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {
        "pickup_time": "pickup_datetime",
        "drop_off_time": "dropoff_datetime",
        "zone": "pickup_location_id",
        "drop_off_zone": "dropoff_location_id",
        "miles": "trip_distance",
        "fare": "fare_amount",
        "tip": "tip_amount",
    }
    trips = as_trips(generate_rides(2000, seed=1))
    file, target = tmp_path / "trips.parquet", tmp_path / "rides.json"
    pq.write_table(trips.rename_columns([names[name] for name in trips.column_names]), file)
    monkeypatch.setattr("tools.calibrate_rides.TARGET", target)
    assert main([str(file)]) == 0
    assert target.read_text() == write(measure(trips))
    assert json.loads(target.read_text())["tipped"] == measure(trips)["tipped"]
    assert main([str(tmp_path / "none.parquet")]) == 2
    assert main([]) == 2
    assert "a readable Parquet file" in capsys.readouterr().err


@pytest.mark.data
def test_the_figures_are_what_the_command_measures() -> None:
    if not TRIPS.exists():
        pytest.skip(f"needs the trips at {TRIPS}")
    assert write(measure(read_trips(TRIPS))) == TARGET.read_text(encoding="utf-8")


@pytest.mark.data
def test_generated_rides_are_like_the_real_ones(made: pa.Table) -> None:
    """No share of the rides beyond 5 % would have to change, for any number of the meter."""
    if not TRIPS.exists():
        pytest.skip(f"needs the trips at {TRIPS}")
    real = meter_of(read_rides(TRIPS))
    for column in range(5):
        assert ks_2samp(real[:, column], meter_of(made)[:, column]).statistic < 0.05, column


# Messages


def test_messages_are_those_of_sensors_with_gaps_and_breaks() -> None:
    table = generate_messages(20_000, seed=1, seconds=30.0, first=7)
    assert table["message"].to_pylist() == list(range(7, 20_007))
    times = table["time"].to_pylist()
    assert times == sorted(times)
    assert (times[-1] - times[0]).total_seconds() < 30.0
    whole = [line for line in table["senml"].to_pylist() if line.endswith("}")]
    assert 1 - len(whole) / table.num_rows == pytest.approx(BROKEN, abs=0.002)
    readings = [event for line in whole for event in json.loads(line)["e"][1:]]
    assert {event["n"] for event in readings} == set(UNITS)
    gaps = sum("v" not in event for event in readings) / len(readings)
    assert gaps == pytest.approx(MISSING, abs=0.002)
    assert table.equals(generate_messages(20_000, seed=1, seconds=30.0, first=7))
    with pytest.raises(InvalidInput, match="sensors"):
        generate_messages(1, sensors=0)
