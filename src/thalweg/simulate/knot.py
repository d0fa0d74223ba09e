"""Stations that feed each other: events that come back through a link that they have crossed.

What arrives at each depends on what leaves the others. So it is guessed (what is under way already,
and nothing more), all of them are run, and what they send each other is the next guess, until it is
what was guessed. Every arrival follows from earlier ones, so a round makes at least the earliest
wrong one right, and in a short time with little to wait for, nearly all of them; where it takes
many rounds, a shorter piece of time is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from thalweg.model.graph import Floats
from thalweg.simulate.events import Events, concatenate, merge_all

if TYPE_CHECKING:
    from thalweg.simulate.engine import Engine

_LANE = tuple[int, int]
# More rounds than this, and half the time is likely to need less than half of the work.
_MANY_ROUNDS = 12
_FEW_ROUNDS = 5
_LEAST_PIECES = 1 << 16


class Knot:
    """A group of stations that is served as one."""

    def __init__(self, engine: Engine, group: Sequence[int]) -> None:
        self._engine = engine
        inside = set(group)
        incoming = engine.layout.incoming
        self._order = _from_outside(engine, group)
        self._lanes = {k: incoming[k] for k in group}
        self._own = [lane for k in group for lane in incoming[k] if lane[0] in inside]
        self._leaving = {k: [lane for lane in self._own if lane[0] == k] for k in group}
        self._piece_s = np.inf
        self.rounds = 0

    def run(self, until_s: float) -> None:
        """Serve what comes before a time."""
        now_s = self._engine.now_s
        least_s = self._engine.span.end_s / _LEAST_PIECES
        while now_s < until_s:
            piece_s = max(min(self._piece_s, until_s - now_s), least_s)
            # The last piece ends where it should, whatever has been added up.
            end_s = until_s if now_s + piece_s >= until_s else now_s + piece_s
            rounds = self._settle(end_s, patient=piece_s <= least_s)
            if not rounds:
                self._piece_s = (end_s - now_s) / 2.0
                continue
            if rounds <= _FEW_ROUNDS:
                self._piece_s = 2.0 * (end_s - now_s)
            now_s = end_s

    def _settle(self, until_s: float, *, patient: bool) -> int:
        """Serve a piece of time; gives the rounds it took, or 0 where it took too many."""
        engine = self._engine
        own = set(self._own)
        outside = {
            lane: concatenate(engine.row(*lane).take_before(until_s))
            for lanes in self._lanes.values()
            for lane in lanes
            if lane not in own
        }
        late = {k: engine.servers[k].take_late(until_s) for k in self._order}
        before = {k: engine.servers[k].snapshot() for k in self._order}
        guess = {lane: self._peek(lane, until_s) for lane in self._own}
        used: dict[int, list[Events]] = {}
        rounds = 0
        while patient or rounds < _MANY_ROUNDS:
            rounds += 1
            wrong = False
            for k in self._order:
                come = [outside[a] if a in outside else guess[a] for a in self._lanes[k]]
                if k in used and all(map(_same, come, used[k])):
                    continue
                wrong, used[k] = True, come
                engine.servers[k].restore(before[k])
                engine.servers[k].run([merge_all([*come, late[k]])], until_s, until_s)
                for lane in self._leaving[k]:
                    guess[lane] = self._peek(lane, until_s)
            if not wrong:
                for lane in self._own:
                    engine.row(*lane).take_before(until_s)
                self.rounds += rounds
                return rounds
        for k, state in before.items():
            engine.servers[k].restore(state)
        for lane, events in outside.items():
            engine.row(*lane).give_back(events)
        for k, events in late.items():
            engine.servers[k].add_late(events)
        return 0

    def _peek(self, lane: _LANE, until_s: float) -> Events:
        """What is under way on a lane and arrives before a time."""
        return concatenate([part.split_at(until_s)[0] for part in self._engine.row(*lane)])


def _same(a: Events, b: Events) -> bool:
    return a is b or (
        len(a) == len(b)
        and np.array_equal(a.moment, b.moment)
        and np.array_equal(a.token, b.token)
        and np.array_equal(a.birth, b.birth)
        and np.array_equal(_held(a), _held(b))
    )


def _held(events: Events) -> Floats:
    return events.held if events.held.size else np.zeros(len(events))


def _from_outside(engine: Engine, group: Sequence[int]) -> list[int]:
    """The group in the order in which events from outside reach it: fewer guesses are wrong."""
    inside = set(group)
    incoming = engine.layout.incoming
    entries = [k for k in group if any(lane[0] not in inside for lane in incoming[k])]
    seen: set[int] = set()
    done: list[int] = []
    for start in reversed(entries or list(group)):
        stack = [(start, False)]
        while stack:
            vertex, finished = stack.pop()
            if finished:
                done.append(vertex)
                continue
            if vertex in seen:
                continue
            seen.add(vertex)
            stack.append((vertex, True))
            after = {lane.target for lane in engine.layout.stations[vertex].lanes}
            stack += [(k, False) for k in sorted(after & inside, reverse=True) if k not in seen]
    return done[::-1] + [k for k in group if k not in seen]
