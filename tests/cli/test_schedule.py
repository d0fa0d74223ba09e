"""`thalweg schedule` on a small city that is rush hour and night in turn."""

from __future__ import annotations

import builtins
import json
import re

import pyarrow.parquet as pq
import pytest

from thalweg.files.save import save
from thalweg.model import Limits
from thalweg.model.workload import Workload
from thalweg.scenarios import fog_cloud, taxi_fares

CALL = ("schedule", "app.yaml", "net.yaml", "--workload", "load.csv")


@pytest.fixture
def city(thalweg, tmp_path):
    """An application, a network whose fogs have little memory, and four days of four steps."""
    save(taxi_fares(), tmp_path / "app.yaml")
    save(fog_cloud(2, fog_memory_bytes=(30e6, 40e6)), tmp_path / "net.yaml")
    rates = [2e3, 3e4, 5e4, 1e4] * 4
    load = Workload.of(
        {
            21_600.0 * k: {("rides", "fog-0"): rate, ("rides", "fog-1"): rate / 2}
            for k, rate in enumerate(rates)
        }
    )
    save(load, tmp_path / "load.csv")
    return tmp_path


def test_a_replay_is_a_table_of_what_changes_with_a_reason_for_each(thalweg, city):
    shown = thalweg(*CALL)
    assert shown.code == 0
    assert shown.err == ""
    head, names, *rows = shown.out.splitlines()
    assert head == "taxi-fares on fog-cloud by atsoo-both-ways: 16 steps"
    assert re.split(r"  +", names) == [
        "time", "usage", "uplink", "response", "violated", "started", "stopped", "reason"
    ]  # fmt: skip
    assert rows[0].endswith("first deployment")
    assert "kept: " not in shown.out
    left_out = int(re.search(r"(\d+) steps that change nothing are left out", shown.out)[1])
    times = [row for row in rows if re.match(r"\d d \d\d:00 ", row)]
    assert len(times) == 16 - left_out
    assert "16 steps, " in shown.out and "on average" in shown.out


def test_all_steps_are_shown_on_request(thalweg, city):
    shown = thalweg(*CALL, "--all")
    assert len(re.findall(r"^\d d \d\d:00 ", shown.out, flags=re.MULTILINE)) == 16
    assert "kept: " in shown.out
    assert "left out" not in shown.out


def test_every_step_plans_each_time_and_the_trigger_only_for_a_cause(thalweg, city):
    often = json.loads(thalweg(*CALL, "--every-step", "--format", "json").out)
    seldom = json.loads(thalweg(*CALL, "--format", "json").out)
    assert often["summary"]["adaptations"] == 16
    assert 1 <= seldom["summary"]["adaptations"] < 16
    assert len(seldom["steps"]) == 16
    assert seldom["steps"][3]["time_s"] == 64_800.0
    assert set(seldom["steps"][0]["cuts"]) == {"fog-0", "fog-1"}


@pytest.mark.parametrize("kind", ["last", "seasonal", "smoothing"])
def test_forecasts_are_told_in_the_reasons(thalweg, city, kind):
    call = (*CALL, "--forecast", kind, "--strategy", "ru-min-cut", "--cooldown", "0 s")
    found = json.loads(thalweg(*call, "--max-usage", "0.02", "--format", "json").out)
    early = [step for step in found["steps"] if step["ahead"]]
    assert all("expected in 6 h" in step["reason"] for step in early)
    # With seasons, the third and fourth day bring nothing new.
    assert bool(early) == (kind != "last")


def test_the_steps_are_saved_and_drawn(thalweg, city):
    shown = thalweg(*CALL, "--output", "found.parquet", "--plot", "found.png")
    assert shown.code == 0
    assert shown.err.splitlines() == ["wrote found.parquet", "wrote found.png"]
    assert pq.read_table(city / "found.parquet").num_rows == 16
    assert (city / "found.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in city.iterdir() if p.name.startswith(".")) == []


def test_a_plot_without_matplotlib_is_refused_with_a_hint(thalweg, city, monkeypatch):
    def refuse(name, *arguments, **named):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return imported(name, *arguments, **named)

    imported = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refuse)
    refused = thalweg(*CALL, "--plot", "found.png")
    assert refused.code == 2
    assert refused.out == ""
    assert "pip install 'thalweg[plot]'" in refused.err


def test_violations_that_remain_are_shown_and_leave_with_0(thalweg, city):
    save(taxi_fares(limits=Limits(response_time_s=0.01)), city / "app.yaml")
    shown = thalweg(*CALL)
    assert shown.code == 0
    rows = re.findall(r"^\d d \d\d:00 .*", shown.out, flags=re.MULTILINE)
    assert rows
    assert all(re.search(r"[0-9] ms !|[0-9] s !", row) for row in rows)
    assert "response time" in shown.out


def test_every_problem_of_a_call_is_told_at_once(thalweg, city):
    refused = thalweg(
        "schedule", "app.yaml", "missing.yaml", "-w", "load.csv", "-s", "atso",
        "--cooldown", "5 kg", "--consecutive", "0", "--horizon", "0", "--plot", "found.gif",
        "--output", "nowhere/found.parquet",
    )  # fmt: skip
    assert refused.code == 2
    for part in (
        "missing.yaml",
        'did you mean "atsoo"?',
        "--cooldown",
        "--consecutive",
        "--horizon",
        "found.gif",
        "make nowhere first",
        "7 problems",
    ):
        assert part in refused.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--forecast", "seasonal", "--period", "6 h"), "at least two steps"),
        (("--forecast", "sometimes"), "sometimes"),
        (("--option", "speed=3"), "speed"),
        (("--max-usage", "-1"), "--max-usage: got -1"),
    ],
)
def test_what_makes_no_sense_is_refused(thalweg, city, words, told):
    refused = thalweg(*CALL, *words)
    assert refused.code == 2
    assert told in refused.err


def test_a_workload_for_other_places_is_refused_with_the_line(thalweg, city):
    text = (city / "load.csv").read_text()
    (city / "load.csv").write_text(text.replace("fog-1", "fog-7"))
    refused = thalweg(*CALL)
    assert refused.code == 2
    assert "fog-7" in refused.err
    assert "load.csv" in refused.err
