from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark.keyed_pipelines import tally, tally_at_once
from spark.keyed_specs import spec_in
from spark.threaded_site import ThreadedSite
from thalweg.errors import InvalidInput
from thalweg.spark.keyed.log import KeyedLog, Ledger
from thalweg.spark.keyed.move import CatchUp, Fence, PrepareTarget, Retire, Step, TakeOver
from thalweg.spark.keyed.mover import (
    KeyedMover,
    MoveFailed,
    MoveHeld,
    move_keyed,
    read_journal,
)
from thalweg.spark.keyed.spec import KeyedSpec
from thalweg.spark.log.reader import Log, LogWriter
from thalweg.spark.site.channel import SiteError
from thalweg.spark.site.site import SiteSpec
from thalweg.spark.site.sites import Sites

pytestmark = pytest.mark.jvm

PATIENCE_S = 120.0
MOVES = 10
VEHICLES = 97
RIDES = pa.table({"ride": [1, 2], "vehicle": [7, 8]})


class Crashed(Exception):
    """The mover has ended between two steps."""


def crash_before(kind: type[Step]) -> Callable[[Step], None]:
    def crash(step: Step) -> None:
        if isinstance(step, kind):
            raise Crashed

    return crash


class Gateway:
    """Numbered rides, without end until told."""

    def __init__(self, spec: KeyedSpec) -> None:
        self.rides: list[tuple[int, int]] = []
        self._writer = LogWriter(spec.log, spec.input, "gate", 0, durable=False)
        self._batches = count()

    @contextmanager
    def open(self) -> Iterator[None]:
        ending = threading.Event()

        def send() -> None:
            while not ending.wait(0.05):
                first = len(self.rides)
                rides = [(n, n * 7919 % VEHICLES) for n in range(first, first + 50)]
                self.rides += rides
                ride, vehicle = zip(*rides, strict=True)
                table = pa.table({"ride": ride, "vehicle": vehicle})
                self._writer.publish(next(self._batches), table)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()


def wait_for_output(spec: KeyedSpec, rows: int) -> list[tuple[int, int, int]]:
    log = Log(spec.log)
    deadline = time.monotonic() + PATIENCE_S
    while sum(segment.rows for segment in log.segments(spec.output)) < rows:
        assert time.monotonic() < deadline, "the output does not come"
        time.sleep(0.05)
    table = log.read(spec.output).to_pylist()
    return sorted((row["ride"], row["vehicle"], row["nth"]) for row in table)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    pytest.importorskip("pyspark")
    folder = tmp_path_factory.mktemp("sites")
    with Sites() as sites:
        sites.start([SiteSpec(name=name, folder=folder / name) for name in ("fog-1", "fog-2")])
        yield sites


def test_ten_moves_at_load_lose_nothing_repeat_nothing_and_keep_the_state(
    sites: Sites, tmp_path: Path
) -> None:
    spec = spec_in(tmp_path)
    gateway = Gateway(spec)
    with KeyedMover(spec, sites) as mover, gateway.open():
        mover.go_to("fog-1")
        wait_for_output(spec, 1)
        for move in range(MOVES):
            mover.go_to(("fog-2", "fog-1")[move % 2])
            wait_for_output(spec, len(gateway.rides))
    output = wait_for_output(spec, len(gateway.rides))
    assert output == tally_at_once(gateway.rides)
    ledger = Ledger(KeyedLog(Log(spec.log), tally))
    ledger.follow(MOVES)
    counts = {row["vehicle"]: row["rides"] for row in ledger.state.to_table().to_pylist()}
    assert counts == {vehicle: nth for _, vehicle, nth in output}
    assert {segment.epoch for segment in Log(spec.log).segments(spec.output)} == set(
        range(MOVES + 1)
    )
    assert [q.name for q in sites["fog-1"].status().queries] == [f"tally.fog-1@{MOVES}"]
    assert sites["fog-2"].status().queries == ()
    sites["fog-1"].stop(f"tally.fog-1@{MOVES}")


@pytest.mark.slow
def test_a_move_survives_the_death_of_its_mover_and_of_both_sites(
    sites: Sites, tmp_path: Path
) -> None:
    spec = spec_in(tmp_path)
    gateway = Gateway(spec)
    with gateway.open():
        move_keyed(spec, sites, "fog-1")
        wait_for_output(spec, 1)
        for kind in (CatchUp, Fence, TakeOver, Retire):
            target = "fog-1" if read_journal(spec.journal).site == "fog-2" else "fog-2"
            with pytest.raises(Crashed):
                move_keyed(spec, sites, target, on_step=crash_before(kind))
            if kind is Fence:
                # The one that the operator is to leave dies before it is left.
                kill(sites, "fog-1" if target == "fog-2" else "fog-2")
            if kind is TakeOver:
                # The one that is to take over dies when nobody else can go on.
                kill(sites, target)
                sites.restart(target)
            move_keyed(spec, sites, target)
            assert read_journal(spec.journal).site == target
            for name in sites:
                if not sites[name].alive:
                    sites.restart(name)
    assert wait_for_output(spec, len(gateway.rides)) == tally_at_once(gateway.rides)
    site = str(read_journal(spec.journal).site)
    for query in sites[site].status().queries:
        sites[site].stop(query.name)


def kill(sites: Sites, name: str) -> None:
    pid = sites[name].pid
    assert pid is not None
    os.killpg(pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while sites[name].alive:
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Without Spark


class DeadSite:
    """A site that takes every command and does nothing."""

    def __init__(self, alive: bool = True) -> None:
        self.alive = alive
        self.told: list[str] = []

    def start(self, query: Any) -> None:
        self.told.append(f"start {query.name}")

    def stop(self, query: str) -> None:
        self.told.append(f"stop {query}")

    def status(self) -> Any:
        return type("Status", (), {"queries": ()})


def test_a_dry_run_says_the_steps_and_takes_none(tmp_path: Path) -> None:
    spec, sites = spec_in(tmp_path), {"a": DeadSite(), "b": DeadSite()}
    assert move_keyed(spec, sites, "a", dry_run=True) == ("start epoch 0 on a",)
    move_keyed(spec, sites, "a")
    told = move_keyed(spec, sites, "b", dry_run=True)
    assert told[0] == "prepare epoch 1 on b, while epoch 0 goes on"
    assert len(told) == 5
    assert sites["b"].told == []
    assert read_journal(spec.journal).site == "a"


def test_a_target_that_never_gets_there_can_be_given_up(tmp_path: Path) -> None:
    spec, sites = spec_in(tmp_path), {"a": DeadSite(), "b": DeadSite(), "c": DeadSite()}
    with KeyedMover(spec, sites, patience_s=0.1) as mover:
        mover.go_to("a")
        with pytest.raises(MoveFailed, match="epoch 1 on b"):
            mover.go_to("b")
        assert mover.outline("a") == ("give up epoch 1 on b before it takes over",)
        mover.go_to("a")
        assert (mover.state.site, mover.state.phase) == ("a", "running")
    assert sites["b"].told == ["start tally.b@1", "stop tally.b@1"]
    assert Log(spec.log).find_fence("tally.b", 1, kind="states") is not None


def test_a_dead_target_is_told_at_once_where_it_can_be_known(tmp_path: Path) -> None:
    spec, sites = spec_in(tmp_path), {"a": DeadSite(), "b": DeadSite(alive=False)}
    with KeyedMover(spec, sites) as mover:
        mover.go_to("a")
        with pytest.raises(MoveFailed, match="has died"):
            mover.go_to("b")


def test_what_runs_is_started_again_by_the_next_mover(tmp_path: Path) -> None:
    spec, sites = spec_in(tmp_path), {"a": DeadSite(), "b": DeadSite()}
    with pytest.raises(Crashed), KeyedMover(spec, sites, on_step=crash_before(CatchUp)) as mover:
        mover.go_to("a")
        mover.go_to("b")
    anew = {"a": DeadSite(), "b": DeadSite()}
    with KeyedMover(spec, anew) as mover:
        assert mover.outline("b")[0].startswith("wait until epoch 1 on b has the state")
    assert (anew["a"].told, anew["b"].told) == (["start tally.a@0"], ["start tally.b@1"])


class BusySite(DeadSite):
    """Starts what it is told to, and is too late to say so."""

    late = True

    def start(self, query: Any) -> None:
        super().start(query)
        if self.late:
            raise SiteError("b", "start", "no answer in time")


def test_an_epoch_that_may_have_begun_keeps_its_number_and_is_fenced_if_it_is_given_up(
    tmp_path: Path,
) -> None:
    spec, sites = spec_in(tmp_path), {"a": DeadSite(), "b": BusySite(), "c": DeadSite()}
    with KeyedMover(spec, sites, patience_s=0.1) as mover:
        mover.go_to("a")
        with pytest.raises(SiteError):
            mover.go_to("b")
        with pytest.raises(MoveFailed, match="epoch 2 on c"):
            mover.go_to("c")
    assert Log(spec.log).find_fence("tally.b", 1, kind="states") is not None
    assert sites["c"].told == ["start tally.c@2"]


def test_an_epoch_that_may_not_have_begun_is_started_when_it_is_asked_for_again(
    tmp_path: Path,
) -> None:
    busy = BusySite()
    spec, sites = spec_in(tmp_path), {"b": busy}
    with KeyedMover(spec, sites) as mover:
        with pytest.raises(SiteError):
            mover.go_to("b")
        busy.late = False
        mover.go_to("b")
        mover.go_to("b")
    assert busy.told == ["start tally.b@0", "start tally.b@0"]


def test_each_epoch_that_may_not_have_begun_is_started_when_it_is_asked_for_again(
    tmp_path: Path,
) -> None:
    first, second = BusySite(), BusySite()
    spec, sites = spec_in(tmp_path), {"a": first, "b": second}
    with KeyedMover(spec, sites) as mover:
        for site in ("a", "b"):
            with pytest.raises(SiteError):
                mover.go_to(site)
        first.late = False
        mover.go_to("a")
        assert (mover.state.site, mover.state.phase) == ("a", "running")
    assert first.told == ["start tally.a@0", "start tally.a@0"]


def test_what_a_mover_fenced_and_did_not_write_down_is_known_to_the_next_one(
    tmp_path: Path,
) -> None:
    spec, sites = spec_in(tmp_path), {"a": DeadSite(), "b": DeadSite()}
    with pytest.raises(Crashed), KeyedMover(spec, sites, on_step=crash_before(CatchUp)) as mover:
        mover.go_to("a")
        mover.go_to("b")
    Log(spec.log).fence("tally.b", 1, kind="states")
    with (
        KeyedMover(spec, sites, patience_s=0.1) as mover,
        pytest.raises(MoveFailed, match="epoch 2 on b"),
    ):
        mover.go_to("b")


def test_a_line_that_a_crash_cut_off_does_not_count(tmp_path: Path) -> None:
    spec, sites = spec_in(tmp_path), {"a": DeadSite(), "b": DeadSite()}
    with pytest.raises(Crashed), KeyedMover(spec, sites, on_step=crash_before(CatchUp)) as mover:
        mover.go_to("a")
        mover.go_to("b")
    whole = spec.journal.read_text()
    spec.journal.write_text(whole[:-5])
    with KeyedMover(spec, sites) as mover:
        assert mover.state.phase == "running"
        assert isinstance(next_of(mover, "b"), PrepareTarget)
    spec.journal.write_text("nonsense\n" + whole)
    with pytest.raises(MoveFailed, match=r"jsonl:1: not a step"):
        read_journal(spec.journal)


def next_of(mover: KeyedMover, to: str) -> Step | None:
    from thalweg.spark.keyed.move import next_step

    return next_step(mover.state, to)


@pytest.mark.parametrize("lost", ["the file", "all lines", "the last lines", "the folder"])
def test_an_operator_whose_journal_is_lost_is_not_begun_anew(tmp_path: Path, lost: str) -> None:
    spec, sites = spec_in(tmp_path), {"a": ThreadedSite(), "b": ThreadedSite()}
    LogWriter(spec.log, spec.input, "gate", 0, durable=False).publish(0, RIDES)
    with KeyedMover(spec, sites) as mover:
        mover.go_to("a")
        wait_for_output(spec, RIDES.num_rows)
        first = spec.journal.read_text()
        mover.go_to("b")
    for site, epoch in (("a", 0), ("b", 1)):
        sites[site].stop(f"tally.{site}@{epoch}")
    if lost == "the file":
        spec.journal.unlink()
    elif lost == "the folder":
        spec = replace(spec, folder=tmp_path / "another")
    else:
        spec.journal.write_text(first if lost == "the last lines" else "")
    anew = {"a": DeadSite(), "b": DeadSite()}
    with pytest.raises(MoveFailed, match=r"knows nothing of epoch 1 of tally.*Hint"):
        move_keyed(spec, anew, "a")
    assert anew["a"].told == []


def test_two_movers_of_one_operator_are_one_too_many(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    with KeyedMover(spec, {}), pytest.raises(MoveHeld, match="somebody else"):
        move_keyed(spec, {"a": DeadSite()}, "a")


def test_an_unknown_site_and_a_wrong_spec_are_refused(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    with pytest.raises(InvalidInput, match="a site that was started"):
        move_keyed(spec, {"fog-1": DeadSite()}, "fog-2")
    with pytest.raises(InvalidInput) as caught:
        KeyedSpec(operator="no.such:one", folder=tmp_path, log=tmp_path, input="x", output="x")
    assert {defect.path for defect in caught.value.defects} == {"input", "output", "pipeline"}
