"""What the campaign counts and shows; and that its own application is checked by plain Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import campaign.__main__ as command
from campaign import moves, replan
from campaign.faults import all_faults, few_faults, inject
from campaign.numbered import expect, make_events
from campaign.outages import CannotInject
from campaign.outcome import Injection, Outcome, to_table
from campaign.strike import Order, Orders, Striker
from campaign.tally import expect_tally
from thalweg.history import Publication, Verdict, check_history

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
    table = to_table([outcome(), outcome(kind="none", skipped="no disk", injections=())])
    header, first, second = table.splitlines()
    assert header.startswith("fault ")
    assert first.endswith("4.2 s")
    assert second == "none     skipped: no disk"


def test_every_named_step_is_struck_before_and_after() -> None:
    for target in replan.KINDS:
        places = {(order.step, order.moment) for order in replan.list_orders(target)}
        assert {step for step, _ in places} == set(replan.STEPS)
        assert {moment for _, moment in places} >= {"before", "done"}
    steps = {*moves.STEPS, *moves.AFTERTHOUGHTS, moves.FIRST}
    from thalweg.spark.keyed.move import STEPS

    assert steps == set(STEPS)
    assert {order.step for order in moves.list_orders("coordinator")} == steps
    assert {step for step, _, _ in replan.REPRESENTATIVE} == set(replan.STEPS)
    assert set(few_faults()) - {"replan", "moves"} <= set(all_faults())


def test_an_order_is_carried_out_once_at_its_moment(tmp_path: Path) -> None:
    class Drain:
        site = "fog-1"

    orders, asked = Orders(tmp_path / "orders"), list[tuple[str, str]]()

    def find(target: str, site: str) -> int | None:
        asked.append((target, site))
        # No process has this number: the largest there can be is smaller.
        return 2**30

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

    found = inject("disk-full", {"disk-full": cannot}, tmp_path)
    assert found.skipped == "only root can mount a small disk"
    assert found.to_dict()["injected"] == 0


@pytest.mark.parametrize(("lost", "code"), [(0, 0), (1, 1)])
def test_the_command_fails_where_anything_is_lost(
    tmp_path: Path, monkeypatch: Any, capsys: Any, lost: int, code: int
) -> None:
    found = outcome(verdicts={"list": Verdict(expected=10, found=10 - lost, lost=lost)})
    monkeypatch.setattr(command, "all_faults", lambda: {"a-fault": lambda _folder: found})
    out = tmp_path / "out.json"
    assert command.main(["--folder", str(tmp_path), "--out", str(out)]) == code
    assert json.loads(out.read_text())["faults"][0]["lost"] == lost
    assert "a fault" in capsys.readouterr().out
    assert command.main(["no-such-fault"]) == 2
