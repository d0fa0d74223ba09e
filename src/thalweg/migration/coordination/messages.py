"""What operators and brokers say to each other while they coordinate migration plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isnan
from typing import TypeAlias

from thalweg.errors import Defects, ThalwegError

Address: TypeAlias = str | int
"""An operator or user by its name, a broker by its index."""

Vertex: TypeAlias = tuple[int, int]
"""A broker at a time step."""

OUTSIDE = 0
"""The number of a letter that comes from outside and stands in no order to others."""


class ProtocolBroken(ThalwegError):
    """A message came that can't come in this state; the text tells both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlan:
    """The broker that hosts an operator or user at each time step, and what its planner expects.

    >>> sorted(HostPlan(hosts=(4, 4, 7), cost=2.5).vertices)
    [(4, 0), (4, 1), (7, 2)]
    """

    hosts: tuple[int, ...]
    cost: float = 0.0

    def __post_init__(self) -> None:
        defects = Defects()
        defects.require(len(self.hosts) > 0, "hosts", self.hosts, "a broker for each time step")
        good = all(host >= 0 for host in self.hosts)
        defects.require(good, "hosts", self.hosts, "indices of brokers, 0 or above")
        defects.require(not isnan(self.cost), "cost", self.cost, "a number")
        defects.raise_if_any()

    @property
    def vertices(self) -> frozenset[Vertex]:
        """Each broker with the step at which it hosts."""
        return frozenset((host, step) for step, host in enumerate(self.hosts))

    def deviates_from(self, other: HostPlan | None) -> bool:
        """Whether another broker hosts at any step; the costs don't matter."""
        return other is None or self.hosts != other.hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """An operator shall plan: it was deployed, or what was measured left what was expected."""

    reason: str = "deployed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPublished:
    """A user's predicted plan; a newer version replaces an older one, whatever comes first."""

    version: int
    plan: HostPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanUpdated:
    """An operator proposes to change to this plan."""

    attempt: int
    plan: HostPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAccepted:
    """The neighbour agrees with the attempt and keeps its own plan until that has ended."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettled:
    """The attempt has ended: the plan holds from now on; without one, all is as it was."""

    attempt: int
    plan: HostPlan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRequest:
    """Asks a broker for room at these steps; holds none."""

    attempt: int
    demand: float
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationReply:
    """The steps at which the broker has no room; none of them is a yes."""

    attempt: int
    refused: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Takes room at all these steps, or at none."""

    attempt: int
    demand: float
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """The room is taken."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nothing was taken: somebody was quicker at these steps."""

    attempt: int
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Gives the room at these steps back."""

    steps: tuple[int, ...]


Content: TypeAlias = (
    Trigger
    | PlanPublished
    | PlanUpdated
    | PlanAccepted
    | PlanSettled
    | ReservationRequest
    | ReservationReply
    | Reserve
    | Reserved
    | Refused
    | Release
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A content on its way, numbered per sender and receiver from 1."""

    sender: Address
    receiver: Address
    content: Content
    number: int = OUTSIDE

    @property
    def kind(self) -> str:
        """The name of the content's type."""
        return type(self.content).__name__

    def __str__(self) -> str:
        return f"{self.sender} → {self.receiver} #{self.number}: {self.content}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """Numbers what leaves an address, and puts what arrives back into the order of sending.

    The protocol needs each sender's messages in order; the numbers give it over any network. What
    comes early is held until the gap before it closes, what comes twice is dropped.
    """

    sent: Mapping[Address, int] = field(default_factory=dict)
    taken: Mapping[Address, int] = field(default_factory=dict)
    held: frozenset[Message] = frozenset()

    def write(
        self, sender: Address, receiver: Address, content: Content
    ) -> tuple[Channels, Message]:
        """The content as the sender's next message to the receiver."""
        number = self.sent.get(receiver, 0) + 1
        message = Message(sender=sender, receiver=receiver, content=content, number=number)
        return replace(self, sent={**self.sent, receiver: number}), message

    def take(self, message: Message) -> tuple[Channels, list[Message]]:
        """The messages whose turn it is now, in order."""
        if message.number == OUTSIDE:
            return self, [message]
        sender = message.sender
        taken = self.taken.get(sender, 0)
        if message.number <= taken:
            return self, []
        waiting = {m.number: m for m in self.held if m.sender == sender} | {message.number: message}
        ready: list[Message] = []
        while taken + 1 in waiting:
            taken += 1
            ready.append(waiting[taken])
        held = (self.held | {message}) - frozenset(ready)
        return replace(self, taken={**self.taken, sender: taken}, held=held), ready
