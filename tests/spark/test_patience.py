"""A site that is well and late is waited for; one that fails at a step again and again is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import NotInTime, ThalwegError
from thalweg.spark.deployment.control import STOP, Request, leave
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.loop import DeploymentLoop
from thalweg.spark.deployment.parts import RunParts
from thalweg.spark.deployment.patience import StepPatience
from thalweg.spark.deployment.restarts import DeploymentFailed, RestartBudget
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.deployment.tally import Tally
from thalweg.spark.link import LinkError, LinkLate
from thalweg.spark.log import Log
from thalweg.spark.site import channel as channels
from thalweg.spark.site.channel import SiteChannel, SiteError, SiteLate
from thalweg.spark.site.process import failure
from thalweg.spark.site.site import SiteEvent

PATIENCE_S = 60.0
MOST = 3


def late(site: str = "fog-0", command: str = "drain") -> SiteLate:
    return SiteLate(site, command, "not drained in time")


def failed(site: str = "fog-0", command: str = "carry") -> SiteError:
    return SiteError(site, command, "no such operator")


# What is decided


@given(st.integers(1, 500))
def test_whatever_takes_long_gets_done(needed: int) -> None:
    """A step that needs so many waits in a row, and begins anew with every restart, ends."""
    patience, done, restarts = StepPatience(most=MOST), 0, 0
    while done < needed:
        done += 1
        if patience.is_to_restart(late(), alive=True):
            done, restarts = 0, restarts + 1
    assert restarts <= 10


def test_a_site_that_hangs_is_started_again_and_others_have_patience_of_their_own() -> None:
    patience = StepPatience(most=MOST)
    restarts = [patience.is_to_restart(late("fog-0"), alive=True) for _ in range(40)]
    waits = [n for n, restart in enumerate(restarts) if restart]
    assert waits[:3] == [4, 13, 30]
    assert not patience.is_to_restart(late("fog-1"), alive=True)


def test_a_dead_site_is_started_again_however_late_it_was() -> None:
    patience = StepPatience(most=MOST)
    assert all(patience.is_to_restart(late(), alive=False) for _ in range(20))
    assert all(patience.is_to_restart(failed(), alive=False) for _ in range(20))


def test_an_epoch_is_not_got_ready_twice_at_the_same_time() -> None:
    patience = StepPatience(most=MOST)
    assert all(patience.is_to_restart(late(command="prepare"), alive=True) for _ in range(20))


def test_a_step_that_fails_each_time_is_given_up_with_its_reason() -> None:
    patience = StepPatience(most=MOST)
    assert all(patience.is_to_restart(failed(), alive=True) for _ in range(MOST))
    assert patience.is_to_restart(failed(command="start"), alive=True)
    with pytest.raises(DeploymentFailed, match=r"fog-0 failed .* 4 times: .*no such operator"):
        patience.is_to_restart(failed(), alive=True)


# What the run does


class StubbornRuntime:
    """Sites that answer with these errors, one after the other, before they go anywhere."""

    def __init__(self, errors: Iterator[SiteError]) -> None:
        self.cuts: dict[str, tuple[str, ...]] = {}
        self.errors, self.restarted = errors, list[tuple[str, str | None]]()
        self.events = list[SiteEvent]()

    def go_to(self, cuts: Any) -> list[str]:
        for error in self.errors:
            raise error
        self.cuts.update(cuts)
        return ["moved"]

    def restart(self, site: str, query: str | None = None) -> None:
        self.restarted.append((site, query))

    def is_alive(self, _site: str) -> bool:
        return True

    def next_event(self, _timeout_s: float) -> SiteEvent | None:
        return self.events.pop(0) if self.events else None

    def records(self) -> list[Any]:
        return []

    def status(self) -> dict[str, Any]:
        return {}

    def stop(self) -> None: ...


def move(folder: Path, runtime: StubbornRuntime, now_s: Iterator[float]) -> None:
    parts = RunParts(
        runtime=runtime,
        folder=RunFolder(folder),
        tally=Tally(Log(folder / "log"), ["rides"]),
        require_cuts=lambda _cuts: None,
        budget=RestartBudget(most=MOST, within_s=60.0),
        clock=lambda: next(now_s),
    )
    loop = DeploymentLoop(parts, 0.0)
    loop._begin_change("adapt", "a test", {"fog-0": ("parse",)}, None)
    loop._advance()


def minutes() -> Iterator[float]:
    at_s = 0.0
    while True:
        yield (at_s := at_s + 61.0)


def test_a_run_waits_for_a_site_and_mends_meanwhile_on_whom_it_waits(tmp_path: Path) -> None:
    runtime = StubbornRuntime(iter([late() for _ in range(4)]))
    gone = SiteEvent(site="cloud", kind="query-failed", detail="a gap", query="cloud@0")
    runtime.events.append(gone)
    move(tmp_path, runtime, minutes())
    assert runtime.cuts == {"fog-0": ("parse",)}
    assert runtime.restarted == [("cloud", "cloud@0")]


def test_a_run_does_not_start_a_site_again_for_ever(tmp_path: Path) -> None:
    """So slow that the budget of restarts within a minute is never spent."""
    runtime = StubbornRuntime(failed() for _ in range(1000))
    with pytest.raises(DeploymentFailed, match="no such operator"):
        move(tmp_path, runtime, minutes())
    assert runtime.restarted == [("fog-0", None)] * MOST


def test_a_run_that_is_to_stop_waits_no_longer(tmp_path: Path) -> None:
    runtime = StubbornRuntime(late() for _ in range(1000))
    leave(RunFolder(tmp_path), Request(kind=STOP))
    with pytest.raises(DeploymentFailed, match="it was ended while it waited: waits for fog-0"):
        move(tmp_path, runtime, minutes())


class SlowSite:
    """A site of which nothing is known but that its first hand-over takes its time."""

    def start(self, _query: Any) -> None: ...


@pytest.mark.parametrize(("late_times", "ends"), [(14, True), (15, False)])
def test_a_start_waits_for_hand_overs_within_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late_times: int, ends: bool
) -> None:
    spec = DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=("fog-0",))
    asked = list[object]()

    def go_to(_self: Coordinator, wanted: object) -> tuple[()]:
        asked.append(wanted)
        if len(asked) <= late_times:
            raise late()
        return ()

    monkeypatch.setattr(Coordinator, "go_to", go_to)
    sites: Any = {"fog-0": SlowSite(), "cloud": SlowSite()}
    coordinator = Coordinator(spec, sites, Log(tmp_path / "log"), openings={})
    if ends:
        with coordinator:
            assert asked == [{}] * 15
    else:
        with pytest.raises(SiteLate), coordinator:
            pass


# How lateness is told

# Answers after a second how often it was told; beats all the while unless it is told not to.
_SLOW_PROCESS = """
import json, sys, threading, time
told, beating, lock = {}, True, threading.Lock()
def say(message):
    with lock:
        print(json.dumps(message), flush=True)
def beat():
    while True:
        time.sleep(0.05)
        if beating:
            say({"event": "alive"})
def answer(number, command):
    time.sleep(1.0)
    say({"id": number, "result": told[command]})
threading.Thread(target=beat, daemon=True).start()
for line in sys.stdin:
    message = json.loads(line)
    number, command = message["id"], message["command"]
    told[command] = told.get(command, 0) + 1
    beating = command != "hush"
    if command == "late":
        say({"id": number, "error": "not yet", "late": True})
    elif command == "fail":
        say({"id": number, "error": "no", "late": False})
    else:
        threading.Thread(target=answer, args=(number, command), daemon=True).start()
"""


@pytest.fixture
def channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SiteChannel]:
    started = subprocess.Popen

    def start(_command: list[str], **settings: Any) -> subprocess.Popen[bytes]:
        return started([sys.executable, "-c", _SLOW_PROCESS], **settings)

    monkeypatch.setattr(channels.subprocess, "Popen", start)
    made = SiteChannel("one", tmp_path, lambda _message: None)
    yield made
    made.kill()
    assert made.wait(PATIENCE_S)


def test_what_is_being_done_is_waited_for_and_not_begun_again(channel: SiteChannel) -> None:
    for _ in range(2):
        with pytest.raises(SiteLate, match=r"no answer within 0\.1 s"):
            channel.call("carry", {"spec": 1}, 0.1)
    assert channel.call("carry", {"spec": 1}, PATIENCE_S) == 1
    # Its answer was had: the next one is another.
    assert channel.call("carry", {"spec": 1}, PATIENCE_S) == 2


def test_another_command_does_not_get_the_answer_that_is_due(channel: SiteChannel) -> None:
    with pytest.raises(SiteLate):
        channel.call("carry", {"spec": 1}, 0.1)
    assert channel.call("start", {"spec": 1}, PATIENCE_S) == 1
    assert channel.call("carry", {"spec": 1}, PATIENCE_S) == 2
    with pytest.raises(SiteLate):
        channel.call("status", {}, 0.1)
    assert channel.call("status", {}, PATIENCE_S) == 2


def test_an_answer_that_came_between_two_calls_is_had(channel: SiteChannel) -> None:
    with pytest.raises(SiteLate):
        channel.call("drain", {"query": "q"}, 0.1)
    # Answered after the drain was.
    channel.call("ping", {}, PATIENCE_S)
    assert channel.call("drain", {"query": "q"}, 0.0) == 1


def test_a_site_that_is_not_heard_is_not_late(
    channel: SiteChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "_SILENT_S", 0.2)
    with pytest.raises(SiteError, match="nothing heard") as told:
        channel.call("hush", {}, 0.9)
    assert not isinstance(told.value, SiteLate)


def test_what_a_site_says_of_its_own_lateness_is_told(channel: SiteChannel) -> None:
    with pytest.raises(SiteLate, match="not yet"):
        channel.call("late", {}, PATIENCE_S)
    with pytest.raises(SiteError, match="no") as told:
        channel.call("fail", {}, PATIENCE_S)
    assert not isinstance(told.value, SiteLate)


@pytest.mark.parametrize(
    ("error", "is_late"),
    [
        (NotInTime("x"), True),
        (LinkLate("x"), True),
        (LinkError("x"), False),
        (ThalwegError("x"), False),
    ],
)
def test_errors_of_a_site_say_whether_they_are_of_time(
    error: Exception, is_late: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failure(error) == {"error": "x", "late": is_late}
    capsys.readouterr()
