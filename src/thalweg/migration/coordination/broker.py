"""What each broker has promised to whom, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import fsum, isfinite

from thalweg.errors import Defects
from thalweg.migration.coordination.messages import (
    Channels,
    Content,
    Message,
    ProtocolBroken,
    Refused,
    Release,
    ReservationReply,
    ReservationRequest,
    Reserve,
    Reserved,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLedger:
    """The room of one broker: its capacity, and at each step what it holds for which operator.

    Never holds more than the capacity at any step. Capacity and demands share a unit, slots or
    instructions per second.

    >>> ledger, refused = BrokerLedger(broker=3, capacity=2.0).reserve("filter", 1.5, (0, 1))
    >>> ledger.check("join", 1.0, (1, 2))
    (1,)
    """

    broker: int
    capacity: float
    held: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    channels: Channels = field(default_factory=Channels)

    def __post_init__(self) -> None:
        defects = Defects()
        defects.require(self.broker >= 0, "broker", self.broker, "an index, 0 or above")
        good = isfinite(self.capacity) and self.capacity >= 0
        defects.require(good, "capacity", self.capacity, "a finite number >= 0")
        defects.raise_if_any()

    def reserved(self, step: int) -> float:
        """What is promised at the step."""
        # The exact sum, since the order in which operators came must not decide on the last bit.
        return fsum(self.held.get(step, {}).values())

    def check(self, operator: str, demand: float, steps: Iterable[int]) -> tuple[int, ...]:
        """The steps without room for the operator; what it holds itself would be replaced."""
        return tuple(
            step
            for step in steps
            if fsum({**self.held.get(step, {}), operator: demand}.values()) > self.capacity
        )

    def reserve(
        self, operator: str, demand: float, steps: Iterable[int]
    ) -> tuple[BrokerLedger, tuple[int, ...]]:
        """The ledger with all the steps taken; or as it was, and the steps without room."""
        wanted = tuple(steps)
        refused = self.check(operator, demand, wanted)
        if refused:
            return self, refused
        taken = {step: {**self.held.get(step, {}), operator: demand} for step in wanted}
        return replace(self, held={**self.held, **taken}), ()

    def release(self, operator: str, steps: Iterable[int]) -> BrokerLedger:
        """The ledger without the operator's room at these steps."""
        held = dict(self.held)
        for step in set(steps) & held.keys():
            held[step] = {name: d for name, d in held[step].items() if name != operator}
            if not held[step]:
                del held[step]
        return replace(self, held=held)

    def handle(self, message: Message) -> tuple[BrokerLedger, list[Message]]:
        """The ledger after the message, and the answers."""
        channels, ready = self.channels.take(message)
        ledger, answers = replace(self, channels=channels), []
        for one in ready:
            ledger, answer = ledger._answer(one)
            if answer is not None:
                channels, sent = ledger.channels.write(ledger.broker, one.sender, answer)
                ledger = replace(ledger, channels=channels)
                answers.append(sent)
        return ledger, answers

    def _answer(self, message: Message) -> tuple[BrokerLedger, Content | None]:
        operator, content = str(message.sender), message.content
        match content:
            case ReservationRequest():
                refused = self.check(operator, content.demand, content.steps)
                return self, ReservationReply(attempt=content.attempt, refused=refused)
            case Reserve():
                ledger, refused = self.reserve(operator, content.demand, content.steps)
                if refused:
                    return ledger, Refused(attempt=content.attempt, steps=refused)
                return ledger, Reserved(attempt=content.attempt)
            case Release():
                return self.release(operator, content.steps), None
            case _:
                raise ProtocolBroken(f"broker {self.broker} can't read {message}")
