"""Carries out the moves of a keyed operator, and writes each step down."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Protocol, Self

from thalweg.errors import Defects, ThalwegError, nearest
from thalweg.spark.deployment.lines import append_durably
from thalweg.spark.keyed.log import STATES, KeyedLog, standby_stream, state_stream, writer_name
from thalweg.spark.keyed.move import (
    STEPS,
    Abandon,
    CatchUp,
    Fence,
    MoveState,
    PassOver,
    PrepareTarget,
    Retire,
    Run,
    StartFirst,
    Step,
    TakeOver,
    learn,
    next_step,
    outline,
)
from thalweg.spark.keyed.operator import load_operator
from thalweg.spark.keyed.spec import KeyedSpec
from thalweg.spark.log import Log
from thalweg.spark.log.founding import found_log, while_there
from thalweg.spark.query.spec import QuerySpec
from thalweg.spark.site.channel import SiteError

OnStep = Callable[[Step], None]

_POLL_S = 0.02
_LOOK_S = 1.0
_FEW_COMMITS = 3
_PATIENCE_S = 180.0


class MoveHeld(ThalwegError):
    """Somebody else moves this operator."""


class MoveFailed(ThalwegError):
    """A step of a move did not come about; before the fence, the operator goes on where it was."""


class HostsKeyed(Protocol):
    """What a mover asks of a site."""

    @property
    def alive(self) -> bool:
        """Whether it can be asked anything."""
        ...

    def start(self, query: QuerySpec) -> Any:
        """Start a query; one that runs already is left alone."""
        ...

    def stop(self, query: str) -> Any:
        """End a query at once."""
        ...

    def status(self) -> Any:
        """What the site and its queries are doing."""
        ...


def move_keyed(
    spec: KeyedSpec,
    sites: Mapping[str, HostsKeyed],
    to: str,
    *,
    on_step: OnStep | None = None,
    dry_run: bool = False,
) -> tuple[str, ...]:
    """Have a keyed operator run on a site, wherever it runs now; the steps in words.

    One that never ran is started there. A move that a crash has interrupted goes on. With
    `dry_run`, nothing is done but to say the steps.

    Raises:
        InvalidInput: where there is no such site.
        MoveHeld: where somebody else moves it.
        MoveFailed: where the successor fails; before the fence, the operator goes on where it was.
    """
    if dry_run:
        return outline(read_journal(spec.journal), to)
    with KeyedMover(spec, sites, on_step=on_step) as mover:
        return tuple(map(str, mover.go_to(to)))


class KeyedMover:
    """Keeps a keyed operator at the site that is wanted; use it as a context manager."""

    def __init__(
        self,
        spec: KeyedSpec,
        sites: Mapping[str, HostsKeyed],
        *,
        on_step: OnStep | None = None,
        on_done: OnStep | None = None,
        patience_s: float = _PATIENCE_S,
        commits: KeyedLog | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`on_step` is told a step before it is taken, `on_done` before it is written down."""
        self.spec = spec
        self.state = MoveState()
        self._sites = sites
        self._on_step = on_step or (lambda _step: None)
        self._on_done = on_done or (lambda _step: None)
        self._patience_s = patience_s
        self._clock, self._sleep = clock, sleep
        self._commits = commits or KeyedLog(Log(spec.log), load_operator(spec.operator))
        self._log = self._commits.log
        self._journal: IO[str] | None = None
        self._unsure: set[Run] = set()

    def __enter__(self) -> Self:
        """Read what was done, and start again what should run."""
        path = self.spec.journal
        path.parent.mkdir(parents=True, exist_ok=True)
        self._journal = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._journal.close()
            raise MoveHeld(
                f"{path} is in use: somebody else moves {self.spec.name}. Hint: wait until that "
                "process has ended, or end it."
            ) from None
        text = path.read_text(encoding="utf-8")
        self._journal.truncate(len(text[: text.rfind("\n") + 1].encode()))
        try:
            self.state = read_journal(path)
            if self.state.last_epoch < 0:
                found_log(self.spec.log)
            self._require_whole_journal()
            self.resume()
        except BaseException:
            self._journal.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal is not None:
            self._journal.close()

    def _require_whole_journal(self) -> None:
        """Raise `MoveFailed` where the log knows of an epoch that the journal does not."""
        name = self.spec.name
        streams = (state_stream(name), standby_stream(name))
        known = (place for stream in streams for place in self._log.places(stream))
        last = max(known, key=lambda place: place.epoch, default=None)
        if last is not None and last.epoch > self.state.last_epoch:
            raise MoveFailed(
                f"{self.spec.journal} knows nothing of epoch {last.epoch} of {name}, which the log "
                f"in {self.spec.log} has: without it, rows would be counted again. Hint: bring the "
                "journal back from a copy, or give the folder that the operator had; one that is "
                "to begin from nothing needs another log."
            )

    def outline(self, to: str) -> tuple[str, ...]:
        """The steps to a site in words, without taking any."""
        return outline(self.state, to)

    def resume(self) -> None:
        """Start again what should run on sites that are there; what runs is left alone."""
        for run in (self.state.running, self.state.successor):
            if run is not None and run.site in self._sites and self._sites[run.site].alive:
                self._sites[run.site].start(self.spec.query(run))

    def has_failed(self, run: Run) -> bool:
        """Whether the query of an epoch has ended by itself, at a site that is there."""
        name = self.spec.query(run).name
        return any(q.name == name and q.error for q in self._sites[run.site].status().queries)

    def go_to(self, to: str) -> tuple[Step, ...]:
        """Take every step to a site; returns them."""
        defects = Defects()
        hint = nearest(to, self._sites)
        defects.require(to in self._sites, "to", to, "a site that was started", hint)
        defects.raise_if_any()
        taken: list[Step] = []
        for run in (self.state.running, self.state.successor):
            if run is not None and run.site == to and run in self._unsure:
                self._start(run)
        while (step := next_step(self.state, to, self._ended())) is not None:
            self._on_step(step)
            if isinstance(step, (StartFirst, PrepareTarget)):
                # Who may have begun an epoch has to be known, or its number would be given again.
                self._learn(step)
            self._take(step)
            self._on_done(step)
            self._learn(step)
            taken.append(step)
        return tuple(taken)

    def _learn(self, step: Step) -> None:
        """Write a step down, unless it is, and know what is true after it."""
        known = learn(self.state, step)
        if known != self.state:
            self._write_down(step)
            self.state = known

    def _ended(self) -> list[int]:
        """Which epochs of the move have a fence, written down or not."""
        runs = [run for run in (self.state.running, self.state.successor) if run is not None]
        # A log that is away has no fences; a step that is chosen by that may come when it is back.
        with while_there(self.spec.log):
            return [
                run.epoch
                for run in runs
                if self._log.find_fence(
                    writer_name(self.spec.name, run.site), run.epoch, kind=STATES
                )
            ]

    def _start(self, run: Run) -> None:
        """Start an epoch; one that may not have started is started when it is asked for again."""
        self._unsure.add(run)
        self._sites[run.site].start(self.spec.query(run))
        self._unsure.discard(run)

    def _take(self, step: Step) -> None:
        run = step.run
        writer = writer_name(self.spec.name, run.site)
        if isinstance(step, (StartFirst, PrepareTarget)):
            self._start(run)
        elif isinstance(step, CatchUp):
            self._wait(run, "has the state", lambda: self._is_close(run))
        elif isinstance(step, Fence):
            self._log.fence(writer, run.epoch, kind=STATES)
        elif isinstance(step, TakeOver):
            self._wait(run, "has taken over", lambda: self._has_taken_over(run))
        elif isinstance(step, Abandon):
            self._log.fence(writer, run.epoch, kind=STATES)
            self._stop(run)
        elif isinstance(step, Retire):
            self._stop(run)
        elif not isinstance(step, PassOver):
            raise MoveFailed(f"there is no such step: {step}")

    def _is_close(self, run: Run) -> bool:
        """Whether a standby lacks few commits; a new commit comes with every batch."""
        stand = self._commits.last_stand(writer_name(self.spec.name, run.site), run.epoch)
        if stand is None:
            return False
        newest = self._commits.last_commit(run.epoch)
        if newest is None:
            return True
        at, batch = newest
        return stand[0] == at.epoch and batch - stand[1] <= _FEW_COMMITS

    def _has_taken_over(self, run: Run) -> bool:
        if run.follows is None:
            return True
        site, epoch = run.follows
        kind = self.spec.output.partition("/")[0]
        return self._log.find_fence(writer_name(self.spec.name, site), epoch, kind=kind) is not None

    def _wait(self, run: Run, what: str, happened: Callable[[], bool]) -> None:
        deadline = self._clock() + self._patience_s
        look_at = self._clock() + _LOOK_S
        while not happened():
            now = self._clock()
            if now > look_at:
                self._require_running(run)
                look_at = now + _LOOK_S
            if now > deadline:
                raise MoveFailed(
                    f"{run} still not {what} after {self._patience_s:.0f} s. Hint: the log of the "
                    "site says what it does; the same move goes on from this step."
                )
            self._sleep(_POLL_S)

    def _require_running(self, run: Run) -> None:
        site, name = self._sites[run.site], self.spec.query(run).name
        if not site.alive:
            raise MoveFailed(f"{run}: the site has died. Hint: restart it, or move elsewhere.")
        for query in site.status().queries:
            if query.name == name and query.error:
                raise MoveFailed(f"{run}: the query failed: {query.error}")

    def _stop(self, run: Run) -> None:
        # A dead site runs nothing; and what it runs when it is back, the fence holds off.
        if run.site in self._sites and self._sites[run.site].alive:
            with suppress(SiteError):
                self._sites[run.site].stop(self.spec.query(run).name)

    def _write_down(self, step: Step) -> None:
        if self._journal is None:
            raise MoveHeld(f"{self.spec.journal} is not open")
        record = {"step": type(step).__name__, **asdict(step)}
        append_durably(self._journal.fileno(), json.dumps(record).encode())


def read_journal(path: Path) -> MoveState:
    """Where an operator is, from its journal; a line that a crash cut off does not count.

    Raises:
        MoveFailed: where a line in the middle cannot be read.
    """
    state = MoveState()
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), start=1):
        try:
            record = json.loads(line)
            values = record["run"]
            follows = values["follows"]
            run = Run(
                site=values["site"],
                epoch=values["epoch"],
                follows=None if follows is None else (str(follows[0]), int(follows[1])),
            )
            step = STEPS[record["step"]](run=run)
        except (ValueError, KeyError, TypeError) as error:
            raise MoveFailed(
                f"{path}:{number}: not a step of a move ({error}). "
                "Hint: restore the file from a copy; what runs cannot be known without it."
            ) from error
        state = learn(state, step)
    return state
