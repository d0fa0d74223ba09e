"""A run whose disk is away or full waits for it, loses no restarts on it, and can be ended."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

from thalweg.errors import Defect, InvalidInput
from thalweg.spark.deployment.control import ROLLBACK, STOP, Request, leave, take_one
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.hand_over import StartEpoch
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.lines import append_durably
from thalweg.spark.deployment.loop import DeploymentLoop
from thalweg.spark.deployment.parts import RunParts
from thalweg.spark.deployment.restarts import DeploymentFailed, RestartBudget
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.deployment.storage import Blips, find_outage
from thalweg.spark.deployment.tally import Tally
from thalweg.spark.log import Log
from thalweg.spark.log.disk import LogError, explained
from thalweg.spark.log.founding import LogAway, found_log
from thalweg.spark.log.outage import is_of_disk
from thalweg.spark.site.site import SiteEvent

AWAY = "there is no log"


class PlayedDisk:
    """A disk that is away for some looks at it."""

    def __init__(self) -> None:
        self.looks_away = 0
        self.slept = 0.0
        self.told: list[dict[str, Any]] = []
        self.folder: RunFolder | None = None

    def find_outage(self) -> str | None:
        self.looks_away -= 1
        return AWAY if self.looks_away >= 0 else None

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        if self.folder is not None:
            self.told.append(self.folder.read_status())


class PlayedRuntime:
    """Sites that refuse what they are told, as often as is listed."""

    def __init__(self) -> None:
        self.cuts: dict[str, tuple[str, ...]] = {"fog-0": ()}
        self.raises: list[Exception] = []
        self.events: list[SiteEvent] = []
        self.restarted = 0

    def go_to(self, cuts: Any) -> list[str]:
        if self.raises:
            raise self.raises.pop(0)
        self.cuts.update(cuts)
        return ["moved"]

    def restart(self, site: str, query: str | None = None) -> tuple[str, ...]:
        self.restarted += 1
        if self.raises:
            raise self.raises.pop(0)
        return ()

    def is_alive(self, site: str) -> bool:
        return False

    def next_event(self, timeout_s: float) -> SiteEvent | None:
        return self.events.pop(0) if self.events else None

    def status(self) -> dict[str, Any]:
        return {}

    def records(self) -> list[Any]:
        return []

    def stop(self) -> None: ...


class Stage:
    """A loop with a played disk and played sites."""

    def __init__(self, folder: Path, *, stopping: bool = False) -> None:
        self.disk, self.runtime = PlayedDisk(), PlayedRuntime()
        self.budget = RestartBudget(most=2, within_s=60.0)
        self.folder = self.disk.folder = RunFolder(folder)
        self.loop = DeploymentLoop(
            RunParts(
                runtime=self.runtime,
                folder=self.folder,
                tally=Tally(Log(folder / "log"), ["rides"]),
                require_cuts=lambda _cuts: None,
                budget=self.budget,
                find_outage=lambda: self.disk.find_outage(),
                is_stopping=lambda: stopping,
                sleep=self.disk.sleep,
            ),
            0.0,
        )

    def change(self, cuts: dict[str, tuple[str, ...]]) -> None:
        """Go to these cuts, whatever it takes."""
        self.loop._begin_change("adapt", "a test", cuts, None)
        self.loop._advance()


def died() -> SiteEvent:
    return SiteEvent(site="fog-0", kind="died", detail="its log is gone", query=None)


def test_a_site_that_dies_of_its_disk_is_started_when_the_disk_is_back(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.disk.looks_away = 20
    stage.runtime.events.append(died())
    stage.loop.turn(0.0)
    assert stage.runtime.restarted == 1
    assert stage.budget.total == 1
    assert stage.disk.slept >= 5.0
    waiting = stage.disk.told[:-1]
    assert {told["state"] for told in waiting} == {"waiting"}
    assert all(AWAY in told["note"] for told in waiting)
    assert {told["sites"]["fog-0"]["state"] for told in waiting} == {"down"}
    told = stage.folder.read_status()
    assert (told["state"], told["sites"]["fog-0"]["state"]) == ("running", "up")
    assert told["note"].startswith("waited ")


def test_a_site_that_refuses_for_its_disk_is_asked_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    refusal = InvalidInput([Defect(path="log", value="x", rule="the folder of a log")])
    stage.runtime.raises.append(refusal)
    stage.runtime.events.append(died())
    # There at the first look, away at the next two.
    looks = iter([None, AWAY, AWAY, None, None])
    stage.disk.find_outage = lambda: next(looks)  # type: ignore[method-assign]
    stage.loop.turn(0.0)
    assert stage.runtime.restarted == 2


@pytest.mark.parametrize("error", [LogError("gone"), OSError(errno.ENOSPC, "full")])
def test_a_site_whose_restart_the_disk_stops_is_started_later(
    tmp_path: Path, error: Exception
) -> None:
    stage = Stage(tmp_path)
    stage.runtime.raises.append(error)
    stage.runtime.events.append(died())
    looks = iter([None, AWAY, None, None])
    stage.disk.find_outage = lambda: next(looks)  # type: ignore[method-assign]
    stage.loop.turn(0.0)
    assert stage.runtime.restarted == 2


def test_a_refusal_that_is_not_the_disks_ends_the_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.runtime.raises.append(InvalidInput([Defect(path="cut", value="x", rule="y")]))
    stage.runtime.events.append(died())
    with pytest.raises(InvalidInput):
        stage.loop.turn(0.0)


REFUSAL = InvalidInput([Defect(path="log", value="x", rule="the folder of a log")])


@pytest.mark.parametrize("error", [LogError("gone"), OSError(errno.ENOSPC, "full"), REFUSAL])
def test_a_hand_over_that_the_disk_stops_goes_on_when_it_is_back(
    tmp_path: Path, error: Exception
) -> None:
    stage = Stage(tmp_path)
    stage.runtime.raises.append(error)
    stage.disk.looks_away = 3
    stage.change({"fog-0": ("parse",)})
    assert stage.runtime.cuts == {"fog-0": ("parse",)}


FULL = OSError(errno.ENOSPC, "full")


@pytest.mark.parametrize("error", [LogAway("gone"), FULL, OSError(errno.EIO, "broken"), REFUSAL])
def test_a_disk_that_is_well_again_at_once_is_asked_again_but_not_for_ever(
    tmp_path: Path, error: Exception
) -> None:
    stage = Stage(tmp_path)
    stage.runtime.raises += [error] * 3
    stage.change({"fog-0": ("parse",)})
    assert stage.runtime.cuts == {"fog-0": ("parse",)}
    assert stage.disk.slept > 0
    stage.runtime.raises += [error] * 100
    with pytest.raises(type(error)):
        stage.change({"fog-0": ()})


@pytest.mark.parametrize(
    "error",
    [
        LogError("damaged"),
        OSError(errno.ENOENT, "no such file"),
        InvalidInput([Defect(path="cut", value="x", rule="y")]),
    ],
)
def test_what_is_not_the_disks_is_told_at_once(tmp_path: Path, error: Exception) -> None:
    stage = Stage(tmp_path)
    stage.runtime.raises.append(error)
    with pytest.raises(type(error)):
        stage.change({"fog-0": ()})
    assert stage.disk.slept == 0


def test_an_error_of_the_disk_behind_one_of_the_log_is_known(tmp_path: Path) -> None:
    with pytest.raises(LogError) as caught, explained("write", tmp_path):
        raise FULL
    assert is_of_disk(caught.value)
    with pytest.raises(LogError) as caught, explained("write", tmp_path):
        raise OSError(errno.EACCES, "not allowed")
    assert not is_of_disk(caught.value)


def test_blips_are_forgotten_after_a_while() -> None:
    blips = Blips(most=2, within_s=60.0)
    assert [blips.let_pass(FULL, at_s) for at_s in (0.0, 1.0, 2.0)] == [True, True, False]
    assert [blips.let_pass(FULL, at_s) for at_s in (59.9, 60.0, 60.5)] == [False, True, False]
    assert not blips.let_pass(None, 200.0)


def test_a_run_waits_though_its_disk_does_not_even_say_who_has_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_folder: RunFolder) -> list[tuple[str, Path]]:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr("thalweg.spark.deployment.outage.list_requests", fail)
    stage = Stage(tmp_path)
    stage.disk.looks_away = 3
    stage.runtime.events.append(died())
    stage.loop.turn(0.0)
    assert stage.runtime.restarted == 1


def test_time_goes_on_in_a_second_outage(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    heartbeats = list[float]()
    looks = iter([AWAY, AWAY, None, None, AWAY, AWAY, None])

    def find_outage() -> str | None:
        heartbeats.append(stage.folder.read_status().get("heartbeat_s", 0.0))
        return next(looks)

    stage.disk.find_outage = find_outage  # type: ignore[method-assign]
    stage.runtime.raises.append(LogAway("gone"))
    stage.runtime.events.append(died())
    stage.loop.turn(50.0)
    assert heartbeats == sorted(heartbeats)
    assert heartbeats[-1] >= 50.0


def test_a_run_that_waits_can_be_ended(tmp_path: Path) -> None:
    stage = Stage(tmp_path, stopping=True)
    stage.disk.looks_away = 10**6
    stage.runtime.events.append(died())
    with pytest.raises(DeploymentFailed, match=AWAY):
        stage.loop.turn(0.0)


def test_a_stop_that_was_asked_for_elsewhere_ends_the_wait(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.disk.looks_away = 10**6
    leave(stage.folder, Request(kind=STOP))
    with pytest.raises(DeploymentFailed, match=AWAY):
        stage.loop._outage.wait_out()


def test_requests_are_taken_one_at_a_time(tmp_path: Path) -> None:
    """One that cannot be answered does not take the others with it."""
    folder = RunFolder(tmp_path)
    for kind in (STOP, ROLLBACK):
        leave(folder, Request(kind=kind))
    for kind in (STOP, ROLLBACK):
        request = take_one(folder)
        assert request is not None
        assert request.kind == kind


def test_what_is_away_or_full_is_named(tmp_path: Path) -> None:
    spec = DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=("fog-1",))
    assert "there is no log" in str(find_outage(spec))
    found_log(spec.log)
    # Left by one who was killed while it looked, and by one who looks now.
    for name, age_s in ((".room-old", 300.0), (".room-new", 0.0)):
        (spec.log / name).write_bytes(b"")
        at_s = time.time() - age_s
        os.utime(spec.log / name, (at_s, at_s))
    assert find_outage(spec) is None
    assert {file.name for file in spec.log.iterdir()} == {".log", ".room-new"}


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: Any) -> None:
    """The disk takes some bytes of a line and then none: the next line begins at its begin."""
    spec = DeploymentSpec(pipeline="a:b", folder=tmp_path, fogs=("fog-1",))
    steps = [StartEpoch(site="fog-1", epoch=epoch, cut=("a",), start=None) for epoch in range(3)]
    with Journal(spec.journal) as journal:
        journal.write(steps[0])
        write, left = os.write, [7]

        def fill(number: int, data: Any) -> int:
            if not left[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
            taken = write(number, bytes(data)[: left[0]])
            left[0] -= taken
            return taken

        monkeypatch.setattr(os, "write", fill)
        with pytest.raises(OSError, match="No space"):
            journal.write(steps[1])
        monkeypatch.undo()
        assert [step for step, _ in journal.read()] == steps[:1]
        journal.write(steps[2])
    assert [step for step, _ in Journal(spec.journal).read()] == [steps[0], steps[2]]
    with (tmp_path / "lines").open("ab") as file:
        append_durably(file.fileno(), b"one")
    assert (tmp_path / "lines").read_bytes() == b"one\n"
