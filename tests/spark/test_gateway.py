"""Gateways and the feed of rides: numbered rows, each in the log once, over restarts too."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.scenarios.rides import generate_rides, read_rides
from thalweg.spark.feed.gateway import END_OF_TIME, Gateway
from thalweg.spark.feed.rides import (
    RideFeed,
    feed_rides,
    feed_trips,
    generate_ticks,
    next_ride,
    replay_ticks,
    require_ride_source,
    split_rides,
)
from thalweg.spark.log import Log

SITES = ("fog-1", "fog-2", "fog-3")
START = datetime(2026, 1, 5, 8, tzinfo=UTC)


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def ride_gateways(folder: Path) -> dict[str, Gateway]:
    return {
        s: Gateway(folder, "rides", s, time="pickup_time", durable=False, founds=True)
        for s in SITES
    }


def sent_rides(folder: Path) -> Counter[int]:
    table = Log(folder).read("sources/rides")
    return Counter(table["ride"].to_pylist() if table.num_rows else [])


def test_a_gateway_that_is_started_again_goes_on_after_its_last_batch(tmp_path: Path) -> None:
    first = Gateway(tmp_path, "rides", "fog-1", durable=False, founds=True)
    assert [first.send(numbers(k)).batch for k in range(3)] == [0, 1, 2]
    again = Gateway(Log(tmp_path), "rides", "fog-1", durable=False, founds=True)
    assert again.send(numbers(3)).batch == 3
    assert Log(tmp_path).read("sources/rides", "fog-1")["n"].to_pylist() == [0, 1, 2, 3]


def test_marks_go_forward_only_and_the_last_one_is_the_end_of_time(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, "rides", "fog-1", durable=False, founds=True)
    assert gateway.mark(START)
    assert not gateway.mark(START - timedelta(seconds=1))
    other = Gateway(tmp_path, "buses", "fog-1", durable=False, founds=True)
    assert other.mark(START + timedelta(seconds=1))
    gateway.close()
    gateway.close()
    marks = Log(tmp_path).read("sources/clock", "fog-1")["time"].to_pylist()
    assert marks == [START, START + timedelta(seconds=1), END_OF_TIME]
    with pytest.raises(InvalidInput, match="a time with its zone"):
        gateway.mark(datetime(2026, 1, 1))


def test_segments_say_the_event_times_of_their_rows(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, "rides", "fog-1", time="pickup_time", durable=False, founds=True)
    rides = generate_rides(50, start=START, seconds=1.0)
    segment = gateway.send(rides)
    times = rides["pickup_time"].cast(pa.int64()).to_pylist()
    assert (segment.earliest_us, segment.latest_us) == (min(times), max(times))


@settings(max_examples=40, deadline=None)
@given(rate=st.floats(0.0, 500.0), first=st.integers(0, 10**9), seed=st.integers(0, 10**6))
def test_ticks_have_the_rate_every_number_and_nothing_older_than_they_say(
    rate: float, first: int, seed: int
) -> None:
    ticks = list(islice(generate_ticks(rate, start=START, seed=seed, first=first), 12))
    found = [ride for tick in ticks for ride in tick.rides["ride"].to_pylist()]
    assert found == list(range(first, first + len(found)))
    assert abs(len(found) - rate * 12 * 0.2) <= 1.0
    before = START
    for tick in ticks:
        times = tick.rides["pickup_time"].to_pylist()
        assert all(before <= time <= tick.upto for time in times)
        before = tick.upto


def test_the_rate_may_change_with_time() -> None:
    ticks = islice(generate_ticks(lambda s: 100.0 if s < 1.0 else 500.0, start=START, seed=1), 10)
    assert [tick.rides.num_rows for tick in ticks] == [20] * 5 + [100] * 5


@settings(max_examples=40, deadline=None)
@given(rate=st.floats(10.0, 400.0), first=st.integers(0, 120))
def test_a_replay_has_the_rest_of_the_rides_in_order(rate: float, first: int) -> None:
    rides = generate_rides(100, seed=3, start=START, seconds=5.0)
    ticks = list(replay_ticks(rides.slice(first), rate))
    found = [ride for tick in ticks for ride in tick.rides["ride"].to_pylist()]
    assert found == list(range(first, 100))
    for tick, later in pairwise(ticks):
        assert all(time >= tick.upto for time in later.rides["pickup_time"].to_pylist())


def test_a_zone_belongs_to_one_site_whatever_else_comes() -> None:
    home: dict[int, str] = {}
    for seed in range(5):
        for site, part in split_rides(generate_rides(40, seed), SITES).items():
            for zone in part["zone"].to_pylist():
                assert home.setdefault(zone, site) == site
    assert set(home.values()) == set(SITES)


def test_sites_without_rides_are_told_that_time_goes_on(tmp_path: Path) -> None:
    gateways = ride_gateways(tmp_path)
    tick = next(generate_ticks(5.0, start=START, seed=0))
    feed = RideFeed(gateways, iter([tick]))
    assert feed.join(60.0)
    assert (feed.sent, feed.error) == (1, None)
    log = Log(tmp_path)
    silent = [site for site in SITES if not list(log.segments("sources/rides", site))]
    assert len(silent) == 2
    for site in silent:
        assert log.read("sources/clock", site)["time"].to_pylist() == [tick.upto]


def test_a_feed_sends_every_ride_once_and_the_next_feed_goes_on(tmp_path: Path) -> None:
    for _ in range(2):
        feed = feed_rides(ride_gateways(tmp_path), 200.0, seconds=0.6, seed=1)
        assert feed.join(60.0)
        assert feed.error is None
        assert feed.sent == 120
    assert sent_rides(tmp_path) == Counter(range(240))
    last = feed_rides(ride_gateways(tmp_path), 50.0, seconds=0.2, seed=1, close=True)
    assert last.join(60.0)
    marks = Log(tmp_path).read("sources/clock")["time"].to_pylist()
    assert marks.count(END_OF_TIME) == len(SITES)


@pytest.mark.parametrize("leaves_a_folder", [False, True])
def test_a_feed_keeps_what_the_log_does_not_take_while_it_is_away(
    tmp_path: Path, leaves_a_folder: bool
) -> None:
    log, away = tmp_path / "log", tmp_path / "away"
    feed = feed_rides(ride_gateways(log), 200.0, seconds=1.6, seed=1, close=True)
    while feed.sent < 120:
        assert feed.is_active
        time.sleep(0.01)
    log.rename(away)
    if leaves_a_folder:
        log.mkdir()
    time.sleep(1.0)
    assert feed.is_active
    assert feed.sent < 320
    if leaves_a_folder:
        log.rmdir()
    away.rename(log)
    assert feed.join(60.0)
    assert feed.error is None
    assert sent_rides(log) == Counter(range(320))
    marks = Log(log).read("sources/clock")["time"].to_pylist()
    assert marks.count(END_OF_TIME) == len(SITES)


def test_a_feed_that_is_stopped_does_not_wait_for_a_disk(tmp_path: Path) -> None:
    log = tmp_path / "log"
    feed = feed_rides(ride_gateways(log), 200.0, seed=1)
    log.rename(tmp_path / "away")
    feed.stop()
    assert not feed.is_active


def test_after_half_a_tick_no_number_is_given_twice(tmp_path: Path) -> None:
    rides = generate_rides(30, seed=2, start=START, seconds=1.0)
    parts = split_rides(rides, SITES)
    ride_gateways(tmp_path)["fog-2"].send(parts["fog-2"])
    known = parts["fog-2"]["ride"].to_pylist()
    assert next_ride(Log(tmp_path), "rides") == max(known) + 1
    assert next_ride(Log(tmp_path), "rides", "fog-1") == 0
    assert next_ride(Log(tmp_path / "empty"), "rides") == 0


# With a link every fog has a log of its own; without one, all have the same.
ROOTS = {
    "own logs": {site: site for site in SITES},
    "one log": dict.fromkeys(SITES, "log"),
}


def gateways_at(folder: Path, roots: dict[str, str]) -> dict[str, Gateway]:
    return {site: ride_gateways(folder / root)[site] for site, root in roots.items()}


def sent_by_all(folder: Path, roots: dict[str, str]) -> Counter[int]:
    return sum((sent_rides(folder / root) for root in set(roots.values())), Counter())


@pytest.mark.parametrize("roots", ROOTS.values(), ids=ROOTS)
def test_generated_rides_go_on_after_the_highest_number_of_any_site(
    tmp_path: Path, roots: dict[str, str]
) -> None:
    parts = split_rides(generate_rides(30, seed=2, start=START, seconds=1.0), SITES)
    # Each site in turn is the one that got the last ride of a tick which was not sent to all.
    for ahead in SITES:
        folder, sent = tmp_path / ahead, parts[ahead]
        gateways_at(folder, roots)[ahead].send(sent)
        feed = feed_rides(gateways_at(folder, roots), 200.0, seconds=0.4, seed=1)
        assert feed.join(60.0)
        first = max(sent["ride"].to_pylist()) + 1
        known = Counter(sent["ride"].to_pylist())
        assert sent_by_all(folder, roots) == known + Counter(range(first, first + 80))


def write_trips(file: Path, count: int) -> None:
    """A trip file whose rides are born in the zones 1, 2, 3, … in turn, a second apart."""
    pickup = [START.replace(tzinfo=None) + timedelta(seconds=k) for k in range(count)]
    trips = {
        "tpep_pickup_datetime": pickup,
        "tpep_dropoff_datetime": [time + timedelta(minutes=5) for time in pickup],
        "PULocationID": [1 + k % 7 for k in range(count)],
        "DOLocationID": [1] * count,
        "trip_distance": [1.0] * count,
        "fare_amount": [5.0] * count,
        "tip_amount": [0.0] * count,
    }
    pq.write_table(pa.table(trips), file)


@pytest.mark.parametrize("roots", ROOTS.values(), ids=ROOTS)
@pytest.mark.parametrize(
    "reached", [(0, 0, 0), (40, 20, 20), (20, 20, 40), (40, 40, 40), (0, 9, 0)]
)
def test_no_ride_of_a_file_is_lost_or_sent_twice_however_far_each_site_had_got(
    tmp_path: Path, roots: dict[str, str], reached: tuple[int, ...]
) -> None:
    write_trips(tmp_path / "trips.parquet", 60)
    gateways = gateways_at(tmp_path, roots)
    parts = split_rides(read_rides(tmp_path / "trips.parquet"), SITES)
    for site, upto in zip(SITES, reached, strict=True):
        had = parts[site].filter(pc.less(parts[site]["ride"], upto))
        if had.num_rows:
            gateways[site].send(had)
    feed = feed_trips(gateways_at(tmp_path, roots), tmp_path / "trips.parquet", 1000.0)
    assert feed.join(60.0)
    assert feed.error is None
    assert sent_by_all(tmp_path, roots) == Counter(range(60))
    for site, root in roots.items():
        # What had been held back is not late: each site's rides are in the order of their time.
        rides = Log(tmp_path / root).read("sources/rides", site)["ride"].to_pylist()
        assert rides == parts[site]["ride"].to_pylist()


def test_a_feed_that_cannot_write_stops_and_says_why(tmp_path: Path) -> None:
    class Full:
        root, source, site = tmp_path, "rides", "fog-1"

        def send(self, _table: Any) -> None:
            raise OSError("no space left")

        mark = send

    gateways: Any = {"fog-1": Full()}
    feed = feed_rides(gateways, 100.0)
    assert feed.join(60.0)
    assert "no space left" in str(feed.error)


def test_rides_are_refused_by_sources_with_other_columns() -> None:
    pytest.importorskip("pyspark")
    from spark.site_pipelines import rides
    from thalweg.spark.examples.taxi import taxi_fares

    require_ride_source(taxi_fares.step("rides"), "--feed")
    with pytest.raises(InvalidInput, match="--feed"):
        require_ride_source(rides.step("rides"), "--feed")
    with pytest.raises(InvalidInput, match="gateways"):
        feed_rides({}, 1.0)
