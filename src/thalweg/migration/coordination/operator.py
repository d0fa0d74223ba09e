"""How one operator agrees on its plan: a pure state machine, a message in and messages out.

An attempt goes as in MigCEP's Algorithm 5: propose the plan to all neighbours, hear from each of
them, check the target brokers, reserve there, and tell how it ended. Best responses that
neighbours take at once, each against the other's old plan, can raise the total cost and go on for
ever, so one rule is stricter than the paper's: two neighbours never change plans at once.

- Who accepts a neighbour's proposal keeps its own plan until that attempt has settled, and plans
  itself only then, against what came of it.
- Of two proposals that cross, the one of the operator with the lower rank goes on. To either side
  the other's proposal is the feedback; the operator with the higher rank withdraws its own.

So each plan is made against the neighbours' plans that hold when it is accepted. Operators that
are no neighbours share no stream, so they may change at once: each lowers its own part of C_tot.

Why it ends. An accepted plan that replaces another is strictly cheaper for its operator, hence for
C_tot, and there are finitely many plans. A refusal bans a vertex for the rest of the coordination.
The operator with the lowest rank never withdraws; each next one withdraws at most once per attempt
of those before it.

Reservations are taken for the vertices that the operator does not hold yet, and those it no longer
needs are given back after the new plan is accepted. So it never competes with itself, its previous
plan stays reserved and possible meanwhile, and a refusal can't raise C_tot: at worst it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import isfinite
from typing import TypeAlias

from thalweg.errors import Defects
from thalweg.migration.coordination.messages import (
    Address,
    Channels,
    Content,
    HostPlan,
    Message,
    PlanAccepted,
    PlanPublished,
    PlanSettled,
    PlanUpdated,
    ProtocolBroken,
    Refused,
    Release,
    ReservationReply,
    ReservationRequest,
    Reserve,
    Reserved,
    Trigger,
    Vertex,
)

Planner: TypeAlias = Callable[
    [Mapping[str, HostPlan], frozenset[Vertex], HostPlan | None], HostPlan | None
]
"""Gives an operator's cheapest plan for its neighbours' plans, without the banned vertices.

A pure function. Gives the previous plan again unless another is strictly cheaper, and None if no
plan is possible. Neighbours that have no plan yet are not in the mapping.
"""


class Phase(Enum):
    """What an operator waits for."""

    IDLE = "nothing"
    ASKING = "feedback of neighbours"
    CHECKING = "replies of target brokers"
    RESERVING = "reservations at target brokers"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorMachine:
    """The state of one operator's coordination; `step` gives the next.

    `ranks` names the neighbours that are operators; no two neighbours have the same rank. `known`
    has the plans of neighbours and users as last heard, `favoured` the neighbours whose attempts
    it accepted and that have not settled. `lacking` says why there is no (new) plan.
    """

    name: str
    rank: int
    ranks: Mapping[str, int] = field(default_factory=dict)
    demand: float = 1.0
    stable: HostPlan | None = None
    known: Mapping[str, HostPlan] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    phase: Phase = Phase.IDLE
    wants_plan: bool = False
    attempt: int = 0
    proposed: HostPlan | None = None
    awaited: frozenset[Address] = frozenset()
    favoured: frozenset[str] = frozenset()
    banned: frozenset[Vertex] = frozenset()
    refused: frozenset[Vertex] = frozenset()
    secured: frozenset[int] = frozenset()
    lacking: str = ""
    channels: Channels = field(default_factory=Channels)

    def __post_init__(self) -> None:
        defects = Defects()
        defects.require(bool(self.name), "name", self.name, "a name")
        good = isfinite(self.demand) and self.demand >= 0
        defects.require(good, "demand", self.demand, "a finite number >= 0")
        own = self.rank not in self.ranks.values() and self.name not in self.ranks
        hint = "number the operators of a graph from 0"
        defects.require(own, "rank", self.rank, "a rank that no neighbour has", hint)
        defects.raise_if_any()

    @property
    def is_settled(self) -> bool:
        """Whether it waits for nothing and nobody waits for it."""
        return self.phase is Phase.IDLE and not (self.wants_plan or self.favoured)

    def hearing(self, plans: Mapping[str, HostPlan]) -> OperatorMachine:
        """The machine that knows these plans of users or neighbours from the start."""
        return replace(self, known={**self.known, **plans})


def step(
    machine: OperatorMachine, message: Message, planner: Planner
) -> tuple[OperatorMachine, list[Message]]:
    """The operator's state after the message, and what it sends."""
    channels, ready = machine.channels.take(message)
    turn = _Turn(replace(machine, channels=channels), planner)
    for one in ready:
        turn.hear(one)
        turn.go_on()
    return turn.machine, turn.outbox


class _Turn:
    """One step under way: the state so far and what is to be sent."""

    def __init__(self, machine: OperatorMachine, planner: Planner) -> None:
        self.machine = machine
        self.planner = planner
        self.outbox: list[Message] = []

    def hear(self, message: Message) -> None:
        """Note what the message says."""
        machine, sender, content = self.machine, str(message.sender), message.content
        match content:
            case Trigger():
                self.machine = replace(machine, wants_plan=True)
            case PlanPublished() if content.version > machine.versions.get(sender, -1):
                versions = {**machine.versions, sender: content.version}
                self.machine = replace(machine, versions=versions)
                self._know(sender, content.plan)
            case PlanPublished():
                pass  # A newer version was here first.
            case PlanUpdated():
                self._hear_proposal(message, sender, content.attempt)
            case PlanAccepted():
                # What was accepted may have been withdrawn meanwhile.
                if machine.phase is Phase.ASKING and content.attempt == machine.attempt:
                    self.machine = replace(machine, awaited=machine.awaited - {sender})
            case PlanSettled():
                self.machine = replace(machine, favoured=machine.favoured - {sender})
                if content.plan is not None:
                    self._know(sender, content.plan)
            case ReservationReply():
                self._hear_broker(message, Phase.CHECKING, content.attempt, content.refused)
            case Reserved():
                self._hear_broker(message, Phase.RESERVING, content.attempt, ())
            case Refused():
                self._hear_broker(message, Phase.RESERVING, content.attempt, content.steps)
            case _:
                raise ProtocolBroken(f"operator can't read {message}; {machine}")

    def _know(self, neighbour: str, plan: HostPlan) -> None:
        machine = self.machine
        deviates = plan.deviates_from(machine.known.get(neighbour))
        self.machine = replace(
            machine,
            known={**machine.known, neighbour: plan},
            wants_plan=machine.wants_plan or deviates,
        )

    def _hear_proposal(self, message: Message, sender: str, attempt: int) -> None:
        machine = self.machine
        if machine.phase is not Phase.IDLE:
            if machine.rank < machine.ranks[sender]:
                # Crossed: the neighbour will withdraw on reading ours, which is all we need.
                self.machine = replace(machine, awaited=machine.awaited - {sender})
                return
            if machine.phase is not Phase.ASKING:
                raise ProtocolBroken(f"{message} though it had accepted ours; {machine}")
            # Crossed: ours is the feedback that the neighbour awaits, so no other is sent.
            self._close()
            self.machine = replace(
                self.machine, wants_plan=True, favoured=self.machine.favoured | {sender}
            )
            return
        self.machine = replace(machine, favoured=machine.favoured | {sender})
        self._send([sender], PlanAccepted(attempt=attempt))

    def _hear_broker(
        self, message: Message, phase: Phase, attempt: int, refused: tuple[int, ...]
    ) -> None:
        machine, broker = self.machine, message.sender
        expected = machine.phase is phase and attempt == machine.attempt
        if not expected or broker not in machine.awaited or not isinstance(broker, int):
            raise ProtocolBroken(f"nobody awaits {message}; {machine}")
        secured = phase is Phase.RESERVING and not refused
        self.machine = replace(
            machine,
            awaited=machine.awaited - {broker},
            refused=machine.refused | {(broker, at) for at in refused},
            secured=machine.secured | {broker} if secured else machine.secured,
        )

    def go_on(self) -> None:
        """Do whatever waits for nothing any more."""
        while not self.machine.awaited:
            machine = self.machine
            if machine.phase is Phase.IDLE:
                if not machine.wants_plan or machine.favoured:
                    return
                self.machine = replace(machine, wants_plan=False, banned=frozenset())
                self._plan()
            elif machine.refused:
                self._give_back(machine.proposed, machine.secured)
                banned = machine.banned | machine.refused
                nothing: frozenset[int] = frozenset()
                self.machine = replace(
                    self.machine, banned=banned, refused=frozenset(), secured=nothing
                )
                self._plan()
            elif machine.phase is Phase.ASKING:
                self._ask_brokers(Phase.CHECKING)
            elif machine.phase is Phase.CHECKING:
                self._ask_brokers(Phase.RESERVING)
            else:
                self._accept()

    def _plan(self) -> None:
        machine = self.machine
        plan = self.planner(machine.known, machine.banned, machine.stable)
        if plan is None:
            at = f"{len(machine.banned)} vertices refused" if machine.banned else "none was refused"
            self.machine = replace(machine, lacking=f"no plan is possible ({at})")
            self._close()
        elif not plan.deviates_from(machine.stable):
            self.machine = replace(machine, stable=plan, lacking="")
            self._close()
        else:
            self.machine = replace(
                machine,
                phase=Phase.ASKING,
                attempt=machine.attempt + 1,
                proposed=plan,
                awaited=frozenset(machine.ranks),
            )
            self._send(machine.ranks, PlanUpdated(attempt=self.machine.attempt, plan=plan))

    def _ask_brokers(self, phase: Phase) -> None:
        machine = self.machine
        wanted = _by_broker(self._new_vertices(machine.proposed))
        self.machine = replace(machine, phase=phase, awaited=frozenset(wanted))
        ask = ReservationRequest if phase is Phase.CHECKING else Reserve
        for broker, steps in wanted.items():
            self._send([broker], ask(attempt=machine.attempt, demand=machine.demand, steps=steps))

    def _accept(self) -> None:
        previous, plan = self.machine.stable, self.machine.proposed
        self.machine = replace(self.machine, stable=plan, lacking="")
        self._give_back(previous)
        self._close(plan)

    def _give_back(self, plan: HostPlan | None, brokers: frozenset[int] | None = None) -> None:
        """Release what the plan holds beyond the stable one (at these brokers)."""
        for broker, steps in _by_broker(self._new_vertices(plan)).items():
            if brokers is None or broker in brokers:
                self._send([broker], Release(steps=steps))

    def _close(self, plan: HostPlan | None = None) -> None:
        """End the attempt, if one is open, and tell the neighbours how."""
        machine = self.machine
        if machine.phase is not Phase.IDLE:
            self._send(machine.ranks, PlanSettled(attempt=machine.attempt, plan=plan))
        self.machine = replace(
            self.machine,
            phase=Phase.IDLE,
            proposed=None,
            awaited=frozenset(),
            secured=frozenset(),
        )

    def _new_vertices(self, plan: HostPlan | None) -> frozenset[Vertex]:
        stable = self.machine.stable
        wanted = plan.vertices if plan else frozenset()
        return wanted - stable.vertices if stable else wanted

    def _send(self, receivers: Iterable[Address], content: Content) -> None:
        for receiver in receivers:
            channels, message = self.machine.channels.write(self.machine.name, receiver, content)
            self.machine = replace(self.machine, channels=channels)
            self.outbox.append(message)


def _by_broker(vertices: frozenset[Vertex]) -> dict[int, tuple[int, ...]]:
    """The steps at each broker, both ascending."""
    steps: dict[int, list[int]] = {}
    for broker, at in sorted(vertices):
        steps.setdefault(broker, []).append(at)
    return {broker: tuple(found) for broker, found in steps.items()}
