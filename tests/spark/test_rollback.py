"""Rollbacks that are cut off, asked for twice, withdrawn or refused: none goes to what was fled."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import Defect, InvalidInput
from thalweg.spark.deployment.control import (
    MOVE,
    ROLLBACK,
    STOP,
    Refused,
    Request,
    answer,
    await_answer,
    give_up,
    leave,
    leave_rollback,
    list_requests,
    take_one,
)
from thalweg.spark.deployment.folder import HistoryEntry, RunFolder
from thalweg.spark.deployment.loop import DeploymentLoop
from thalweg.spark.deployment.parts import RunParts
from thalweg.spark.deployment.restarts import DeploymentFailed
from thalweg.spark.deployment.rollback import shorten_history
from thalweg.spark.deployment.tally import Tally
from thalweg.spark.log import Log

FOGS = ("fog-0", "fog-1")
FIRST, GOOD, BAD = (dict.fromkeys(FOGS, cut) for cut in ((), ("parse",), ("parse", "clean")))
HISTORY = [
    HistoryEntry(cuts=FIRST, reason="first deployment", at_s=1.0),
    HistoryEntry(cuts=GOOD, reason="uplink too full", at_s=2.0),
    HistoryEntry(cuts=BAD, reason="usage too high", at_s=3.0),
]


class Killed(BaseException):
    """The process is gone: nothing that it would have done after that is done."""


class Fate:
    """Kills a life at its n-th step; whoever is dead stays so."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.lives = False

    def step(self) -> None:
        """One more step; raises where it is not survived."""
        if not self.lives or self.left is None:
            return
        if self.left <= 0:
            raise Killed
        self.left -= 1

    @contextmanager
    def life(self, steps: int | None) -> Iterator[None]:
        """A life of so many steps; None: of any number."""
        self.left, self.lives = steps, True
        try:
            yield
        finally:
            self.lives = False


class PlayedSites:
    """Sites that move one after the other, and stay where they are when whoever moves them dies."""

    def __init__(self, fate: Fate) -> None:
        self.cuts = dict(BAD)
        self.fate = fate
        self.raises: list[Exception] = []

    def go_to(self, cuts: Any) -> Sequence[object]:
        for site, cut in cuts.items():
            if self.cuts.get(site) == cut:
                continue
            self.fate.step()
            self.cuts[site] = cut
            self.fate.step()
            if self.raises:
                raise self.raises.pop(0)
        return ["moved"]

    def next_event(self, timeout_s: float) -> None:
        return None


class Stage:
    """A run whose last change somebody wants to undo."""

    def __init__(self, path: Path, fate: Fate | None = None) -> None:
        self.folder = RunFolder(path)
        path.mkdir(exist_ok=True)
        self.folder.write_history(HISTORY)
        self.sites = PlayedSites(fate or Fate())

    def start(self) -> DeploymentLoop:
        parts = RunParts(
            runtime=self.sites,  # type: ignore[arg-type]
            folder=self.folder,
            tally=Tally(Log(self.folder.path / "log"), ["rides"]),
            require_cuts=lambda _cuts: None,
            sleep=lambda _s: None,
        )
        loop = DeploymentLoop(parts, 10.0)
        loop.begin(None, BAD, 10.0)  # type: ignore[arg-type]
        return loop

    @property
    def history(self) -> list[Any]:
        return [entry.cuts for entry in self.folder.read_history()]

    @property
    def left(self) -> list[str]:
        """Requests that nobody has answered."""
        names = [file.name for file in self.folder.control.iterdir()]
        return [name for name in names if name.endswith((".request.json", ".begun.json"))]

    def answered(self, request: Request) -> tuple[bool, str] | None:
        return await_answer(self.folder, request, 0.0, goes_on=lambda: False)


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Fate:
    """Whatever changes a file is a step, before and after."""
    found = Fate()

    def struck(act: Callable[..., Any]) -> Callable[..., Any]:
        def strike(*words: Any, **options: Any) -> Any:
            found.step()
            result = act(*words, **options)
            found.step()
            return result

        return strike

    for name in ("replace", "rename", "unlink", "write_text"):
        monkeypatch.setattr(Path, name, struck(getattr(Path, name)))
    return found


def survive(act: Callable[[], Any], fate: Fate, steps: int | None) -> bool:
    """Whether a life of so many steps was long enough."""
    try:
        with fate.life(steps):
            act()
    except Killed:
        return False
    return True


@pytest.mark.parametrize("lives", [1, 2])
@pytest.mark.parametrize("is_live", [True, False])
def test_a_rollback_that_is_killed_anywhere_gets_where_it_was_to_go(
    tmp_path: Path, fate: Fate, is_live: bool, lives: int
) -> None:
    steps, halfway = 0, 0
    while True:
        stage = Stage(tmp_path / str(steps), fate)
        loop = stage.start() if is_live else None
        request = leave_rollback(stage.folder)
        whole = survive((lambda loop=loop: loop.turn(11.0)) if loop else stage.start, fate, steps)
        halfway += len(set(stage.sites.cuts.values())) > 1
        for _ in range(lives - 1):
            survive(stage.start, fate, steps)
        stage.start()
        assert stage.sites.cuts == GOOD, steps
        assert stage.history == [FIRST, GOOD], steps
        assert stage.left == [], steps
        # It was one rollback: the next one goes one further, and never to what was fled.
        assert leave_rollback(stage.folder).number != request.number
        stage.start()
        assert stage.sites.cuts == FIRST, steps
        if whole:
            break
        steps += 1
    assert steps > 10
    assert halfway >= 2


def test_a_rollback_is_carried_out_by_the_next_start_that_does_not_fail(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    leave_rollback(stage.folder)
    for _ in range(2):
        stage.sites.raises.append(DeploymentFailed("fog-0 does not stay"))
        with pytest.raises(DeploymentFailed):
            stage.start()
    assert list_requests(stage.folder) == []
    assert [kind for kind, _ in list_requests(stage.folder, begun=True)] == [ROLLBACK]
    stage.start()
    assert stage.sites.cuts == GOOD
    assert stage.history == [FIRST, GOOD]


def test_what_was_asked_before_a_change_that_was_cut_off_goes_back_from_what_it_named(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    stage.sites.cuts["fog-0"] = ()
    leave_rollback(stage.folder)
    stage.start()
    assert stage.sites.cuts == GOOD


def test_a_rollback_that_sites_refuse_halfway_keeps_what_runs_in_the_history(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    loop = stage.start()
    request = leave_rollback(stage.folder)
    stage.sites.raises.append(InvalidInput([Defect(path="cut", value="x", rule="another")]))
    loop.turn(11.0)
    assert stage.answered(request) == (False, 'cut: got "x", need another')
    mixture = {"fog-0": GOOD["fog-0"], "fog-1": BAD["fog-1"]}
    assert stage.history == [FIRST, GOOD, mixture]
    leave_rollback(stage.folder)
    loop.turn(12.0)
    assert stage.sites.cuts == GOOD


# Asked for twice, and taken back


def test_a_stopped_run_is_asked_for_one_rollback_at_a_time(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    leave_rollback(stage.folder)
    with pytest.raises(Refused, match="next start begins with it") as told:
        leave_rollback(stage.folder)
    (name,) = stage.left
    assert str(stage.folder.control / name) in str(told.value)
    stage.start()
    assert stage.sites.cuts == GOOD


def test_a_live_run_is_asked_for_one_rollback_at_a_time(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    with stage.folder.hold():
        leave_rollback(stage.folder)
        assert take_one(stage.folder) is not None
        with pytest.raises(Refused, match="under way"):
            leave_rollback(stage.folder)


def test_two_who_ask_in_the_same_moment_go_back_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    loop = stage.start()
    asked = [leave(stage.folder, Request(kind=ROLLBACK, leaves_s=3.0)) for _ in range(2)]
    loop.turn(11.0)
    assert stage.sites.cuts == GOOD
    done, refused = (stage.answered(request) for request in asked)
    assert done is not None and done[0]
    assert refused is not None and not refused[0]
    assert "the cuts have changed since" in refused[1]


def test_a_request_that_is_given_up_is_taken_back_unless_it_is_begun(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    request = leave_rollback(stage.folder)
    assert "was taken back" in give_up(stage.folder, request)
    assert stage.left == []
    request = leave_rollback(stage.folder)
    assert take_one(stage.folder) == request
    assert "may still do what was asked; after a crash" in give_up(stage.folder, request)
    assert take_one(stage.folder) == request
    answer(stage.folder, request, "done", done=True)
    assert take_one(stage.folder) is None
    moved = leave(stage.folder, Request(kind=MOVE, cuts=GOOD))
    assert take_one(stage.folder) == moved
    assert give_up(stage.folder, moved).endswith("may still do what was asked")


def test_what_is_refused_at_a_start_is_told_where_people_look(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.folder.write_history(HISTORY[-1:])
    leave(stage.folder, Request(kind=ROLLBACK))
    loop = stage.start()
    last = stage.folder.read_decisions()[-1]
    told = "refused: there are no earlier cuts to go back to"
    assert (last["cause"], last["changed"], last["reason"]) == ("rollback", False, told)
    assert loop.status("running", 12.0)["last_decision"]["reason"] == told
    # To one who waits for the answer it is told at once.
    request = leave(stage.folder, Request(kind=ROLLBACK))
    loop.turn(13.0)
    assert stage.answered(request) == (False, told.removeprefix("refused: "))
    assert stage.folder.read_decisions()[-1] == last


# Where it goes


@given(st.lists(st.sampled_from((FIRST, GOOD, BAD)), max_size=8))
def test_a_history_is_shortened_once_for_a_request(cuts: list[Any]) -> None:
    history = [HistoryEntry(cuts=c, reason="why", at_s=float(k)) for k, c in enumerate(cuts)]
    request = Request(kind=ROLLBACK)
    # The slow way: the newest that differs from the last.
    wanted = [k for k, c in enumerate(cuts) if c != cuts[-1]]
    if not wanted:
        with pytest.raises(Refused, match="no earlier cuts"):
            shorten_history(history, request)
        return
    kept = shorten_history(history, request)
    assert [entry.at_s for entry in kept] == [float(k) for k in range(wanted[-1] + 1)]
    assert shorten_history(kept, request) == kept
    stale = Request(kind=ROLLBACK, leaves_s=history[-1].at_s)
    with pytest.raises(Refused, match="ask again"):
        shorten_history(kept, stale)


@pytest.mark.parametrize("leaves_s", ["soon", float("nan"), [1.0]])
def test_what_a_rollback_leaves_is_told_by_a_time(leaves_s: Any) -> None:
    with pytest.raises(InvalidInput, match="leaves_s"):
        Request(kind=ROLLBACK, leaves_s=leaves_s)
    with pytest.raises(InvalidInput, match="leaves_s"):
        Request(kind=STOP, leaves_s=1.0)


# What keeps it from being asked for or done


def test_the_requests_of_another_user_are_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    stage.folder.control.mkdir()

    def fail(_folder: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "iterdir", fail)
    with pytest.raises(InvalidInput, match="only the user who started the run"):
        leave_rollback(stage.folder)


def test_a_disk_that_fills_meanwhile_does_not_make_it_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    loop = stage.start()
    request = leave_rollback(stage.folder)

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(RunFolder, "write_history", fail)
        loop.turn(11.0)
    assert stage.answered(request) is None
    assert stage.sites.cuts == BAD
    loop.turn(12.0)
    assert stage.sites.cuts == GOOD
