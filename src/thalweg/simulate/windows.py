"""Windows: what waits for them to fill, and what they are as pieces of work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Floats
from thalweg.simulate.compiled.serving import (
    add_up_groups,
    add_up_slides,
    hand_on_by_slide,
)
from thalweg.simulate.events import Events, Row, concatenate
from thalweg.simulate.layout import Filling

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Jobs:
    """Pieces of work in the order in which they come, and the events of which each is made."""

    time: Floats
    work_s: Floats
    size: Counts
    members: Events

    @classmethod
    def none(cls) -> Jobs:
        """No work."""
        return cls(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), Events.none())

    def __len__(self) -> int:
        return int(self.time.size)

    def then(self, others: Jobs) -> Jobs:
        """These, and then others."""
        if not len(others):
            return self
        if not len(self):
            return others
        return Jobs(
            np.concatenate([self.time, others.time]),
            np.concatenate([self.work_s, others.work_s]),
            np.concatenate([self.size, others.size]),
            concatenate([self.members, others.members]),
        )

    def split(self, count: int) -> tuple[Jobs, Jobs]:
        """The first so many, and the others."""
        events = int(self.size[:count].sum())
        return (
            Jobs(self.time[:count], self.work_s[:count], self.size[:count], self.members[:events]),
            Jobs(self.time[count:], self.work_s[count:], self.size[count:], self.members[events:]),
        )


class Hall:
    """Where events wait until their window is full: after their service, or before it."""

    def __init__(self, window: Filling) -> None:
        self._window = window
        self._open = Row()
        self._slide = 0
        """The number of the slide that is open."""
        self._past = np.zeros(int(_slides(window)) + 2)
        """The work of the last slides, the newest last."""
        self.not_before_s = 0.0
        """Nothing leaves earlier: the operator stands still, or is on its way to another node."""
        self.held_s = 0.0
        """How long all events together have waited here."""

    def copy(self) -> Hall:
        """A hall of its own in the same state."""
        other = Hall(self._window)
        other._open, other._slide = self._open.copy(), self._slide
        other._past, other.held_s = self._past, self.held_s
        other.not_before_s = self.not_before_s
        return other

    @property
    def count(self) -> int:
        """How many events wait."""
        return self._open.count

    @property
    def open(self) -> Row:
        """Those that wait."""
        return self._open

    def let_go(self, served: Events, limit_s: float) -> Events:
        """What leaves before a time of events that are served, and when."""
        window = self._window
        self._open.append(served)
        if not window.events:
            waiting = concatenate(self._open.take_all())
            handed = np.empty(len(waiting))
            hand_on_by_slide(waiting.moment, window.slide_s, handed)
            handed = np.maximum(handed, self.not_before_s)
            place = int(np.searchsorted(handed, limit_s, side="left"))
            self._open.append(waiting[place:])
            return self._hold(waiting[:place], handed[:place])
        full = self._full(window.events)
        ends = np.maximum(full.time[window.events - 1 :: window.events], self.not_before_s)
        return self._hold(full, np.repeat(ends, window.events))

    def close(
        self, come: Events, until_s: float, fixed_s: float, per_byte_s: float, sizes: Floats
    ) -> Jobs:
        """The windows that are complete with these events, all that come before a time."""
        self._open.append(come)
        cut = self._cut_full() if self._window.events else self._cut_past(until_s)
        if cut is None:
            return Jobs.none()
        members, time, first = cut
        work_s = add_up_groups(members.token, first, fixed_s, per_byte_s, sizes)
        if not self._window.events:
            work_s = self._spread(work_s)
        size = np.diff(first)
        held = self._hold(members, np.repeat(time, size), move=False)
        busy = (work_s > 0) | (size > 0)
        return Jobs(time[busy], work_s[busy], size[busy], held)

    def _full(self, each: int) -> Events:
        if self._open.count < each:
            return Events.none()
        together = concatenate(self._open.take_all())
        whole = len(together) // each * each
        self._open.append(together[whole:])
        return Events(together.moment[:whole], *_rest(together[:whole]))

    def _cut_full(self) -> tuple[Events, Floats, Counts] | None:
        """The members of full windows, when each is full, and where its members begin."""
        each = self._window.events
        members = self._full(each)
        first = np.arange(0, len(members) + 1, each)
        return members, members.time[each - 1 :: each], first

    def _cut_past(self, until_s: float) -> tuple[Events, Floats, Counts] | None:
        """The same for slides that are over."""
        slide_s = self._window.slide_s
        last = int(np.floor(until_s / slide_s)) + 1
        while last * slide_s > until_s:
            last -= 1
        if last <= self._slide:
            return None
        events = concatenate(self._open.take_all())
        events = Events(events.moment, *_rest(events))
        borders = np.arange(self._slide + 1, last + 1).astype(float) * slide_s
        ends = np.searchsorted(events.time, borders, side="left")
        self._slide = last
        self._open.append(events[int(ends[-1]) :])
        return events[: int(ends[-1])], borders, np.concatenate([[0], ends])

    def _spread(self, own: Floats) -> Floats:
        """The work of each window: of its own slide, and of those before that it covers."""
        slides = _slides(self._window)
        whole = int(slides + 1e-9)
        rest = slides - whole
        found = add_up_slides(self._past, own, whole, rest if rest > 1e-9 else 0.0)
        self._past = np.concatenate([self._past, own])[-self._past.size :]
        return found

    def _hold(self, events: Events, until: Floats, *, move: bool = True) -> Events:
        """The events held until other times; at those times, or where they were."""
        held = until - events.moment
        self.held_s += float(held.sum())
        if events.held.size:
            held = held + events.held
        return Events(until if move else events.moment, events.birth, events.token, held)


def _slides(window: Filling) -> float:
    return window.length_s / window.slide_s if window.slide_s > 0 else 1.0


def _rest(events: Events) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
    return events.birth, events.token, events.held
