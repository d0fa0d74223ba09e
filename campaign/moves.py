"""kill -9 before and after every step of a move of state, on Spark sites that run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from campaign.hosting import Host, longest_pause_s, wait_until
from campaign.keyed_host import SITES, spec_in
from campaign.outcome import Diary, Ending, Outcome
from campaign.strike import Moment, Order, Orders, Target, number_orders
from campaign.tally import expect_tally, make_keyed
from thalweg.history import Publication, Verdict, check_history
from thalweg.spark.keyed.move import (
    Abandon,
    CatchUp,
    Fence,
    PassOver,
    PrepareTarget,
    Retire,
    StartFirst,
    TakeOver,
)
from thalweg.spark.keyed.mover import read_journal
from thalweg.spark.log import Log
from thalweg.spark.log.disk import LogError
from thalweg.spark.log.segment import read_batches
from thalweg.spark.log.writer import LogWriter

STEPS = tuple(kind.__name__ for kind in (PrepareTarget, CatchUp, Fence, TakeOver, Retire))
AFTERTHOUGHTS = {Abandon.__name__: PrepareTarget.__name__, PassOver.__name__: Fence.__name__}
"""Steps that come only when another site is wanted after a mover has died behind that step."""
FIRST = StartFirst.__name__
KINDS: dict[Target, str] = {
    "driver": "kill -9 of the site that is left, at every step of a state move",
    "successor": "kill -9 of the site that takes over, at every step of a state move",
    "coordinator": "kill -9 of the mover, at every step of a state move",
}
_STEP_S = 0.05
_EVENTS = 20


def list_orders(target: Target) -> list[Order]:
    """Every step and moment, once; those that need more than one move are last."""
    moments: tuple[Moment, ...] = ("before", "done")
    if target == "coordinator":
        moments = ("before", "done", "after")
    steps = (*STEPS, *AFTERTHOUGHTS, FIRST)
    if target == "successor":
        # A first start has none.
        steps = (*STEPS, *AFTERTHOUGHTS)
    return number_orders((step, moment, target) for step in steps for moment in moments)


REPRESENTATIVE: tuple[tuple[str, Moment, Target], ...] = (
    (CatchUp.__name__, "before", "driver"),
    (Fence.__name__, "done", "coordinator"),
    (TakeOver.__name__, "before", "successor"),
    (PassOver.__name__, "done", "coordinator"),
)
"""A few of all, each target among them."""
SHORTEST: tuple[tuple[str, Moment, Target], ...] = (
    (Fence.__name__, "done", "coordinator"),
    (TakeOver.__name__, "before", "successor"),
)
"""The mover that has fenced the old site, and the new one before it takes over."""


def crash_moves(kind: str, orders: Iterable[Order], folder: Path) -> Outcome:
    """Strike moves at these moments, one move for each."""
    began_s = time.monotonic()
    diary, events = Diary(), 0
    verdicts: dict[str, Verdict] = {}
    asked = list(orders)
    later = [order for order in asked if order.step != FIRST]
    if later:
        with KeyedTrial(folder / "moves") as trial:
            trial.begin()
            for order in later:
                trial.hit(order, diary)
            verdicts["moves"], events = trial.finish(), trial.count
    for order in asked:
        if order.step == FIRST:
            name = f"first-{order.number}"
            with KeyedTrial(folder / name) as trial:
                trial.hit_first(order, diary)
                verdicts[name] = trial.finish()
                events += trial.count
    return diary.close(kind, verdicts, events, began_s)


class KeyedTrial:
    """A keyed operator in a process of its own, fed all the time; use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spec = spec_in(folder)
        self.orders = Orders(folder / "orders")
        self.log = Log(self.spec.log)
        self.count = 0
        words = [str(folder), "--orders", str(self.orders.folder)]
        self.host = Host("campaign.keyed_host", words, folder)
        self._ending = threading.Event()
        self._feed = threading.Thread(target=self._send, name="feed", daemon=True)

    def __enter__(self) -> KeyedTrial:
        self.folder.mkdir(parents=True)
        self._feed.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._feed.join()
        self.host.kill()

    def begin(self) -> None:
        """Start the operator on the first site, and wait for its first rows."""
        self.want(SITES[0])
        self.host.start()
        self.await_site(SITES[0])
        self.await_rows()

    def hit_first(self, order: Order, diary: Diary) -> None:
        """Strike when the operator is started for the first time."""
        self.orders.leave(order)
        self.want(SITES[0])
        self.host.start()
        self._await_struck(order)
        ending = self._await_there(order, SITES[0])
        self.await_rows()
        diary.write(str(order), ending, self.longest_pause_s(self.orders.struck()[order.number]))

    def hit(self, order: Order, diary: Diary) -> None:
        """Move the operator with the order left, and see that it gets there all the same."""
        wanted = self.elsewhere()
        if order.step in AFTERTHOUGHTS:
            wanted = self._prepare_afterthought(AFTERTHOUGHTS[order.step], wanted, order.number)
            self.orders.leave(order)
            self.want(wanted)
            self.host.start()
        else:
            self.orders.leave(order)
            self.want(wanted)
        self._await_struck(order)
        ending = self._await_there(order, wanted)
        self.await_rows()
        diary.write(str(order), ending, self.longest_pause_s(self.orders.struck()[order.number]))

    def finish(self) -> Verdict:
        """End the feed, wait for the last row, and judge."""
        self._ending.set()
        self._feed.join()
        self.await_rows()
        self.host.kill()
        return self.judge()

    def judge(self) -> Verdict:
        """What the checker says of all that came out."""
        rows = (
            Publication(
                rows=pa.Table.from_batches([b for f in segment.files for b in read_batches(f)])
            )
            for segment in self.log.segments(self.spec.output)
            if segment.rows
        )
        return check_history(expect_tally(self.count), rows)

    # What happens in between

    def _prepare_afterthought(self, step: str, wanted: str, number: int) -> str:
        """Have the mover die behind a step of a move, then want another site."""
        first = Order(number=10_000 + number, step=step, moment="after", target="coordinator")
        self.orders.leave(first)
        self.want(wanted)
        self._await_struck(first)
        self.host.await_end()
        return self.elsewhere()

    def elsewhere(self) -> str:
        """The next site at which the operator neither is nor is to be."""
        state = read_journal(self.spec.journal)
        taken = {run.site for run in (state.running, state.successor) if run is not None}
        return next(site for site in SITES if site not in taken)

    def want(self, site: str) -> None:
        """Have the operator go to a site."""
        draft = self.folder / ".wanted"
        draft.write_text(site, encoding="utf-8")
        draft.replace(self.folder / "wanted.txt")

    def _await_struck(self, order: Order) -> None:
        wait_until(
            lambda: order.number in self.orders.struck(), f"{order} is carried out", tell=self._tell
        )

    def _await_there(self, order: Order, site: str) -> Ending:
        """Wait until the operator is there; a mover that was killed is started again."""
        ending: Ending = "healed"
        if order.target == "coordinator":
            self.host.await_end()
            self.host.start()
            ending = "resumed"
        self.await_site(site)
        return ending

    def await_site(self, site: str) -> None:
        """Wait until the operator is at a site."""

        def there() -> bool:
            self.host.require_there()
            with suppress(FileNotFoundError, ValueError):
                told: dict[str, Any] = json.loads((self.folder / "status.json").read_bytes())
                return bool(told["site"] == site and told["pid"] == self.host.pid)
            return False

        wait_until(there, f"the operator is at {site}", tell=self._tell)

    def await_rows(self) -> None:
        """Wait until a row has come out for every event that was sent by now."""
        wanted = self.count

        def came() -> bool:
            self.host.require_there()
            return sum(s.rows for s in self.log.segments(self.spec.output)) >= max(wanted, 1)

        wait_until(came, f"{wanted} rows have come out", tell=self._tell)

    def longest_pause_s(self, since_s: float) -> float:
        """The longest time in which no row came out, from a moment on."""
        segments = self.log.segments(self.spec.output)
        return longest_pause_s([s.folder.stat().st_mtime for s in segments], since_s)

    def _send(self) -> None:
        writer = LogWriter(self.spec.log, self.spec.input, "gate", 0, durable=False)
        batch = 0
        while not self._ending.wait(_STEP_S):
            # What a log does not take is sent again, under the same key.
            with suppress(LogError, OSError):
                writer.publish(batch, make_keyed(self.count, _EVENTS))
                self.count += _EVENTS
                batch += 1

    def _tell(self) -> str:
        return f"sent {self.count}, {read_journal(self.spec.journal)}\n{self.host.told}"
