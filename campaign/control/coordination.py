"""Operators and brokers that agree on plans, through reliable channels over a network that fails.

Every node writes down what came in before it sends anything, and after its death it is made anew
from that. Users publish where they will be while all of this goes on.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from campaign.control import invariants
from campaign.control.invariants import require
from campaign.control.scheduler import Network, Scheduler, Violation, Weather
from campaign.control.streets import Streets
from thalweg.errors import ThalwegError
from thalweg.migration.coordination import (
    BrokerLedger,
    Channel,
    HostPlan,
    Letter,
    Message,
    OperatorMachine,
    Packet,
    PlanPublished,
    step,
    trigger,
)
from thalweg.migration.coordination.messages import Address

CALM_S = 25.0
MOST_S = 400.0
Came = Packet | Message | None
"""A packet, a wish from outside, or nothing but the time."""


class _Node:
    """An operator, a broker or a user: what it has written down, and its state by that."""

    def __init__(self, world: CoordinationWorld, address: Address, state: Any) -> None:
        self.world, self.address = world, address
        self.state, self.channel = state, Channel(address=address)
        self.saved = (self.state, self.channel)
        self.written: list[tuple[float, Came]] = []
        """What came since the state was saved as a whole."""

    def recover(self) -> None:
        """Be what was written down, and save that; it has to be what was there."""
        state, channel = self.saved
        for at_s, came in self.written:
            state, channel, *_ = self._answer(state, channel, at_s, came)
        require(invariants.replay_gives_the_same, (self.state, self.channel), (state, channel))
        self.state, self.channel = self.saved = (state, channel)
        self.written = []

    def take(self, came: Came) -> bool:
        """Take what came, write it down, then send; says whether it was written down."""
        world = self.world
        if world.dies_within(self, "before it was written down"):
            return False
        self.state, self.channel, message, out = self._answer(
            self.state, self.channel, world.scheduler.now_s, came
        )
        self.written.append((world.scheduler.now_s, came))
        world.changes += 1
        if isinstance(came, Letter) and message is not None:
            world.count_taken((self.address, message.sender, came.number))
        world.plan_repetition(self)
        if not world.dies_within(self, "before anything was sent"):
            for packet in out:
                world.send(self, packet)
        return True

    def _answer(
        self, state: Any, channel: Channel, now_s: float, came: Came
    ) -> tuple[Any, Channel, Message | None, list[Packet]]:
        out: list[Packet] = []
        message: Message | None
        if came is None:
            channel, again = channel.repeat(now_s)
            return state, channel, None, [*again]
        if isinstance(came, Message):
            message = came
        else:
            channel, message, receipt = channel.take(came)
            out += [receipt] if receipt else []
        if message is not None:
            state, answers = self.world.handle(state, message)
            channel, letters = channel.send(answers, now_s)
            out += letters
        return state, channel, message, out


class CoordinationWorld:
    """One run: a random graph on random brokers in random weather."""

    name = "coordination"

    def __init__(self, seed: int) -> None:
        self.scheduler = Scheduler(self.name, seed)
        random = self.scheduler.random
        self.streets = Streets.draw(random)
        self.weather = Weather.draw(random, CALM_S)
        self.network = Network(self.scheduler, self.weather)
        self.taken: set[object] = set()
        self.taken_twice: dict[object, int] = {}
        self.changes = 0
        """How often a node has changed."""
        self.checked = -1
        self.planners = {name: self.streets.planner_of(name) for name in self.streets.ranks}
        states: dict[Address, Any] = {name: self.streets.machine(name) for name in self.planners}
        states |= {
            broker: BrokerLedger(broker=broker, capacity=capacity)
            for broker, capacity in enumerate(self.streets.capacities)
        }
        states |= dict.fromkeys(self.streets.users)
        self.nodes = {str(a): _Node(self, a, state) for a, state in states.items()}
        self.users: dict[str, HostPlan] = {}
        self.versions: Counter[str] = Counter()
        self.repetitions: dict[str, float] = {}
        self.scheduler.check = self.check

    def run(self) -> None:
        """Faults, then calm, then everybody has to settle."""
        random, names = self.scheduler.random, list(self.nodes)
        pairs = list(itertools.combinations(names, 2))
        self.network.begin_outages(pairs)
        self.network.begin_deaths(names, lambda _: None, self.come_back)
        for user in self.streets.users:
            for _ in range(random.randint(1, 4)):
                at_s = random.uniform(0.0, CALM_S * 0.9)
                self.scheduler.after(at_s, "", lambda user=user: self.move(user))  # type: ignore[misc]
        for name in self.streets.ranks:
            for _ in range(random.randint(1, 3)):
                at_s = random.uniform(0.0, CALM_S * 0.9)
                self.scheduler.after(at_s, "", lambda name=name: self.wake(name))  # type: ignore[misc]
        self.scheduler.run_until(lambda: False, CALM_S)
        self.settle()
        self.try_again()
        require(invariants.nothing_else_is_reserved, self.machines, self.ledgers.values())
        for node in self.nodes.values():
            node.recover()

    @property
    def machines(self) -> dict[str, OperatorMachine]:
        """The operators."""
        return {name: self.nodes[name].state for name in self.streets.ranks}

    @property
    def ledgers(self) -> dict[int, BrokerLedger]:
        """The brokers."""
        return {b: self.nodes[str(b)].state for b in range(len(self.streets.capacities))}

    def check(self) -> None:
        """Everything that has to hold between any two events."""
        if self.checked == self.changes:
            return
        self.checked = self.changes
        machines, ledgers = self.machines, self.ledgers
        require(invariants.within_capacity, ledgers.values())
        require(invariants.plans_are_reserved, machines.values(), ledgers)
        require(invariants.neighbours_take_turns, machines)
        require(invariants.taken_once, self.taken_twice)

    def count_taken(self, letter: object) -> None:
        """A letter has reached the machine that it is for."""
        if letter in self.taken:
            self.taken_twice[letter] = self.taken_twice.get(letter, 1) + 1
        self.taken.add(letter)

    def handle(self, state: Any, message: Message) -> tuple[Any, list[Message]]:
        """What a node makes of a message; one that nobody expects breaks the protocol."""
        try:
            if isinstance(state, OperatorMachine):
                return step(state, message, self.planners[state.name])
            if isinstance(state, BrokerLedger):
                return state.handle(message)
        except ThalwegError as error:
            raise Violation("messages_are_expected", str(error)) from error
        # A user tells what it was asked to tell, to all that have a stream with it.
        near = self.streets.neighbours(str(message.receiver))
        told = [Message(sender=message.receiver, receiver=n, content=message.content) for n in near]
        return state, told

    def send(self, node: _Node, packet: Packet) -> None:
        """Give a packet to the network."""
        to = packet.message.receiver if isinstance(packet, Letter) else packet.receiver
        receiver = self.nodes[str(to)]
        self.network.send(str(node.address), str(to), str(packet), lambda: receiver.take(packet))

    def move(self, user: str) -> None:
        """A user publishes where it will be from now on."""
        if user in self.network.down:
            return
        random, brokers = self.scheduler.random, len(self.streets.capacities)
        hosts = tuple(random.randrange(brokers) for _ in range(self.streets.steps))
        self.versions[user] += 1
        content = PlanPublished(version=self.versions[user], plan=HostPlan(hosts=hosts))
        self.scheduler.note(f"{user} will be at {hosts}")
        if self.nodes[user].take(Message(sender="", receiver=user, content=content)):
            self.users[user] = content.plan

    def wake(self, name: str, reason: str = "deployed") -> None:
        """An operator's own timer, or what it measures, makes it plan."""
        if name not in self.network.down:
            self.scheduler.note(f"{name} shall plan: {reason}")
            self.nodes[name].take(trigger(name, reason))

    def dies_within(self, node: _Node, when: str) -> bool:
        """Whether the node dies right here."""
        if self.network.is_calm or self.weather.death_every_s > CALM_S:
            return False
        if self.scheduler.random.random() >= 0.02:
            return False
        self.scheduler.note(f"{node.address} dies {when}")
        self.network.kill(str(node.address), lambda _: None, self.come_back)
        return True

    def come_back(self, name: str) -> None:
        """Make a node anew from what it wrote down."""
        self.nodes[name].recover()
        self.repetitions.pop(name, None)
        self.plan_repetition(self.nodes[name])

    def plan_repetition(self, node: _Node) -> None:
        """Have a node look at its unanswered letters when the next one is due."""
        due_s, name = node.channel.due_s, str(node.address)
        planned_s = self.repetitions.get(name)
        if due_s is None or (planned_s is not None and planned_s <= due_s):
            return
        self.repetitions[name] = due_s

        def look() -> None:
            if self.repetitions.get(name) == due_s:
                del self.repetitions[name]
                if name not in self.network.down:
                    node.take(None)
                    self.plan_repetition(node)

        self.scheduler.after(max(due_s - self.scheduler.now_s, 0.0), "", look)

    def settle(self) -> None:
        """Wait, for a bounded time, until nobody waits and every letter has arrived."""
        self.scheduler.run_until(lambda: not self.unsettled(), self.scheduler.now_s + MOST_S)
        require(invariants.all_is_settled, self.unsettled())
        plans = {name: m.stable for name, m in self.machines.items() if m.stable} | self.users
        believed = [
            f"{name} believes {machine.known.get(other)} of {other}"
            for name, machine in self.machines.items()
            for other in self.streets.neighbours(name)
            if other in plans and plans[other].deviates_from(machine.known.get(other))
        ]
        require(invariants.all_is_settled, believed)

    def unsettled(self) -> list[str]:
        """Who waits, and for whom letters are left."""
        waiting = [
            f"{m.name} waits for {m.phase.value}"
            for m in self.machines.values()
            if not m.is_settled
        ]
        left = [
            f"{len(n.channel.unanswered)} letters of {n.address}"
            for n in self.nodes.values()
            if n.channel.unanswered
        ]
        return waiting + left

    def try_again(self) -> None:
        """As the regular timer does: who was refused room asks again, one by one by rank."""
        found = True
        while found:
            found = False
            for name in sorted(self.streets.ranks, key=self.streets.ranks.__getitem__):
                machine = self.machines[name]
                if machine.stable is None and machine.banned:
                    self.wake(name, "tries again")
                    self.settle()
                    found |= self.machines[name].stable is not None
