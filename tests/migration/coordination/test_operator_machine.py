from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.migration.coordination import (
    BrokerLedger,
    CoordinationGoesOn,
    HostPlan,
    Message,
    OperatorMachine,
    Phase,
    ProtocolBroken,
    coordinate,
    holding,
    run,
    step,
    trigger,
)
from thalweg.migration.coordination.messages import (
    Channels,
    PlanAccepted,
    PlanSettled,
    PlanUpdated,
    Refused,
    Release,
    ReservationReply,
    ReservationRequest,
    Reserve,
    Reserved,
)

AT_ONE = HostPlan(hosts=(1, 1))
AT_TWO = HostPlan(hosts=(2, 2))
OVER = HostPlan(hosts=(1, 2))


class Talk:
    """One operator, spoken to in order; answers are given as (receiver, content)."""

    def __init__(self, machine, planner):
        self.machine, self.planner, self.numbers = machine, planner, {}

    def triggered(self):
        return self._take(trigger(self.machine.name))

    def hears(self, sender, content):
        number = self.numbers[sender] = self.numbers.get(sender, 0) + 1
        message = Message(sender=sender, receiver="m", content=content, number=number)
        return self._take(message)

    def _take(self, message):
        self.machine, sent = step(self.machine, message, self.planner)
        return [(one.receiver, one.content) for one in sent]


def wanting(*plans):
    """A planner whose wishes are the plans in turn: the first without a banned vertex."""
    return lambda known, banned, previous: next(
        (plan for plan in plans if not plan.vertices & banned), previous
    )


def middle(stable=AT_ONE):
    """Between `first`, which has precedence, and `last`, which has not."""
    return OperatorMachine(name="m", rank=1, ranks={"first": 0, "last": 2}, stable=stable)


def test_plan_feedback_check_reserve_accept_release():
    talk = Talk(middle(), wanting(OVER))
    update = PlanUpdated(attempt=1, plan=OVER)
    assert talk.triggered() == [("first", update), ("last", update)]
    assert talk.hears("last", PlanAccepted(attempt=1)) == []
    check = ReservationRequest(attempt=1, demand=1.0, steps=(1,))
    # It holds broker 1 at step 0 already, so only broker 2 is asked.
    assert talk.hears("first", PlanAccepted(attempt=1)) == [(2, check)]
    reserve = Reserve(attempt=1, demand=1.0, steps=(1,))
    assert talk.hears(2, ReservationReply(attempt=1, refused=())) == [(2, reserve)]
    settled = PlanSettled(attempt=1, plan=OVER)
    assert talk.hears(2, Reserved(attempt=1)) == [
        (1, Release(steps=(1,))),
        ("first", settled),
        ("last", settled),
    ]
    assert talk.machine.stable == OVER
    assert talk.machine.is_settled


def test_the_same_plan_is_not_sent():
    talk = Talk(middle(), wanting(AT_ONE))
    assert talk.triggered() == []
    assert talk.machine.is_settled


def test_a_refusal_bans_the_vertex_and_a_lost_race_gives_back_what_was_won():
    both, other = HostPlan(hosts=(2, 3)), HostPlan(hosts=(4, 1))
    talk = Talk(OperatorMachine(name="m", rank=0, stable=AT_ONE), wanting(both, other))
    assert [to for to, _ in talk.triggered()] == [2, 3]
    talk.hears(2, ReservationReply(attempt=1, refused=()))
    assert [to for to, _ in talk.hears(3, ReservationReply(attempt=1, refused=()))] == [2, 3]
    talk.hears(3, Refused(attempt=1, steps=(1,)))
    sent = talk.hears(2, Reserved(attempt=1))
    assert sent == [
        (2, Release(steps=(0,))),
        (4, ReservationRequest(attempt=2, demand=1.0, steps=(0,))),
    ]
    assert talk.hears(4, ReservationReply(attempt=2, refused=(0,))) == []
    assert talk.machine.stable == AT_ONE
    assert talk.machine.is_settled
    assert talk.machine.banned == {(3, 1), (4, 0)}


def test_proposals_that_cross_are_the_feedback_and_precedence_decides():
    talk = Talk(middle(), wanting(OVER))
    talk.triggered()
    # The last yields to us: its proposal is all we need of it, and it gets no answer.
    assert talk.hears("last", PlanUpdated(attempt=1, plan=AT_TWO)) == []
    assert talk.machine.awaited == {"first"}
    # We yield to the first: ours was its feedback, and everybody learns that it is withdrawn.
    withdrawn = PlanSettled(attempt=1, plan=None)
    assert talk.hears("first", PlanUpdated(attempt=1, plan=AT_TWO)) == [
        ("first", withdrawn),
        ("last", withdrawn),
    ]
    assert talk.hears("last", PlanAccepted(attempt=1)) == []
    assert talk.hears("last", PlanSettled(attempt=1, plan=None)) == []
    # What was withdrawn is planned again once the first has settled.
    again = PlanUpdated(attempt=2, plan=OVER)
    assert talk.hears("first", PlanSettled(attempt=1, plan=AT_TWO)) == [
        ("first", again),
        ("last", again),
    ]
    assert talk.machine.known["first"] == AT_TWO


def test_who_accepted_a_plan_waits_with_its_own():
    talk = Talk(middle(), wanting(OVER))
    update = PlanUpdated(attempt=7, plan=AT_TWO)
    assert talk.hears("last", update) == [("last", PlanAccepted(attempt=7))]
    assert talk.triggered() == []
    assert not talk.machine.is_settled
    assert len(talk.hears("last", PlanSettled(attempt=7, plan=None))) == 2
    assert talk.machine.phase is Phase.ASKING


def test_a_trigger_meanwhile_is_remembered():
    plans = iter([OVER, AT_TWO])
    talk = Talk(OperatorMachine(name="m", rank=0, stable=AT_ONE), lambda *_: next(plans))
    talk.triggered()
    assert talk.triggered() == []
    talk.hears(2, ReservationReply(attempt=1, refused=()))
    sent = talk.hears(2, Reserved(attempt=1))
    assert sent[-1] == (2, ReservationRequest(attempt=2, demand=1.0, steps=(0,)))


@given(st.permutations(range(5)))
def test_any_order_of_arrival_is_read_in_the_order_of_sending(order):
    channels, messages, read = Channels(), [], []
    for k in range(5):
        channels, message = channels.write("a", "b", PlanAccepted(attempt=k))
        messages.append(message)
    receiving = Channels()
    for k in order:
        for _ in range(2):  # Each comes twice.
            receiving, ready = receiving.take(messages[k])
            read += [message.content.attempt for message in ready]
    assert read == list(range(5))
    assert not receiving.held


def test_no_room_anywhere_ends_with_the_reason():
    operators = [
        OperatorMachine(name="a", rank=0, ranks={"b": 1}),
        OperatorMachine(name="b", rank=1, ranks={"a": 0}),
    ]
    ledgers = [BrokerLedger(broker=b, capacity=0.0) for b in (1, 2)]
    result = coordinate(operators, lambda name: wanting(AT_ONE, OVER, AT_TWO), {}, ledgers)
    assert result.plans == {}
    assert result.without_plan["a"] == "no plan is possible (4 vertices refused)"
    assert set(result.without_plan) == {"a", "b"}
    assert not any(ledger.held for ledger in result.ledgers.values())


def test_a_lost_race_is_run_again_when_all_is_quiet():
    # Each wins one broker and is refused by the other; afterwards both are free again.
    operators = [OperatorMachine(name=name, rank=rank) for rank, name in enumerate("ab")]
    ledgers = {b: BrokerLedger(broker=b, capacity=1.0) for b in (1, 2)}

    def urgency(message):
        if message.kind in ("Trigger", "ReservationRequest", "ReservationReply"):
            return 0
        if message.kind == "Reserve":
            return 1 if (message.sender, message.receiver) in {("a", 1), ("b", 2)} else 2
        return 3

    result = run(
        operators,
        ledgers,
        [trigger("a"), trigger("b")],
        lambda pending: min(range(len(pending)), key=lambda k: urgency(pending[k])),
        planner_of=lambda name: wanting(OVER),
    )
    assert result.counts["Refused"] == 2
    assert result.plans == {"a": OVER}
    assert set(result.without_plan) == {"b"}


def test_a_planner_that_breaks_its_promise_is_stopped_with_the_story():
    def restless(known, banned, previous):
        return HostPlan(hosts=(2,) if known["other"].hosts == (1,) else (1,))

    def follower(known, banned, previous):
        return HostPlan(hosts=known["m"].hosts)

    at = HostPlan(hosts=(1,))
    machines = [
        OperatorMachine(name="m", rank=0, ranks={"other": 1}, stable=at, known={"other": at}),
        OperatorMachine(name="other", rank=1, ranks={"m": 0}, stable=at, known={"m": at}),
    ]
    ledgers = holding([BrokerLedger(broker=b, capacity=9.0) for b in (1, 2)], machines)
    with pytest.raises(CoordinationGoesOn, match="PlanUpdated"):
        run(
            machines,
            ledgers,
            [trigger("m")],
            planner_of={"m": restless, "other": follower}.__getitem__,
            most_deliveries=500,
        )


def test_an_answer_that_nobody_awaits_is_told():
    with pytest.raises(ProtocolBroken, match="nobody awaits 2 → m"):
        Talk(middle(), wanting(OVER)).hears(2, Reserved(attempt=1))


def test_a_stable_plan_needs_room_from_the_start():
    machines = [OperatorMachine(name=n, rank=k, stable=AT_ONE) for k, n in enumerate("ab")]
    with pytest.raises(InvalidInput, match=r"b\.demand: got 1\.0, need room at broker 1, step 0"):
        holding([BrokerLedger(broker=1, capacity=1.5)], machines)
    with pytest.raises(InvalidInput, match=r"a\.stable: got 1, need a broker with a ledger"):
        holding([], machines)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"demand": -1.0},
        {"demand": float("inf")},
        {"rank": 2},
        {"ranks": {"m": 4}},
    ],
)
def test_machines_are_checked_at_birth(wrong):
    right = {"name": "m", "rank": 1, "ranks": {"last": 2}}
    OperatorMachine(**right)
    with pytest.raises(InvalidInput):
        OperatorMachine(**right | wrong)


def test_plans_are_checked_at_birth():
    with pytest.raises(InvalidInput, match="hosts"):
        HostPlan(hosts=())
    with pytest.raises(InvalidInput, match="hosts"):
        HostPlan(hosts=(0, -1))
    with pytest.raises(InvalidInput, match="cost"):
        HostPlan(hosts=(0,), cost=float("nan"))
