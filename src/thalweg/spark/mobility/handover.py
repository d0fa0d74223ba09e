"""Carries out a plan of moves for real: an operator with state goes from Spark to Spark.

What the plan calls immutable and mutable state is here one log of commits. All of it but the last
batches is sent ahead: the target stands by and takes in what the source commits. At the moment of
the plan the source is fenced, the target reads the last batches and goes on, and the source is
released. Rows keep coming all the while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from thalweg.spark.keyed.log import KeyedLog
from thalweg.spark.keyed.move import Fence, PrepareTarget, Retire, Run, Step
from thalweg.spark.keyed.mover import HostsKeyed, KeyedMover, MoveFailed
from thalweg.spark.keyed.operator import load_operator
from thalweg.spark.log import Log
from thalweg.spark.log.reader import Segment
from thalweg.spark.mobility.course import Course, Move, Positions, plan_course
from thalweg.spark.mobility.measure import Instant, Passage, measure
from thalweg.spark.mobility.report import HandOverReport
from thalweg.spark.mobility.stream import PositionFeed, TrackClock
from thalweg.spark.site.sites import Sites

OnStep = Callable[[float, str], None]

_POLL_S = 0.05
_LOOK_S = 1.0


def hand_over(
    moves: Sequence[Move | tuple[float, str]],
    tracks: Positions,
    *,
    folder: Path | str,
    sites: Sequence[str] = ("broker-a", "broker-b"),
    start: str | None = None,
    speedup: float = 1.0,
    lead_s: float | None = None,
    heap_mb: int = 512,
    hosts: Mapping[str, HostsKeyed] | None = None,
    on_step: OnStep | None = None,
    patience_s: float = 60.0,
) -> HandOverReport:
    """Run `distances` on the positions of vehicles, move it as told, and measure what came of it.

    The operator begins at `start`, the first site unless told. A move is (moment, site): its
    source is fenced at that moment of the tracks, or as soon after as the target is ready, which
    is prepared `lead_s` of the tracks before; ten seconds by the clock unless told. `speedup`
    seconds of the tracks are one second. `folder` is for the log and all else; each site that is
    used is a local Spark of its own, unless `hosts` has sites that run already. `on_step` is told
    each step before it is taken, with the moment.

    What is lost or comes twice is told by the report, and is no error; nor are rows that have not
    come out when nothing came for `patience_s`.

    Raises:
        InvalidInput: with all that is wrong with what was told.
        MoveFailed: where a target, or in the end the operator, fails.
        SiteError, MissingExtra, JavaMissing: where a site does not start.
    """
    course = plan_course(
        moves,
        tracks,
        sites=sites,
        start=start,
        folder=Path(folder),
        speedup=speedup,
        lead_s=lead_s,
        heap_mb=heap_mb,
        patience_s=patience_s,
        running=hosts,
    )
    with ExitStack() as stack:
        if hosts is None:
            started = stack.enter_context(Sites())
            started.start(course.site_specs)
            hosts = started
        passages, seconds = HandOver(course, hosts, on_step, patience_s).run()
    return measure(course, passages, seconds)


class HandOver:
    """One run of a course on sites that are there."""

    def __init__(
        self,
        course: Course,
        hosts: Mapping[str, HostsKeyed],
        on_step: OnStep | None,
        patience_s: float,
    ) -> None:
        self._course = course
        self._hosts = hosts
        self._on_step = on_step or (lambda _at_s, _step: None)
        self._patience_s = patience_s
        self._log = Log(course.spec.log)
        self._commits = KeyedLog(self._log, load_operator(course.spec.operator))
        self._clock = TrackClock(float(course.time_s[0]), course.speedup)
        self._feed = PositionFeed(course, self._clock)
        self._move: Move | None = None
        self._times: dict[type[Step], Instant] = {}
        self._snapshot: Segment | None = None

    def run(self) -> tuple[list[Passage], float]:
        """Every move in its turn; when each was taken, and how long rows flowed in seconds."""
        course = self._course
        with KeyedMover(course.spec, self._hosts, on_step=self._before_step) as mover:
            mover.go_to(course.start)
            # Time goes on when the operator does: the first start is no part of what is measured.
            self._feed.send_due()
            self._await_output(1, mover)
            began = time.monotonic()
            with self._feed.running():
                passages = [self._pass(mover, move) for move in course.moves]
                self._feed.wait_until(float(course.time_s[-1]))
                while not self._feed.done:
                    time.sleep(_POLL_S)
            self._await_output(course.rows.num_rows, mover)
            seconds = time.monotonic() - began
            run = _running(mover)
            self._hosts[run.site].stop(course.spec.query(run).name)
        return passages, seconds

    def _pass(self, mover: KeyedMover, move: Move) -> Passage:
        """Take one move, its preparation and its hand-over each at its moment."""
        source = _running(mover).site
        self._feed.wait_until(move.at_s if move.prepare_s is None else move.prepare_s)
        self._move, self._times = move, {}
        mover.go_to(move.to)
        self._move = None
        return Passage(
            move=move,
            source=source,
            epoch=_running(mover).epoch,
            prepared=self._times[PrepareTarget],
            fenced=self._times[Fence],
            taken_over=self._times[Retire],
            released=self._now(),
            snapshot=self._snapshot,
        )

    def _before_step(self, step: Step) -> None:
        if isinstance(step, Fence) and self._move is not None:
            self._feed.wait_until(self._move.at_s)
        if isinstance(step, PrepareTarget):
            self._snapshot = self._commits.last_snapshot(step.run.epoch - 1)
        self._times[type(step)] = self._now()
        self._on_step(self._clock.now_s, str(step))

    def _now(self) -> Instant:
        return Instant(track_s=self._clock.now_s, unix_s=time.time())

    def _await_output(self, rows: int, mover: KeyedMover) -> None:
        """Wait until so many rows have come out, or none has come for long."""
        seen, quiet_since = 0, time.monotonic()
        look_at = time.monotonic() + _LOOK_S
        while seen < rows:
            out = sum(segment.rows for segment in self._log.segments(self._course.spec.output))
            now = time.monotonic()
            if out > seen:
                seen, quiet_since = out, now
            if now > quiet_since + self._patience_s:
                return
            if now > look_at:
                self._require_running(_running(mover))
                look_at = now + _LOOK_S
            time.sleep(_POLL_S)

    def _require_running(self, run: Run) -> None:
        site, name = self._hosts[run.site], self._course.spec.query(run).name
        if not site.alive:
            raise MoveFailed(f"{run}: the site has died")
        for query in site.status().queries:
            if query.name == name and query.error:
                raise MoveFailed(f"{run}: the query failed: {query.error}")


def _running(mover: KeyedMover) -> Run:
    run = mover.state.running
    if run is None:
        raise MoveFailed(f"{mover.spec.name} was never started")
    return run
