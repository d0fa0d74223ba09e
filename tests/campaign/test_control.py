"""The control plane in virtual time: seeds that hold and repeat, and bugs that are found."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.control import (
    adaptation,
    calls,
    commits,
    hand_over,
    invariants,
    keyed,
    shared_log,
    sites,
    written_steps,
)
from campaign.control.__main__ import main
from campaign.control.runs import WORLDS, Tally, run_seed, run_seeds, to_table
from campaign.control.scheduler import Network, Scheduler, Violation, Weather
from thalweg.adapt import cycle
from thalweg.migration.coordination import BrokerLedger, Channel, OperatorMachine, Phase
from thalweg.spark.deployment import coordinator
from thalweg.spark.deployment.hand_over import Drain, _start_next, learn, next_step
from thalweg.spark.keyed.move import Abandon, Fence, PrepareTarget, StartFirst
from thalweg.spark.keyed.mover import KeyedMover

ROOT = Path(__file__).parents[2]
QUICK_SEEDS = 500
SLOW_SEEDS = 20_000
PARTS = 4
"""So that one failing part does not hide the others."""

# Seeds


OWN_FAULTS = {
    "coordination": (),
    "hand-over": ("zombie", "failed", "link late"),
    "keyed": ("zombie", "query failed", "torn line", "log away"),
    "adaptation": ("zombie", "failed", "flapping rate", "flapping link"),
}


@pytest.mark.parametrize("world", WORLDS)
def test_every_invariant_holds_at_every_step_of_every_seed(world):
    (tally,) = run_seeds([world], range(QUICK_SEEDS))
    assert [outcome.command for outcome in tally.violations] == []
    assert tally.seeds == QUICK_SEEDS
    # A world in which nothing goes wrong would show nothing.
    for kind in ("lost", "doubled", "delayed", "reordered", "died", "partition", "flapping"):
        assert tally.faults[kind] > 100, kind
    for kind in OWN_FAULTS[world]:
        assert tally.faults[kind] > 20, kind


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("world", WORLDS)
def test_every_invariant_holds_for_many_more_seeds(world, part):
    count = SLOW_SEEDS // PARTS
    first = QUICK_SEEDS + count * part
    (tally,) = run_seeds([world], range(first, first + count))
    assert [outcome.command for outcome in tally.violations] == []


@pytest.mark.parametrize("world", WORLDS)
def test_the_same_seed_gives_the_same_trace_and_another_one_another(world):
    first, trace = run_seed(world, 7)
    again, trace_again = run_seed(world, 7)
    assert trace == trace_again
    assert first == again
    assert len(trace) > 20
    assert run_seed(world, 8)[0].fingerprint != first.fingerprint


def test_another_process_replays_a_seed_exactly():
    command = [sys.executable, "-m", "campaign.control", "--seed", "11"]
    told = [
        subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert told[0] == told[1]
    for line, world in zip(told[0].splitlines(), WORLDS, strict=True):
        assert f"trace {run_seed(world, 11)[0].fingerprint[:16]}: held" in line


# Bugs


def first_broken(world, seeds=range(300), make=None):
    """What the first of these seeds that breaks something breaks."""
    for seed in seeds:
        outcome, trace = run_seed(world, seed, make)
        if outcome.invariant:
            assert trace[-1].endswith(f"VIOLATION of {outcome.invariant}: {outcome.found}")
            return outcome.invariant
    return None


def test_a_coordinator_that_starts_the_next_epoch_before_the_fence_is_caught(monkeypatch):
    def hasty(state, name, cut):
        site = state.sites[name]
        drained = site.phase in ("drained", "exported")
        return _start_next(site, state.openings) if drained else next_step(state, name, cut)

    monkeypatch.setattr(coordinator, "next_step", hasty)
    assert first_broken("hand-over") == "one_owner"


def forgetting(name):
    def learn_less(state, step, **reached):
        if isinstance(step, Drain):
            reached = {**reached, name: None}
        return learn(state, step, **reached)

    return learn_less


def test_a_barrier_whose_offset_is_forgotten_is_caught(monkeypatch):
    monkeypatch.setattr(coordinator, "learn_step", forgetting("offsets"))
    monkeypatch.setattr(written_steps, "learn", forgetting("offsets"))
    assert first_broken("hand-over") == "epochs_meet"


def test_a_barrier_whose_watermark_is_forgotten_is_caught(monkeypatch):
    monkeypatch.setattr(coordinator, "learn_step", forgetting("watermark_ms"))
    monkeypatch.setattr(written_steps, "learn", forgetting("watermark_ms"))
    assert first_broken("hand-over") in ("rows_count_once", "windows_are_whole")


def test_a_journal_that_says_less_than_was_learnt_is_caught(monkeypatch):
    monkeypatch.setattr(written_steps, "learn", forgetting("newest_ms"))
    assert first_broken("hand-over") == "replay_gives_the_same"


def test_a_first_cut_that_is_not_written_down_before_it_runs_is_caught(monkeypatch):
    monkeypatch.setattr(coordinator.Coordinator, "_commit_to", lambda self, step: None)
    assert first_broken("hand-over") == "all_is_settled"


def test_a_site_that_obeys_commands_that_come_too_late_is_caught(monkeypatch):
    monkeypatch.setattr(calls.Line, "is_too_late", lambda self, number: False)
    assert first_broken("hand-over") in ("epochs_meet", "the_log_is_coherent")


def test_an_epoch_that_goes_on_after_its_barrier_is_caught(monkeypatch):
    drain = sites.Site._drain

    def drain_in_words(site, name):
        query = site.process.queries.get(name)
        stand = drain(site, name)
        site.process.queries[name] = query
        return stand

    monkeypatch.setitem(sites._COMMANDS, "drain", drain_in_words)
    # Whichever is seen first: what it wrote, or that somebody has read it.
    assert first_broken("hand-over") in ("epochs_meet", "readers_stay_within_fences")


def test_a_coordinator_that_does_not_wait_for_what_is_under_way_is_caught(monkeypatch):
    monkeypatch.setattr(calls.SiteLine, "ship", lambda self, query, batch: None)
    monkeypatch.setattr(calls.SiteLine, "await_arrival", lambda self, *given: None)
    assert first_broken("hand-over") == "nothing_is_lost"


def test_a_cloud_that_is_not_started_again_is_caught(monkeypatch):
    class Forgetful(hand_over.HandOverWorld):
        def mend(self, name):
            self.lines[name].queries.pop("cloud@0", None)
            super().mend(name)

    assert first_broken("hand-over", make=Forgetful) == "all_is_settled"


def test_a_window_that_two_compute_is_caught(monkeypatch):
    count = shared_log.CloudReader._count

    def count_the_rest(reader, epoch, entry):
        upto = shared_log.EVER
        count(reader, epoch, replace(entry, upto=upto) if hasattr(entry, "upto") else entry)

    monkeypatch.setattr(shared_log.CloudReader, "_count", count_the_rest)
    assert first_broken("hand-over") in ("one_owner_per_key", "rows_count_once")


def test_a_ledger_that_does_not_release_is_caught(monkeypatch):
    monkeypatch.setattr(BrokerLedger, "release", lambda self, operator, steps: self)
    assert first_broken("coordination") == "nothing_else_is_reserved"


def test_a_ledger_that_promises_more_than_it_has_is_caught(monkeypatch):
    monkeypatch.setattr(BrokerLedger, "check", lambda self, operator, demand, steps: ())
    assert first_broken("coordination") == "within_capacity"


def test_a_ledger_that_releases_too_much_is_caught(monkeypatch):
    release = BrokerLedger.release
    monkeypatch.setattr(
        BrokerLedger, "release", lambda self, operator, steps: release(self, operator, self.held)
    )
    assert first_broken("coordination") == "plans_are_reserved"


def test_a_channel_that_does_not_recognise_duplicates_is_caught(monkeypatch):
    take = Channel.take
    monkeypatch.setattr(Channel, "take", lambda self, packet: take(replace(self, taken={}), packet))
    assert first_broken("coordination") == "taken_once"


def test_a_channel_that_sends_nothing_again_is_caught(monkeypatch):
    monkeypatch.setattr(Channel, "repeat", lambda self, now_s: (replace(self, unanswered={}), []))
    assert first_broken("coordination") == "all_is_settled"


def moved_by(mover):
    """A world whose operator is moved by such a mover."""

    class World(keyed.KeyedWorld):
        mover_type = mover

    return World


def test_a_mover_that_writes_down_an_epoch_only_after_it_began_is_caught():
    class Careless(KeyedMover):
        begun = None

        def _require_whole_journal(self):
            pass

        def _start(self, run):
            super()._start(run)
            self.begun = run

        def _learn(self, step):
            if not isinstance(step, (StartFirst, PrepareTarget)) or step.run == self.begun:
                super()._learn(step)

    assert first_broken("keyed", make=moved_by(Careless)) == "one_committer"


def test_a_mover_that_gives_an_epoch_up_without_a_fence_is_caught():
    class Trusting(KeyedMover):
        def _take(self, step):
            if isinstance(step, Abandon):
                self._stop(step.run)
            else:
                super()._take(step)

    assert first_broken("keyed", make=moved_by(Trusting)) == "one_committer"


def test_a_mover_that_says_it_has_fenced_and_has_not_is_caught():
    class Lazy(KeyedMover):
        def _take(self, step):
            if not isinstance(step, Fence):
                super()._take(step)

    assert first_broken("keyed", make=moved_by(Lazy)) == "all_is_settled"


def test_a_mover_that_does_not_look_for_fences_is_caught():
    class Blind(KeyedMover):
        def _ended(self):
            return []

    assert first_broken("keyed", make=moved_by(Blind)) == "all_is_settled"


def test_a_mover_that_forgets_what_may_not_have_begun_is_caught():
    class Forgetful(KeyedMover):
        def _start(self, run):
            self._sites[run.site].start(self.spec.query(run))

    assert first_broken("keyed", make=moved_by(Forgetful)) == "all_is_settled"


def test_a_mover_that_remembers_only_one_that_may_not_have_begun_is_caught():
    class Brief(KeyedMover):
        def _start(self, run):
            self._unsure.clear()
            super()._start(run)

    # It takes two starts that fail, and the wish to be back.
    assert first_broken("keyed", range(1500, 1700), moved_by(Brief)) == "all_is_settled"


def test_a_mover_that_does_not_start_again_what_ran_is_caught():
    class Passive(KeyedMover):
        def resume(self):
            pass

    assert first_broken("keyed", make=moved_by(Passive)) == "all_is_settled"


def test_a_mover_that_knows_more_than_it_has_written_down_is_caught():
    class Boastful(KeyedMover):
        def _write_down(self, step):
            if not isinstance(step, Fence):
                super()._write_down(step)

    assert first_broken("keyed", make=moved_by(Boastful)) == "replay_gives_the_same"


def test_a_log_that_takes_commits_after_a_fence_is_caught(monkeypatch):
    def commit(log, made):
        fenced, log.fenced = log.fenced, set()
        try:
            take(log, made)
        finally:
            log.fenced = fenced

    take = commits.CommitLog.commit
    monkeypatch.setattr(commits.CommitLog, "commit", commit)
    monkeypatch.setattr(commits.Worker, "_is_fenced", lambda self: False)
    # Whichever is seen first: what came too late, or that nobody will ever publish it.
    assert first_broken("keyed") in ("commits_continue", "keys_are_handed_on", "outputs_are_out")


def test_a_successor_that_does_not_wait_for_the_fence_is_caught(monkeypatch):
    monkeypatch.setattr(commits.Worker, "_follow", lambda self, more: self._begin())
    assert first_broken("keyed") == "one_owner_per_key"


def test_a_successor_that_loses_a_key_is_caught(monkeypatch):
    begin = commits.Worker._begin

    def begin_without_a(worker):
        begin(worker)
        if worker.at is not None and worker.follows is not None:
            kept = {key: count for key, count in worker.at.state.items() if key != "a"}
            worker.at = replace(worker.at, state=kept)

    monkeypatch.setattr(commits.Worker, "_begin", begin_without_a)
    assert first_broken("keyed") == "keys_are_handed_on"


def test_a_successor_that_begins_with_a_state_that_is_one_batch_too_old_is_caught(monkeypatch):
    def older(log, upto_epoch):
        before = [c for c in log.commits if c.epoch < upto_epoch]
        own = [c for c in log.commits if c.epoch == upto_epoch]
        return own[-1] if own else (before[-2] if len(before) > 1 else None)

    monkeypatch.setattr(commits.CommitLog, "last", older)
    assert first_broken("keyed") in ("commits_continue", "outputs_are_out")


def test_a_trigger_without_rest_is_caught(monkeypatch):
    decide = cycle.decide
    monkeypatch.setattr(
        cycle, "decide", lambda t, state, *seen: decide(replace(t, rest_s=0.0), state, *seen)
    )
    assert first_broken("adaptation") == "optional_ones_rest"


def test_a_trigger_without_patience_is_caught(monkeypatch):
    decide = cycle.decide
    monkeypatch.setattr(
        cycle, "decide", lambda t, state, *seen: decide(replace(t, patience=1), state, *seen)
    )
    assert first_broken("adaptation") == "answers_are_patient"


@pytest.mark.parametrize("forgets", [False, True], ids=["no margin", "what has crossed"])
def test_a_trigger_that_answers_again_close_to_a_limit_is_caught(monkeypatch, forgets):
    decide = cycle.decide

    def decide_without(trigger, state, *seen):
        if forgets:
            return decide(trigger, replace(state, crossed=frozenset()), *seen)
        return decide(replace(trigger, clear_margin=0.0), state, *seen)

    monkeypatch.setattr(cycle, "decide", decide_without)
    assert first_broken("adaptation") == "crossed_ones_are_clear"


def test_a_trigger_that_forgets_what_it_asked_is_caught(monkeypatch):
    decide = cycle.decide
    monkeypatch.setattr(
        cycle, "decide", lambda t, state, *seen: decide(t, replace(state, asked=()), *seen)
    )
    assert first_broken("adaptation") == "in_vain_once"


def test_an_adapter_that_does_not_see_links_change_is_caught(monkeypatch):
    monkeypatch.setattr(adaptation, "_seen", {})
    monkeypatch.setattr(cycle, "_links_bps", lambda network: [])
    # Most coordinators do not live long enough to remember it.
    assert first_broken("adaptation", range(500, 800)) == "violations_are_answered"


# The scheduler


def test_events_at_the_same_time_come_in_the_order_they_were_planned():
    scheduler, seen = Scheduler("any", 0), []
    for name in "abc":
        scheduler.after(1.0, name, lambda name=name: seen.append(name))
    scheduler.after(0.5, "first", lambda: seen.append("first"))
    assert not scheduler.run_until(lambda: False, 5.0)
    assert seen == ["first", "a", "b", "c"]
    assert scheduler.now_s == 5.0
    assert scheduler.steps == 4


def foul(calm_s=100.0, **values):
    fair = {"loss": 0.0, "doubling": 0.0, "slowness": 0.0, "most_delay_s": 5.0}
    never = {"outage_every_s": 1e9, "death_every_s": 1e9}
    return Weather(**{**fair, **never, **values}, calm_s=calm_s)


@pytest.mark.parametrize(
    ("weather", "arrivals"),
    [
        (foul(), range(100, 101)),
        (foul(loss=0.5), range(20, 80)),
        (foul(doubling=0.5), range(120, 180)),
        (foul(loss=1.0), range(1)),
        (foul(loss=1.0, calm_s=0.0), range(100, 101)),
    ],
)
def test_the_network_loses_and_doubles_as_it_is_told_until_it_is_calm(weather, arrivals):
    scheduler, seen = Scheduler("any", 1), []
    network = Network(scheduler, weather)
    for number in range(100):
        network.send("a", "b", f"packet {number}", lambda number=number: seen.append(number))
    scheduler.run_until(lambda: False, 50.0)
    assert len(seen) in arrivals


def test_slow_packets_overtake_each_other():
    scheduler, seen = Scheduler("any", 1), []
    network = Network(scheduler, foul(slowness=0.5))
    for number in range(100):
        network.send("a", "b", "", lambda number=number: seen.append(number))
    scheduler.run_until(lambda: False, 50.0)
    assert seen != sorted(seen)
    assert scheduler.faults["reordered"] > 10


def test_a_dead_node_is_told_nothing_and_comes_back():
    scheduler, told = Scheduler("any", 1), []
    network = Network(scheduler, foul())
    network.kill("b", lambda node: told.append(f"{node} dies"), lambda n: told.append(f"{n} back"))
    network.send("a", "b", "hello", lambda: told.append("hello"))
    scheduler.run_until(lambda: False, 90.0)
    assert told == ["b dies", "b back"]
    assert not network.down


# The invariants


def neighbours(phase, other):
    """Two operators with a stream between them."""
    return {
        "a": OperatorMachine(name="a", rank=0, ranks={"b": 1}, phase=phase),
        "b": OperatorMachine(name="b", rank=1, ranks={"a": 0}, phase=other),
    }


GOOD_AND_BAD = {
    "neighbours_take_turns": (
        (neighbours(Phase.RESERVING, Phase.ASKING),),
        (neighbours(Phase.RESERVING, Phase.CHECKING),),
    ),
    "one_owner": (
        ([("f", 0), ("f", 1), ("g", 0)], {("f", 0): 3}),
        ([("f", 0), ("f", 1)], {}),
    ),
    "one_committer": (([3],), ([3, 4],)),
    "one_owner_per_key": (({"a": ["f@1"], "b": []},), ({"a": ["f@1", "g@2"]},)),
    "taken_once": (({"a": 1},), ({"a": 2},)),
    "replay_gives_the_same": ((1, 1), (1, 2)),
    "within_capacity": (
        ([BrokerLedger(broker=0, capacity=1.0, held={0: {"a": 1.0}})],),
        ([BrokerLedger(broker=0, capacity=1.0, held={0: {"a": 1.0, "b": 0.5}})],),
    ),
    "rows_count_once": (({"a": 1},), ({"a": 2},)),
    "nothing_is_lost": (([1, 2], [2, 1]), ([1, 2], [1])),
    "epochs_meet": (
        ({("f", 0): 4}, {("f", 0): 0, ("f", 1): 4}),
        ({("f", 0): 4}, {("f", 0): 0, ("f", 1): 3}),
    ),
    "windows_are_whole": (({"w": (1, 2)}, {"w": [1, 2]}), ({"w": (1,)}, {"w": [1, 2]})),
    "readers_stay_within_fences": (
        ({("f", 0): 3}, {("f", 0): 3}),
        ({("f", 0): 4}, {("f", 0): 3}),
    ),
    "commits_continue": (([(0, 0, 3), (1, 3, 5)],), ([(0, 0, 3), (1, 2, 5)],)),
    "keys_are_handed_on": (
        ({"a": [(0, 0, 3), (1, 3, 5)]},),
        ({"a": [(0, 0, 3), (1, 2, 5)]},),
    ),
    "state_is_exact": (({"a": 2}, "aab", 2), ({"a": 2}, "aab", 3)),
    "outputs_are_out": (
        ([commits.Commit(0, "f", 0, 0, 1, {})], {("f", 0, 0): 1}, {("f", 0)}),
        ([commits.Commit(0, "f", 0, 0, 1, {})], {}, {("f", 0)}),
    ),
    "optional_ones_rest": (([0.0, 10.0], 10.0), ([0.0, 9.0], 10.0)),
    "answers_are_patient": (([2, 3], 2), ([2, 1], 2)),
    "crossed_ones_are_clear": (
        ([(False, 1.01), (True, 1.06)], 0.05),
        ([(False, 1.01), (True, 1.04)], 0.05),
    ),
    "in_vain_once": (({"q": 1},), ({"q": 2},)),
    "violations_are_answered": (
        (["full"], {"f": ("x",)}, {"f": ("x",)}),
        (["full"], {"f": ("x",)}, {"f": ()}),
    ),
    "all_is_settled": (([],), (["a waits"],)),
}


@pytest.mark.parametrize("name", GOOD_AND_BAD)
def test_an_invariant_tells_good_from_bad(name):
    holds = getattr(invariants, name)
    good, bad = GOOD_AND_BAD[name]
    assert holds(*good) == ""
    assert holds(*bad) != ""
    with pytest.raises(Violation) as told:
        invariants.require(holds, *bad)
    assert told.value.invariant == name


# The command


def test_the_command_prints_a_table_and_replays_a_seed(capsys):
    assert main(["--seeds", "2", "--first", "5", "--world", "keyed"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["world", "seeds", "steps"]
    assert line.split()[:2] == ["keyed", "2"]
    assert main(["--seed", "5", "--world", "keyed", "--trace"]) == 0
    first = capsys.readouterr().out
    assert main(["--seed", "5", "--world", "keyed", "--trace"]) == 0
    assert capsys.readouterr().out == first
    assert first.splitlines()[-1].startswith("keyed, seed 5: ")


def test_a_violation_is_told_with_the_command_that_replays_it(monkeypatch, capsys):
    monkeypatch.setattr(BrokerLedger, "check", lambda self, operator, demand, steps: ())
    assert main(["--seeds", "30", "--world", "coordination"]) == 1
    told = capsys.readouterr().out
    replay = next(line for line in told.splitlines() if "replay it: " in line)
    arguments = replay.partition("campaign.control ")[2].split()
    assert main(arguments) == 1
    assert "VIOLATION of within_capacity" in capsys.readouterr().out


def test_wrong_arguments_end_with_code_2(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--seeds", "-1"])
    assert ended.value.code == 2
    assert "need a whole number >= 0" in capsys.readouterr().err


def test_a_table_of_nothing_has_its_head():
    assert to_table([Tally("any")]).splitlines()[1].split()[:2] == ["any", "0"]
