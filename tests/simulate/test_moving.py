"""Every event of a city through operators that move under it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migration.city_cases import random_city
from thalweg.migration.approaches import drive_migcep
from thalweg.migration.baselines import drive_greedy, drive_static
from thalweg.migration.city import City
from thalweg.migration.drive import Drive
from thalweg.migration.predictors.perfect import Perfect
from thalweg.simulate.moving import execute

seeds = st.integers(0, 2**32 - 1)


def latencies_by_hand(drive: Drive, phases: np.ndarray, instance: int) -> list[float]:
    """One event after the other, one operator after the other, with plain lists."""
    city = drive.city
    graph, delay = city.graph, city.brokers.delay_s
    first, end = city.life[instance]
    life = int(end - first)
    leaf, hosts = city.leaves_of(instance), drive.hosts[instance, :, first:end]
    wide = city.brokers.bandwidths_from(np.arange(city.brokers.count, dtype=np.int32))
    moments, k = [], 0
    while k + phases[instance, 0] < life:
        moments.append(k + phases[instance, 0])
        k += 1
    events = [(m, m, int(leaf[0, int(m)])) for m in moments]  # sent, born, from
    for number, operator in enumerate(graph.operators):
        free = ready = 0.0
        at, before, passed, seen = int(hosts[number, 0]), 0, [], []
        size = graph.streams[number].event_bytes
        for sent, born, origin in events:
            now = min(int(sent), life - 1)
            for t in range(before + 1, now + 1):
                to = int(hosts[number, t])
                if to != at:
                    window = [s for s in seen if s >= t - operator.window_s]
                    moved = operator.immutable_bytes + size * len(window)
                    takes = moved * 8 / wide[at, to] + delay[at, to]
                    tail = size * sum(s >= t - takes for s in window)
                    ready = max(t, free, ready) + delay[at, to] + tail * 8 / wide[at, to]
                    at = to
            before = max(before, now)
            start = max(sent + delay[origin, at], free, ready)
            free = start + operator.instructions / city.brokers.speed_ips[at]
            passed.append((free, born, at))
            seen.append(sent)
        events = passed
    return [sent + delay[at, leaf[1, min(int(sent), life - 1)]] - born for sent, born, at in events]


def any_hosts(city: City, seed: int) -> Drive:
    """Operators that go anywhere at any time."""
    rng = np.random.default_rng(seed)
    hosts = drive_static(city).hosts.copy()
    for k, (first, end) in enumerate(city.life):
        for row in hosts[k]:
            for t in range(first + 1, end):
                row[t] = rng.integers(city.brokers.count) if rng.random() < 0.3 else row[t - 1]
    return Drive(city=city, approach="anywhere", hosts=hosts)


@given(seeds)
@settings(max_examples=40)
def test_latencies_are_those_counted_by_hand(seed: int) -> None:
    city = random_city(seed, instances=2, instructions=2e8)
    drive = any_hosts(city, seed)
    run = execute(drive, seed=seed)
    phases = np.random.default_rng(seed).uniform(0.0, 1.0, (2, 3))
    expected = [late for k in range(2) for late in latencies_by_hand(drive, phases, k)]
    assert run.latency_s.tolist() == pytest.approx(expected)


@given(seeds, st.booleans())
@settings(max_examples=40)
def test_nothing_is_lost_and_nothing_comes_twice_wherever_operators_go(
    seed: int, varying: bool
) -> None:
    city = random_city(seed, varying=varying, instructions=1e8)
    run = execute(any_hosts(city, seed))
    assert (run.lost, run.duplicated, run.short) == (0, 0, 0)
    assert run.delivered == run.born > 0


@given(seeds)
@settings(max_examples=30)
def test_what_comes_out_costs_about_what_was_planned(seed: int) -> None:
    city = random_city(seed, ticks=40)
    drive = drive_migcep(city, Perfect(city.connections))
    run = execute(drive)
    # Delays shift events by less than a tick; the windows of moves are not full at first.
    assert run.placement_cost == pytest.approx(drive.costs[:, 0].sum(), rel=0.35, abs=60)
    still = execute(drive_static(city))
    assert still.migration_cost == 0.0
    assert still.moves.num_rows == 0


def test_what_moves_send_is_their_state_and_the_window_they_hold(tmp_path: Path) -> None:
    city = random_city(4, ticks=30)
    drive = any_hosts(city, 1)
    run = execute(drive)
    rows = run.moves.to_pylist()
    assert len(rows) == len(drive.moves) > 5
    state = {o.name: o for o in city.graph.operators}
    for row in rows:
        operator = state[row["operator"]]
        sent = row["mutable_bytes"]
        assert row["sent_bytes"] == operator.immutable_bytes + sent
        size = city.graph.streams[int(row["operator"][1:])].event_bytes
        assert sent <= size * (operator.window_s + 1)
        assert (sent > 0) <= (operator.window_s > 0)
    files = run.save(tmp_path / "kept")
    assert [file.name for file in files] == ["moves.parquet", "stays.parquet"]
    stays = pq.read_table(files[1]).to_pylist()
    assert len(stays) == len(rows) + 2 * city.instances
    assert all(row["from_s"] < row["to_s"] for row in stays)


def test_a_busy_operator_stands_still_while_it_is_handed_over() -> None:
    """Served for a second each: what the target gets first has to wait for the source's last."""
    city = random_city(9, ticks=30, instructions=9e8, operators=1)
    run = execute(any_hosts(city, 2))
    downtime = run.moves["downtime_s"].to_numpy()
    assert downtime.max() > 0
    assert run.to_dict()["downtime_max_s"] == downtime.max()
    assert (run.lost, run.duplicated, run.short) == (0, 0, 0)


def test_the_same_seed_gives_the_same_figures() -> None:
    drive = drive_greedy(random_city(2, ticks=25), 3.0)
    assert execute(drive, seed=5).to_dict() == execute(drive, seed=5).to_dict()
    assert not np.array_equal(execute(drive, seed=5).latency_s, execute(drive, seed=6).latency_s)
