"""The channel alone: what arrives over a network that does to packets what it likes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.migration.coordination import Channel, Letter, Message, Receipt, Trigger

chances = st.sampled_from([0.0, 0.2, 0.6])


def message(sender, receiver, number):
    return Message(sender=sender, receiver=receiver, content=Trigger(reason=str(number)))


def play(seed, loss, doubling, death):
    """Two channels talk until nothing is left; gives what each was sent and what each took."""
    random = Random(seed)  # noqa: S311
    channels = {name: Channel(address=name) for name in "ab"}
    said, heard, pending, now_s = [], [], [], 0.0
    while now_s < 400 or any(c.unanswered for c in channels.values()):
        assert now_s < 2000, "letters are left"
        now_s += 1.0
        rough = now_s < 200
        for name, other in ("ab", "ba"):
            out = []
            if now_s < 100 and random.random() < 0.3:
                fresh = [message(name, other, len(said) + k) for k in range(random.randint(1, 3))]
                said.extend(fresh)
                channels[name], letters = channels[name].send(fresh, now_s)
                out += letters
            channels[name], again = channels[name].repeat(now_s)
            out += again
            # Written down, and dead before anything left.
            if not (rough and random.random() < death):
                pending += [(other, packet) for packet in out]
        for _ in range(random.randint(0, 8)):
            if not pending:
                break
            position = random.randrange(len(pending))
            to, packet = pending[position]
            if not (rough and random.random() < doubling):
                pending.pop(position)
            if rough and random.random() < loss:
                continue
            channels[to], brought, receipt = channels[to].take(packet)
            if brought is not None:
                heard.append(brought)
            if receipt is not None and not (rough and random.random() < death):
                pending.append((receipt.receiver, receipt))
    return said, heard, channels


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), chances, chances, chances)
def test_every_message_is_taken_once_whatever_the_network_does(seed, loss, doubling, death):
    said, heard, channels = play(seed, loss, doubling, death)
    assert sorted(heard, key=repr) == sorted(said, key=repr)
    # What is whole is one bound, so that a channel does not grow with its age.
    assert all(not taken.beyond for c in channels.values() for taken in c.taken.values())


def test_a_letter_is_sent_again_after_ever_longer_times_until_its_receipt_comes():
    channel, (letter,) = Channel(address="a", patience_s=1.0, patience_most_s=4.0).send(
        [message("a", 3, 0)], 10.0
    )
    times = []
    for _ in range(5):
        times.append(channel.due_s)
        assert channel.repeat(channel.due_s - 0.1) == (channel, [])
        channel, again = channel.repeat(channel.due_s)
        assert again == [letter]
    assert times == [11.0, 13.0, 17.0, 21.0, 25.0]
    channel, brought, receipt = channel.take(Receipt(sender=3, receiver="a", number=1))
    assert (channel.due_s, brought, receipt) == (None, None, None)
    assert channel.repeat(1e9) == (channel, [])


def test_after_a_thousand_tries_the_next_one_still_has_a_time():
    channel, _ = Channel(address="a").send([message("a", "b", 0)], 0.0)
    for _ in range(1100):
        channel, again = channel.repeat(channel.due_s)
        assert len(again) == 1
    assert channel.due_s == pytest.approx(1 + 2 + 4 + 8 + 16 * 1097)


def test_a_letter_that_comes_again_is_answered_and_not_taken_again():
    receiver = Channel(address="b")
    letter = Letter(message=message("a", "b", 0), number=2)
    receiver, brought, receipt = receiver.take(letter)
    assert brought == letter.message
    again, nothing, same = receiver.take(letter)
    assert (again, nothing, same) == (receiver, None, receipt)
    # An earlier number that comes later is new.
    receiver, brought, _ = receiver.take(Letter(message=message("a", "b", 1), number=1))
    assert brought is not None
    assert receiver.taken["a"].upto == 2


def test_numbers_of_different_pairs_have_nothing_to_do_with_each_other():
    channel, letters = Channel(address="a").send(
        [message("a", "b", 0), message("a", 1, 1), message("a", "b", 2)], 0.0
    )
    assert [letter.number for letter in letters] == [1, 1, 2]
    channel, _, _ = channel.take(Receipt(sender="b", receiver="a", number=1))
    assert set(channel.unanswered) == {(1, 1), ("b", 2)}


def test_impossible_patience_is_told():
    with pytest.raises(InvalidInput) as told:
        Channel(address="a", patience_s=0.0, patience_most_s=float("nan"))
    assert len(told.value.defects) == 2
