"""A run that is watched while its cuts change and its sites restart, all of it played.

Operations end when the test says so; nothing waits, and no clock counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark.held_operations import HeldOperations
from thalweg.adapt.state import ControllerState
from thalweg.model import Application, Operator, Pin, Stream
from thalweg.scenarios import fog_cloud
from thalweg.spark.deployment.chronicle import Chronicle
from thalweg.spark.deployment.control import MOVE, Request, await_answer, leave, list_requests
from thalweg.spark.deployment.decisions import Verdict
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.loop import DeploymentLoop
from thalweg.spark.deployment.parts import RunParts
from thalweg.spark.deployment.restarts import DeploymentFailed, RestartBudget
from thalweg.spark.deployment.tally import Tally
from thalweg.spark.deployment.timeline import Timeline, read_timeline
from thalweg.spark.deployment.watch import Watcher
from thalweg.spark.log import Log
from thalweg.spark.monitor import Monitor
from thalweg.spark.monitor.figures import Figures
from thalweg.spark.query.spec import QueryStatus
from thalweg.spark.site.channel import SiteError, SiteLate
from thalweg.spark.site.site import SiteEvent, SiteStatus

NAMES = ("fog-0", "fog-1", "cloud")
CHANGE = "change of cuts"


def query_status(site: str, *, is_idle: bool = True, state: str = "running") -> QueryStatus:
    return QueryStatus(
        name=f"{site}@1",
        id="",
        site=site,
        epoch=1,
        role="fog",
        state=state,
        batch=0,
        input_rows_per_s=0.0,
        processed_rows_per_s=0.0,
        offsets={},
        sink_rows={},
        state_rows=0,
        batch_s=0.0,
        watermark=None,
        error=None,
        is_idle=is_idle,
    )


class PlayedSites:
    """Sites that do what they are told; what they are told is written down."""

    def __init__(self) -> None:
        self.cuts: dict[str, tuple[str, ...]] = dict.fromkeys(NAMES[:2], ())
        self.dead: set[str] = set()
        self.mute: set[str] = set()
        self.busy: set[str] = set()
        self.events: list[SiteEvent] = []
        self.told: list[str] = []

    def die(self, site: str) -> None:
        self.dead.add(site)
        self.events.append(SiteEvent(site=site, kind="died", detail="killed by SIGKILL"))

    def go_to(self, cuts: Any) -> Sequence[object]:
        self.told.append("go")
        for site in sorted(cuts):
            if site in self.dead and self.cuts[site] != cuts[site]:
                raise SiteError(site, "drain", "its process has ended")
        self.cuts.update(cuts)
        return ["moved"]

    def restart(self, site: str, query: str | None = None) -> Sequence[str]:
        self.told.append(f"restart {site if query is None else query}")
        self.dead.discard(site)
        return ()

    def is_alive(self, site: str) -> bool:
        return site not in self.dead

    def next_event(self, timeout_s: float) -> SiteEvent | None:
        return self.events.pop(0) if self.events else None

    def records(self) -> list[Any]:
        return []

    def status(self) -> dict[str, SiteStatus]:
        return {
            name: SiteStatus(
                name=name,
                alive=name not in self.dead,
                pid=None,
                silent_s=0.0,
                queries=(query_status(name, is_idle=name not in self.busy),),
                answered=name not in self.mute,
            )
            for name in NAMES
        }

    def stop(self) -> None: ...


class Stage:
    """A run, the time that it is told, and what it writes."""

    def __init__(self, path: Path, **more: Any) -> None:
        self.sites, self.operations = PlayedSites(), HeldOperations()
        self.folder, self.now_s = RunFolder(path), 100.0
        tally = Tally(Log(path / "log"), ["rides"])
        parts = RunParts(
            runtime=self.sites,
            folder=self.folder,
            tally=tally,
            require_cuts=lambda _cuts: None,
            budget=RestartBudget(most=3, within_s=60.0),
            chronicle=Chronicle(tally=tally, timeline=Timeline(path), watcher=more.get("watcher")),
            clock=lambda: self.now_s,
            operations=self.operations,
            **more,
        )
        self.loop = DeploymentLoop(parts, self.now_s)
        self.look()

    def turn(self) -> None:
        self.now_s += 0.1
        self.loop.turn(self.now_s)

    def look(self) -> None:
        self.now_s += 2.0
        self.loop.look(self.now_s)

    def move(self, cuts: dict[str, tuple[str, ...]]) -> Request:
        request = leave(self.folder, Request(kind=MOVE, cuts=cuts))
        self.turn()
        return request

    def answered(self, request: Request) -> tuple[bool, str] | None:
        return await_answer(self.folder, request, 0.0, goes_on=lambda: False)

    @property
    def status(self) -> dict[str, Any]:
        return self.folder.read_status()

    def states(self) -> dict[str, str]:
        """The states of the sites as they can be read now, in status and timeline alike."""
        told = {name: site["state"] for name, site in self.status["sites"].items()}
        last = [line for line in read_timeline(self.folder.path) if line["kind"] == "frame"][-1]
        assert {name: site["state"] for name, site in last["sites"].items()} == told
        assert last["under_way"] == self.status["under_way"]
        return told

    def marks(self, *kinds: str) -> list[dict[str, Any]]:
        lines = read_timeline(self.folder.path)
        return [line for line in lines if line["kind"] == "mark" and line["mark"] in kinds]

    def shown(self, site: str) -> list[tuple[str, float]]:
        """Every state of a site in the timeline, and since when it was in it."""
        found: list[tuple[str, float]] = []
        for line in read_timeline(self.folder.path):
            if line["kind"] == "frame":
                state = line["sites"][site]
                pair = (state["state"], state["since_s"])
                found += [pair] if found[-1:] != [pair] else []
        return found


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_dead_site_is_shown_as_such_at_once_and_until_it_is_back(stage: Stage) -> None:
    assert set(stage.states().values()) == {"up"}
    stage.sites.die("fog-0")
    stage.turn()
    died_s = stage.now_s
    assert stage.states() == {"fog-0": "restarting", "fog-1": "up", "cloud": "up"}
    assert stage.status["under_way"]["site"] == "fog-0"
    # The cycle goes on meanwhile.
    for _ in range(3):
        stage.look()
        assert stage.status["heartbeat_s"] == pytest.approx(stage.now_s)
        assert stage.states()["fog-0"] == "restarting"
    stage.operations.finish()
    stage.turn()
    assert set(stage.states().values()) == {"up"}
    assert stage.status["under_way"] is None
    shown = [state for state, _ in stage.shown("fog-0")]
    assert shown == ["up", "down", "restarting", "up"]
    assert stage.shown("fog-0")[1][1] == pytest.approx(died_s)
    begin, end = stage.marks("failure", "restart")
    assert (begin["title"], begin["phase"]) == ("fog-0 died", "begin")
    assert (end["title"], end["phase"], end["event"]) == ("fog-0 is back", "end", begin["event"])
    assert end["at_s"] - begin["at_s"] == pytest.approx(stage.now_s - died_s)


def test_two_sites_that_die_at_once_are_started_at_the_same_time(stage: Stage) -> None:
    for site in ("fog-0", "cloud"):
        stage.sites.die(site)
    stage.turn()
    assert set(stage.operations.held) == {"restart of fog-0", "restart of cloud"}
    assert stage.states() == {"fog-0": "restarting", "fog-1": "up", "cloud": "restarting"}
    # One dies while two others are being started again.
    stage.sites.die("fog-1")
    stage.turn()
    assert set(stage.states().values()) == {"restarting"}
    stage.operations.finish("restart of cloud")
    stage.turn()
    assert stage.states() == {"fog-0": "restarting", "fog-1": "restarting", "cloud": "up"}
    stage.operations.finish()
    stage.turn()
    assert set(stage.states().values()) == {"up"}


def test_a_site_that_dies_in_a_change_is_started_once_and_the_change_goes_on(stage: Stage) -> None:
    request = stage.move({"fog-0": ("parse",)})
    assert stage.status["under_way"]["kind"] == "change"
    stage.sites.die("fog-0")
    stage.turn()
    assert stage.states()["fog-0"] == "restarting"
    # The attempt under way fails of it: it is not started twice for that.
    stage.operations.finish(CHANGE)
    stage.turn()
    assert list(stage.operations.held) == ["restart of fog-0"]
    stage.look()
    assert stage.status["under_way"]["kind"] == "change"
    stage.operations.finish()
    stage.turn()
    assert list(stage.operations.held) == [CHANGE]
    stage.operations.finish()
    stage.turn()
    assert stage.answered(request) == (True, "moved to fog-0: parse; fog-1: nothing")
    assert stage.sites.told == ["go", "restart fog-0", "go"]
    begin, end = stage.marks("change")
    assert (begin["phase"], end["phase"]) == ("begin", "end")
    assert begin["event"] == end["event"]


def test_a_site_that_died_and_came_back_during_an_attempt_is_not_started_again(
    stage: Stage,
) -> None:
    stage.move({"fog-0": ("parse",)})
    stage.sites.die("fog-0")
    stage.turn()
    stage.operations.finish("restart of fog-0")
    stage.turn()
    stage.operations.fail(CHANGE, SiteError("fog-0", "drain", "its process has ended"))
    stage.turn()
    assert list(stage.operations.held) == [CHANGE]
    stage.operations.finish()
    stage.turn()
    assert stage.sites.told == ["restart fog-0", "go"]
    assert stage.sites.cuts["fog-0"] == ("parse",)


def test_another_site_that_dies_does_not_hold_up_a_change(stage: Stage) -> None:
    request = stage.move({"fog-0": ("parse",)})
    stage.sites.die("fog-1")
    stage.turn()
    stage.operations.finish(CHANGE)
    stage.turn()
    assert stage.answered(request) is not None
    assert stage.states()["fog-1"] == "restarting"
    assert stage.status["under_way"]["kind"] == "restart"


def test_what_is_heard_of_a_site_during_its_restart_is_looked_at_after_it(stage: Stage) -> None:
    stage.sites.die("fog-0")
    stage.turn()
    # The new process dies right away: of the two that died, one is still to be seen to.
    stage.operations.finish()
    stage.sites.die("fog-0")
    stage.turn()
    assert list(stage.operations.held) == ["restart of fog-0"]
    assert stage.sites.told == ["restart fog-0"]
    stage.operations.finish()
    stage.turn()
    assert stage.states()["fog-0"] == "up"
    # The death of a process that was replaced is no news.
    stage.sites.events.append(SiteEvent(site="fog-0", kind="died", detail="late"))
    stage.turn()
    assert not stage.operations.held


def test_a_restart_that_fails_is_tried_again_and_not_for_ever(stage: Stage) -> None:
    stage.sites.die("fog-0")
    stage.turn()
    for _ in range(2):
        stage.operations.fail("restart of fog-0", SiteError("fog-0", "open", "no Spark"))
        stage.turn()
        assert stage.states()["fog-0"] == "restarting"
    stage.operations.fail("restart of fog-0", SiteError("fog-0", "open", "no Spark"))
    with pytest.raises(DeploymentFailed, match=r"started again 3 times .* no Spark"):
        stage.turn()
    assert stage.states()["fog-0"] == "down"
    events = {mark["event"] for mark in stage.marks("failure")}
    assert len(events) == 1


def test_requests_and_decisions_wait_while_a_change_is_under_way(tmp_path: Path) -> None:
    asked: list[str] = []

    class Adapter:
        controller = SimpleNamespace(interval_s=2.0, rates=lambda _state: None)

        def look(self, state: ControllerState, *_: Any) -> tuple[Verdict, ControllerState]:
            asked.append("decide")
            return Verdict(reason="kept: all is well"), state

        def observe(self, *_: Any) -> None:
            return None

        def learn(self, state: ControllerState, *_: Any, **__: Any) -> ControllerState:
            return state

        hold = begin_change = end_change = learn

    stage = Stage(tmp_path, adapter=Adapter())
    asked.clear()
    first = stage.move({"fog-0": ("parse",)})
    second = leave(stage.folder, Request(kind=MOVE, cuts={"fog-0": ()}))
    for _ in range(3):
        stage.look()
        stage.turn()
    assert asked == []
    assert [kind for kind, _ in list_requests(stage.folder)] == [MOVE]
    assert stage.answered(first) is None
    stage.operations.finish()
    stage.turn()
    assert stage.answered(first) is not None
    assert list(stage.operations.held) == [CHANGE]
    stage.operations.finish()
    stage.turn()
    assert stage.answered(second) is not None
    assert stage.sites.cuts["fog-0"] == ()
    stage.look()
    assert asked == ["decide"]
    # Nor is anything decided about a site that is being started again.
    stage.sites.die("fog-0")
    stage.turn()
    stage.look()
    assert asked == ["decide"]


def test_a_change_that_is_under_way_ends_before_the_run_does(stage: Stage) -> None:
    request = stage.move({"fog-0": ("parse",)})
    waiting = leave(stage.folder, Request(kind=MOVE, cuts={"fog-1": ("parse",)}))
    stage.loop.stopping = True
    stage.turn()
    assert not stage.loop.is_idle
    stage.operations.fail(CHANGE, SiteLate("fog-0", "drain", "a large batch"))
    stage.turn()
    assert list(stage.operations.held) == [CHANGE]
    stage.operations.finish()
    stage.turn()
    assert stage.loop.is_idle
    assert stage.answered(request) is not None
    assert stage.answered(waiting) is None
    stage.loop.end(stage.now_s)
    assert stage.sites.cuts == {"fog-0": ("parse",), "fog-1": ()}


def test_a_run_that_has_ended_has_no_site_that_is_up(stage: Stage) -> None:
    stage.sites.die("fog-1")
    stage.turn()
    stage.now_s += 1.0
    stage.loop.end(stage.now_s)
    ended = stage.loop.status("ended", stage.now_s)
    for told in (ended, stage.loop.report("ended", stage.now_s)):
        assert {site["state"] for site in told["sites"].values()} == {"ended"}
        assert not any(site["alive"] or site["queries"] for site in told["sites"].values())
    assert ended["under_way"] is None
    last = [line for line in read_timeline(stage.folder.path) if line["kind"] == "frame"][-1]
    assert last["sites"] == {
        name: {"state": "ended", "since_s": pytest.approx(stage.now_s)} for name in NAMES
    }
    assert (last["links"], last["operators"], last["rates"]) == ({}, {}, None)


@pytest.mark.parametrize(
    ("begin", "end"), [("unheard", "heard"), ("query-halted", "query-resumed")]
)
def test_a_site_that_does_not_work_for_a_while_is_down_meanwhile(
    stage: Stage, begin: str, end: str
) -> None:
    stage.sites.events.append(SiteEvent(site="fog-0", kind=begin, detail="nothing heard"))
    stage.turn()
    assert stage.states()["fog-0"] == "down"
    assert not stage.operations.held
    stage.look()
    assert stage.states()["fog-0"] == "down"
    stage.sites.events.append(SiteEvent(site="fog-0", kind=end, detail="again"))
    stage.turn()
    assert stage.states()["fog-0"] == "up"
    assert stage.sites.told == []


@pytest.mark.parametrize("first", [("unheard", "heard"), ("query-halted", "query-resumed")])
def test_a_site_that_is_down_for_two_reasons_is_up_when_both_have_passed(
    stage: Stage, first: tuple[str, str]
) -> None:
    kinds = {("unheard", "heard"), ("query-halted", "query-resumed")}
    (second,) = kinds - {first}

    def hear(kind: str) -> str:
        stage.sites.events.append(SiteEvent(site="fog-0", kind=kind, detail=kind))
        stage.turn()
        return stage.states()["fog-0"]

    assert [hear(kind) for kind in (first[0], second[0])] == ["down", "down"]
    # Whichever passes first, the other is still there.
    assert [hear(kind) for kind in (first[1], second[1])] == ["down", "up"]
    assert [hear(kind) for kind in (first[0], second[0])] == ["down", "down"]
    assert [hear(kind) for kind in (second[1], first[1])] == ["down", "up"]
    assert stage.sites.told == []


def test_each_query_of_a_site_is_halted_for_itself(stage: Stage) -> None:
    def hear(kind: str, query: str) -> str:
        event = SiteEvent(site="fog-0", kind=kind, detail=kind, query=query)
        stage.sites.events.append(event)
        stage.turn()
        return stage.states()["fog-0"]

    told = [("query-halted", "a"), ("query-halted", "b"), ("query-resumed", "a")]
    assert [hear(*each) for each in told] == ["down"] * 3
    assert hear("query-resumed", "b") == "up"


def test_a_restart_ends_the_reasons_of_the_process_before(stage: Stage) -> None:
    """Those of a query that is started again are its own: the site may be unheard all the while."""
    for kind in ("unheard", "query-halted"):
        stage.sites.events.append(SiteEvent(site="fog-0", kind=kind, detail=kind, query=None))
    stage.sites.die("fog-0")
    stage.turn()
    stage.operations.finish()
    stage.turn()
    assert stage.states()["fog-0"] == "up"
    for kind, query in (("unheard", None), ("query-halted", "q"), ("query-failed", "q")):
        stage.sites.events.append(SiteEvent(site="fog-0", kind=kind, detail=kind, query=query))
    stage.turn()
    assert stage.states()["fog-0"] == "restarting"
    stage.operations.finish()
    stage.turn()
    assert stage.states()["fog-0"] == "down"
    stage.sites.events.append(SiteEvent(site="fog-0", kind="heard", detail="again"))
    stage.turn()
    assert stage.states()["fog-0"] == "up"


# How old figures are


class Measured:
    """A run whose batches the test ends, with the figures that its timeline has of them."""

    def __init__(self, path: Path) -> None:
        self.records: list[dict[str, Any]] = []
        rides = Operator(name="rides", kind="source", rate=1.0, event_size=1.0, pin=Pin(tier="fog"))
        board = Operator(name="board", kind="sink", pin=Pin(tier="cloud"))
        line = Stream(source="rides", target="board")
        app = Application(name="app", operators=[rides, board], streams=[line])
        watcher = Watcher(Monitor(app), app, fog_cloud(2, seed=1))
        self.stage = Stage(path, watcher=watcher)
        self.stage.sites.records = self._take  # type: ignore[method-assign]
        self._batch = 0

    def _take(self) -> list[dict[str, Any]]:
        found, self.records = self.records, []
        return found

    def end_batch(self, site: str, at_s: float, lag_s: float) -> None:
        self._batch += 1
        role = "cloud" if site == "cloud" else "fog"
        own = {"site": site, "role": role, "epoch": 0, "batch": self._batch}
        times = {"at_s": at_s, "batch_s": 1.0, "watermark_s": 1.8e9, "lag_s": lag_s}
        self.records.append({**own, **times, "link_bytes": {"edges/a+b": 100}})

    def shown(self, site: str) -> tuple[Any, ...]:
        """Lag, load, rate of the link and when they were renewed."""
        frames = [x for x in read_timeline(self.stage.folder.path) if x["kind"] == "frame"]
        told, link = frames[-1]["sites"][site], frames[-1]["links"].get(site, {})
        if "renewed_at_s" in link:
            assert link["renewed_at_s"] == told["renewed_at_s"]
        bps, renewed_s = link.get("bps"), told["renewed_at_s"]
        return told["lag_s"], told["load"], bps, renewed_s


@pytest.fixture
def measured(tmp_path: Path) -> Measured:
    return Measured(tmp_path)


def test_figures_of_a_batch_age_while_the_next_one_is_stuck_at_a_site_that_answers(
    measured: Measured,
) -> None:
    stage = measured.stage
    stage.sites.busy.add("fog-0")
    ended_s = stage.now_s
    measured.end_batch("fog-0", ended_s, 3.0)
    for _ in range(5):
        stage.look()
        lag_s, _, _, renewed_s = measured.shown("fog-0")
        assert (lag_s, renewed_s) == (3.0, ended_s)
    assert stage.states()["fog-0"] == "up"
    measured.end_batch("fog-0", stage.now_s, 13.0)
    stage.look()
    assert measured.shown("fog-0")[0] == 13.0
    assert measured.shown("fog-0")[3] == pytest.approx(stage.now_s - 2.0)


def test_figures_of_a_site_without_anything_to_do_stay_true_while_it_says_so(
    measured: Measured,
) -> None:
    stage = measured.stage
    measured.end_batch("fog-0", stage.now_s, 3.0)
    for _ in range(9):
        stage.look()
    lag_s, load, bps, renewed_s = measured.shown("fog-0")
    assert (lag_s, load, bps) == (3.0, 0.0, 0.0)
    assert renewed_s == pytest.approx(stage.now_s)
    said_s = stage.now_s
    stage.sites.mute.add("fog-0")
    stage.look()
    assert measured.shown("fog-0")[3] == pytest.approx(said_s)


@pytest.mark.parametrize("is_idle", [False, True])
def test_figures_of_before_a_restart_are_none_of_the_new_process(
    measured: Measured, is_idle: bool
) -> None:
    stage = measured.stage
    for site in ("fog-0", "cloud"):
        measured.end_batch(site, stage.now_s, 3.0)
    stage.look()
    assert measured.shown("fog-0")[0] == 3.0
    if not is_idle:
        stage.sites.busy.add("fog-0")
    stage.sites.die("fog-0")
    stage.turn()
    assert measured.shown("fog-0") == (None, None, None, None)
    stage.operations.finish()
    stage.turn()
    stage.look()
    assert stage.states()["fog-0"] == "up"
    said_s = pytest.approx(stage.now_s) if is_idle else None
    assert measured.shown("fog-0") == (None, None, None, said_s)
    assert measured.shown("cloud")[0] == 3.0
    measured.end_batch("fog-0", stage.now_s, 8.0)
    stage.look()
    lag_s, _, bps, renewed_s = measured.shown("fog-0")
    assert lag_s == 8.0
    assert bps is not None
    assert renewed_s == pytest.approx(stage.now_s if is_idle else stage.now_s - 2.0)


def test_only_a_site_whose_queries_all_have_nothing_to_do_is_idle() -> None:
    idle, busy = query_status("a"), query_status("a", is_idle=False)
    failed = query_status("a", state="failed")
    for queries, is_idle in (
        ((idle,), True),
        ((idle, idle), True),
        ((idle, busy), False),
        ((idle, failed), False),
        ((), False),
    ):
        site = SiteStatus(name="a", alive=True, pid=1, silent_s=0.0, queries=queries)
        assert site.is_idle is is_idle
        assert not replace(site, answered=False).is_idle
        assert not replace(site, alive=False).is_idle


def test_lag_is_unknown_before_there_is_a_watermark(tmp_path: Path) -> None:
    """The clocks of queries begin in 1970: a lag from there is a figure without a meaning."""
    measured = Figures(
        at_s=10.0,
        window_s=5.0,
        streams={("edges/a+b", "fog-0"): 10.0, ("edges/a+b", "fog-1"): 10.0},
        lag_s={"fog-0": 1.8e9, "fog-1": 0.5, "cloud": 1.8e9},
        watermark_s={"fog-0": 0.001, "fog-1": 1.8e9, "cloud": 0.001},
    )
    status = PlayedSites().status()
    Timeline(tmp_path).write_frame(
        10.0,
        seen={"figures": {"usage": 0.5, "broken": []}},
        rates=None,
        rows_out=0,
        sites=status,
        measured=measured,
        cores={},
        idle_s={"fog-1": 9.0},
    )
    (frame,) = read_timeline(tmp_path)
    assert {name: site["lag_s"] for name, site in frame["sites"].items()} == {
        "fog-0": None,
        "fog-1": 0.5,
        "cloud": None,
    }
    assert not any("lag_s" in link for link in frame["links"].values())
    assert frame["links"]["fog-1"] == {"bps": 80.0, "renewed_at_s": 9.0}
    assert frame["figures"] == {"usage": 0.5, "broken": []}
    assert (frame["estimated"], frame["measured"], frame["deviations"]) == ({}, {}, [])
