"""What the benchmark of the simulator relies on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import thalweg as tw
from benchmarks.runner import Benchmark, Settings, run_benchmark, to_json
from benchmarks.simulator_plain import Chain, by_hand, by_message, by_server, make_chain
from benchmarks.simulator_speed import OURS, PARTS, PYTHON, WAYS, Sizes, answer, break_down

CHAIN = Chain()


def test_every_message_passes_seven_queues_that_are_equally_busy() -> None:
    found = tw.simulate(*make_chain(CHAIN), seconds=200.0)
    totals = found.totals
    assert CHAIN.hops == 7
    assert found.conserved
    # What is on its way at the end has passed some of them.
    assert 7 * totals["ended"] <= totals["hops"] <= 7 * totals["born"]
    assert totals["born"] - totals["ended"] < 200
    loads = [row["load"] for table in ("operators", "links") for row in found.rows(table)]
    busy = [load for load in loads if load > 0]
    assert len(busy) == 7
    np.testing.assert_allclose(busy, CHAIN.load, rtol=0.05)


@pytest.mark.parametrize("way", [by_message, by_server, by_hand])
def test_both_simulators_find_the_same_latency(way) -> None:
    latencies = np.array(way(CHAIN, 15.0, 0))
    latencies = latencies[latencies.size // 10 :]
    # Neighbours are alike, so the error comes from the means of long stretches.
    means = np.array([part.mean() for part in np.array_split(latencies, 15)])
    error = means.std(ddof=1) / np.sqrt(means.size)
    ours = tw.simulate(*make_chain(CHAIN), seconds=500.0).latency_s
    assert error < 0.1 * ours
    assert abs(latencies.mean() - ours) < 4 * error


def test_queues_by_hand_are_those_of_simpy() -> None:
    assert by_hand(CHAIN, 2.0, 3) == by_server(CHAIN, 2.0, 3)


def test_every_part_of_the_time_is_found_in_the_profile() -> None:
    shares = break_down(CHAIN, 100.0)
    assert set(shares) == {*PARTS.values(), PYTHON}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert all(share > 0 for part, share in shares.items() if part != PYTHON)


def test_the_answer_has_all_figures(tmp_path: Path) -> None:
    sizes = Sizes(repeats=2, seconds=20.0, plain_seconds=1.0, hops=1e5, application_s=1.0)
    benchmark = Benchmark(name="tiny", question="?", run=lambda settings: answer(sizes, settings))
    settings = Settings(quick=True, data=tmp_path)
    _, document = run_benchmark(benchmark, settings, command="tiny")
    document = json.loads(to_json(document))
    rows = document["rows"]
    targets = {row["measure"]: row["target"] for row in rows if row["target"] is not None}
    assert targets == {
        "event-hops per second on one core": 20e6,
        "hops/s against SimPy": 300.0,
        "the same, goal": 1000.0,
        "mean latencies differ by at most": 3.0,
        "most memory of a long run": 8 * 1024**3,
    }
    latencies = [row for row in rows if row["measure"] == "mean latency"]
    assert [row["at"]["simulator"] for row in latencies] == [OURS, *WAYS]
    assert {row["measure"] for row in rows} >= {
        "hops per second of SimPy",
        "messages per second of SimPy",
        "share of the time",
        "time of a long run",
        "time of a large application",
        "hops of a large application",
    }
    assert all(isinstance(row["value"], int | float) and row["value"] >= 0 for row in rows)
    repeats, (long, large) = document["details"][:-2], document["details"][-2:]
    assert all(
        repeat[way]["hops"] == 7 * repeat[way]["messages"] for repeat in repeats for way in WAYS
    )
    assert long["long run"]["hops"] == pytest.approx(1e5, rel=0.05)
    assert large["large application"]["operators"] == 50
    assert large["large application"]["unstable"] == 0
