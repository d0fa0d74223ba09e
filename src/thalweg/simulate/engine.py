"""Runs a layout: every event through every queue, a piece of time after the other.

Queues feed forward, so there is no heap of events: in a piece of time, station after station gets
all that arrives there, in order, and serves it in one loop. What is on its way at the end of the
piece, or waits, is there in the next. Stations that feed each other, since events come back through
a link that they have crossed, are a knot, and are run until nothing changes any more. Random
numbers belong to a station and the number of the event there: the same seed gives the same times,
whatever the pieces.
"""

from __future__ import annotations

import numpy as np

from thalweg.simulate.events import Events, Row, concatenate, merge_all
from thalweg.simulate.knot import Knot
from thalweg.simulate.layout import Layout, Source
from thalweg.simulate.router import Flows
from thalweg.simulate.seeds import Seeds
from thalweg.simulate.server import Record, Server, Span


class Spring:
    """A source at work."""

    def __init__(self, source: Source, seeds: Seeds) -> None:
        self.source = source
        self._births = source.arrivals.begin(seeds)
        self.rate = source.rate
        self.born = 0
        self.under_way = Row()

    def run(self, until_s: float) -> int:
        """Have events born up to a time; gives how many."""
        time = self._births.before(until_s, self.rate)
        self.born += time.size
        token = np.full(time.size, self.source.token, dtype=np.int32)
        self.under_way.append(Events(time, time, token).delayed(self.source.latency_s))
        return int(time.size)


class Engine:
    """A layout at work."""

    def __init__(self, layout: Layout, seeds: Seeds, span: Span, record: Record) -> None:
        self.layout, self.span, self.record, self._seeds = layout, span, record, seeds
        self.springs = [Spring(s, seeds.of(s.key)) for s in layout.sources]
        self.servers = self.make_servers(layout)
        self.retired: dict[str, Server] = {}
        """Stations that are not there any more, by key, for what they have counted."""
        self._steps: list[Server | Knot] = []
        self._tie()
        self.now_s = 0.0

    def make_servers(self, layout: Layout) -> list[Server]:
        """Servers for all stations of a layout, with nothing in them."""
        # Events that leave after this are not counted: none are, where nobody asks.
        end_s = 0.0 if self.span.brief else self.span.end_s
        self.flows = Flows(layout.edge_count, self.span.warm_s, end_s)
        return [
            Server(station, layout, self._seeds.of(station.key), self.span, self.flows, self.record)
            for station in layout.stations
        ]

    def replace_servers(self, layout: Layout, servers: list[Server]) -> None:
        """Go on with other stations; sources are those of the same name."""
        keys = {server.station.key for server in servers}
        self.retired = {key: old for key, old in self.retired.items() if key not in keys}
        self.retired |= {
            old.station.key: old for old in self.servers if old.station.key not in keys
        }
        self.layout, self.servers = layout, servers
        for spring, source in zip(self.springs, layout.sources, strict=True):
            spring.source = source
        self._tie()

    def _tie(self) -> None:
        """Find the order in which stations are served."""
        self._steps = [
            self.servers[group[0]] if len(group) == 1 else Knot(self, group)
            for group in self.layout.groups
        ]
        self._places = [group[0] for group in self.layout.groups]

    def run(self, until_s: float, limit_s: float | None = None) -> None:
        """Let a piece of time pass; nothing changes before `limit_s`, if that is later.

        A station that gets its events on one lane need not stop where the piece ends: whatever
        is on the lane is next. So rows of events are not cut at every station. It is ahead by a
        piece at most: a queue that grows is to be seen as one.
        """
        limit_s = until_s if limit_s is None else min(limit_s, 2.0 * until_s - self.now_s)
        for spring in self.springs:
            spring.run(until_s)
        for step, place in zip(self._steps, self._places, strict=True):
            if isinstance(step, Knot):
                step.run(until_s)
                continue
            lanes = self.layout.incoming[place]
            if len(lanes) == 1 and not len(step.late):
                step.run(self.row(*lanes[0]).take_before(limit_s), until_s, limit_s)
            else:
                come = [concatenate(self.row(*lane).take_before(until_s)) for lane in lanes]
                step.run([merge_all([*come, step.take_late(until_s)])], until_s, until_s)
        self.now_s = until_s

    def row(self, sender: int, lane: int) -> Row:
        """What is under way on a lane."""
        if sender < 0:
            return self.springs[-1 - sender].under_way
        return self.servers[sender].router.under_way[lane]

    @property
    def under_way(self) -> int:
        """How many events are between stations, or being served."""
        lanes = sum(row.count for server in self.servers for row in server.router.under_way)
        lanes += sum(len(server.late) for server in self.servers)
        return lanes + sum(spring.under_way.count for spring in self.springs)

    @property
    def held(self) -> int:
        """How many events wait at stations."""
        return sum(server.held for server in self.servers)

    @property
    def hops(self) -> int:
        """How many services have begun at stations that take time."""
        servers = [*self.servers, *self.retired.values()]
        return sum(server.number for server in servers if server.station.takes_time)

    def finish(self) -> None:
        """Count the time of what still waits as the run ends."""
        for server in self.servers:
            server.finish(self.now_s)
