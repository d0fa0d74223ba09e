"""A site that is stopped while another one moves does not go unnoticed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from campaign import replan
from campaign.bystanders import find_idle, find_moved, find_restarted
from campaign.strike import number_orders
from campaign.trial import Trial
from thalweg.history import Verdict
from thalweg.spark.deployment.hand_over import Drain, Prepare, StartEpoch
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.timeline import Timeline
from thalweg.spark.log import Log
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.query.clock import SITE_CLOCK, clock_table

CUT = ("checked",)


def write_run(folder: Path) -> Path:
    """A run of two fogs of which the first has moved, and its driver was killed."""
    with Journal(folder / "journal.jsonl") as journal:
        for fog in ("fog-0", "fog-1"):
            journal.write(Prepare(site=fog, epoch=0, cut=CUT))
            journal.write(StartEpoch(site=fog, epoch=0, cut=CUT, start=None))
        journal.write(Prepare(site="fog-0", epoch=1, cut=()))
        journal.write(Drain(site="fog-0", epoch=0, cut=()), last_batch=3)
    timeline = Timeline(folder)
    timeline.write_mark(1.0, "failure", "fog-0 died", "kill -9")
    timeline.write_mark(2.0, "restart", "fog-0 is back", "started again in 3 s")
    timeline.write_mark(3.0, "failure", "the query fog-0@1 of fog-0 died", "no worker")
    return folder


def test_a_run_in_which_the_others_went_on_is_as_it_should_be(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    assert find_moved(folder / "journal.jsonl", ["fog-1"]) == []
    assert find_restarted(folder, ["fog-1", "cloud"]) == []


def test_a_site_that_was_taken_through_a_step_or_started_again_is_told(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    with Journal(folder / "journal.jsonl") as journal:
        journal.write(Drain(site="fog-1", epoch=0, cut=()), last_batch=3)
    for title in ("cloud died", "the query fog-1@0 of fog-1 died"):
        Timeline(folder).write_mark(4.0, "failure", title, "stopped")
    assert find_moved(folder / "journal.jsonl", ["fog-1"]) == [
        "fog-1 was to go on as it was: drain epoch 0 of fog-1"
    ]
    assert find_restarted(folder, ["fog-1", "cloud"]) == [
        "cloud died, and nobody struck it: stopped",
        "the query fog-1@0 of fog-1 died, and nobody struck it: stopped",
    ]
    assert len(find_restarted(folder, ["fog-1"])) == 1


@pytest.mark.parametrize(
    ("times_s", "until_s", "is_idle"),
    [
        ((90.0, 104.0), 110.0, False),
        ((90.0, 111.0), 110.0, True),
        ((90.0,), 110.0, True),
        ((), 110.0, True),
        # Too short a time to say.
        ((90.0, 111.0), 103.0, False),
    ],
)
def test_a_site_is_idle_that_publishes_nothing_from_the_strike_to_the_answer(
    tmp_path: Path, times_s: tuple[float, ...], until_s: float, is_idle: bool
) -> None:
    found_log(tmp_path)
    log, writer = Log(tmp_path), LogWriter(tmp_path, SITE_CLOCK, "fog-1", 0, durable=False)
    for batch, at_s in enumerate(times_s):
        os.utime(writer.publish(batch, clock_table(batch)).folder, (at_s, at_s))
    assert bool(find_idle(log, "fog-1", 100.0, until_s)) is is_idle


class PlayedTrial:
    """Every move is answered at once; `disturb` is what happens to the other sites meanwhile."""

    fogs = ("fog-0", "fog-1")
    find_disturbed = Trial.find_disturbed

    def __init__(self, folder: Path, disturb: Callable[[], list[str]]) -> None:
        self.folder = SimpleNamespace(path=folder)
        self.feed = SimpleNamespace(count=10)
        self.orders = SimpleNamespace(struck=lambda: {0: 1.0})
        self.cuts: dict[str, tuple[str, ...]] = {"fog-0": (), "fog-1": ()}
        self._disturb = disturb

    def __enter__(self) -> PlayedTrial:
        return self

    def __exit__(self, *_: object) -> None: ...

    def begin(self, *_: object) -> None: ...

    strike = await_rows = await_cut = begin

    def ask_move(self, cut: tuple[str, ...]) -> bool:
        self.cuts["fog-0"] = cut
        return True

    def find_idle(self, _since_s: float, _until_s: float) -> list[str]:
        return self._disturb()

    def longest_pause_s(self, _since_s: float) -> float:
        return 0.5

    def finish(self) -> dict[str, Verdict]:
        return {"list": Verdict(expected=10, found=10)}


@pytest.mark.parametrize(
    ("target", "dies", "idle", "problems"),
    [
        ("driver", None, [], 0),
        ("driver", "cloud", [], 1),
        ("cloud", "cloud", [], 0),
        ("cloud", "fog-1", [], 1),
        ("driver", None, ["fog-1 published nothing"], 1),
    ],
)
def test_a_trial_in_which_another_site_was_stopped_has_failed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: Any,
    dies: str | None,
    idle: list[str],
    problems: int,
) -> None:
    folder = write_run(tmp_path)
    if dies is not None:
        Timeline(folder).write_mark(4.0, "failure", f"{dies} died", "stopped")
    played = PlayedTrial(folder, lambda: idle)
    monkeypatch.setattr(replan, "Trial", lambda *_, **__: played)
    found = replan.crash_replan("any", number_orders([("Drain", "done", target)]), folder, fogs=2)
    assert len(found.problems) == problems
    assert found.is_right is (problems == 0)
