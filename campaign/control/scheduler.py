"""Virtual time: events in a defined order, a network that fails, nodes that die and return.

All randomness of a run comes from one seed, and nothing looks at a clock. So the same seed gives
the same trace, letter by letter.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from random import Random

Action = Callable[[], object]


class Violation(Exception):
    """An invariant does not hold; its name, and what was found."""

    def __init__(self, invariant: str, found: str) -> None:
        super().__init__(f"{invariant}: {found}")
        self.invariant = invariant
        self.found = found


class Scheduler:
    """Runs events by their time; of events at the same time, the one that was planned first."""

    def __init__(self, world: str, seed: int) -> None:
        self.random = Random(f"{world}/{seed}")  # noqa: S311  # nosec B311
        self.now_s = 0.0
        self.steps = 0
        self.faults: Counter[str] = Counter()
        self.trace: list[str] = []
        self.check: Action = lambda: None
        """Looked at after every event; raises `Violation`."""
        self._events: list[tuple[float, int, str, Action]] = []
        self._planned = 0

    def after(self, delay_s: float, label: str, action: Action) -> None:
        """Plan an event; one without a label is not told in the trace."""
        self._planned += 1
        heapq.heappush(self._events, (self.now_s + delay_s, self._planned, label, action))

    def note(self, text: str) -> None:
        """Tell something in the trace."""
        self.trace.append(f"{self.now_s:9.3f} {text}")

    def fault(self, kind: str, text: str) -> None:
        """Count a fault, and tell it."""
        self.faults[kind] += 1
        self.note(f"! {kind}: {text}")

    def step(self) -> None:
        """Take the next event, then look whether all is well."""
        self.now_s, _, label, action = heapq.heappop(self._events)
        self.steps += 1
        if label:
            self.note(label)
        action()
        self.check()

    def run_until(self, is_over: Callable[[], bool], until_s: float) -> bool:
        """Take events until it is over, or time is up; says whether it is over.

        When it is not, time has gone on to the end.
        """
        while not is_over():
            if not self._events or self._events[0][0] > until_s:
                self.now_s = max(self.now_s, until_s)
                return is_over()
            self.step()
        return True

    @property
    def fingerprint(self) -> str:
        """The same for the same trace."""
        return sha256("\n".join(self.trace).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How bad the network and the nodes are, until it gets calm."""

    loss: float
    doubling: float
    slowness: float
    """The part of the packets that take up to `most_delay_s`; others take up to 0.1 s."""
    most_delay_s: float
    outage_every_s: float
    death_every_s: float
    calm_s: float
    """No fault begins after this time, and all have ended."""

    @classmethod
    def draw(cls, random: Random, calm_s: float) -> Weather:
        """Any weather, from fair to foul."""
        return cls(
            loss=random.choice((0.0, 0.05, 0.2, 0.4)),
            doubling=random.choice((0.0, 0.1, 0.4)),
            slowness=random.choice((0.0, 0.1, 0.5)),
            most_delay_s=random.choice((1.0, 5.0, 15.0)),
            outage_every_s=random.choice((4.0, 15.0, 1e9)),
            death_every_s=random.choice((3.0, 10.0, 1e9)),
            calm_s=calm_s,
        )


class Network:
    """Brings packets from node to node, or does not."""

    def __init__(self, scheduler: Scheduler, weather: Weather) -> None:
        self._scheduler = scheduler
        self._weather = weather
        self._cut: Counter[tuple[str, str]] = Counter()
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._newest: dict[tuple[str, str], int] = {}
        self.down: set[str] = set()

    @property
    def is_calm(self) -> bool:
        """Whether the time of faults is over."""
        return self._scheduler.now_s >= self._weather.calm_s

    def reaches(self, a: str, b: str) -> bool:
        """Whether something can get from one node to the other right now."""
        return not self._cut[_pair(a, b)] and a not in self.down and b not in self.down

    def send(self, sender: str, receiver: str, label: str, deliver: Action) -> None:
        """Have a packet delivered later, once, twice or never; a dead node is told nothing."""
        scheduler, weather, random = self._scheduler, self._weather, self._scheduler.random
        pair = (sender, receiver)
        self._numbers[pair] += 1
        number = self._numbers[pair]
        if self.is_calm:
            self._carry(pair, number, random.uniform(0.001, 0.05), label, deliver)
            return
        if random.random() < weather.loss:
            scheduler.fault("lost", label)
            return
        copies = 1
        if random.random() < weather.doubling:
            scheduler.fault("doubled", label)
            copies = 2
        for _ in range(copies):
            delay_s = random.uniform(0.001, 0.1)
            if random.random() < weather.slowness:
                delay_s = random.uniform(0.1, weather.most_delay_s)
                scheduler.fault("delayed", f"{label}, by {delay_s:.3f} s")
            self._carry(pair, number, delay_s, label, deliver)

    def _carry(
        self, pair: tuple[str, str], number: int, delay_s: float, label: str, deliver: Action
    ) -> None:
        def arrive() -> None:
            if self._cut[_pair(*pair)]:
                self._scheduler.fault("cut off", label)
                return
            if pair[1] in self.down:
                self._scheduler.fault("nobody there", label)
                return
            if number < self._newest.get(pair, 0):
                self._scheduler.faults["reordered"] += 1
            self._newest[pair] = max(number, self._newest.get(pair, 0))
            deliver()

        self._scheduler.after(delay_s, label, arrive)

    def begin_outages(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Let links fail from now until it is calm: for a while, to and fro, or around one node."""
        self._repeat(self._weather.outage_every_s, lambda: self._fail(pairs))

    def begin_deaths(
        self, nodes: Sequence[str], die: Callable[[str], None], come_back: Callable[[str], None]
    ) -> None:
        """Let nodes die from now on, and return before it is calm."""

        def kill() -> None:
            node = self._scheduler.random.choice(nodes)
            if node not in self.down:
                self.kill(node, die, come_back)

        self._repeat(self._weather.death_every_s, kill)

    def kill(self, node: str, die: Callable[[str], None], come_back: Callable[[str], None]) -> None:
        """Let a node die now, and return after a while."""
        self._scheduler.fault("died", node)
        self.down.add(node)
        die(node)

        def return_() -> None:
            self.down.discard(node)
            come_back(node)

        self._scheduler.after(self._lasting_s(8.0), f"{node} is back", return_)

    def _fail(self, pairs: Sequence[tuple[str, str]]) -> None:
        random = self._scheduler.random
        chosen = random.choice(pairs)
        kind = random.choice(("cut", "flapping", "partition"))
        if kind == "flapping":
            self._scheduler.fault("flapping", f"{chosen[0]} – {chosen[1]}")
            start_s = 0.0
            for _ in range(random.randint(2, 6)):
                self._scheduler.after(start_s, "", lambda: self._cut_off([chosen], 0.3))
                start_s += 0.6
            return
        if kind == "partition":
            alone = random.choice(chosen)
            self._scheduler.fault("partition", f"{alone} is alone")
            self._cut_off([pair for pair in pairs if alone in pair], self._lasting_s(10.0))
            return
        self._scheduler.fault("partition", f"{chosen[0]} – {chosen[1]}")
        self._cut_off([chosen], self._lasting_s(10.0))

    def _cut_off(self, pairs: Sequence[tuple[str, str]], lasting_s: float) -> None:
        keys = [_pair(*pair) for pair in pairs]
        self._cut.update(keys)
        left_s = max(self._weather.calm_s - self._scheduler.now_s, 0.0)
        self._scheduler.after(min(lasting_s, left_s), "", lambda: self._cut.subtract(keys))

    def _lasting_s(self, most_s: float) -> float:
        left_s = max(self._weather.calm_s - self._scheduler.now_s, 0.0)
        return min(self._scheduler.random.uniform(0.05, most_s), left_s)

    def _repeat(self, every_s: float, action: Action) -> None:
        """Do something again and again, at random times, until it is calm."""
        wait_s = self._scheduler.random.expovariate(1.0 / every_s)
        if self._scheduler.now_s + wait_s >= self._weather.calm_s:
            return

        def once() -> None:
            action()
            self._repeat(every_s, action)

        self._scheduler.after(wait_s, "", once)


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)
