"""What the demo reads off its run: bytes, pauses, moments, and the hash of what was shown."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.model import Application, Limits, Operator, Pin, Stream
from thalweg.scenarios import fog_cloud
from thalweg.spark.demo_summary import (
    Surge,
    all_cloud_bytes,
    count_rides,
    hash_settings,
    judge_surge,
    longest_pause_s,
    sent_bytes,
)
from thalweg.spark.log import Log
from thalweg.spark.log.names import edge_stream, sink_stream, source_stream
from thalweg.spark.log.reader import LogWriter
from thalweg.spark.log.segment import Segment
from thalweg.spark.query.clock import SITE_CLOCK

BEGAN_S = 1_795_061_000.0


class PlayedLog:
    """A log whose segments were published when the test says so."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._writers: dict[tuple[str, str], tuple[LogWriter, int]] = {}

    def publish(self, at_s: float, stream: str, site: str, numbers: Any) -> Segment:
        """Publish these numbers as rows, so many seconds after the beginning."""
        writer, batch = self._writers.get((stream, site), (None, 0))
        writer = writer or LogWriter(self.root, stream, site, 0, durable=False)
        self._writers[stream, site] = (writer, batch + 1)
        segment = writer.publish(batch, pa.table({"number": pa.array(numbers, pa.int64())}))
        os.utime(segment.folder, (BEGAN_S + at_s, BEGAN_S + at_s))
        return segment

    @property
    def log(self) -> Log:
        return Log(self.root)


@pytest.fixture
def played(tmp_path: Path) -> PlayedLog:
    return PlayedLog(tmp_path)


# The surge


def look(at_s: float, *broken: str, **more: Any) -> dict[str, Any]:
    """A decision that changes nothing."""
    figures = {"broken": list(broken)}
    own = {"at_s": at_s, "end_s": at_s, "cause": "look", "changed": False, "seconds": 0.0}
    return {**own, "figures": figures, **more}


def change(at_s: float, seconds: float, *broken: str, cause: str = "adapt") -> dict[str, Any]:
    took = {"cause": cause, "changed": True, "end_s": at_s + seconds, "seconds": seconds}
    return look(at_s, *broken, **took)


def test_a_surge_is_detected_decided_and_answered() -> None:
    decisions = [
        look(8.0, "before"),
        look(10.5),
        look(12.0, "B"),
        change(14.0, 3.25, "B"),
        look(18.0),
        change(30.0, 2.0),
    ]
    assert judge_surge(10.0, decisions) == Surge(
        at_s=10.0, detected_s=2.0, decided_s=4.0, in_force_s=7.25, change_s=3.25, changes=2
    )


def test_a_surge_that_was_seen_and_not_answered_was_detected() -> None:
    seen = judge_surge(10, [{"at_s": 12, "cause": "look", "changed": False, "figures": BROKEN}])
    assert seen == Surge(at_s=10, detected_s=2.0)


BROKEN = {"broken": ["B"]}


@pytest.mark.parametrize("figures", [{}, None, {"broken": []}])
def test_a_surge_that_nobody_saw_was_not_detected(figures: dict[str, Any] | None) -> None:
    assert judge_surge(10.0, [look(12.0, figures=figures)]) == Surge(at_s=10.0)
    assert judge_surge(10.0, []) == Surge(at_s=10.0)


def test_a_forecast_is_seen_when_it_is_acted_on() -> None:
    found = judge_surge(10.0, [look(11.0), change(12.0, 1.0)])
    assert (found.detected_s, found.decided_s, found.in_force_s) == (2.0, 2.0, 3.0)


def test_changes_by_hand_are_no_answer() -> None:
    kept = {**change(12.0, 1.0), "changed": False}
    found = judge_surge(10.0, [change(11.0, 1.0, cause="move"), kept])
    assert found == Surge(at_s=10.0)


@given(
    st.lists(
        st.tuples(st.booleans(), st.booleans(), st.integers(0, 40), st.integers(0, 9)), max_size=8
    ),
    st.integers(0, 40),
)
def test_moments_of_a_surge_are_in_their_order(
    steps: list[tuple[bool, bool, int, int]], at_s: int
) -> None:
    decisions = [
        change(float(s), float(took), *["B"] * broken) if acts else look(float(s), *["B"] * broken)
        for acts, broken, s, took in sorted(steps, key=lambda step: step[2])
    ]
    found = judge_surge(float(at_s), decisions)
    moments = [found.detected_s, found.decided_s, found.in_force_s]
    known = [moment for moment in moments if moment is not None]
    assert known == sorted(known)
    assert all(moment >= 0 for moment in known)
    # Nothing is decided that was not detected; what is decided is in force some time.
    assert len(known) == (3 if found.changes else len(known[:1]))
    assert found.changes == sum(acts and s >= at_s for acts, _, s, _ in steps)


# Pauses


@given(st.lists(st.integers(0, 3600), min_size=1, max_size=12))
def test_the_longest_pause_is_the_largest_gap_between_results(
    tmp_path_factory: Any, times: list[int]
) -> None:
    played = PlayedLog(tmp_path_factory.mktemp("log"))
    for number, at_s in enumerate(times):
        # Sites put results out in whatever order.
        played.publish(at_s, sink_stream("board"), f"site-{number % 3}", [number])
    gaps = [b - a for a, b in pairwise(sorted(times))]
    assert longest_pause_s(played.log, "board") == max(gaps, default=0)


def test_batches_without_results_end_no_pause(played: PlayedLog) -> None:
    for at_s, rows in ((0, [1]), (4, []), (6, [2]), (7, [3]), (90, [])):
        played.publish(at_s, sink_stream("board"), "cloud", rows)
    played.publish(3, sink_stream("other"), "cloud", [1])
    assert longest_pause_s(played.log, "board") == 6.0
    assert longest_pause_s(played.log, "none") == 0.0


# Bytes


def test_what_was_sent_is_all_that_lies_on_edges_since_then(played: PlayedLog) -> None:
    sizes = {
        at_s: played.publish(at_s, stream, "fog-0", range(10 * at_s)).file_bytes
        for at_s, stream in (
            (10, edge_stream("rides", "parse")),
            (20, edge_stream("parse", "clean")),
            (30, edge_stream("rides", "parse")),
            (40, SITE_CLOCK),
        )
    }
    # What comes in and what goes out is on no link.
    played.publish(25, source_stream("rides"), "fog-0", range(99))
    played.publish(25, sink_stream("board"), "cloud", range(99))
    assert sent_bytes(played.log) == sum(sizes.values())
    assert sent_bytes(played.log, BEGAN_S + 20) == sizes[20] + sizes[30] + sizes[40]
    assert sent_bytes(played.log, BEGAN_S + 50) == 0


def rides(played: PlayedLog, rows: int = 400) -> list[np.ndarray]:
    """Rows that came in at two sites, four times a second for three seconds."""
    rng = np.random.default_rng(7)
    batches = []
    for step in range(12):
        for site in ("fog-0", "fog-1"):
            batches.append(rng.integers(0, 2**40, rows))
            played.publish(step / 4, source_stream("rides"), site, batches[-1])
    return batches


def test_all_cloud_takes_what_the_same_rows_take_in_larger_batches(
    played: PlayedLog, tmp_path: Path
) -> None:
    batches = rides(played)
    assert count_rides(played.log, "rides") == sum(map(len, batches))
    # As a site would send them: all that came in within a second is one batch.
    sent = PlayedLog(tmp_path / "sent")
    expected = 0
    for site in (0, 1):
        of_site = batches[site::2]
        for begin in range(0, len(of_site), 4):
            rows = np.concatenate(of_site[begin : begin + 4])
            segment = sent.publish(0, edge_stream("rides", "parse"), f"fog-{site}", rows)
            expected += segment.file_bytes
    assert all_cloud_bytes(played.log, "rides", 1.0) == expected
    # Every batch has a header of its own.
    finest = all_cloud_bytes(played.log, "rides", 0.0)
    assert (
        finest
        > expected
        > all_cloud_bytes(played.log, "rides", 60.0)
        > 8 * sum(map(len, batches)) / 2
    )


def test_all_cloud_counts_rows_and_clocks_since_a_moment(played: PlayedLog) -> None:
    rides(played)
    whole = all_cloud_bytes(played.log, "rides", 1.0)
    half = all_cloud_bytes(played.log, "rides", 1.0, BEGAN_S + 2.0)
    assert half == pytest.approx(whole / 3, rel=0.05)
    assert all_cloud_bytes(played.log, "rides", 1.0, BEGAN_S + 9.0) == 0
    assert all_cloud_bytes(played.log, "none", 1.0) == 0
    # Sites say how far their time has come, whatever they send.
    clocks = [played.publish(s, SITE_CLOCK, "fog-0", [s]).file_bytes for s in (1, 2)]
    assert all_cloud_bytes(played.log, "rides", 1.0) == whole + sum(clocks)
    assert all_cloud_bytes(played.log, "rides", 1.0, BEGAN_S + 2.0) == half + clocks[1]


def test_batches_without_rows_take_nothing(played: PlayedLog) -> None:
    played.publish(0, source_stream("rides"), "fog-0", [])
    assert all_cloud_bytes(played.log, "rides", 1.0) == 0


# The settings

APP = Application(
    name="fares",
    operators=[
        Operator(name="rides", kind="source", rate=300.0, event_size=100.0, pin=Pin(tier="fog")),
        Operator(name="board", kind="sink", pin=Pin(tier="cloud")),
    ],
    streams=[Stream(source="rides", target="board")],
    limits=Limits(uplink_bps=80_000.0),
)
NUMBERS = {"calm_per_s": 600.0, "surge_per_s": 1800.0}


def test_the_same_settings_have_the_same_hash() -> None:
    """Also in another process, and in whatever order they are named."""
    found = hash_settings(APP, fog_cloud(3, seed=1), **NUMBERS)
    assert found == hash_settings(APP, fog_cloud(3, seed=1), **dict(reversed(NUMBERS.items())))
    assert len(found) == 12
    assert set(found) <= set("0123456789abcdef")


def test_other_settings_have_another_hash() -> None:
    network = fog_cloud(3, seed=1)
    more = replace(APP, limits=Limits(uplink_bps=80_001.0))
    found = [
        hash_settings(APP, network, **NUMBERS),
        hash_settings(more, network, **NUMBERS),
        hash_settings(APP, fog_cloud(4, seed=1), **NUMBERS),
        hash_settings(APP, network, **{**NUMBERS, "surge_per_s": 1801.0}),
        hash_settings(APP, network),
    ]
    assert len(set(found)) == len(found)
