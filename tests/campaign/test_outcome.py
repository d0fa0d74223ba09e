"""What the campaign counts and shows; and that its own application is checked by plain Python."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest

import campaign.__main__ as command
from campaign import moves, replan, strike
from campaign.faults import Fault, all_faults, few_faults, inject
from campaign.hosting import TrialStuck, longest_pause_s
from campaign.numbered import expect, make_events
from campaign.outages import CannotInject
from campaign.outcome import Injection, Outcome, skip, to_table
from campaign.strike import Order, Orders, Striker
from campaign.tally import expect_tally
from thalweg.history import Publication, Verdict, check_history
from thalweg.spark.deployment import hand_over

RIGHT = Verdict(expected=10, found=10)


def outcome(**fields: Any) -> Outcome:
    given: dict[str, Any] = {
        "kind": "a fault",
        "injections": (
            Injection(what="once", ending="healed", pause_s=1.5),
            Injection(what="twice", ending="resumed", pause_s=4.25),
        ),
        "verdicts": {"list": RIGHT},
        "events": 10,
        "seconds": 1.0,
    }
    return Outcome(**(given | fields))


def test_a_row_counts_endings_faults_and_the_longest_pause() -> None:
    bad = Verdict(expected=10, found=11, lost=1, duplicated=2, wrong=3, late=4)
    told = outcome(verdicts={"list": RIGHT, "sums": bad}).to_dict()
    assert (told["injected"], told["healed_by_itself"], told["lost"]) == (2, 1, 1)
    assert (told["duplicated"], told["wrong"], told["longest_pause_s"]) == (2, 3, 4.25)
    assert not outcome(verdicts={"sums": bad}).is_right
    table = to_table([outcome(), skip("none", "no disk")])
    header, first, second = table.splitlines()
    assert header.startswith("fault ")
    assert first.endswith("4.2 s")
    assert second == "none     skipped: no disk"


def test_what_is_no_proof_is_a_problem() -> None:
    """No injection, no rows, a refusal that does not say what to do."""
    assert outcome().problems == ()
    assert outcome(injections=()).problems == ("nothing was injected",)
    empty = Verdict(expected=0, found=0)
    assert not outcome(verdicts={"list": empty}).is_right
    for reason, right in (("no. Hint: `thalweg doctor`", True), ("no", False)):
        refused = Injection(what="torn", ending="refused", pause_s=1.0, reason=reason)
        assert outcome(injections=(refused,)).is_right is right
    assert skip("none", "no disk").is_right


@pytest.mark.parametrize(
    ("times_s", "since_s", "pause_s"),
    [
        ([1.0, 2.0, 3.0], 2.5, 1.0),
        ([1.0, 2.0, 7.0, 8.0], 4.0, 5.0),
        # Nothing is left of what came before: the moment itself counts.
        ([9.0, 10.0], 4.0, 5.0),
        ([1.0, 2.0], 4.0, 0.0),
    ],
)
def test_a_pause_begins_with_the_last_output_before_a_fault(
    times_s: list[float], since_s: float, pause_s: float
) -> None:
    assert longest_pause_s(times_s, since_s) == pause_s


def test_every_named_step_is_struck_before_and_after() -> None:
    assert set(replan.STEPS) == {kind.__name__ for kind in get_args(hand_over.Step)}
    for target in replan.KINDS:
        places = {(order.step, order.moment) for order in replan.list_orders(target)}
        assert {step for step, _ in places} == set(replan.STEPS)
        assert {moment for _, moment in places} >= {"before", "done"}
    linked = {(order.target, order.step, order.moment) for order in replan.list_linked_orders()}
    assert {(target, step) for target, step, _ in linked} == {
        (target, step) for target in replan.KINDS for step in replan.STEPS
    }
    for step in replan.STEPS:
        for targets in (("driver",), ("cloud",), ("coordinator",), ("jvm", "worker")):
            struck = {m for target, s, m in linked if s == step and target in targets}
            assert struck == {"before", "done"}, (step, targets)
    steps = {*moves.STEPS, *moves.AFTERTHOUGHTS, moves.FIRST}
    from thalweg.spark.keyed.move import STEPS

    assert steps == set(STEPS)
    assert {order.step for order in moves.list_orders("coordinator")} == steps
    assert {step for step, _, _ in replan.REPRESENTATIVE} == set(replan.STEPS)
    for module in (replan, moves):
        every = {
            (order.step, order.moment, order.target)
            for target in module.KINDS
            for order in module.list_orders(target)
        }
        assert set(module.SHORTEST) <= every
    assert set(few_faults()) - {"replan", "moves"} <= set(all_faults())


def test_an_order_is_carried_out_once_at_its_moment(tmp_path: Path) -> None:
    class Drain:
        site = "fog-1"

    orders, asked = Orders(tmp_path / "orders"), list[tuple[str, str]]()
    victims = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]

    def find(target: str, site: str) -> int | None:
        asked.append((target, site))
        return victims[len(asked) - 1].pid

    striker = Striker(orders, find)
    orders.leave(Order(number=7, step="Drain", moment="done", target="driver"))
    striker.before(Drain())
    assert orders.struck() == {}
    striker.done(Drain())
    assert list(orders.struck()) == [7]
    striker.done(Drain())
    striker.rest()
    assert asked == [("driver", "fog-1")]
    orders.leave(Order(number=8, step="Drain", moment="after", target="driver"))
    striker.done(Drain())
    striker.before(Drain())
    assert list(orders.struck()) == [7, 8]
    assert [victim.wait() for victim in victims] == [-signal.SIGKILL] * 2


@pytest.mark.parametrize("pid", [None, 2**30], ids=["nobody", "gone"])
def test_an_order_that_kills_nobody_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pid: int | None
) -> None:
    class Drain:
        site = "fog-1"

    monkeypatch.setattr(strike, "_PATIENCE_S", 0.05)
    orders = Orders(tmp_path / "orders")
    orders.leave(Order(number=7, step="Drain", moment="before", target="worker"))
    Striker(orders, lambda _target, _site: pid).before(Drain())
    with pytest.raises(TrialStuck, match="order 7 was not carried out"):
        orders.struck()


def test_the_expectation_of_the_campaign_catches_what_it_should() -> None:
    events = make_events(0, 400, 0.0, 8.0)
    right = expect(events)
    for name, expectation in right.items():
        assert check_history(expectation, [Publication(rows=expectation.rows)]).is_right
        dropped = check_history(expectation, [Publication(rows=expectation.rows.slice(1))])
        assert dropped.lost == 1, name
        twice = [Publication(rows=expectation.rows), Publication(rows=expectation.rows.slice(0, 2))]
        assert check_history(expectation, twice).duplicated == 2
    fewer = expect(events.slice(0, 399))
    short = check_history(right["sums"], [Publication(rows=fewer["sums"].rows)])
    assert short.wrong + short.lost == 2, "an event is in two windows"
    tally = expect_tally(300).rows
    stale = tally.set_column(2, "nth", pa.array([max(1, n - 1) for n in tally["nth"].to_pylist()]))
    assert check_history(expect_tally(300), [Publication(rows=stale)]).wrong > 0


def test_a_fault_that_cannot_be_injected_says_why(tmp_path: Path) -> None:
    def cannot(_folder: Path) -> Outcome:
        raise CannotInject("only root can mount a small disk")

    found = inject("disk-full", {"disk-full": Fault("disk full", cannot)}, tmp_path)
    assert found.skipped == "only root can mount a small disk"
    assert found.to_dict()["injected"] == 0


@pytest.mark.parametrize(("lost", "code"), [(0, 0), (1, 1)])
def test_the_command_fails_where_anything_is_lost(
    tmp_path: Path, monkeypatch: Any, capsys: Any, lost: int, code: int
) -> None:
    found = outcome(verdicts={"list": Verdict(expected=10, found=10 - lost, lost=lost)})
    known = {"a-fault": Fault("a fault", lambda _folder: found)}
    monkeypatch.setattr(command, "all_faults", lambda: known)
    out = tmp_path / "out.json"
    assert command.main(["--folder", str(tmp_path), "--out", str(out)]) == code
    assert json.loads(out.read_text())["faults"][0]["lost"] == lost
    assert "a fault" in capsys.readouterr().out
    assert command.main(["no-such-fault"]) == 2
    assert command.main(["--list"]) == 0


def test_a_fault_that_goes_wrong_does_not_keep_the_others_from_their_turn(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    def fail(_folder: Path) -> Outcome:
        raise subprocess.CalledProcessError(1, ["thalweg", "doctor"])

    known = {"bad": Fault("bad", fail), "good": Fault("good", lambda _folder: outcome())}
    monkeypatch.setattr(command, "all_faults", lambda: known)
    out = tmp_path / "out.json"
    assert command.main(["--folder", str(tmp_path), "--out", str(out)]) == 1
    told = json.loads(out.read_text())
    assert list(told["stuck"]) == ["bad"]
    assert len(told["faults"]) == 1
    assert "bad: neither healed nor refused" in capsys.readouterr().out
