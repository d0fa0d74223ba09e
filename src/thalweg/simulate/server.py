"""A station at work: its queue, its server, its window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.model.graph import Floats
from thalweg.simulate.compiled.recording import BINS, SUMS, record
from thalweg.simulate.compiled.serving import (
    AREA_S,
    BUSY_S,
    BYTES,
    FIGURES,
    SERVED,
    count_arrivals,
    serve,
    weigh,
)
from thalweg.simulate.events import Events, Row, concatenate, merge_all
from thalweg.simulate.layout import Layout, Station
from thalweg.simulate.router import Flows, Router, RouterState
from thalweg.simulate.seeds import Seeds
from thalweg.simulate.windows import Hall, Jobs

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """How long a run is, what of it counts, and how finely it is told."""

    end_s: float
    warm_s: float = 0.0
    bins: int = 60
    brief: bool = False
    """Whether only what comes to sinks is told, and nothing of stations and edges."""

    @property
    def edges(self) -> Floats:
        """The moments at which the number of events in each queue is known."""
        return np.linspace(0.0, self.end_s, self.bins + 1)[1:]

    @property
    def counted_s(self) -> float:
        """How much of it counts."""
        return self.end_s - self.warm_s


@dataclass(slots=True, eq=False)
class Tally:
    """What is known about a station in the end."""

    figures: Floats
    histogram: Counts
    arrived: Counts
    departed: Counts
    come: int = 0
    gone: int = 0
    lost: int = 0

    @classmethod
    def empty(cls, span: Span) -> Tally:
        """Nothing is known."""
        counts = np.zeros(span.bins, dtype=np.int64)
        histogram = np.zeros(0 if span.brief else BINS, dtype=np.int64)
        return cls(np.zeros(FIGURES), histogram, counts, counts.copy())

    def copy(self) -> Tally:
        """A tally of its own with the same figures."""
        return Tally(
            self.figures.copy(),
            self.histogram.copy(),
            self.arrived.copy(),
            self.departed.copy(),
            self.come,
            self.gone,
            self.lost,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The state of a server at a moment."""

    tally: Tally
    free_s: float
    number: int
    waiting: Row
    hall: Hall | None
    jobs: Jobs
    router: RouterState


class Record:
    """The latencies of the events that have come to sinks, a row for each path."""

    def __init__(self, rows: int, row_of: np.ndarray[tuple[int], np.dtype[np.int32]]) -> None:
        self.row_of = row_of
        self.sums = np.zeros((rows, SUMS))
        self.histogram = np.zeros((rows, BINS), dtype=np.int64)


class Server:
    """A station at work."""

    def __init__(
        self,
        station: Station,
        layout: Layout,
        seeds: Seeds,
        span: Span,
        flows: Flows,
        record: Record,
    ) -> None:
        self.station, self.layout, self.span, self.record = station, layout, span, record
        self.key = seeds.key("service")
        self.router = Router(station, layout, seeds, flows)
        self.tally = Tally.empty(span)
        self.edges = span.edges
        self.free_s = 0.0
        self.number = 0
        """How many services have begun."""
        self.waiting = Row()
        self.hall = Hall(station.window) if station.window is not None else None
        self.jobs = Jobs.none()
        self.stays: list[tuple[int, float, int]] = []
        """Where it was before: the node, and what it had worked and got by the end of that."""
        self.late = Events.none()
        """What comes on no lane: it was sent before the layout changed."""

    def snapshot(self) -> Snapshot:
        """The state at this moment."""
        return Snapshot(
            self.tally.copy(),
            self.free_s,
            self.number,
            self.waiting.copy(),
            None if self.hall is None else self.hall.copy(),
            self.jobs,
            self.router.snapshot(),
        )

    def restore(self, state: Snapshot) -> None:
        """Go back to a state; it stays what it is."""
        self.tally, self.waiting = state.tally.copy(), state.waiting.copy()
        self.free_s, self.number, self.jobs = state.free_s, state.number, state.jobs
        self.hall = None if state.hall is None else state.hall.copy()
        self.router.restore(state.router)

    def adopt(self, other: Server, now_s: float) -> None:
        """Go on where another left off that was the same station before a change."""
        self.tally, self.number, self.free_s = other.tally, other.number, other.free_s
        self.waiting, self.jobs, self.late = other.waiting, other.jobs, other.late
        if self.hall is not None and other.hall is not None:
            self.hall = other.hall
        self.router.adopt(other.router)
        self.stays = other.stays
        if self.station.place != other.station.place:
            worked_s = float(other.tally.figures[BUSY_S])
            self.stays = [*other.stays, (other.station.place, worked_s, other.tally.come)]
        if self.waiting.count or other.station.halted:
            # Nobody is served in the past, however long the server has stood still.
            self.stand_still(now_s)

    def stand_still(self, until_s: float) -> None:
        """Have nothing done before a time."""
        self.free_s = max(self.free_s, until_s)
        if self.hall is not None:
            self.hall.not_before_s = max(self.hall.not_before_s, until_s)

    def resume(self, now_s: float) -> None:
        """Have everything go on, however long it would have stood still."""
        self.free_s = now_s
        if self.hall is not None:
            self.hall.not_before_s = now_s

    def release(self, now_s: float) -> list[Events]:
        """Let all go that waits, as it came; it leaves this queue now."""
        parts = [*self.waiting.take_all(), self.jobs.members]
        self.jobs = Jobs.none()
        if self.hall is not None:
            parts += self.hall.open.take_all()
        self.count_out(parts, now_s)
        return parts

    def count_out(self, parts: Sequence[Events], now_s: float) -> None:
        """Events leave this queue that have not been served."""
        self.tally.departed[self.edges > now_s] += sum(len(part) for part in parts)
        self.tally.figures[AREA_S] += _waited_s(parts, self.span.warm_s, now_s)

    def lose(self, now_s: float) -> None:
        """Lose all that waits."""
        self.tally.lost += sum(len(part) for part in self.release(now_s))

    def add_late(self, events: Events) -> None:
        """Have events arrive that come on no lane."""
        self.late = merge_all([self.late, events])

    def take_late(self, until_s: float) -> Events:
        """Those of them that arrive before a time."""
        now, self.late = self.late.split_at(until_s)
        return now

    @property
    def held(self) -> int:
        """How many events are here, those whose service has begun left out."""
        waiting = self.waiting.count + int(self.jobs.size.sum())
        return waiting + (self.hall.count if self.hall is not None else 0)

    def run(self, come: Sequence[Events], until_s: float, limit_s: float) -> None:
        """Serve what has come as far as service begins before `limit_s`, and send it on.

        All that comes before `until_s` is there.
        """
        for events in come:
            self.tally.come += len(events)
            if self.station.loses:
                self.tally.lost += len(events)
                continue
            count_arrivals(events.time, events.later_s, self.edges, self.tally.arrived)
            self.waiting.append(events)
        station = self.station
        if station.halted or station.loses:
            return
        window = station.window
        if window is not None and window.sort == "work" and self.hall is not None:
            self._leave(self._work(self.hall, until_s, limit_s), counted=False)
            return
        parts = self.waiting.take_all()
        if not parts and self.hall is not None and self.hall.count:
            parts = [Events.none()]  # Nobody comes, but a slide may be over.
        for events in parts:
            served = self._serve(events, limit_s)
            if window is not None and self.hall is not None:
                self._leave(self.hall.let_go(served, limit_s), counted=False)
            else:
                self._leave(served, counted=station.takes_time)

    def _serve(self, events: Events, until_s: float) -> Events:
        """Those whose service begins before a time; the others go on waiting."""
        if not self.station.takes_time:
            return self._pass(events, until_s)
        if self.waiting.count:  # Somebody who came before has to wait.
            self.waiting.append(events)
            return events[:0]
        left = np.empty(len(events))
        station, span, tally = self.station, self.span, self.tally
        served, self.free_s = serve(
            events.time, events.later_s, events.token, self.layout.sizes,
            station.fixed_s, station.per_byte_s, station.service.code, station.service.factors,
            self.key, self.number, self.free_s, until_s, span.warm_s, span.end_s,
            tally.figures, tally.histogram, self.edges,
            tally.departed if station.window is None else np.empty_like(tally.departed), left,
        )  # fmt: skip
        self.number += served
        self.waiting.append(events[served:])
        return events[:served].at(left[:served])

    def _pass(self, events: Events, until_s: float) -> Events:
        """Nothing takes time here, but a server that is busy with something else is waited for."""
        if self.waiting.count or self.free_s >= until_s:
            self.waiting.append(events)
            return events[:0]
        # Ways are added one after the other, so that sums are rounded as they would be one by one.
        moment = events.moment
        if len(events) and moment[0] < self.free_s:
            moment = np.maximum(moment, self.free_s)
        events = events.at(moment)
        span, figures = self.span, self.tally.figures
        count, carried = weigh(
            events.time, events.later_s, events.token, self.layout.sizes, span.warm_s, span.end_s
        )
        figures[SERVED] += count
        figures[BYTES] += carried
        self.number += len(events)
        return events

    def _work(self, hall: Hall, until_s: float, limit_s: float) -> Events:
        """Windows instead of events."""
        station, span, tally = self.station, self.span, self.tally
        come = concatenate(self.waiting.take_all())
        new = hall.close(come, until_s, station.fixed_s, station.per_byte_s, self.layout.sizes)
        self.jobs = self.jobs.then(new)
        jobs, left = self.jobs, np.empty(len(self.jobs))
        each = np.arange(len(jobs), dtype=np.int32)
        served, self.free_s = serve(
            jobs.time, 0.0, each, jobs.work_s, 0.0, 1.0,
            station.service.code, station.service.factors, self.key, self.number, self.free_s,
            limit_s, span.warm_s, span.end_s, tally.figures, tally.histogram, self.edges,
            np.empty_like(tally.departed), left,
        )  # fmt: skip
        self.number += served
        done, self.jobs = jobs.split(served)
        return done.members.at(np.repeat(left[:served], done.size))

    def _leave(self, events: Events, *, counted: bool) -> None:
        """Send events on that are done here, or record them."""
        tally = self.tally
        tally.gone += len(events)
        if not counted:
            count_arrivals(events.time, events.later_s, self.edges, tally.departed)
        if self.station.is_sink:
            self._record(events)
        else:
            self.router.send(events)

    def _record(self, events: Events) -> None:
        span, book = self.span, self.record
        record(
            events.time, events.later_s, events.birth, events.held, events.token, book.row_of,
            span.warm_s, span.end_s, book.sums, book.histogram,
        )  # fmt: skip

    def finish(self, end_s: float) -> None:
        """Count the time of what still waits as the run ends."""
        parts = [*self.waiting, self.jobs.members]
        self.tally.figures[AREA_S] += _waited_s(parts, self.span.warm_s, end_s)


def _waited_s(parts: Sequence[Events], warm_s: float, now_s: float) -> float:
    """How long events have waited by now, all together, since the warm-up."""
    return sum(
        float(np.maximum(now_s - np.maximum(part.moment, warm_s), 0.0).sum()) for part in parts
    )
