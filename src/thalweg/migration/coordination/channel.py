"""Every message arrives once, over a network that loses, doubles, delays and reorders them.

Operators and brokers count on it that each of their messages arrives, and does so once; `Channels`
puts them in order. A channel gives the rest: it numbers what it sends, sends it again until the
receiver has said that it has it, and recognises what it has taken before.

What it promises, of messages between two addresses that both have a channel:

- None is taken twice.
- Each is taken, once one of the tries and one of the receipts for it get through.
- Both hold across the death of a node, if its channel is written down in one piece with what the
  node made of a message, and before anything that `take` or `send` gave leaves the node. What was
  written down and not sent is sent when it is due.

They may be taken in any order. A node that comes back without what it wrote down is another node:
its numbers begin anew, and others would take its messages for old ones. It needs a new address.

A channel is a value, and time is told to it: the same for the same arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TypeAlias

from thalweg.errors import Defects
from thalweg.migration.coordination.messages import Address, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message on its way, numbered by the channels of its sender and receiver, from 1."""

    message: Message
    number: int

    def __str__(self) -> str:
        return f"letter {self.number}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The sender of this has taken the receiver's letter of this number."""

    sender: Address
    receiver: Address
    number: int

    def __str__(self) -> str:
        return f"{self.sender} → {self.receiver}: receipt for letter {self.number}"


Packet: TypeAlias = Letter | Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A letter without a receipt, when it is sent again, and how often it was sent."""

    letter: Letter
    due_s: float
    tries: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The numbers that were taken of one sender: all up to one, and some beyond."""

    upto: int = 0
    beyond: frozenset[int] = frozenset()

    def __contains__(self, number: int) -> bool:
        return number <= self.upto or number in self.beyond

    def plus(self, number: int) -> Taken:
        """With one more number; what it makes whole is kept as one bound."""
        upto, beyond = self.upto, self.beyond | {number}
        while upto + 1 in beyond:
            upto += 1
        return Taken(upto=upto, beyond=frozenset(n for n in beyond if n > upto))


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """What one address has sent and taken.

    A letter is sent again after `patience_s`, then after twice that, and so on, up to
    `patience_most_s` between two tries.
    """

    address: Address
    patience_s: float = 1.0
    patience_most_s: float = 16.0
    sent: Mapping[Address, int] = field(default_factory=dict)
    unanswered: Mapping[tuple[Address, int], Unanswered] = field(default_factory=dict)
    taken: Mapping[Address, Taken] = field(default_factory=dict)

    def __post_init__(self) -> None:
        defects = Defects()
        good = isfinite(self.patience_s) and self.patience_s > 0
        defects.require(good, "patience_s", self.patience_s, "a finite number > 0")
        good = isfinite(self.patience_most_s) and self.patience_most_s >= self.patience_s
        rule = "a finite number >= patience_s"
        defects.require(good, "patience_most_s", self.patience_most_s, rule)
        defects.raise_if_any()

    @property
    def due_s(self) -> float | None:
        """When `repeat` has something to send next; None: everything has arrived."""
        return min((one.due_s for one in self.unanswered.values()), default=None)

    def send(self, messages: Iterable[Message], now_s: float) -> tuple[Channel, list[Letter]]:
        """The messages as letters to send now, in order, each to its own receiver."""
        sent, unanswered, letters = dict(self.sent), dict(self.unanswered), list[Letter]()
        for message in messages:
            number = sent.get(message.receiver, 0) + 1
            letter = Letter(message=message, number=number)
            sent[message.receiver] = number
            due_s = now_s + self.patience_s
            unanswered[message.receiver, number] = Unanswered(letter=letter, due_s=due_s)
            letters.append(letter)
        return replace(self, sent=sent, unanswered=unanswered), letters

    def take(self, packet: Packet) -> tuple[Channel, Message | None, Receipt | None]:
        """What a packet brings: a message, if it is new, and the receipt to send for a letter.

        A letter that comes again is answered again, as the receipt may have been lost.
        """
        if isinstance(packet, Receipt):
            answered = (packet.sender, packet.number)
            left = {key: one for key, one in self.unanswered.items() if key != answered}
            return replace(self, unanswered=left), None, None
        message, number = packet.message, packet.number
        receipt = Receipt(sender=self.address, receiver=message.sender, number=number)
        taken = self.taken.get(message.sender, Taken())
        if number in taken:
            return self, None, receipt
        known = {**self.taken, message.sender: taken.plus(number)}
        return replace(self, taken=known), message, receipt

    def repeat(self, now_s: float) -> tuple[Channel, list[Letter]]:
        """The letters to send again now, those that were sent first in front."""
        unanswered, letters = dict(self.unanswered), list[Letter]()
        for key, one in self.unanswered.items():
            if one.due_s <= now_s:
                # Capped before it is raised: after a long outage the power would be beyond floats.
                wait_s = min(self.patience_s * 2.0 ** min(one.tries, 60), self.patience_most_s)
                unanswered[key] = replace(one, due_s=now_s + wait_s, tries=one.tries + 1)
                letters.append(one.letter)
        return (replace(self, unanswered=unanswered), letters) if letters else (self, [])
