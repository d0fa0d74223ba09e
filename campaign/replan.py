"""kill -9 before and after every step of a hand-over, under load, on Spark sites that run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path

from campaign.outcome import Diary, Ending, Outcome
from campaign.strike import Moment, Order, Target, number_orders
from campaign.trial import Trial, TrialStuck
from thalweg.spark.deployment.hand_over import Drain, ExportState, Fence, Prepare, StartEpoch

STEPS = tuple(kind.__name__ for kind in (Prepare, Drain, ExportState, Fence, StartEpoch))
WINDOWED = {"summed", "totalled-partial"}
CUTS: tuple[tuple[str, ...], ...] = (
    ("checked", "listed", "summed", "totalled-partial"),
    ("checked", "summed"),
    (),
    ("checked", "totalled-partial"),
    ("checked",),
)
KINDS: dict[Target, str] = {
    "driver": "kill -9 of a fog's driver at every step of a re-plan",
    "jvm": "kill -9 of a fog's JVM at every step of a re-plan",
    "worker": "kill -9 of a Python worker at every step of a re-plan",
    "cloud": "kill -9 of the cloud's driver at every step of a re-plan",
    "coordinator": "kill -9 of the coordinator at every step of a re-plan",
}


def moments_of(target: Target) -> tuple[Moment, ...]:
    """When to strike: what is done and not written down matters to who writes alone."""
    return ("before", "done", "after") if target == "coordinator" else ("before", "done")


def list_orders(target: Target) -> list[Order]:
    """Every step and moment, once."""
    return number_orders((step, m, target) for step in STEPS for m in moments_of(target))


REPRESENTATIVE: tuple[tuple[str, Moment, Target], ...] = (
    (Drain.__name__, "done", "driver"),
    (ExportState.__name__, "done", "coordinator"),
    (Fence.__name__, "before", "cloud"),
    (Prepare.__name__, "done", "worker"),
    (StartEpoch.__name__, "before", "driver"),
    (StartEpoch.__name__, "done", "coordinator"),
)
"""A few of all, each target and each step among them."""


def crash_replan(kind: str, orders: Iterable[Order], folder: Path, *, fogs: int = 1) -> Outcome:
    """Strike a deployment at these moments, one move of its cuts for each."""
    began_s = time.monotonic()
    diary, cuts = Diary(), cycle(CUTS)
    with Trial(folder, fogs=fogs) as trial:
        for order in orders:
            _hit(trial, order, cuts, diary)
        verdicts = trial.finish()
    return Outcome(
        kind=kind,
        injections=tuple(diary.injections),
        verdicts=verdicts,
        events=trial.feed.count,
        seconds=time.monotonic() - began_s,
    )


def _hit(trial: Trial, order: Order, cuts: Iterator[tuple[str, ...]], diary: Diary) -> None:
    """Move the cut with the order left, and see that the deployment gets there all the same."""
    fog = trial.fogs[0]
    if order.step == ExportState.__name__ and not WINDOWED & set(trial.cuts[fog]):
        # Only an epoch with open windows hands any over.
        _move(trial, next(c for c in cuts if set(c) & WINDOWED))
        trial.await_rows()
    began_s = time.time()
    trial.strike(order)
    wanted = next(cut for cut in cuts if set(cut) != set(trial.cuts[fog]))
    answer = trial.ask_move(wanted)
    struck = trial.orders.struck().get(order.number)
    if struck is None:
        trial.orders.withdraw()
        raise TrialStuck(f"{order}: the step did not come; {answer}\n{trial.tell()}")
    ending: Ending = "healed"
    if answer is None:
        if trial.refusal is not None:
            raise TrialStuck(f"{order}: {trial.refusal}")
        trial.start()
        trial.await_running()
        ending = "resumed"
        if set(trial.cuts[fog]) != set(wanted):
            # It was killed before the hand-over began: whoever asked got no answer.
            _move(trial, wanted)
    trial.await_rows()
    pauses = [pause for at, pause in trial.pauses() if at >= min(struck, began_s)]
    diary.write(str(order), ending, max(pauses, default=0.0))


def _move(trial: Trial, cut: tuple[str, ...]) -> None:
    if trial.ask_move(cut) is None:
        raise TrialStuck(f"the deployment has ended: {trial.refusal or trial.tell()}")
