"""Sends what leaves a station along its lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.model.graph import Floats
from thalweg.simulate.compiled.serving import (
    choose_between,
    let_through,
    part_by_lane,
    weigh,
)
from thalweg.simulate.events import Events, Row
from thalweg.simulate.layout import Lane, Layout, Station
from thalweg.simulate.seeds import Seeds


class Flows:
    """What goes along the edges between instances, within the time that counts."""

    def __init__(self, edges: int, warm_s: float, end_s: float) -> None:
        self.events = np.zeros(edges)
        self.carried_bytes = np.zeros(edges)
        self.warm_s, self.end_s = warm_s, end_s

    def reset(self) -> None:
        """Begin anew."""
        self.events[:] = 0.0
        self.carried_bytes[:] = 0.0

    def add(self, edge: int, events: Events, sizes: Floats) -> None:
        """Events leave along an edge."""
        count, carried = weigh(
            events.time, events.later_s, events.token, sizes, self.warm_s, self.end_s
        )
        self.events[edge] += count
        self.carried_bytes[edge] += carried


@dataclass(frozen=True, slots=True, eq=False)
class RouterState:
    """The state of a router at a moment."""

    counts: tuple[int, int, int, int]
    under_way: list[Row]
    flows: tuple[Floats, Floats]


class Router:
    """The lanes of a station, and what is under way on them."""

    def __init__(self, station: Station, layout: Layout, seeds: Seeds, flows: Flows) -> None:
        self.station, self._layout, self._flows = station, layout, flows
        self._choices = seeds.key("selectivity")
        self._keys = [seeds.key(lane.draw) for lane in station.lanes]
        self.passed = self.sent = 0
        """How many have been asked to get through, and to choose a lane."""
        self.dropped = self.made = 0
        """How many ended here, and how many there are more since they take several lanes."""
        self.under_way = [Row() for _ in station.lanes]
        self._edges = np.array([lane.edge for lane in station.lanes if lane.edge >= 0], dtype=int)

    def adopt(self, other: Router) -> None:
        """Go on counting where another left off."""
        self.passed, self.sent = other.passed, other.sent
        self.dropped, self.made = other.dropped, other.made

    def snapshot(self) -> RouterState:
        """The state at this moment."""
        flows = self._flows
        return RouterState(
            (self.passed, self.sent, self.dropped, self.made),
            [row.copy() for row in self.under_way],
            (flows.events[self._edges], flows.carried_bytes[self._edges]),
        )

    def restore(self, state: RouterState) -> None:
        """Go back to a state; it stays what it is."""
        self.passed, self.sent, self.dropped, self.made = state.counts
        self.under_way = [row.copy() for row in state.under_way]
        self._flows.events[self._edges], self._flows.carried_bytes[self._edges] = state.flows

    def send(self, events: Events) -> None:
        """Let events go that are served."""
        if not len(events):
            return
        if self.station.sort == "link":
            self._sort(events)
        else:
            self._spread(self._select(events))

    def _sort(self, events: Events) -> None:
        station = self.station
        if station.lane_of is None or len(station.lanes) == 1:
            self._go(0, station.lanes[0], events)
            return
        first = np.zeros(len(station.lanes) + 1, dtype=np.int64)
        parted = Events(
            *part_by_lane(
                self._layout.stream_of, station.lane_of, station.by_token, first,
                events.time, events.birth, events.token, events.held,
            ),
            events.later_s,
        )  # fmt: skip
        for number, lane in enumerate(station.lanes):
            self._go(number, lane, parted[int(first[number]) : int(first[number + 1])])

    def _select(self, events: Events) -> Events:
        """What gets through."""
        share = self.station.selectivity
        if share == 1.0:
            return events
        count = len(events)
        through = Events(
            *let_through(
                self._choices, self.passed, share, self.station.even,
                events.time, events.birth, events.token, events.held,
            ),
            events.later_s,
        )  # fmt: skip
        self.passed += count
        if share > 1.0:
            self.made += len(through) - count
        else:
            self.dropped += count - len(through)
        return through

    def _spread(self, events: Events) -> None:
        lanes = self.station.lanes
        if len(lanes) == 1 and lanes[0].takes_all:
            self._go(0, lanes[0], events)
            return
        count = len(events)
        taken = 0
        going = np.zeros(count, dtype=bool)
        for number, lane in enumerate(lanes):
            if lane.takes_all:
                self._go(number, lane, events)
                going[:] = True
                taken += count
                continue
            chosen = np.empty(count + 1, dtype=np.int32)
            found = choose_between(
                self._keys[number], self.sent, count, lane.low, lane.high, chosen
            )
            self._go(number, lane, events.take(chosen[:found]))
            going[chosen[:found]] = True
            taken += found
        self.sent += count
        gone = int(np.count_nonzero(going))
        self.made += taken - gone
        self.dropped += count - gone

    def _go(self, number: int, lane: Lane, events: Events) -> None:
        if not len(events):
            return
        token = events.token + np.int32(lane.shift) if lane.shift else events.token
        moved = Events(events.time, events.birth, token, events.held, events.later_s)
        if lane.edge >= 0:
            self._flows.add(lane.edge, moved, self._layout.sizes)
        self.under_way[number].append(moved.delayed(lane.latency_s))
