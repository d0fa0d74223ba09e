"""A plain event simulator: one heap, one event at a time, no arrays. Slow and obvious.

It shares the random draws with the engine (same key, same number), and nothing else.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from math import floor

import numpy as np

from thalweg.simulate.compiled.draws import draw_factors, draw_uniforms
from thalweg.simulate.layout import Layout, Station
from thalweg.simulate.seeds import Seeds

CLOSE = -1


@dataclass(order=True)
class Entry:
    time: float
    rank: int
    lane: int
    sequence: int
    station: int = field(compare=False)
    birth: float = field(compare=False, default=0.0)
    token: int = field(compare=False, default=0)
    slide: int = field(compare=False, default=0)


class State:
    def __init__(self, station: Station, seeds: Seeds) -> None:
        self.station = station
        self.seeds = seeds
        self.free_s = 0.0
        self.services = self.passed = self.sent = 0
        self.open: list[tuple[float, float, int]] = []
        """Members of the window that is open: (time, birth, token)."""
        self.slides: dict[int, float] = defaultdict(float)
        self.members: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
        self.closing: set[int] = set()


class HeapSimulator:
    """Runs a layout until a time; keeps every departure."""

    def __init__(self, layout: Layout, seeds: Seeds, births: dict[str, np.ndarray]) -> None:
        self.layout = layout
        self.states = [State(s, seeds.of(s.key)) for s in layout.stations]
        self.rank = {k: r for r, group in enumerate(layout.groups) for k in group}
        self.lane_rank = {
            (sender, lane): place
            for lanes in layout.incoming
            for place, (sender, lane) in enumerate(lanes)
        }
        self.departures: list[list[tuple[float, float, int]]] = [[] for _ in layout.stations]
        self.dropped = self.made = 0
        self.heap: list[Entry] = []
        self.sequence = count()
        for number, source in enumerate(layout.sources):
            for birth in births[source.key].tolist():
                self._push(
                    birth + source.latency_s, source.target, (-1 - number, 0), birth, source.token
                )

    def _push(self, time, station, lane, birth, token) -> None:
        rank = self.lane_rank[lane]
        entry = Entry(time, self.rank[station], rank, next(self.sequence), station, birth, token)
        heapq.heappush(self.heap, entry)

    def run(self, until_s: float) -> None:
        while self.heap and self.heap[0].time < until_s:
            entry = heapq.heappop(self.heap)
            if entry.lane == CLOSE:
                self._close_slide(entry)
            else:
                self._arrive(entry)

    def _factor(self, state: State) -> float:
        service = state.station.service
        key = state.seeds.key("service")
        drawn = draw_factors(service.code, key, state.services, 1, service.factors)
        state.services += 1
        return float(drawn[0])

    def _mean(self, station: Station, token: int) -> float:
        return station.fixed_s + station.per_byte_s * float(self.layout.sizes[token])

    def _serve(self, state: State, time: float, mean_s: float) -> float:
        begin = max(time, state.free_s)
        state.free_s = begin + mean_s * self._factor(state)
        return state.free_s

    def _arrive(self, entry: Entry) -> None:
        state = self.states[entry.station]
        station = state.station
        window = station.window
        who = (entry.time, entry.birth, entry.token)
        if window is None:
            self._leave(entry.station, self._finish(state, entry), [who])
        elif window.sort == "fill" and window.slide_s:
            done = self._finish(state, entry)
            number = floor(done / window.slide_s) - 2
            while number * window.slide_s <= done:
                number += 1
            self._leave(entry.station, number * window.slide_s, [who])
        elif window.sort == "fill":
            done = self._finish(state, entry)
            state.open.append(who)
            if len(state.open) == window.events:
                members, state.open = state.open, []
                self._leave(entry.station, done, members)
        elif window.events:
            state.open.append(who)
            if len(state.open) == window.events:
                members, state.open = state.open, []
                work = sum(self._mean(station, token) for _, _, token in members)
                self._leave(entry.station, self._serve(state, entry.time, work), members)
        else:
            self._into_slide(state, entry, who)

    def _finish(self, state: State, entry: Entry) -> float:
        if not state.station.takes_time:
            return entry.time
        return self._serve(state, entry.time, self._mean(state.station, entry.token))

    def _into_slide(self, state: State, entry: Entry, who) -> None:
        window = state.station.window
        slide = max(floor(entry.time / window.slide_s) - 2, 0)
        while (slide + 1) * window.slide_s <= entry.time:
            slide += 1
        state.slides[slide] += self._mean(state.station, entry.token)
        state.members[slide].append(who)
        # The event is in this window, and in those of later slides that still cover it.
        last = slide + int(window.length_s / window.slide_s + 1 - 1e-9)
        for number in range(slide, last + 1):
            if number not in state.closing:
                state.closing.add(number)
                end = (number + 1) * window.slide_s
                heapq.heappush(
                    self.heap,
                    Entry(end, entry.rank, CLOSE, next(self.sequence), entry.station, slide=number),
                )

    def _close_slide(self, entry: Entry) -> None:
        state = self.states[entry.station]
        window = state.station.window
        slides = window.length_s / window.slide_s
        whole = int(slides + 1e-9)
        work = sum(state.slides.get(entry.slide - k, 0.0) for k in range(whole))
        rest = slides - whole
        if rest > 1e-9:
            work += rest * state.slides.get(entry.slide - whole, 0.0)
        members = state.members.pop(entry.slide, [])
        if work > 0 or members:
            self._leave(entry.station, self._serve(state, entry.time, work), members)

    def _leave(self, number: int, time: float, members) -> None:
        state = self.states[number]
        station = state.station
        for _, birth, token in members:
            self.departures[number].append((time, birth, token))
            if station.is_sink:
                continue
            if station.sort == "link":
                lane = 0
                if station.lane_of is not None:
                    at = token if station.by_token else self.layout.stream_of[token]
                    lane = int(station.lane_of[at])
                self._go(number, lane, time, birth, token)
                continue
            copies = self._copies(state)
            self.dropped += copies == 0
            self.made += max(copies - 1, 0)
            for _ in range(copies):
                self._spread(number, time, birth, token)

    def _copies(self, state: State) -> int:
        share = state.station.selectivity
        if share == 1.0:
            return 1
        number = state.passed
        state.passed += 1
        if state.station.even:
            return int((number + 1) * share + 1e-9) - int(number * share + 1e-9)
        draw = float(draw_uniforms(state.seeds.key("selectivity"), number, 1)[0])
        return int(share) + (draw < share - int(share))

    def _spread(self, number: int, time: float, birth: float, token: int) -> None:
        state = self.states[number]
        taken = 0
        for k, lane in enumerate(state.station.lanes):
            if not lane.takes_all:
                draw = float(draw_uniforms(state.seeds.key(lane.draw), state.sent, 1)[0])
                if not lane.low <= draw < lane.high:
                    continue
            self._go(number, k, time, birth, token)
            taken += 1
        state.sent += 1
        self.dropped += taken == 0
        self.made += max(taken - 1, 0)

    def _go(self, number: int, k: int, time: float, birth: float, token: int) -> None:
        lane = self.layout.stations[number].lanes[k]
        self._push(time + lane.latency_s, lane.target, (number, k), birth, token + lane.shift)
