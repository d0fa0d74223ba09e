"""What is done to the run, one after the other: find its maximum, soak it, flood it, let it be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from campaign.load.analysis import LEAST_POINTS, Step, find_maximum, fit_slope, next_rate
from campaign.load.lag import Lag
from campaign.load.rig import Dial, Sample, Tell
from thalweg.errors import ThalwegError

_LOOK_S = 0.25
_MOST_STEPS = 14
_LONGER = 3.0
_MOST_HOLDS = 8
# A fiftieth: what 2 % too much gives.
_HELD_TOLERANCE = 0.02
# Of the time for which the maximum is held, before it may be said to be too much.
_LEAST_HELD = 0.2


class Loaded(Protocol):
    """A run that can be loaded and looked at; see `campaign.load.rig.Rig`."""

    dial: Dial

    @property
    def now_s(self) -> float:
        """What time it is."""
        ...

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        ...

    def read_lag(self) -> Lag:
        """How far it is behind."""
        ...

    def sample(self, phase: str) -> Sample:
        """All of it now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How long everything takes, and at which rates."""

    soak_s: float
    warm_up_s: float = 60.0
    step_s: float = 20.0
    longest_step_s: float = 120.0
    """Where results come out seldom, a step takes longer."""
    settle_s: float = 8.0
    """At the begin of a step: what a batch holds has to grow with the rate first."""
    hold_s: float = 300.0
    """How long the maximum is held before it is believed: a rate that is a little too much makes
    batches larger and cheaper by the row at first, and falls behind only then."""
    first_per_s: float = 2000.0
    factor: float = 1.6
    close: float = 1.12
    sample_s: float = 5.0
    overload_s: float = 120.0
    patience_s: float = 900.0
    """How long a lag may take to go."""
    soak_share: float = 0.8
    overload_share: float = 2.0
    relief_share: float = 0.5


QUICK = Schedule(
    soak_s=40.0,
    warm_up_s=20.0,
    step_s=10.0,
    longest_step_s=60.0,
    settle_s=4.0,
    hold_s=20.0,
    first_per_s=8000.0,
    factor=2.0,
    close=1.5,
    sample_s=2.0,
    overload_s=30.0,
    patience_s=240.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Maximum:
    """The highest rate that the run keeps up with, and the steps that tell it."""

    per_s: float
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """What too many rows did, and how it ended."""

    asked_per_s: float
    samples: tuple[Sample, ...]
    relief: tuple[Sample, ...]
    calm_lag_s: float
    """The lag that counts as back to what it was."""
    recovered_after_s: float | None
    """Since the rate was lowered; None: not in time."""


def find_run_maximum(rig: Loaded, schedule: Schedule, tell: Tell) -> Maximum:
    """Raise the rate until the lag rises with it, then look in between.

    Lag goes up and down with batches and collections: a rate that seems a little too much is
    tried once more, for longer.

    Raises:
        ThalwegError: where no rate is kept up, or none is too much.
    """
    rig.dial.per_s = schedule.first_per_s / schedule.factor
    calm_s = _warm_up(rig, schedule)
    steps: list[Step] = []
    while rate := next_rate(steps, schedule.first_per_s, schedule.factor, schedule.close):
        if len(steps) >= _MOST_STEPS:
            break
        step = take_step(rig, schedule, rate, calm_s, schedule.step_s)
        if step.is_unsure:
            _drain(rig, schedule, find_maximum(steps) or rate / 4, calm_s + schedule.settle_s)
            step = take_step(rig, schedule, rate, calm_s, _LONGER * schedule.step_s)
        steps.append(step)
        tell(_describe(step))
        if not step.keeps_up:
            _drain(rig, schedule, find_maximum(steps) or rate / 4, calm_s + schedule.settle_s)
    if not find_maximum(steps) or all(step.keeps_up for step in steps):
        raise ThalwegError(f"no maximum was found in {len(steps)} steps")
    return _hold(rig, schedule, steps, calm_s, tell)


def _hold(rig: Loaded, schedule: Schedule, steps: list[Step], calm_s: float, tell: Tell) -> Maximum:
    """Hold what was found for long; where that is too much, a little less, and so on."""
    rate = find_maximum(steps)
    for _ in range(_MOST_HOLDS):
        step = take_step(rig, schedule, rate, calm_s, schedule.hold_s, _HELD_TOLERANCE)
        steps.append(step)
        tell(f"held: {_describe(step)}")
        if step.keeps_up:
            return Maximum(per_s=rate, steps=tuple(steps))
        _drain(rig, schedule, rate, calm_s + schedule.settle_s)
        rate /= schedule.close
    raise ThalwegError(f"no rate could be held for {schedule.hold_s:g} s; the last: {rate:,.0f}")


def soak(
    rig: Loaded, schedule: Schedule, per_s: float, meanwhile: Callable[[Sample], None]
) -> list[Sample]:
    """Samples at one rate, for as long as the schedule says."""
    rig.dial.per_s = per_s
    return _sample_for(rig, schedule, "soak", schedule.soak_s, meanwhile)


def overload(
    rig: Loaded, schedule: Schedule, maximum_per_s: float, calm_lag_s: float, tell: Tell
) -> Overload:
    """Too many rows for a while, then few, until the lag is what it was."""
    asked_per_s = schedule.overload_share * maximum_per_s
    rig.dial.per_s = asked_per_s
    flood = _sample_for(rig, schedule, "overload", schedule.overload_s, lambda _sample: None)
    tell(f"overload ends with a lag of {flood[-1].lag.rows:,} rows; relief")
    rig.dial.per_s = schedule.relief_share * maximum_per_s
    begin_s, relief, recovered_s = rig.now_s, list[Sample](), None
    while recovered_s is None and rig.now_s - begin_s < schedule.patience_s:
        rig.wait(schedule.sample_s)
        relief.append(rig.sample("relief"))
        lag_s = relief[-1].lag.seconds
        if lag_s is not None and lag_s <= calm_lag_s:
            recovered_s = rig.now_s - begin_s
    return Overload(
        asked_per_s=asked_per_s,
        samples=tuple(flood),
        relief=tuple(relief),
        calm_lag_s=calm_lag_s,
        recovered_after_s=recovered_s,
    )


def _describe(step: Step) -> str:
    told = "kept up" if step.keeps_up else "too much"
    if step.lag_s is None or step.lag_rows is None:
        return f"{step.asked_per_s:,.0f} rides/s: {told}, hardly any result came out"
    lag = f"{step.lag_s.per_s:+.2f} s/s, {step.lag_rows.per_s:+,.0f} rows/s"
    return f"{step.asked_per_s:,.0f} rides/s ({step.born_per_s:,.0f} came): {told}, lag {lag}"


def _warm_up(rig: Loaded, schedule: Schedule) -> float:
    """Let everything run for a while; gives the lag that it has with few rows."""
    deadline_s = rig.now_s + schedule.patience_s
    end_s = rig.now_s + schedule.warm_up_s
    lag = rig.read_lag()
    while rig.now_s < end_s or lag.seconds is None:
        if rig.now_s > deadline_s:
            raise ThalwegError("no result comes out")
        rig.wait(_LOOK_S)
        lag = rig.read_lag()
    return lag.seconds


def take_step(
    rig: Loaded,
    schedule: Schedule,
    per_s: float,
    calm_s: float,
    seconds: float,
    tolerance: float = 0.1,
) -> Step:
    """Look at the lag each time that results have come out: in between it rises at any rate.

    A step ends early where it is plain that it is too much: all that comes has to go again.
    """
    rig.dial.per_s = per_s
    # What came at the rate before has to be out.
    rig.wait(schedule.settle_s + calm_s)
    first = last = (rig.now_s, rig.read_lag())
    fresh = list[tuple[float, Lag]]()
    while _goes_on(schedule, seconds, last[0] - first[0], len(fresh)):
        rig.wait(_LOOK_S)
        before, last = last, (rig.now_s, rig.read_lag())
        if last[1].results_upto_us == before[1].results_upto_us:
            continue
        fresh.append(last)
        was_held = last[0] - first[0] >= _LEAST_HELD * schedule.hold_s
        if was_held and _judge(per_s, tolerance, first, last, fresh).is_plain:
            break
    rig.sample("maximum")
    return _judge(per_s, tolerance, first, last, fresh)


def _judge(
    per_s: float,
    tolerance: float,
    first: tuple[float, Lag],
    last: tuple[float, Lag],
    fresh: list[tuple[float, Lag]],
) -> Step:
    """What the lags of a step say: its first, its last, and those when results came out."""
    at_s, enough = [at_s for at_s, _ in fresh], len(fresh) >= LEAST_POINTS
    return Step(
        asked_per_s=per_s,
        born_per_s=(last[1].born_rows - first[1].born_rows) / (last[0] - first[0]),
        lag_rows=fit_slope(at_s, [float(lag.rows) for _, lag in fresh]) if enough else None,
        lag_s=fit_slope(at_s, [lag.seconds or 0.0 for _, lag in fresh]) if enough else None,
        tolerance=tolerance,
    )


def _goes_on(schedule: Schedule, seconds: float, passed_s: float, points: int) -> bool:
    if passed_s >= max(seconds, schedule.longest_step_s):
        return False
    return passed_s < seconds or points < LEAST_POINTS


def _drain(rig: Loaded, schedule: Schedule, known_per_s: float, upto_s: float) -> None:
    """Few rows until the lag of a step that was too much is gone."""
    rig.dial.per_s = known_per_s / 4
    deadline_s = rig.now_s + schedule.patience_s
    while (lag := rig.read_lag()).seconds is None or lag.seconds > upto_s:
        if rig.now_s > deadline_s:
            waited_s = schedule.patience_s
            raise ThalwegError(f"a lag of {lag.rows:,} rows does not go in {waited_s:g} s")
        rig.wait(_LOOK_S)


def _sample_for(
    rig: Loaded,
    schedule: Schedule,
    phase: str,
    seconds: float,
    meanwhile: Callable[[Sample], None],
) -> list[Sample]:
    begin_s, found = rig.now_s, list[Sample]()
    for number in range(1, round(seconds / schedule.sample_s) + 1):
        # On time, however long a sample takes.
        due_s = begin_s + number * schedule.sample_s
        rig.wait(max(0.0, due_s - rig.now_s))
        found.append(rig.sample(phase))
        meanwhile(found[-1])
    return found
