"""kill -9 before and after every step of a hand-over, under load, on Spark sites that run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path

from campaign.hosting import TrialStuck
from campaign.outcome import Diary, Ending, Outcome
from campaign.strike import Moment, Order, Target, number_orders
from campaign.trial import Trial
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
LINKED = "kill -9 of driver, JVM, worker, cloud or coordinator, re-plan over a link"
FIRST = "kill -9 of the coordinator at the first start"
REPRESENTATIVE: tuple[tuple[str, Moment, Target], ...] = (
    (Drain.__name__, "done", "driver"),
    (ExportState.__name__, "done", "coordinator"),
    (Fence.__name__, "before", "cloud"),
    (Prepare.__name__, "done", "worker"),
    (StartEpoch.__name__, "before", "jvm"),
    (StartEpoch.__name__, "done", "coordinator"),
)
"""A few of all, each target and each step among them."""
SHORTEST: tuple[tuple[str, Moment, Target], ...] = (
    (Drain.__name__, "done", "driver"),
    (Fence.__name__, "done", "coordinator"),
)
"""A site that dies before its batches are handed over, and the coordinator that has fenced it."""


def moments_of(target: Target) -> tuple[Moment, ...]:
    """When to strike: what is written down already matters to who writes alone."""
    return ("before", "done", "after") if target == "coordinator" else ("before", "done")


def list_orders(target: Target) -> list[Order]:
    """Every step and moment, once."""
    return number_orders((step, m, target) for step in STEPS for m in moments_of(target))


def list_linked_orders() -> list[Order]:
    """Every step, before it and when it is done, for those who have a part in the link.

    An end of a link is in a driver. For it, the death of a JVM is that of the driver, and a worker
    that dies is nothing but a batch that is done again: these two strike each step at one moment,
    one of them before it and the other when it is done.
    """
    both: tuple[Moment, ...] = ("before", "done")
    ends: tuple[Target, ...] = ("driver", "cloud", "coordinator")
    others: tuple[Target, ...] = ("jvm", "worker")
    orders = [(step, moment, target) for target in ends for step in STEPS for moment in both]
    for turn, target in enumerate(others):
        orders += [(s, both[(turn + n) % 2], target) for n, s in enumerate(STEPS)]
    return number_orders(orders)


def crash_replan(
    kind: str, orders: Iterable[Order], folder: Path, *, fogs: int = 1, ships: bool = False
) -> Outcome:
    """Strike a deployment at these moments, one move of its cuts for each.

    The first fog is the one that moves. The others, and the cloud unless it is struck, go on.
    """
    began_s, strikes = time.monotonic(), list(orders)
    diary, cuts = Diary(), cycle(CUTS)
    link = f"directory://{folder / 'run' / 'log'}" if ships else None
    with Trial(folder, fogs=fogs, link=link) as trial:
        trial.begin()
        for order in strikes:
            _hit(trial, order, cuts, diary)
        verdicts = trial.finish()
        diary.disturbed += trial.find_disturbed({order.target for order in strikes})
    return diary.close(kind, verdicts, trial.feed.count, began_s)


def crash_first_start(folder: Path) -> Outcome:
    """Strike the coordinator when a deployment is started for the first time."""
    began_s, diary, verdicts, events = time.monotonic(), Diary(), {}, 0
    for order in number_orders((StartEpoch.__name__, m, "coordinator") for m in _MOMENTS):
        with Trial(folder / order.moment) as trial:
            trial.strike(order)
            trial.host.start()
            trial.host.await_end()
            since_s = trial.orders.struck()[order.number]
            trial.begin()
            diary.write(str(order), "resumed", trial.longest_pause_s(since_s))
            found = trial.finish()
            verdicts |= {f"{name}, {order.moment}": verdict for name, verdict in found.items()}
            events += trial.feed.count
    return diary.close(FIRST, verdicts, events, began_s)


_MOMENTS: tuple[Moment, ...] = ("before", "done", "after")


def _hit(trial: Trial, order: Order, cuts: Iterator[tuple[str, ...]], diary: Diary) -> None:
    """Move the cut with the order left, and see that the deployment gets there all the same."""
    fog = trial.fogs[0]
    if order.step == ExportState.__name__ and not WINDOWED & set(trial.cuts[fog]):
        # Only an epoch with open windows hands any over.
        _move(trial, next(c for c in cuts if set(c) & WINDOWED))
        trial.await_rows()
    wanted = next(cut for cut in cuts if set(cut) != set(trial.cuts[fog]))
    trial.strike(order)
    answered = trial.ask_move(wanted)
    until_s = time.time()
    since_s = trial.orders.struck().get(order.number)
    if since_s is None:
        trial.orders.withdraw()
        raise TrialStuck(f"{order}: the step did not come\n{trial.tell()}")
    ending: Ending = "healed"
    if answered:
        diary.disturbed += trial.find_idle(since_s, until_s)
    else:
        if trial.host.refusal is not None:
            raise TrialStuck(f"{order}: {trial.host.refusal}")
        trial.resume()
        ending = "resumed"
        if set(trial.cuts[fog]) != set(wanted):
            # It was killed before the hand-over began: whoever asked got no answer.
            _move(trial, wanted)
    trial.await_cut(wanted)
    trial.await_rows()
    diary.write(str(order), ending, trial.longest_pause_s(since_s))


def _move(trial: Trial, cut: tuple[str, ...]) -> None:
    if not trial.ask_move(cut):
        raise TrialStuck(f"the deployment has ended: {trial.host.told}")
    trial.await_cut(cut)
