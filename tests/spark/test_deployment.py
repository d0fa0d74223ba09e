"""Runs with played sites and a played clock: what is decided, mended, asked for and told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.held_operations import HeldOperations
from spark.numbered_rides import listed, send_numbers
from spark.taxi_run import wait_for
from thalweg.adapt.state import ControllerState
from thalweg.adapt.trigger import Trigger
from thalweg.errors import InvalidInput, StrategyError
from thalweg.files import save
from thalweg.model import Limits, Network
from thalweg.model.names import is_name
from thalweg.scenarios import fog_cloud
from thalweg.scheduling.schedule import Table
from thalweg.spark.deployment import Deployment
from thalweg.spark.deployment.check import RunWishes, prepare
from thalweg.spark.deployment.control import (
    MOVE,
    ROLLBACK,
    STOP,
    Request,
    answer,
    await_answer,
    leave,
    take_one,
)
from thalweg.spark.deployment.decision_lines import write_decision
from thalweg.spark.deployment.decisions import Adapter, Verdict
from thalweg.spark.deployment.folder import HistoryEntry, RunFolder
from thalweg.spark.deployment.loop import DeploymentLoop
from thalweg.spark.deployment.manifest import RunManifest
from thalweg.spark.deployment.one_place import verify
from thalweg.spark.deployment.parts import RunParts
from thalweg.spark.deployment.plan import cuts_of, find_sites, placement_of
from thalweg.spark.deployment.restarts import DeploymentFailed, RestartBudget
from thalweg.spark.deployment.tally import Tally
from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.log import Log
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.site.channel import SiteError
from thalweg.spark.site.site import SiteEvent

pytest.importorskip("pyspark")

FOGS = ("fog-0", "fog-1")
SMALL = ("parse", "clean")


def city(**figures: Any) -> Network:
    return fog_cloud(2, seed=1, **figures)


def adapter_of(network: Network, limits: Limits | None = None, **fields: Any) -> Adapter:
    from thalweg.spark.examples.taxi import taxi_fares

    application = taxi_fares.application
    if limits is not None:
        application = replace(application, limits=limits)
    prepared = prepare(RunWishes(pipeline="taxi-fares", network=network), dry=True)
    return replace(prepared.adapter, application=application, **fields)


# Plans and cuts


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_cuts_and_placements_are_the_same_thing_said_twice(data: st.DataObject) -> None:
    adapter = adapter_of(city())
    problem = adapter.problem(None)
    table = Table.of(problem)
    pick = st.integers(0, len(table.cuts) - 1)
    choice = data.draw(st.lists(pick, min_size=2, max_size=2))
    names = [operator.name for operator in problem.application.operators]
    cuts = {
        fog: tuple(n for n, here in zip(names, table.cuts.members[k], strict=True) if here)
        for fog, k in zip(FOGS, choice, strict=True)
    }
    placement = placement_of(cuts, problem, adapter.sites)
    assert placement == table.place(pa.array(choice).to_numpy())
    assert cuts_of(placement, problem, adapter.sites) == cuts


def test_a_plan_that_is_no_cut_is_refused_with_every_operator(tmp_path: Path) -> None:
    adapter = adapter_of(city())
    problem = adapter.problem(None)
    from thalweg.model.placement import Instance, Placement

    placement = Placement.of(
        [Instance(operator="parse", node="fog-0"), Instance(operator="clean", node="fog-1")]
    )
    with pytest.raises(InvalidInput) as told:
        cuts_of(placement, problem, find_sites(problem))
    assert [defect.path for defect in told.value.defects] == ["plan.parse", "plan.clean"]


# Decisions


def rates_of(total: float) -> dict[tuple[str, str], float]:
    return {("rides", fog): total / 2 for fog in FOGS}


def test_a_surge_is_answered_after_two_looks_and_the_same_question_not_twice() -> None:
    limits = Limits(response_time_s=60.0, uplink_bps=1e6)
    adapter = adapter_of(city(), limits, trigger=Trigger(patience=2, rest_s=30.0))
    _, calm = adapter.plan(rates_of(100.0))
    nothing = dict.fromkeys(FOGS, ())
    state, looked = ControllerState(), []
    for second in range(3):
        verdict, state = adapter.look(state, float(second), nothing, rates_of(50_000.0))
        looked.append(verdict.adapt)
        if verdict.adapt:
            break
    assert looked == [False, True]
    assert "uplink" in verdict.reason
    assert verdict.cuts is not None
    assert verdict.plan is not None
    assert set(verdict.cuts) == set(calm) == set(FOGS)
    assert any(verdict.cuts.values())
    after = adapter.observe(ControllerState(), 3.0, verdict.cuts, rates_of(50_000.0))
    assert verdict.seen is not None
    assert after is not None
    assert after.observation.uplink_bps < verdict.seen.uplink_bps
    # What the strategy cannot better, it is not asked for at every look.
    again = [adapter.look(state, 10.0 + k, verdict.cuts, rates_of(50_000.0)) for k in range(3)]
    assert not any(v.adapt and v.cuts == verdict.cuts for v, _ in again)


def test_nothing_is_done_before_rates_are_known_and_while_hands_hold_the_cuts() -> None:
    adapter = adapter_of(city(), Limits(uplink_bps=1.0), trigger=Trigger(patience=1, rest_s=30.0))
    nothing = dict.fromkeys(FOGS, ())
    verdict, state = adapter.look(ControllerState(), 0.0, nothing, None)
    assert not verdict.adapt
    assert "no rates" in verdict.reason
    held = adapter.hold(state, 100.0, "cuts were set by hand")
    verdict, state = adapter.look(held, 129.0, nothing, rates_of(5000.0))
    assert not verdict.adapt
    assert verdict.reason.startswith("kept: cuts were set by hand, which holds for another 1 s")
    verdict, _ = adapter.look(state, 130.0, nothing, rates_of(5000.0))
    assert verdict.adapt


# Restarts


@given(st.lists(st.floats(0.0, 300.0), max_size=40), st.integers(0, 5), st.floats(1.0, 100.0))
def test_a_budget_allows_what_fits_into_every_span(
    gaps: list[float], most: int, within_s: float
) -> None:
    budget, now_s, granted = RestartBudget(most=most, within_s=within_s), 0.0, list[float]()
    for gap in gaps:
        now_s += gap
        # The slow way: count all that were granted within the span.
        recent = [then for then in granted if now_s - then < within_s]
        if len(recent) < most:
            budget.spend("fog-0", now_s, "why")
            granted.append(now_s)
        else:
            with pytest.raises(DeploymentFailed, match="why"):
                budget.spend("fog-0", now_s, "why")
    assert budget.total == len(granted)
    if most:
        RestartBudget(most=most).spend("another", now_s, "why")


# The folder, and what is left in it


MANIFEST = RunManifest(pipeline="a:b", graph="1", network="city", fogs=FOGS, cloud="cloud")


def test_a_folder_is_held_by_one_run_and_free_again_after_it(tmp_path: Path) -> None:
    folder, other = RunFolder(tmp_path / "run"), RunFolder(tmp_path / "run")
    folder.require_free()
    with folder.hold():
        assert other.is_held()
        with pytest.raises(InvalidInput, match="thalweg stop"):
            other.require_free()
        with pytest.raises(InvalidInput, match="no other run"), other.hold():
            pass
    assert not other.is_held()
    other.require_free()


def test_another_pipeline_and_network_are_refused_with_every_difference(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_manifest(MANIFEST)
    assert folder.read_manifest() == MANIFEST
    other = replace(MANIFEST, pipeline="c:d", network="town", fogs=("fog-9",))
    with pytest.raises(InvalidInput) as told:
        other.require_same(MANIFEST)
    assert [d.path for d in told.value.defects] == ["pipeline", "network", "fogs"]
    with pytest.raises(InvalidInput, match="operators have changed"):
        replace(MANIFEST, graph="2").require_same(MANIFEST)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(InvalidInput, match="as a run writes it"):
        folder.read_manifest()


def test_a_folder_that_cannot_be_written_and_one_without_a_run_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="can be written"):
        RunFolder(tmp_path / "file" / "run").require_free()
    with pytest.raises(InvalidInput, match="the folder of a run"):
        RunFolder.of_run(tmp_path)


def test_decisions_survive_a_torn_line_and_history_comes_back(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_decisions() == []
    folder.write_decision({"a": 1})
    with folder.decisions_file.open("a") as file:
        file.write('{"a": ')
    folder.write_decision({"a": 2})
    assert folder.read_decisions() == [{"a": 1}, {"a": 2}]
    entry = HistoryEntry(cuts={"fog-0": SMALL}, reason="why", at_s=1.0, plan="0001.json")
    folder.write_history([entry] * 150)
    assert folder.read_history() == [entry] * 100
    assert [folder.keep_plan("{}") for _ in range(3)] == ["0001.json", "0002.json", "0003.json"]


def test_decisions_take_turns_between_two_files_and_the_last_changes_stay(tmp_path: Path) -> None:
    file = tmp_path / "decisions.jsonl"
    first = {"at_s": 0, "changed": True, "plan": "0001.json", "reason": "first"}
    moved = {"at_s": 1, "changed": True, "plan": None, "reason": "by hand"}
    looks = [{"at_s": k, "changed": False, "plan": None, "reason": "kept"} for k in range(2, 200)]
    for decision in (first, moved, *looks):
        write_decision(file, decision, most_bytes=2000)
        assert sum(f.stat().st_size for f in tmp_path.iterdir()) <= 4000
    found = RunFolder(tmp_path).read_decisions()
    assert found[:2] == [first, moved]
    assert found[2:] == looks[-len(found[2:]) :]
    assert len(found) > 10
    # Between the two renames a crash leaves no newer file: the last changes are not lost for it.
    file.unlink()
    for decision in looks:
        write_decision(file, decision, most_bytes=2000)
    assert RunFolder(tmp_path).read_decisions()[:2] == [first, moved]


def test_requests_are_given_in_their_order_and_answered(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert take_one(folder) is None
    asked = [Request(kind=ROLLBACK), Request(kind=MOVE, cuts={"fog-0": SMALL}), Request(kind=STOP)]
    for request in asked:
        leave(folder, request)
    assert folder.control.stat().st_mode & 0o077 == 0
    # A rollback is given until it is answered: one that is cut off must not be forgotten.
    assert [take_one(folder), take_one(folder)] == [asked[0], asked[0]]
    answer(folder, asked[0], "done so", done=True)
    assert [take_one(folder) for _ in range(3)] == [*asked[1:], None]
    assert await_answer(folder, asked[0], 0.0, goes_on=lambda: False) == (True, "done so")
    assert await_answer(folder, asked[0], 60.0, goes_on=lambda: False) is None
    assert await_answer(folder, asked[0], 0.01, goes_on=lambda: True) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"kind": "stop"}',
        '{"kind": "delete", "cuts": {}}',
        '{"kind": "move", "cuts": {}}',
        '{"kind": "move", "cuts": {"../etc": ["a"]}}',
        '{"kind": "move", "cuts": {"fog-0": ["a/b"]}}',
        '{"kind": "stop", "cuts": {"fog-0": []}}',
    ],
)
def test_what_is_no_request_is_put_aside(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path)
    folder.control.mkdir()
    (folder.control / f"1-{'0' * 32}.request.json").write_text(text)
    (folder.control / "../x.request.json").write_text('{"kind": "stop", "cuts": {}}')
    (folder.control / "x.request.json").write_text('{"kind": "stop", "cuts": {}}')
    assert take_one(folder) is None
    assert not (folder.control / f"1-{'0' * 32}.request.json").exists()


# What went through


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(FOGS), st.integers(0, 30)), max_size=15), st.data())
def test_a_tally_has_every_row_once_and_rates_of_its_span(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[tuple[str, int]],
    data: st.DataObject,
) -> None:
    root = tmp_path_factory.mktemp("log")
    tally = Tally(Log(root), ["rides"], span_s=5.0)
    looks: list[tuple[float, dict[str, int]]] = []
    sent, now_s = dict.fromkeys(FOGS, 0), 0.0
    for number, (site, rows) in enumerate(batches):
        table = pa.table({"n": pa.array(range(rows), pa.int64())})
        LogWriter(root, "sources/rides", site, 0, durable=False).publish(number, table)
        LogWriter(root, "edges/a+b", site, number % 2, durable=False).publish(number, table)
        sent[site] += rows
        now_s += data.draw(st.floats(0.1, 4.0))
        tally.update(now_s)
        looks.append((now_s, dict(sent)))
    assert {fog: tally.rows_in["rides", fog] for fog in FOGS} == sent
    assert {fog: tally.sent_rows[fog, "a+b"] for fog in FOGS} == sent
    if len(looks) < 2 or not tally.rows_in:
        assert tally.rates() is None
        return
    # The slow way: from the newest look that is a whole span ago, or from the first.
    begin = max([(t, s) for t, s in looks if now_s - t >= 5.0] or looks[:1], key=lambda x: x[0])
    for (_, site), rate in (tally.rates() or {}).items():
        assert rate == pytest.approx((sent[site] - begin[1][site]) / (now_s - begin[0]))


# The life of a run, played


class PlayedRuntime:
    """Sites that die when told to, and go where they are told."""

    def __init__(self, cuts: dict[str, tuple[str, ...]] | None = None) -> None:
        self.cuts = dict(cuts or {})
        self.events: list[SiteEvent] = []
        self.dead: set[str] = set()
        self.restarted: list[tuple[str, str | None]] = []
        self.fail_next: list[str] = []
        self.stopped = False

    def go_to(self, cuts: Any) -> Sequence[object]:
        if self.fail_next:
            site = self.fail_next.pop(0)
            self.dead.add(site)
            self.events.append(died(site))
            raise SiteError(site, "drain", "its process ended")
        steps = [f"move {s}" for s in cuts if self.cuts.get(s) != cuts[s]]
        self.cuts.update(cuts)
        return steps

    def restart(self, site: str, query: str | None = None) -> None:
        self.restarted.append((site, query))
        self.dead.discard(site)

    def is_alive(self, site: str) -> bool:
        return site not in self.dead

    def next_event(self, timeout_s: float) -> SiteEvent | None:
        return self.events.pop(0) if self.events else None

    def records(self):
        return []

    def status(self) -> dict[str, Any]:
        return {}

    def stop(self) -> None:
        self.stopped = True


def died(site: str, kind: str = "died", query: str | None = None) -> SiteEvent:
    return SiteEvent(site=site, kind=kind, detail="signal 9", query=query)


def loop_of(
    folder: Path,
    runtime: PlayedRuntime,
    adapter: Any = None,
    clock: Callable[[], float] = time.monotonic,
    **more: Any,
) -> DeploymentLoop:
    def require_cuts(cuts: Any) -> None:
        if not all(is_name(site) and set(cut) <= {"parse", "clean"} for site, cut in cuts.items()):
            raise InvalidInput([])

    parts = RunParts(
        runtime=runtime,
        folder=RunFolder(folder),
        tally=Tally(Log(folder / "log"), ["rides"]),
        require_cuts=require_cuts,
        adapter=adapter,
        budget=RestartBudget(most=3, within_s=60.0),
        clock=clock,
        **more,
    )
    return DeploymentLoop(parts, 0.0)


def begun(folder: Path, runtime: PlayedRuntime, adapter: Any = None) -> DeploymentLoop:
    loop = loop_of(folder, runtime, adapter)
    plan, _ = adapter_of(city()).plan(None)
    loop.begin(plan, dict.fromkeys(FOGS, SMALL), 0.0)
    return loop


def ask(folder: Path, kind: str, **cuts: Any) -> Request:
    request = Request(kind=kind, cuts=cuts.get("cuts", {}))
    leave(RunFolder(folder), request)
    return request


def answered(folder: Path, request: Request) -> tuple[bool, str]:
    found = await_answer(RunFolder(folder), request, 0.0, goes_on=lambda: False)
    assert found is not None
    return found


def test_a_first_start_deploys_the_plan_and_the_next_one_goes_on(tmp_path: Path) -> None:
    runtime = PlayedRuntime()
    begun(tmp_path, runtime)
    assert runtime.cuts == dict.fromkeys(FOGS, SMALL)
    assert (tmp_path / "plans" / "0001.json").exists()
    runtime.cuts["fog-1"] = ("parse",)
    begun(tmp_path, runtime)
    assert runtime.cuts["fog-1"] == ("parse",)
    first, second = RunFolder(tmp_path).read_decisions()
    assert (first["cause"], first["plan"], first["changed"]) == ("first", "0001.json", True)
    assert (second["cause"], second["changed"]) == ("resume", False)
    assert [entry.reason for entry in RunFolder(tmp_path).read_history()][1] == "found running"


def test_moves_and_rollbacks_go_there_and_all_the_way_back(tmp_path: Path) -> None:
    runtime = PlayedRuntime()
    loop = begun(tmp_path, runtime)
    for cut in (("parse",), ()):
        request = ask(tmp_path, MOVE, cuts={"fog-0": cut})
        loop.turn(1.0)
        assert answered(tmp_path, request)[0]
    assert runtime.cuts == {"fog-0": (), "fog-1": SMALL}
    for expected in (("parse",), SMALL):
        request = ask(tmp_path, ROLLBACK)
        loop.turn(2.0)
        assert answered(tmp_path, request)[0]
        assert runtime.cuts["fog-0"] == expected
    request = ask(tmp_path, ROLLBACK)
    loop.turn(3.0)
    assert answered(tmp_path, request) == (False, "there are no earlier cuts to go back to")
    causes = [d["cause"] for d in RunFolder(tmp_path).read_decisions()]
    assert causes == ["first", "move", "move", "rollback", "rollback"]


def test_a_change_that_takes_long_says_that_it_goes_on(tmp_path: Path) -> None:
    """Else whoever looks in takes it for one that hangs."""
    runtime, operations = PlayedRuntime(dict.fromkeys(FOGS, SMALL)), HeldOperations()
    loop = loop_of(tmp_path, runtime, operations=operations)
    request = ask(tmp_path, MOVE, cuts={"fog-0": ()})
    for now_s in (11.0, 13.0, 101.0):
        loop.turn(now_s)
        loop.look(now_s)
        told = RunFolder(tmp_path).read_status()
        assert told["heartbeat_s"] == pytest.approx(now_s, abs=1.0)
        assert told["under_way"]["kind"] == "change"
        assert told["under_way"]["began_at_s"] == pytest.approx(11.0, abs=1.0)
        assert "fog-0: nothing" in told["under_way"]["what"]
    assert runtime.cuts["fog-0"] == SMALL
    assert operations.finish() == ["change of cuts"]
    loop.turn(102.0)
    assert answered(tmp_path, request)[0]
    assert runtime.cuts["fog-0"] == ()
    assert RunFolder(tmp_path).read_status()["under_way"] is None
    (decision,) = RunFolder(tmp_path).read_decisions()
    assert decision["begin_s"] == decision["at_s"]
    assert decision["end_s"] == pytest.approx(decision["begin_s"] + decision["seconds"], abs=0.002)


def test_a_rollback_left_for_a_stopped_run_is_taken_at_its_next_start(tmp_path: Path) -> None:
    runtime = PlayedRuntime()
    loop = begun(tmp_path, runtime)
    ask(tmp_path, MOVE, cuts={"fog-0": ()})
    loop.turn(1.0)
    ask(tmp_path, ROLLBACK)
    begun(tmp_path, runtime)
    assert runtime.cuts["fog-0"] == SMALL
    begun(tmp_path, runtime)
    assert list(RunFolder(tmp_path).control.iterdir()) == []


def test_a_move_that_sites_cannot_run_is_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    runtime = PlayedRuntime()
    loop = begun(tmp_path, runtime)
    request = ask(tmp_path, MOVE, cuts={"fog-0": ("total",)})
    loop.turn(1.0)
    assert not answered(tmp_path, request)[0]
    assert runtime.cuts["fog-0"] == SMALL
    ask(tmp_path, STOP)
    loop.turn(2.0)
    assert loop.stopping


def test_dead_sites_are_started_again_and_failed_queries_alone(tmp_path: Path) -> None:
    runtime = PlayedRuntime()
    loop = begun(tmp_path, runtime)
    runtime.dead.add("fog-0")
    runtime.events += [died("fog-0"), died("cloud", "query-failed", "cloud@0"), died("fog-1")]
    loop.turn(1.0)
    # fog-1 lives: its death was told after somebody had mended it.
    assert runtime.restarted == [("fog-0", None), ("cloud", "cloud@0")]
    assert [restart["site"] for restart in loop.restarts] == ["fog-0", "cloud"]
    assert loop.report("ended", 9.0)["seconds"] == 9.0


def test_a_site_that_keeps_dying_ends_the_run_with_its_cause(tmp_path: Path) -> None:
    runtime = PlayedRuntime()
    loop = begun(tmp_path, runtime)
    for second in range(3):
        runtime.events.append(died("fog-0", "query-failed", "fog-0@0"))
        loop.turn(float(second))
    runtime.events.append(died("fog-0", "query-failed", "fog-0@0"))
    with pytest.raises(DeploymentFailed, match=r"fog-0 was started again 3 times .* signal 9"):
        loop.turn(4.0)


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_a_clock_that_is_set_neither_spends_nor_fills_the_budget(
    tmp_path: Path, jump_s: float
) -> None:
    runtime, steady_s = PlayedRuntime(), [0.0]
    loop = loop_of(tmp_path, runtime, clock=lambda: steady_s[0])
    loop.begin(adapter_of(city()).plan(None)[0], dict.fromkeys(FOGS, SMALL), 10_000.0)

    def die(at_s: float) -> None:
        steady_s[0] += 1.0
        runtime.events.append(died("fog-0", "query-failed", "fog-0@0"))
        loop.turn(at_s)

    for second in range(3):
        die(10_000.0 + second)
    # Set back, and a minute later, there is a budget again; set forward, there is none yet.
    with pytest.raises(DeploymentFailed, match="started again 3 times"):
        die(10_003.0 + jump_s)
    steady_s[0] += 60.0
    die(10_063.0 + jump_s)
    assert len(runtime.restarted) == 4


def test_a_clock_that_is_set_back_leaves_rates_and_holds_as_they_are(tmp_path: Path) -> None:
    limits = Limits(response_time_s=60.0, uplink_bps=1e5)
    adapter = adapter_of(city(), limits, trigger=Trigger(patience=1, rest_s=30.0))
    runtime, steady_s = PlayedRuntime(dict.fromkeys(FOGS, ())), [0.0]
    loop = loop_of(tmp_path, runtime, replace_checks(adapter), clock=lambda: steady_s[0])
    loop.begin(adapter.plan(None)[0], dict.fromkeys(FOGS, ()), 10_000.0)
    ask(tmp_path, MOVE, cuts={"fog-0": ("parse",)})
    loop.turn(10_000.0)
    reasons = []
    for second, jump_s in ((1, 0.0), (2, -3600.0), (3, -3600.0), (40, -3600.0)):
        steady_s[0] = float(second)
        for fog in FOGS:
            writer = LogWriter(tmp_path / "log", "sources/rides", fog, 0, durable=False)
            writer.publish(second, pa.table({"n": pa.array(range(3000), pa.int64())}))
        loop.look(10_000.0 + second + jump_s)
        reasons.append(RunFolder(tmp_path).read_decisions()[-1]["reason"])
    assert "holds for another 29 s" in reasons[0]
    assert "holds for another 28 s" in reasons[1]
    assert "holds for another 27 s" in reasons[2]
    assert "holds" not in reasons[3]


def test_what_was_mended_is_told_in_the_decisions(tmp_path: Path) -> None:
    class Mending(PlayedRuntime):
        def restart(self, site: str, query: str | None = None) -> Sequence[str]:
            super().restart(site, query)
            return ("commits/7 is empty: set aside",)

    runtime = Mending()
    loop = begun(tmp_path, runtime)
    runtime.events.append(died("fog-0", "query-failed", "fog-0@0"))
    loop.turn(1.0)
    last = RunFolder(tmp_path).read_decisions()[-1]
    assert (last["cause"], last["changed"]) == ("repair", False)
    assert last["reason"] == "mended: commits/7 is empty: set aside"


def test_damage_that_cannot_be_mended_ends_the_run_without_a_second_try(tmp_path: Path) -> None:
    class Damaged(PlayedRuntime):
        def restart(self, site: str, query: str | None = None) -> Sequence[str]:
            raise DeploymentFailed("a checkpoint is damaged. Hint: `thalweg doctor`")

    runtime = Damaged()
    loop = begun(tmp_path, runtime)
    runtime.events.append(died("fog-0", "query-failed", "fog-0@0"))
    with pytest.raises(DeploymentFailed, match="a checkpoint is damaged"):
        loop.turn(1.0)
    assert len(loop.restarts) == 1


def test_a_site_that_dies_in_a_hand_over_is_mended_and_the_hand_over_ended(tmp_path: Path) -> None:
    runtime = PlayedRuntime()
    loop = begun(tmp_path, runtime)
    runtime.fail_next = ["fog-0", "fog-1"]
    request = ask(tmp_path, MOVE, cuts={"fog-0": ()})
    loop.turn(1.0)
    assert answered(tmp_path, request)[0]
    assert runtime.cuts["fog-0"] == ()
    assert runtime.restarted == [("fog-0", None), ("fog-1", None)]


def test_looks_adapt_write_their_reasons_and_tell_a_status(tmp_path: Path) -> None:
    limits = Limits(response_time_s=60.0, uplink_bps=1e5)
    adapter = adapter_of(city(), limits, trigger=Trigger(patience=1, rest_s=30.0))
    runtime = PlayedRuntime(dict.fromkeys(FOGS, ()))
    steady_s = [0.0]
    loop = loop_of(tmp_path, runtime, replace_checks(adapter), clock=lambda: steady_s[0])
    plan, _ = adapter.plan(None)
    loop.begin(plan, dict.fromkeys(FOGS, ()), 0.0)
    for second in range(3):
        steady_s[0] = float(second)
        for fog in FOGS:
            writer = LogWriter(tmp_path / "log", "sources/rides", fog, 0, durable=False)
            writer.publish(second, pa.table({"n": pa.array(range(3000), pa.int64())}))
        loop.look(float(second))
    decisions = RunFolder(tmp_path).read_decisions()
    assert "no rates" in decisions[1]["reason"]
    (adapted,) = [d for d in decisions if d["cause"] == "adapt"]
    assert "uplink" in adapted["reason"]
    assert adapted["figures"]["uplink_bps"] > 1e5
    assert adapted["rates"]["rides"]["fog-0"] == pytest.approx(3000.0)
    assert (tmp_path / "plans" / adapted["plan"]).exists()
    assert runtime.cuts == {fog: tuple(adapted["to"][fog]) for fog in FOGS}
    status = loop.status("running", 3.0)
    assert (status["rows_in"], status["changes"], status["error"]) == (18_000, 1, None)
    json.dumps(status, allow_nan=False)


@pytest.mark.parametrize("trouble", ["no plan", "no cut"])
def test_a_strategy_that_fails_does_not_end_the_run(tmp_path: Path, trouble: str) -> None:
    class Broken:
        controller = SimpleNamespace(interval_s=2.0, rates=lambda _state: None)

        def look(self, state: ControllerState, *_: Any) -> Any:
            if trouble == "no plan":
                raise StrategyError("it returned nothing")
            return Verdict(reason="why not", cuts={"fog-0": ("total",)}), state

        def observe(self, *_: Any) -> None:
            return None

        def learn(self, state: ControllerState, *_: Any, **__: Any) -> ControllerState:
            return state

        hold = begin_change = end_change = learn

    runtime = PlayedRuntime()
    loop = begun(tmp_path, runtime, Broken())
    loop.look(1.0)
    assert runtime.cuts == dict.fromkeys(FOGS, SMALL)
    last = RunFolder(tmp_path).read_decisions()[-1]
    assert last["reason"].startswith("kept: nothing better can be planned")


def test_cuts_with_global_operators_holes_or_strangers_are_all_refused() -> None:
    prepared = prepare(RunWishes(pipeline="taxi-fares", network=city()), dry=True)
    prepared.require_cuts(dict.fromkeys(FOGS, SMALL))
    merges = [step.name for step in prepared.pipeline.steps if step.role == "global"]
    cuts = {"fog-0": ("clean",), "fog-1": ("parse", *merges[:1], "nobody"), "fog-7": ()}
    with pytest.raises(InvalidInput) as told:
        prepared.require_cuts(cuts)
    assert {defect.path.split(".")[1] for defect in told.value.defects} == set(cuts)
    assert any("nobody" in str(defect) for defect in told.value.defects)
    assert any("parse is not in it" in str(defect) for defect in told.value.defects)


def replace_checks(adapter: Adapter) -> Any:
    """The adapter with a strategy's answer that the played sites can run."""

    class OnlySmall:
        def look(self, *arguments: Any) -> Any:
            verdict, state = adapter.look(*arguments)
            small = dict.fromkeys(FOGS, SMALL)
            if verdict.cuts is not None:
                verdict = replace(verdict, cuts=None if arguments[2] == small else small)
            return verdict, state

        controller = adapter.controller
        learn, observe, hold = adapter.learn, adapter.observe, adapter.hold
        begin_change, end_change = adapter.begin_change, adapter.end_change

    return OnlySmall()


# The handle


@contextmanager
def played_sites(*_: Any) -> Iterator[Any]:
    yield PlayedRuntime()


def handle(folder: Path, **fields: Any) -> Deployment:
    given = {"folder": folder, "open_sites": played_sites, "interval": "50 ms", **fields}
    return Deployment("taxi-fares", city(), **given)


def test_the_handle_starts_moves_rolls_back_and_stops(tmp_path: Path) -> None:
    run = handle(tmp_path / "run")
    assert (run.is_active, run.exception, run.await_termination(0.0)) == (False, None, True)
    run.start()
    try:
        assert run.is_active
        assert not run.await_termination(0.01)
        with pytest.raises(InvalidInput, match="no other run holds"):
            handle(tmp_path / "run")
        before = run.cuts
        wanted = {"fog-0": () if before["fog-0"] else ("parse",)}
        assert run.move(wanted).startswith("moved to fog-0: ")
        with pytest.raises(InvalidInput, match="fog-9"):
            run.move({"fog-9": ()})
        assert run.rollback().startswith("rolled back to")
        while run.cuts != before:
            time.sleep(0.01)
        assert run.status["state"] == "running"
    finally:
        run.stop()
    assert (run.is_active, run.status["state"], run.exception) == (False, "ended", None)
    with pytest.raises(DeploymentFailed, match="does not run"):
        run.rollback()
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert [change["cause"] for change in report["changes"]] == ["first", "move", "rollback"]


def test_what_ends_a_run_is_told_by_the_handle(tmp_path: Path) -> None:
    @contextmanager
    def broken(*_: Any) -> Iterator[Any]:
        raise SiteError("fog-0", "open", "there is no Spark")
        yield

    run = handle(tmp_path / "run", open_sites=broken)
    with pytest.raises(SiteError, match="there is no Spark"):
        run.start()
    assert run.status["state"] == "failed"
    assert (
        "there is no Spark" in json.loads((tmp_path / "run" / "status.json").read_text())["error"]
    )
    with pytest.raises(SiteError):
        run.await_termination()


def test_a_stop_request_from_elsewhere_ends_the_run(tmp_path: Path) -> None:
    with handle(tmp_path / "run") as run:
        leave(run.folder, Request(kind=STOP))
        assert run.await_termination(60.0)
    assert run.status["state"] == "ended"


def test_a_stop_of_the_life_before_is_forgotten_and_one_while_sites_start_is_not(
    tmp_path: Path,
) -> None:
    asked = list[bool]()

    @contextmanager
    def slow_sites(*_: Any) -> Iterator[Any]:
        if asked:
            leave(RunFolder(tmp_path / "run"), Request(kind=STOP))
        asked.append(True)
        yield PlayedRuntime()

    (tmp_path / "run").mkdir()
    leave(RunFolder(tmp_path / "run"), Request(kind=STOP))
    with handle(tmp_path / "run", open_sites=slow_sites) as run:
        assert not run.await_termination(0.5)
    again = handle(tmp_path / "run", open_sites=slow_sites).start(wait=False)
    assert again.await_termination(60.0)
    assert (len(asked), again.status["state"]) == (2, "ended")


def test_a_feed_gets_a_gateway_for_each_fog_and_its_end_is_told(tmp_path: Path) -> None:
    given: list[Any] = []

    class Feed:
        error: Exception | None = None
        ended = threading.Event()

        def stop(self) -> None:
            self.ended.set()

    feed = Feed()

    def start(gateways: Any) -> Feed:
        given.append(set(gateways))
        return feed

    run = handle(tmp_path / "run", feed=start).start()
    while not given:
        time.sleep(0.01)
    feed.error = OSError("disk full")
    with pytest.raises(DeploymentFailed, match="disk full"):
        run.await_termination(60.0)
    assert given == [set(FOGS)]
    assert feed.ended.is_set()


def test_all_problems_of_a_run_are_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput) as told:
        Deployment(
            "taxi-fare",
            tmp_path / "none.yaml",
            folder=tmp_path / "file" / "run",
            strategy="atso",
            interval="2",
            trigger="0 s",
        )
    text = str(told.value)
    for part in ("taxi-fares", "none.yaml", "can be written", "atsoo", "interval", "trigger"):
        assert part in text
    assert len(told.value.defects) == 6


def test_sites_where_nobody_answers_are_all_told(tmp_path: Path) -> None:
    network = replace(city(), addresses=dict.fromkeys(FOGS, "sc://127.0.0.1:1"))
    with pytest.raises(InvalidInput) as told:
        Deployment("taxi-fares", network, folder=tmp_path / "run")
    assert [d.path for d in told.value.defects] == [f"sites.{fog}.master" for fog in FOGS]
    prepared = prepare(RunWishes(pipeline="taxi-fares", network=network), dry=True)
    assert {spec.master for spec in prepared.site_specs} == {"sc://127.0.0.1:1", "local[1]"}


def test_a_dry_run_tells_the_steps_and_writes_nothing(tmp_path: Path) -> None:
    wishes = RunWishes(pipeline="taxi-fares", network=city(), folder=tmp_path / "run")
    told = prepare(wishes, dry=True).outline()
    assert told[0] == "start cloud: the whole of taxi-fares"
    assert [line.split(":")[0] for line in told[1:]] == [
        "start epoch 0 on fog-0",
        "start epoch 0 on fog-1",
    ]
    assert not (tmp_path / "run").exists()


# On Spark

PIPELINE = "spark.site_pipelines:rides"
PATIENCE_S = 180.0


@pytest.mark.jvm
@pytest.mark.slow
def test_a_run_is_moved_killed_and_resumed_and_every_row_arrives_once(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    save(fog_cloud(1, seed=1), tmp_path / "net.yaml")
    words = ["run", PIPELINE, str(tmp_path / "net.yaml"), str(folder), "--no-adapt"]
    here = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, here))}
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "thalweg", *words],
            stdout=said,
            stderr=said,
            env=environment,
            cwd=tmp_path,
        )
    found = RunFolder(folder)
    gateway = Gateway(folder / "log", "rides", "fog-0", time="at", durable=False, founds=True)
    try:
        send_numbers(gateway, 0, 50)
        wait_for(lambda: process.poll() is not None or len(listed(folder)) == 50)
        assert process.poll() is None, (tmp_path / "said").read_text()
        request = Request(kind=MOVE, cuts={"fog-0": ("clean", "dear")})
        leave(found, request)
        answered = await_answer(found, request, PATIENCE_S, goes_on=found.is_held)
        assert answered == (True, "moved to fog-0: clean, dear")
        send_numbers(gateway, 50, 50)
        wait_for(lambda: len(listed(folder)) >= 75)
        sites = wait_for(lambda: found.read_status().get("sites"))
    finally:
        process.kill()
        process.wait()
    pids = [site["pid"] for site in sites.values()]
    assert len(pids) == 2
    wait_for(lambda: not any(is_running(pid) for pid in pids))
    assert not found.is_held()
    send_numbers(gateway, 100, 50)
    with Deployment(PIPELINE, tmp_path / "net.yaml", folder=folder, adapt=None) as run:
        assert run.cuts == {"fog-0": ("clean", "dear")}
        wait_for(lambda: len(listed(folder)) >= 150)
        wait_for(lambda: run.status["rows_out"]["list"] >= 150)
    assert listed(folder) == list(range(150))
    assert run.report["state"] == "ended"
    assert run.report["rows_in"] == 150
    causes = [decision["cause"] for decision in found.read_decisions()]
    assert causes == ["first", "move", "resume"]
    verify_and_spoil(folder)


def verify_and_spoil(folder: Path) -> None:
    """What came out is right; with some of it once more, it is not."""
    right = verify(PIPELINE, folder)
    assert right.same, right
    assert (right.born, right.verdicts["list"].found, right.ended) == (150, 150, False)
    some = Log(folder / "log").read("sinks/list").slice(0, 7)
    LogWriter(folder / "log", "sinks/list", "cloud", 9, durable=False).publish(0, some)
    spoilt = verify(PIPELINE, folder)
    assert not spoilt.same
    assert (spoilt.verdicts["list"].duplicated, spoilt.extra, spoilt.missing) == (7, 7, 0)
    with pytest.raises(InvalidInput, match="the pipeline of this run"):
        verify("taxi-fares", folder)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    # Nobody has to have asked a dead process for its exit code.
    return state != "Z"
