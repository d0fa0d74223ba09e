"""Drives operators and brokers to quiescence, delivering their messages in any order at all."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TypeAlias

import numpy as np

from thalweg.errors import Defects, ThalwegError
from thalweg.migration.coordination.broker import BrokerLedger
from thalweg.migration.coordination.messages import HostPlan, Message, Trigger, Vertex
from thalweg.migration.coordination.operator import OperatorMachine, Planner, step

Choose: TypeAlias = Callable[[Sequence[Message]], int]
"""Picks the index of the message to deliver next; pending ones stand in the order of sending."""

TotalCost: TypeAlias = Callable[[Mapping[str, HostPlan]], float]
"""C_tot for the accepted plans of the operators; those without a plan are not in the mapping."""

_FROM_OUTSIDE = ("Trigger", "PlanPublished")
_STORY_LENGTH = 30


class CoordinationGoesOn(ThalwegError):
    """A coordination did not end within its cap; the text has the last messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """An operator's plan became stable; C_tot right before and right after."""

    operator: str
    previous: HostPlan | None
    plan: HostPlan
    cost_before: float
    cost_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordination:
    """How a coordination ended: nobody waits, and what is reserved are the stable plans.

    `without_plan` gives the reason for each operator that was to plan and could not.
    """

    machines: Mapping[str, OperatorMachine]
    ledgers: Mapping[int, BrokerLedger]
    counts: Mapping[str, int]
    acceptances: tuple[Acceptance, ...]
    peak_reserved: Mapping[Vertex, float]

    @property
    def plans(self) -> dict[str, HostPlan]:
        """The stable plan of each operator that has one."""
        return _stable_plans(self.machines)

    @property
    def without_plan(self) -> dict[str, str]:
        """Why an operator has no plan."""
        found = self.machines.values()
        return {m.name: m.lacking for m in found if m.stable is None and m.lacking}

    @property
    def message_count(self) -> int:
        """Messages among operators and brokers; what came from outside is not counted."""
        return sum(n for kind, n in self.counts.items() if kind not in _FROM_OUTSIDE)


def _not_asked(_plans: Mapping[str, HostPlan]) -> float:
    return nan


def first_sent(_pending: Sequence[Message]) -> int:
    """Delivers in the order of sending."""
    return 0


def last_sent(pending: Sequence[Message]) -> int:
    """Delivers the newest message first."""
    return len(pending) - 1


def in_random_order(rng: np.random.Generator) -> Choose:
    """Delivers any pending message, each as likely as the others."""
    return lambda pending: int(rng.integers(len(pending)))


def trigger(operator: str, reason: str = "deployed") -> Message:
    """A message that makes an operator plan."""
    return Message(sender="", receiver=operator, content=Trigger(reason=reason))


def holding(
    ledgers: Iterable[BrokerLedger], machines: Iterable[OperatorMachine]
) -> dict[int, BrokerLedger]:
    """The ledgers with the machines' stable plans reserved; `InvalidInput` if they don't fit."""
    held = {ledger.broker: ledger for ledger in ledgers}
    defects = Defects()
    for machine in machines:
        for broker, at in sorted(machine.stable.vertices if machine.stable else ()):
            known = broker in held
            defects.require(known, f"{machine.name}.stable", broker, "a broker with a ledger")
            if known:
                held[broker], refused = held[broker].reserve(machine.name, machine.demand, [at])
                rule = f"room at broker {broker}, step {at}"
                defects.require(not refused, f"{machine.name}.demand", machine.demand, rule)
    defects.raise_if_any()
    return held


def run(
    machines: Iterable[OperatorMachine],
    ledgers: Mapping[int, BrokerLedger],
    triggers: Iterable[Message],
    choose: Choose = first_sent,
    *,
    planner_of: Callable[[str], Planner],
    cost: TotalCost = _not_asked,
    most_deliveries: int = 100_000,
) -> Coordination:
    """Deliver until nothing is pending.

    All triggers are pending from the start, so `choose` decides when they arrive. An operator that
    was refused room and ended without a plan may have lost it to a rival that then lost as well:
    when all is quiet, such operators are triggered again, one at a time by rank, until that brings
    none of them a plan. The algorithm's regular timer does the same.
    """
    network = _Network(machines, ledgers, planner_of, cost, most_deliveries)
    network.deliver(triggers, choose)
    tried_again = True
    while tried_again:
        tried_again = False
        for machine in sorted(network.machines.values(), key=lambda m: m.rank):
            if machine.stable is None and machine.banned:
                network.deliver([trigger(machine.name, "tries again")], choose)
                tried_again |= network.machines[machine.name].stable is not None
    return network.ending()


def coordinate(
    operators: Sequence[OperatorMachine],
    planner_of: Callable[[str], Planner],
    users: Mapping[str, HostPlan],
    ledgers: Iterable[BrokerLedger],
    order: Choose = first_sent,
    *,
    cost: TotalCost = _not_asked,
) -> Coordination:
    """Trigger all operators, whose stable plans are reserved first, and run to the end.

    Every operator hears the plans of all users; its planner looks at those it has a stream with.
    """
    hearing = [operator.hearing(users) for operator in operators]
    triggers = [trigger(operator.name) for operator in operators]
    held = holding(ledgers, operators)
    return run(hearing, held, triggers, order, planner_of=planner_of, cost=cost)


class _Network:
    """Everything on its way and everybody's state, for one run."""

    def __init__(
        self,
        machines: Iterable[OperatorMachine],
        ledgers: Mapping[int, BrokerLedger],
        planner_of: Callable[[str], Planner],
        cost: TotalCost,
        most_deliveries: int,
    ) -> None:
        self.machines = {machine.name: machine for machine in machines}
        self.ledgers = dict(ledgers)
        self.planners = {name: planner_of(name) for name in self.machines}
        self.cost = cost
        self.left = most_deliveries
        self.counts: Counter[str] = Counter()
        self.acceptances: list[Acceptance] = []
        self.peak: dict[Vertex, float] = {}
        self.story: deque[Message] = deque(maxlen=_STORY_LENGTH)
        for ledger in self.ledgers.values():
            self._note_peak(ledger, {})

    def deliver(self, messages: Iterable[Message], choose: Choose) -> None:
        """Deliver these messages and all that follow from them."""
        pending = list(messages)
        while pending:
            message = pending.pop(choose(pending))
            self.counts[message.kind] += 1
            self.story.append(message)
            if self.left <= 0:
                text = "\n".join(map(str, self.story))
                raise CoordinationGoesOn(f"{len(pending)} messages are pending after\n{text}")
            self.left -= 1
            if isinstance(message.receiver, int):
                pending += self._to_broker(message.receiver, message)
            else:
                pending += self._to_operator(message.receiver, message)

    def _to_broker(self, broker: int, message: Message) -> list[Message]:
        before = self.ledgers[broker]
        self.ledgers[broker], answers = before.handle(message)
        self._note_peak(self.ledgers[broker], before.held)
        return answers

    def _to_operator(self, name: str, message: Message) -> list[Message]:
        before = self.machines[name]
        after, answers = step(before, message, self.planners[name])
        if after.stable is not None and after.stable.deviates_from(before.stable):
            plans = _stable_plans(self.machines)
            self.acceptances.append(
                Acceptance(
                    operator=name,
                    previous=before.stable,
                    plan=after.stable,
                    cost_before=self.cost(plans),
                    cost_after=self.cost({**plans, name: after.stable}),
                )
            )
        self.machines[name] = after
        return answers

    def _note_peak(self, ledger: BrokerLedger, before: Mapping[int, Mapping[str, float]]) -> None:
        for at, demands in ledger.held.items():
            # Steps that a message did not touch are the very same object; there may be thousands.
            if demands is not before.get(at):
                vertex = (ledger.broker, at)
                self.peak[vertex] = max(self.peak.get(vertex, 0.0), ledger.reserved(at))

    def ending(self) -> Coordination:
        """What came of it; whoever still waits makes it fail with the story."""
        waiting = [machine for machine in self.machines.values() if not machine.is_settled]
        if waiting:
            text = "\n".join(map(str, [*waiting, *self.story]))
            raise CoordinationGoesOn(f"nothing is pending, but {len(waiting)} wait:\n{text}")
        return Coordination(
            machines=self.machines,
            ledgers=self.ledgers,
            counts=dict(self.counts),
            acceptances=tuple(self.acceptances),
            peak_reserved=self.peak,
        )


def _stable_plans(machines: Mapping[str, OperatorMachine]) -> dict[str, HostPlan]:
    return {name: m.stable for name, m in machines.items() if m.stable is not None}
