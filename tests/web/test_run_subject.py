"""A run on the page: its history, its updates, what is applied; the sites are played."""

from __future__ import annotations

import json
import time
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import thalweg as tw
from thalweg.errors import InvalidInput
from thalweg.model.assembly import build_network
from thalweg.model.views import Link, Node, Site
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.timeline import NEW, OLD, Timeline, read_timeline
from thalweg.spark.monitor import read_monitor
from thalweg.web.question import Question
from thalweg.web.subject import Refused, UnknownName
from thalweg.web.subjects.run import RunSubject
from thalweg.web.timeline_reader import TimelineReader
from web.played_run import SITES, SURGE_PER_S, PlayedRun

PATIENCE_S = 60.0


def wait_for(condition, what: str):
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)
    return found


def kinds(subject: RunSubject) -> list[str]:
    return [mark["kind"] for mark in subject.history()["marks"]]


def rate_of(subject: RunSubject) -> float:
    frames = subject.history()["frames"]
    return (frames[-1]["gauges"]["events_in_per_s"] or 0.0) if frames else 0.0


def test_a_surge_an_adaptation_a_death_and_what_was_applied_are_on_the_axis(tmp_path: Path):
    folder = tmp_path / "run"
    with PlayedRun(folder) as run:
        subject = RunSubject(folder)
        assert subject.is_live
        calm_per_s = wait_for(lambda: rate_of(subject), "the first rate")
        run.rate_per_s = SURGE_PER_S
        wait_for(lambda: "adapt" in kinds(subject), "an adaptation")
        run.sites.kill("fog-1")
        wait_for(lambda: "restart" in kinds(subject), "a restart")
        history = subject.history()
        # The begin of a change comes before what then runs.
        assert kinds(subject)[:2] == ["change", "first"]
        assert kinds(subject).index("failure") < kinds(subject).index("restart")
        wait_for(lambda: rate_of(subject) > 3 * calm_per_s, "the surge")
        busy = history["frames"][-1]
        assert set(busy["sites"]) == set(SITES)
        assert busy["sites"]["fog-0"]["memory_bytes"] > 1e6
        link = busy["links"]["fog-0>cloud"]
        assert link["load"] == pytest.approx(link["bps"] / 0.5e6)
        assert link["bps"] > 0
        adapted = next(m for m in history["marks"] if m["kind"] == "adapt")
        placement = history["placements"][adapted["placement"]]
        assert placement["changed"]
        # Which of the limits is exceeded first depends on the batch that is counted first.
        assert "uplink" in adapted["title"] or "bandwidth" in adapted["title"]
        json.dumps(history, allow_nan=False)
    assert not subject.is_live
    assert "first" in kinds(RunSubject(folder))


def test_updates_tell_the_same_as_the_history_and_end_with_the_run(tmp_path: Path):
    folder = tmp_path / "run"
    with PlayedRun(folder) as run:
        subject = RunSubject(folder)
        wait_for(lambda: len(subject.history()["frames"]) > 3, "frames")
        updates = subject.updates(0)
        seen = [u for u in islice(updates, 12) if u is not None]
        assert seen[0].kind == "state"
        assert seen[0].data["live"]
        assert {"placement", "frame", "mark"} <= {u.kind for u in seen}
        known = subject.history()
        late = [u for u in islice(subject.updates(known["position"]), 30) if u is not None]
        told = {frame["at_s"] for frame in known["frames"]}
        assert not told & {u.data["at_s"] for u in late if u.kind == "frame"}
        assert "mark" not in {u.kind for u in late}
        run.deployment.stop()
    last = [u for u in updates if u is not None]
    assert last[-1].kind == "state"
    assert not last[-1].data["live"]
    told = {u.data["at_s"] for u in [*seen, *last] if u.kind == "frame"}
    assert {frame["at_s"] for frame in RunSubject(folder).history()["frames"]} == told


def test_an_answer_is_applied_to_the_run_once_confirmed_and_rolled_back(tmp_path: Path):
    folder = tmp_path / "run"
    with PlayedRun(folder, adapt=None) as run:
        subject = RunSubject(folder)
        wait_for(lambda: subject.history()["frames"], "the first frame")
        before = dict(run.sites.cuts)
        rates = {("rides", fog): 1_000.0 for fog in SITES[:3]}
        told = subject.ask(Question(rates=rates))
        assert told["applicable"], told["why_not"]
        assert told["moves"]
        assert dict(run.sites.cuts) == before
        assert subject.apply(told["id"]).startswith("moved to")
        after = dict(run.sites.cuts)
        assert after != before
        wait_for(lambda: "move" in kinds(subject), "the mark of the move")
        with pytest.raises(Refused, match="runs already"):
            subject.apply(told["id"])
        with pytest.raises(UnknownName):
            subject.apply("w999")
        assert subject.rollback().startswith("rolled back")
        assert dict(run.sites.cuts) == before
        with pytest.raises(Refused, match="no earlier cuts"):
            subject.rollback()
        everywhere = subject.ask(Question(strategy="aels"))
        assert everywhere["applicable"] or everywhere["why_not"]
    with pytest.raises(Refused, match="has ended"):
        subject.rollback()
    assert "has ended" in subject.ask(Question(rates=rates))["why_not"]


def test_a_site_that_is_said_to_be_gone_keeps_what_it_has(tmp_path: Path):
    folder = tmp_path / "run"
    with PlayedRun(folder, adapt=None) as run:
        subject = RunSubject(folder)
        wait_for(lambda: subject.history()["frames"], "the first frame")
        kept = run.sites.cuts["fog-1"]
        rates = {("rides", fog): 1_000.0 for fog in ("fog-0", "fog-2")}
        told = subject.ask(Question(rates=rates, down=("fog-1",)))
        assert told["applicable"], told["why_not"]
        subject.apply(told["id"])
        assert run.sites.cuts["fog-1"] == kept


def test_a_long_change_is_seen_while_it_lasts(tmp_path: Path):
    folder = tmp_path / "run"
    with PlayedRun(folder) as run:
        subject = RunSubject(folder)
        wait_for(lambda: subject.history()["frames"], "the first frame")
        run.sites.move_s = 3.0
        run.rate_per_s = SURGE_PER_S
        wait_for(lambda: "adapt" in kinds(subject), "an adaptation")
        history = subject.history()
    done_s = next(mark["at_s"] for mark in history["marks"] if mark["kind"] == "adapt")
    # Between the last look before the change and its end the run goes on, and is seen to.
    during = [f for f in history["frames"] if done_s - 2.8 < f["at_s"] < done_s]
    assert len(during) >= 3
    rates = [frame["gauges"]["events_in_per_s"] for frame in during]
    assert min(rates) > 0
    # What arrived meanwhile was counted by the monitor, too, and once.
    told = json.loads((folder / "report.json").read_text())
    kept = read_monitor(folder / "monitor").to_pylist()
    arrived = sum(dict(r["rows"])["rides"] for r in kept if r["role"] == "gateway")
    assert arrived == told["rows_in"]
    assert during[-1]["gauges"]["uplink_bps"] > 0


def test_reasons_are_of_the_placement_asked_for_and_hold_what_was_measured(tmp_path: Path):
    folder = tmp_path / "run"
    with PlayedRun(folder, adapt=None, strategy="fog-only"):
        subject = RunSubject(folder)
        wait_for(
            lambda: any(line.get("operators") for line in read_timeline(folder)), "measurements"
        )
        (identity,) = subject.history()["placements"]
        told = subject.why(operator="parse", site="fog-0", link="", placement=identity)
        assert any("first deployment" in line for line in told["why"])
        assert any(label == "measured in" for label, _ in told["facts"])
        with pytest.raises(UnknownName):
            subject.why(operator="parse", site="fog-0", link="", placement="p0.000")


def test_an_answer_of_before_a_change_is_not_applied(tmp_path: Path):
    folder = tmp_path / "run"
    with PlayedRun(folder, adapt=None, strategy="fog-only") as run:
        subject = RunSubject(folder)
        wait_for(lambda: subject.history()["frames"], "the first frame")
        rates = {("rides", fog): 1_000.0 for fog in SITES[:3]}
        told = subject.ask(Question(rates=rates))
        run.deployment.move({"fog-0": ()})
        wait_for(lambda: "move" in kinds(subject), "the mark of the move")
        with pytest.raises(Refused, match="has changed since"):
            subject.apply(told["id"])
        first = next(iter(subject.history()["placements"]))
        old = subject.why(operator="parse", site="fog-0", link="", placement=first)
        assert not any(label == "measured in" for label, _ in old["facts"])


def test_a_run_that_was_killed_is_told_as_such(tmp_path: Path):
    folder = tmp_path / "run"
    with PlayedRun(folder, adapt=None):
        wait_for(lambda: RunSubject(folder).history()["frames"], "the first frame")
    status = json.loads((folder / "status.json").read_text())
    (folder / "status.json").write_text(json.dumps({**status, "state": "running"}))
    *_, last = [u for u in RunSubject(folder).updates(0) if u is not None]
    assert last.data["live"] is False
    assert last.data["text"].startswith("killed, last heard of")
    (folder / "status.json").write_text("{")
    assert RunSubject(folder).history()["frames"]


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "cuts", "at_s": 1},
        {"kind": "cuts", "at_s": 1, "cuts": {"fog-0": "parse"}},
        {"kind": "cuts", "at_s": 1, "cuts": {}, "rates": {"rides": 1}},
        {"kind": "mark", "at_s": 1},
        {"kind": "frame", "at_s": 1, "links": {"fog-0": {}}},
        {"kind": "frame", "at_s": 1, "figures": {"usage": "x"}},
        {"kind": "frame", "at_s": float("nan")},
        {"kind": "frame", "at_s": 1, "rates": {"rides": {"fog-0": float("inf")}}},
        {"kind": "other", "at_s": 1},
        ["frame"],
    ],
)
def test_lines_that_no_run_writes_are_left_out(tmp_path: Path, line):
    (tmp_path / NEW).write_text(json.dumps(line) + "\n")
    assert TimelineReader(tmp_path).lines() == []


def test_a_reader_follows_a_timeline_over_its_turns(tmp_path: Path):
    timeline, reader = Timeline(tmp_path, most_bytes=1_500), TimelineReader(tmp_path)
    timeline.write_cuts(0.0, "first", "first deployment", {"fog-0": ("parse",)})
    titles: list[str] = []
    position = 0
    for second in range(120):
        timeline.write_mark(float(second + 1), "change", f"mark {second}")
        if second % 7 == 0:
            lines, position = reader.since(position)
            titles += [line["title"] for line in lines if line["kind"] == "mark"]
    lines, position = reader.since(position)
    titles += [line["title"] for line in lines if line["kind"] == "mark"]
    assert titles == [f"mark {second}" for second in range(120)]
    assert reader.since(position) == ([], position)


def test_fogs_that_share_a_link_fill_it_together(tmp_path: Path):
    node = (Node(name="n", cpu_ips=1e9, memory_bytes=1e9),)
    sites = [
        *(Site(name=f"fog-{k}", tier="fog", nodes=node) for k in range(2)),
        Site(name="hub", tier="edge", nodes=node),
        Site(name="cloud", tier="cloud", nodes=node),
    ]
    links = [Link(a=f"fog-{k}", b="hub", latency_s=0.0, bandwidth_bps=1e6) for k in range(2)]
    links.append(Link(a="hub", b="cloud", latency_s=0.0, bandwidth_bps=1e6))
    folder = RunFolder(tmp_path)
    folder.write_model(tw.scenarios.taxi_demand(), build_network("shared", sites, links))
    (tmp_path / "run.json").write_text("{}")
    frame = {"kind": "frame", "at_s": 1.0, "links": {f"fog-{k}": {"bps": 3e5} for k in range(2)}}
    (tmp_path / NEW).write_text(json.dumps(frame) + "\n")
    shown, _after_the_end = RunSubject(tmp_path).history()["frames"]
    assert shown["links"]["fog-0>hub"] == {"bps": 3e5, "load": pytest.approx(0.3), "lag_s": None}
    assert shown["links"]["hub>cloud"] == {"bps": 6e5, "load": pytest.approx(0.6)}


def test_a_folder_without_a_model_is_refused(tmp_path: Path):
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(InvalidInput, match="timeline"):
        RunSubject(tmp_path)


def test_a_timeline_takes_turns_and_each_file_can_be_read_alone(tmp_path: Path):
    timeline = Timeline(tmp_path, most_bytes=2_000)
    timeline.write_cuts(1.0, "first", "first deployment", {"fog-0": ("parse",)})
    for second in range(200):
        timeline.write_mark(float(second + 2), "change", f"mark {second}")
    assert (tmp_path / OLD).stat().st_size <= 2_200
    assert (tmp_path / NEW).stat().st_size <= 2_200
    lines = list(read_timeline(tmp_path))
    assert [line["title"] for line in lines if line["kind"] == "mark"][-1] == "mark 199"
    for name in (OLD, NEW):
        first = json.loads((tmp_path / name).read_text().splitlines()[0])
        assert first["kind"] == "cuts"
        assert first["again"]


def test_a_line_that_a_crash_has_cut_off_is_left_behind(tmp_path: Path):
    timeline = Timeline(tmp_path)
    timeline.write_mark(1.0, "change", "one")
    with (tmp_path / NEW).open("a") as file:
        file.write('{"kind":"mark","at_s":2.0,"ti')
    Timeline(tmp_path).write_mark(3.0, "change", "three")
    assert [line["title"] for line in read_timeline(tmp_path)] == ["one", "three"]
