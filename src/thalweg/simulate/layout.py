"""What the engine runs: stations with one server and a queue each, and the lanes between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Floats
from thalweg.simulate.arrivals import Arrivals, Poisson
from thalweg.simulate.service import Deterministic, Service

Index = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The way of some events to the next station."""

    target: int
    latency_s: float = 0.0
    shift: int = 0
    """What is added to the tokens of events that go this way."""
    low: float = 0.0
    high: float = 1.0
    """Events go this way whose draw is at least `low` and below `high`."""
    draw: str = ""
    """Whose draw: lanes of one name look at the same one."""
    edge: int = -1
    """The edge between two instances that begins here, if one does."""

    @property
    def takes_all(self) -> bool:
        """Whether no draw decides."""
        return self.low <= 0.0 and self.high >= 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """Events wait for a window: until so many are there, or for the end of a slide."""

    sort: Literal["fill", "work"]
    """Events are served before they wait ("fill"), or wait before they are served together."""
    events: int = 0
    slide_s: float = 0.0
    length_s: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Station:
    """One server; events are served in the order in which they arrive.

    An event takes `fixed_s` + `per_byte_s` × its size in the mean.
    """

    key: str
    """The same for what is the same before and after a change of plan."""
    name: str
    sort: Literal["operator", "link"] = "operator"
    place: int = -1
    """The node of an operator or of a LAN link; of a WAN link, its number."""
    application: int = 0
    instance: int = -1
    fixed_s: float = 0.0
    per_byte_s: float = 0.0
    halted: bool = False
    """Whether nothing is served here: there is no CPU, or no bandwidth."""
    loses: bool = False
    """Whether all that is here, and all that comes, is lost."""
    service: Service = field(default_factory=Deterministic)
    window: Filling | None = None
    selectivity: float = 1.0
    even: bool = False
    lanes: Sequence[Lane] = ()
    lane_of: Index | None = None
    """Of a link: the lane of each stream, or of each token (`by_token`)."""
    by_token: bool = False
    is_sink: bool = False

    @property
    def takes_time(self) -> bool:
        """Whether an event can be slow here."""
        return self.halted or self.fixed_s > 0.0 or self.per_byte_s > 0.0


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Source:
    """Where events are born."""

    key: str
    target: int
    rate: float
    token: int = 0
    latency_s: float = 0.0
    """How long they take to get to the first station."""
    arrivals: Arrivals = field(default_factory=Poisson)


@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """Sources and stations, and what tokens mean."""

    sources: Sequence[Source]
    stations: Sequence[Station]
    sizes: Floats
    """Bytes of an event of each token."""
    stream_of: Index
    """The stream of each token, counted over all applications."""
    edge_count: int = 0

    @cached_property
    def incoming(self) -> list[list[tuple[int, int]]]:
        """For each station the lanes that lead there: (sender, number of the lane).

        Sources come first, as negative numbers from −1 on, then stations, each in their order: of
        events that arrive at the same moment, those of an earlier lane go first.
        """
        found: list[list[tuple[int, int]]] = [[] for _ in self.stations]
        for number, source in enumerate(self.sources):
            found[source.target].append((-1 - number, 0))
        for sender, station in enumerate(self.stations):
            for number, lane in enumerate(station.lanes):
                found[lane.target].append((sender, number))
        return found

    @cached_property
    def groups(self) -> list[list[int]]:
        """Stations, upstream before downstream; those that feed each other are one group.

        Of those that do not depend on each other, the lower number goes first.
        """
        return _strong_groups([[lane.target for lane in s.lanes] for s in self.stations])


def _strong_groups(after: list[list[int]]) -> list[list[int]]:
    """Strongly connected groups in topological order (Kahn, on Tarjan's groups)."""
    from heapq import heapify, heappop, heappush

    group_of = _tarjan(after)
    members: dict[int, list[int]] = {}
    for vertex, group in enumerate(group_of):
        members.setdefault(group, []).append(vertex)
    onward: dict[int, set[int]] = {group: set() for group in members}
    missing = dict.fromkeys(members, 0)
    for vertex, targets in enumerate(after):
        for target in targets:
            a, b = group_of[vertex], group_of[target]
            if a != b and b not in onward[a]:
                onward[a].add(b)
                missing[b] += 1
    ready = [(members[group][0], group) for group, count in missing.items() if not count]
    heapify(ready)
    found = []
    while ready:
        _, group = heappop(ready)
        found.append(members[group])
        for other in sorted(onward[group]):
            missing[other] -= 1
            if not missing[other]:
                heappush(ready, (members[other][0], other))
    return found


def _tarjan(after: list[list[int]]) -> list[int]:
    """The number of the strongly connected group of each vertex; without recursion."""
    size = len(after)
    number, low = [-1] * size, [0] * size
    group_of = [-1] * size
    stack: list[int] = []
    count = groups = 0
    for root in range(size):
        if number[root] >= 0:
            continue
        work = [(root, 0)]
        while work:
            vertex, place = work.pop()
            if place == 0:
                number[vertex] = low[vertex] = count
                count += 1
                stack.append(vertex)
            descend = False
            for k in range(place, len(after[vertex])):
                other = after[vertex][k]
                if number[other] < 0:
                    work += [(vertex, k + 1), (other, 0)]
                    descend = True
                    break
                if group_of[other] < 0:
                    low[vertex] = min(low[vertex], low[other])
            if descend:
                continue
            if low[vertex] == number[vertex]:
                while True:
                    member = stack.pop()
                    group_of[member] = groups
                    if member == vertex:
                        break
                groups += 1
            if work:
                above = work[-1][0]
                low[above] = min(low[above], low[vertex])
    return group_of
