"""How a keyed operator gets from the site where it runs to another one, as plain steps.

The steps are values, as in `spark.deployment.hand_over`: a dry run prints them, a run carries
them out and writes each down, and carrying out one twice is carrying it out once. A successor is
started beside the one that runs, and follows what it commits. The fence is the moment of the move:
one rename in the log, after which the one cannot commit any more and the other can. Nobody has to
drain anything for that, so it works as well where the site that is left has died.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

Phase = Literal["idle", "running", "prepared", "ready", "fenced", "taken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An epoch of an operator on a site, and the one that it follows, if any."""

    site: str
    epoch: int
    follows: tuple[str, int] | None = None
    """Site and epoch."""

    def __str__(self) -> str:
        return f"epoch {self.epoch} on {self.site}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFirst:
    """Start the operator where it never ran before."""

    run: Run

    def __str__(self) -> str:
        return f"start {self.run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareTarget:
    """Start a successor that follows what the running epoch commits."""

    run: Run

    def __str__(self) -> str:
        return f"prepare {self.run}, while epoch {self.run.epoch - 1} goes on"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    """Wait until the successor has all of the state but the last few batches."""

    run: Run

    def __str__(self) -> str:
        return f"wait until {self.run} has the state but for the last batches"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """From now on the epoch commits nothing more: its successor goes on from its last commit."""

    run: Run

    def __str__(self) -> str:
        return f"fence {self.run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    """Wait until the successor has the whole state, and all output of its predecessor is out."""

    run: Run

    def __str__(self) -> str:
        return f"wait until {self.run} has taken over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retire:
    """Stop the query of an epoch that has ended."""

    run: Run

    def __str__(self) -> str:
        return f"stop {self.run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon:
    """End a successor before it took over: another one is wanted."""

    run: Run

    def __str__(self) -> str:
        return f"give up {self.run} before it takes over"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOver:
    """Count a successor that cannot be reached as the one that runs, so that it can be followed."""

    run: Run

    def __str__(self) -> str:
        return f"do not wait for {self.run}"


Step = StartFirst | PrepareTarget | CatchUp | Fence | TakeOver | Retire | Abandon | PassOver
STEPS: dict[str, type[Step]] = {
    kind.__name__: kind
    for kind in (
        StartFirst,
        PrepareTarget,
        CatchUp,
        Fence,
        TakeOver,
        Retire,
        Abandon,
        PassOver,
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveState:
    """Where an operator is: what runs, and its successor while there is one."""

    phase: Phase = "idle"
    running: Run | None = None
    successor: Run | None = None
    last_epoch: int = -1
    """The last epoch that was ever begun: no number is used twice."""

    @property
    def site(self) -> str | None:
        """Where the operator's next batch is committed."""
        run = self.successor if self.phase in ("fenced", "taken") else self.running
        return None if run is None else run.site


def next_step(state: MoveState, wanted: str | None, ended: Collection[int] = ()) -> Step | None:
    """The next step to the site that is wanted; None: the operator is there.

    Without a wish, a move that was begun goes on to where it was going. One that is past its
    fence ends before another begins. `ended` are epochs that the log has a fence of: a fence that
    a crash kept from being written down is written down first, whatever is wanted by now.
    """
    running, successor = state.running, state.successor
    if running is None:
        first = state.last_epoch + 1
        return StartFirst(run=Run(site=wanted, epoch=first)) if wanted is not None else None
    if successor is None:
        if wanted in (None, running.site):
            return None
        follows = (running.site, running.epoch)
        return PrepareTarget(run=Run(site=str(wanted), epoch=state.last_epoch + 1, follows=follows))
    elsewhere = wanted not in (None, successor.site)
    if state.phase == "taken":
        return Retire(run=running)
    if state.phase == "fenced":
        return PassOver(run=successor) if elsewhere else TakeOver(run=successor)
    if state.phase == "ready" and running.epoch in ended:
        return Fence(run=running)
    if elsewhere or successor.epoch in ended:
        return Abandon(run=successor)
    return CatchUp(run=successor) if state.phase == "prepared" else Fence(run=running)


def learn(state: MoveState, step: Step) -> MoveState:
    """What is true after a step was carried out; one that is known already changes nothing."""
    run = step.run
    if isinstance(step, (StartFirst, PrepareTarget)):
        if run.epoch <= state.last_epoch:
            return state
        if isinstance(step, StartFirst):
            return MoveState(phase="running", running=run, last_epoch=run.epoch)
        return replace(state, phase="prepared", successor=run, last_epoch=run.epoch)
    if isinstance(step, CatchUp) and (state.phase, state.successor) == ("prepared", run):
        return replace(state, phase="ready")
    if isinstance(step, Fence) and (state.phase, state.running) == ("ready", run):
        return replace(state, phase="fenced")
    if isinstance(step, (TakeOver, PassOver)) and (state.phase, state.successor) == ("fenced", run):
        return replace(state, phase="taken")
    if isinstance(step, Retire) and (state.phase, state.running) == ("taken", run):
        return replace(state, phase="running", running=state.successor, successor=None)
    early = state.phase in ("prepared", "ready")
    if isinstance(step, Abandon) and early and state.successor == run:
        return replace(state, phase="running", successor=None)
    return state


def outline(state: MoveState, wanted: str | None) -> tuple[str, ...]:
    """Every step to the site that is wanted in words; what a dry run prints."""
    told: list[str] = []
    while (step := next_step(state, wanted)) is not None:
        told.append(str(step))
        state = learn(state, step)
    return tuple(told)
