"""Figures of a run on the page: unknown, stale, of a site that is down, or over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from fuzz.good_files import write_run
from thalweg.spark.deployment.folder import RunFolder
from thalweg.web.question import Question
from thalweg.web.run_frame import age_of, known_lag, read_frame, stale_after_s
from thalweg.web.subjects.run import RunSubject
from thalweg.web.timeline_reader import is_drawable
from web.recorded_run import BEGAN_S, DEVIATIONS, END_S, FOGS, write_recorded_run


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = write_recorded_run(tmp_path_factory.mktemp("recorded") / "run")
    return json.loads(json.dumps(RunSubject(folder).history(), allow_nan=False))


def at(history: dict[str, Any], second: int) -> dict[str, Any]:
    return next(f for f in history["frames"] if f["at_s"] == BEGAN_S + second)


def frame_of(**told: Any) -> dict[str, Any]:
    return read_frame({"kind": "frame", "at_s": BEGAN_S, **told}, stale_s=6.0)


def test_a_lag_is_unknown_until_there_is_a_watermark(history):
    assert at(history, 2)["sites"]["cloud"]["lag_s"] is None
    assert at(history, 2)["links"]["fog-0>cloud"]["lag_s"] is None
    assert at(history, 8)["sites"]["cloud"]["lag_s"] == 1.4


def test_a_watermark_of_1970_is_none():
    """Runs of older versions wrote the lag behind the first of January 1970."""
    site = frame_of(sites={"fog": {"state": "up", "lag_s": 1_795_061_662.0}})["sites"]["fog"]
    assert site["lag_s"] is None
    assert known_lag(5_000_000.0, BEGAN_S) == 5_000_000.0


def test_estimated_and_measured_stand_apart(history):
    frame = at(history, 20)
    assert frame["estimated"]["uplink_bps"] == 480_000.0
    assert frame["measured"] == {"uplink_bps": 561_000.0, "age_s": 0.0, "stale": False}
    assert frame["gauges"]["uplink_bps"] == 561_000.0
    assert frame["broken"] == ["uplink 561 kbps is over 300 kbps"]


def test_a_figure_that_was_not_renewed_is_stale_and_has_an_age(history):
    assert not at(history, 64)["sites"]["fog-2"]["stale"]
    late = at(history, 70)
    assert late["sites"]["fog-2"]["stale"]
    assert late["sites"]["fog-2"]["age_s"] == 12.0
    assert not late["sites"]["fog-0"]["stale"]
    assert late["links"]["fog-2>cloud"]["stale"]
    assert late["measured"]["stale"]
    assert late["measured"]["age_s"] == 10.0


@pytest.mark.parametrize(
    ("interval_s", "stale_s"), [(2.0, 6.0), (10.0, 30.0), (0.2, 6.0), ("x", 6.0), (-1, 6.0)]
)
def test_stale_is_older_than_three_intervals_and_six_seconds(interval_s, stale_s):
    assert stale_after_s(interval_s) == stale_s
    assert not age_of(0.0, stale_s, stale_s)["stale"]
    assert age_of(0.0, stale_s + 0.001, stale_s)["stale"]


@pytest.mark.parametrize(("second", "state", "since"), [(40, "down", 40), (44, "restarting", 42)])
def test_a_site_that_is_not_up_has_no_figures_of_now(history, second, state, since):
    frame = at(history, second)
    assert frame["sites"]["fog-1"] == {"state": state, "since_s": BEGAN_S + since}
    link = frame["links"]["fog-1>cloud"]
    assert (link["bps"], link["load"], link["lag_s"], link["state"]) == (None, None, None, state)
    assert frame["links"]["fog-0>cloud"]["bps"] > 0


def test_zero_is_a_figure_and_unknown_is_none():
    frame = frame_of(
        figures={"usage": 0, "uplink_bps": None},
        measured={"uplink_bps": 0},
        events_in_per_s=0,
        sites={"fog": {"state": "up", "cpu": 0, "lag_s": 0, "load": None}},
    )
    assert frame["gauges"]["usage"] == 0.0
    assert frame["gauges"]["uplink_bps"] is None
    assert frame["gauges"]["events_in_per_s"] == 0.0
    assert frame["gauges"]["events_out_per_s"] is None
    assert frame["measured"]["uplink_bps"] == 0.0
    assert frame["sites"]["fog"] == {"state": "up", "cpu": 0.0, "lag_s": 0.0, "load": None}


def test_cpu_is_a_share_of_the_cores():
    sites = {"a": {"state": "up", "cpu": 1.02}, "b": {"state": "up", "cpu": "much"}}
    found = frame_of(sites=sites)["sites"]
    assert (found["a"]["cpu"], found["b"]["cpu"]) == (1.0, None)


def test_the_recorded_run_ends_with_sites_that_have_ended(history):
    *_, before, last = history["frames"]
    assert before["sites"]["cloud"]["state"] == "up"
    assert last["at_s"] == BEGAN_S + END_S
    for site in (*FOGS, "cloud"):
        assert last["sites"][site] == {"state": "ended", "since_s": BEGAN_S + END_S}
    assert all(value is None for value in last["gauges"].values())
    assert all(link["bps"] is None for link in last["links"].values())
    assert last["under_way"] is None
    assert [row["operator"] for row in last["deviations"]] == ["parse", "clean"]


def test_updates_end_with_the_same_moment(tmp_path: Path, history):
    subject = RunSubject(write_recorded_run(tmp_path / "run"))
    frames = [u.data for u in subject.updates(0) if u is not None and u.kind == "frame"]
    assert frames[-1] == history["frames"][-1]
    late = [u.data for u in subject.updates(subject.history()["position"]) if u is not None]
    assert [told["at_s"] for told in late if "at_s" in told] == [BEGAN_S + END_S]


def test_a_run_that_wrote_its_own_end_gets_no_other(tmp_path: Path):
    folder = write_recorded_run(tmp_path / "run")
    ended = {"state": "ended", "since_s": BEGAN_S + END_S, "cpu": 0.4}
    line = {"kind": "frame", "at_s": BEGAN_S + END_S, "sites": dict.fromkeys(FOGS, ended)}
    with (folder / "timeline.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    frames = RunSubject(folder).history()["frames"]
    assert frames[-1]["at_s"] == BEGAN_S + END_S
    assert frames[-2]["at_s"] < BEGAN_S + END_S
    assert frames[-1]["sites"]["fog-0"] == {"state": "ended", "since_s": BEGAN_S + END_S}


def test_links_of_sites_that_have_ended_carry_nothing_whoever_wrote_the_end(tmp_path: Path):
    folder = write_recorded_run(tmp_path / "run")
    ended = {"state": "ended", "since_s": BEGAN_S + END_S}
    sites = dict.fromkeys((*FOGS, "cloud"), ended)
    line = {"kind": "frame", "at_s": BEGAN_S + END_S, "sites": sites, "links": {}}
    with (folder / "timeline.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    last = RunSubject(folder).history()["frames"][-1]
    assert {link["state"] for link in last["links"].values()} == {"ended"}
    assert {link["bps"] for link in last["links"].values()} == {None}
    assert len(last["deviations"]) == len(DEVIATIONS)


def test_sites_of_a_run_that_was_killed_are_down(tmp_path: Path):
    folder = write_recorded_run(tmp_path / "run", state="running", last_s=30)
    last = RunSubject(folder).history()["frames"][-1]
    assert {site["state"] for site in last["sites"].values()} == {"down"}


def test_a_change_under_way_and_its_beginning_and_end(history):
    assert at(history, 18)["under_way"] is None
    assert at(history, 22)["under_way"]["began_at_s"] == BEGAN_S + 20
    assert at(history, 44)["under_way"]["site"] == "fog-1"
    events = [(m["event"], m["phase"]) for m in history["marks"] if "event" in m]
    assert events == [
        ("change-1", "begin"),
        ("change-1", "end"),
        ("restart-1", "begin"),
        ("restart-1", "end"),
    ]


def test_declared_against_measured(history):
    assert at(history, 28)["deviations"] == []
    size, selectivity = at(history, 30)["deviations"]
    assert size == {
        "operator": "parse",
        "site": None,
        "figure": "event size",
        "declared": "1 B",
        "measured": "84.2 B",
        "low": "83.9 B",
        "high": "84.6 B",
        "ratio": pytest.approx(84.2),
    }
    assert (selectivity["site"], selectivity["measured"]) == ("fog-1", "0.91")
    zero = frame_of(deviations=[{**DEVIATIONS[1], "declared": 0}])["deviations"]
    assert (zero[0]["declared"], zero[0]["ratio"]) == ("0", "inf")


@pytest.mark.parametrize(
    "told",
    [
        {"sites": {"fog": {"state": 1, "cpu": [], "since_s": "x"}}},
        {"measured": [1], "estimated": "x", "figures": {"broken": "x"}},
        {"under_way": {"kind": "change"}},
        {"under_way": [1]},
        {"deviations": [1, {}, {"operator": "a", "figure": "b", "declared": None}]},
        {"deviations": {"a": 1}},
    ],
)
def test_what_makes_no_sense_is_unknown(told):
    frame = frame_of(**told)
    assert frame["under_way"] is None
    assert frame["deviations"] == []
    json.dumps(frame, allow_nan=False)


def test_frames_with_what_is_broken_in_words_can_be_drawn():
    line = {"kind": "frame", "at_s": 1.0, "figures": {"usage": 1.0, "broken": ["uplink"]}}
    assert is_drawable(line)
    assert not is_drawable({**line, "sites": [1]})


def test_a_run_of_an_older_version_is_read_as_ever(tmp_path: Path):
    first, *_, last = RunSubject(write_run(tmp_path / "run")).history()["frames"]
    assert first["estimated"] == {"response_time_s": 0.5, "uplink_bps": 1e5, "usage": 0.1}
    assert first["measured"] == {}
    assert first["sites"]["fog-0"] == {"state": "up", "cpu": 0.5, "memory_bytes": 10.0}
    assert "stale" not in first["links"]["fog-0>cloud"]
    assert last["sites"]["fog-0"]["state"] == "ended"


def test_what_if_starts_from_the_rates_of_the_last_moment(tmp_path: Path):
    folder = write_recorded_run(tmp_path / "run")
    subject = RunSubject(folder)
    told = subject.ask(Question())
    assert told["rates_at_s"] == BEGAN_S + END_S - 2
    assert told["after"]["events_in_per_s"] == pytest.approx(3 * (120 + 7.8))
    rates = [source["rate"] for source in subject.scene()["sources"]]
    assert rates == pytest.approx([127.8] * 3)


def test_no_events_now_is_a_rate_while_the_run_goes_on(tmp_path: Path):
    folder = write_recorded_run(tmp_path / "run")
    line = {"kind": "frame", "at_s": BEGAN_S + 79, "rates": {"rides": dict.fromkeys(FOGS, 0.0)}}
    with (folder / "timeline.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    with RunFolder(folder).hold():
        told = RunSubject(folder).ask(Question())
        assert told["rates_at_s"] == BEGAN_S + 79
        assert told["after"]["events_in_per_s"] == 0.0
    assert RunSubject(folder).ask(Question())["after"]["events_in_per_s"] > 0.0


def test_a_comparison_begins_with_what_runs_now(tmp_path: Path):
    subject = RunSubject(write_recorded_run(tmp_path / "run"))
    told = subject.compare(("cloud-only", "atsoo"))
    names = [row["strategy"] for row in told["rows"]]
    assert names == ["what runs now", "cloud-only", "atsoo"]
    now, cloud, _ = told["rows"]
    assert now["running"]
    assert not cloud["running"]
    assert now["seconds"] is None
    assert now["uplink_bps"] < cloud["uplink_bps"]
    assert told["rates_at_s"] == BEGAN_S + END_S - 2


def test_reasons_of_the_past_are_dated_and_never_say_now(tmp_path: Path, history):
    subject = RunSubject(write_recorded_run(tmp_path / "run"))
    first = next(iter(history["placements"]))
    told = subject.why(operator="parse", site="fog-0", link="", placement=first)
    assert told["decided_at_s"] == BEGAN_S
    changes = [m for m in history["marks"] if m["placement"]]
    assert all("From then on" in mark["text"] for mark in changes)
