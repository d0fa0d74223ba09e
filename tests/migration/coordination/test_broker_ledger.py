from __future__ import annotations

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.migration.coordination import BrokerLedger, Message, ProtocolBroken, trigger
from thalweg.migration.coordination.messages import (
    Refused,
    Release,
    ReservationReply,
    ReservationRequest,
    Reserve,
    Reserved,
)


def from_operator(name, number, content):
    return Message(sender=name, receiver=3, content=content, number=number)


def contents(messages):
    return [message.content for message in messages]


def test_a_check_holds_no_room():
    ledger = BrokerLedger(broker=3, capacity=1.0)
    ask = ReservationRequest(attempt=1, demand=1.0, steps=(0, 1))
    ledger, first = ledger.handle(from_operator("a", 1, ask))
    ledger, second = ledger.handle(from_operator("b", 1, ask))
    assert contents(first) == contents(second) == [ReservationReply(attempt=1, refused=())]
    take = Reserve(attempt=1, demand=1.0, steps=(0, 1))
    ledger, first = ledger.handle(from_operator("a", 2, take))
    ledger, second = ledger.handle(from_operator("b", 2, take))
    assert contents(first) == [Reserved(attempt=1)]
    assert contents(second) == [Refused(attempt=1, steps=(0, 1))]


def test_a_refusal_names_the_full_steps_and_takes_none():
    ledger, _ = BrokerLedger(broker=3, capacity=2.0).reserve("a", 1.5, (1,))
    after, refused = ledger.reserve("b", 1.0, (0, 1, 2))
    assert refused == (1,)
    assert after == ledger


def test_messages_take_effect_in_the_order_of_sending():
    ledger = BrokerLedger(broker=3, capacity=1.0)
    ledger, answers = ledger.handle(from_operator("a", 2, Release(steps=(0,))))
    assert not answers
    take = from_operator("a", 1, Reserve(attempt=1, demand=1.0, steps=(0, 1)))
    ledger, answers = ledger.handle(take)
    assert contents(answers) == [Reserved(attempt=1)]
    assert ledger.held == {1: {"a": 1.0}}
    again, answers = ledger.handle(take)
    assert not answers
    assert again == ledger


calls = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from([0.1, 0.2, 0.7, 1.0]),
    st.frozensets(st.integers(0, 3)),
    st.booleans(),
)


@given(st.sampled_from([0.0, 0.3, 1.0, 1.1]), st.lists(calls, max_size=25))
def test_never_beyond_capacity_and_nothing_is_lost(capacity, history):
    ledger = BrokerLedger(broker=0, capacity=capacity)
    held = {}
    for name, demand, steps, takes in history:
        if not takes:
            ledger = ledger.release(name, steps)
            held = {at: d for at, d in held.items() if at[0] != name or at[1] not in steps}
        else:
            full = [
                at
                for at in sorted(steps)
                if fsum([demand] + [d for (n, s), d in held.items() if s == at and n != name])
                > capacity
            ]
            ledger, refused = ledger.reserve(name, demand, sorted(steps))
            assert list(refused) == full
            if not refused:
                held |= {(name, at): demand for at in steps}
        assert {(n, at): d for at, by in ledger.held.items() for n, d in by.items()} == held
        assert all(ledger.reserved(at) <= capacity for at in range(4))


@pytest.mark.parametrize("capacity", [-1.0, float("nan"), float("inf")])
def test_capacity_is_checked(capacity):
    with pytest.raises(InvalidInput, match="capacity: got"):
        BrokerLedger(broker=0, capacity=capacity)


def test_a_broker_reads_nothing_else():
    with pytest.raises(ProtocolBroken, match="broker 3 can't read"):
        BrokerLedger(broker=3, capacity=1.0).handle(trigger("a"))
