"""Faults at a named moment: what is to happen, and the hook that makes it happen there.

An order lies in a file until the step that it names comes; then it is carried out in the process
that takes the step, once. So the same code runs as without: nothing but the hook knows of it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from campaign.hosting import TrialStuck

Moment = Literal["before", "done", "after"]
"""Before a step is taken; when it is done and not written down; when it is written down."""
Target = Literal["driver", "jvm", "worker", "cloud", "coordinator", "successor"]

_PATIENCE_S = 10.0
_WORKERS = (b"pyspark.daemon", b"pyspark/daemon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Kill this when that step comes to this moment."""

    number: int
    step: str
    moment: Moment
    target: Target

    def __str__(self) -> str:
        words = {"before": "before", "done": "done, unwritten:", "after": "after"}
        return f"kill -9 {self.target} {words[self.moment]} {self.step}"


def number_orders(places: Iterable[tuple[str, Moment, Target]]) -> list[Order]:
    """An order for each step, moment and target, numbered from 0."""
    return [
        Order(number=number, step=step, moment=moment, target=target)
        for number, (step, moment, target) in enumerate(places)
    ]


class Orders:
    """The folder where orders are left, and where it is written down that one was carried out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._order = folder / "order.json"
        self._struck = folder / "struck.jsonl"

    def leave(self, order: Order) -> None:
        """Leave an order; there is one at a time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / ".order"
        draft.write_text(json.dumps(asdict(order)), encoding="utf-8")
        draft.replace(self._order)

    def withdraw(self) -> None:
        """Take back what was not carried out."""
        self._order.unlink(missing_ok=True)

    def take(self, step: str, moment: Moment) -> Order | None:
        """The order for this moment, if there is one; it is gone then."""
        try:
            order = Order(**json.loads(self._order.read_bytes()))
        except (FileNotFoundError, ValueError):
            return None
        if (order.step, order.moment) != (step, moment):
            return None
        self._order.unlink()
        return order

    def write_struck(self, order: Order, fault: str = "") -> None:
        """Write down that an order was carried out, and when; or why it could not be."""
        line = json.dumps({"number": order.number, "at_s": time.time(), "fault": fault})
        with self._struck.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def struck(self) -> dict[int, float]:
        """When each order was carried out, by its number.

        Raises:
            TrialStuck: where one could not be: nothing was killed, so nothing was tried.
        """
        if not self._struck.exists():
            return {}
        lines = self._struck.read_text(encoding="utf-8").splitlines()
        told = [json.loads(line) for line in lines]
        for each in told:
            if each["fault"]:
                raise TrialStuck(f"order {each['number']} was not carried out: {each['fault']}")
        return {each["number"]: each["at_s"] for each in told}


class Striker:
    """The hook: told of every step, it carries out the order for it, if there is one.

    `find` gives the number of the process that a target is, for the site of a step. Several sites
    may be taken through steps at the same time; of each, what came last is remembered. With
    `is_sequential`, any next step says that the one before it is written down.
    """

    def __init__(
        self,
        orders: Orders,
        find: Callable[[Target, str], int | None],
        *,
        is_sequential: bool = False,
    ) -> None:
        self._orders, self._find = orders, find
        self._is_sequential = is_sequential
        self._last: dict[str, str] = {}
        self._lock = threading.Lock()

    def before(self, step: Any) -> None:
        """A step is about to be taken; what came before it at its site is written down."""
        site = _site_of(step)
        with self._lock:
            ended = list(self._last) if self._is_sequential else [site]
            for other in ended:
                if other in self._last:
                    self._strike(self._last[other], other, "after")
            self._strike(type(step).__name__, site, "before")

    def done(self, step: Any) -> None:
        """A step was carried out, and is not written down yet."""
        kind, site = type(step).__name__, _site_of(step)
        with self._lock:
            self._last[site] = kind
            self._strike(kind, site, "done")

    def rest(self) -> None:
        """There is nothing else to do for now."""
        with self._lock:
            last, self._last = self._last, {}
            for site, kind in last.items():
                self._strike(kind, site, "after")

    def _strike(self, step: str, site: str, moment: Moment) -> None:
        order = self._orders.take(step, moment)
        if order is None:
            return
        if order.target == "coordinator":
            # Nobody could write it down afterwards.
            self._orders.write_struck(order)
            os.kill(os.getpid(), signal.SIGKILL)
        pid = self._await(order.target, site)
        if pid is None:
            self._orders.write_struck(order, f"there is no {order.target} of {site}")
            return
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            self._orders.write_struck(order, f"process {pid} was gone")
        else:
            self._orders.write_struck(order)

    def _await(self, target: Target, site: str) -> int | None:
        """A worker is only there while Spark needs it."""
        deadline = time.monotonic() + _PATIENCE_S
        while (pid := self._find(target, site)) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return pid


def _site_of(step: Any) -> str:
    return str(step.run.site if hasattr(step, "run") else step.site)


def find_jvm(site_pid: int) -> int | None:
    """The JVM of a site's process."""
    return next((pid for pid in children_of(site_pid) if _command(pid).find(b"java") >= 0), None)


def find_worker(site_pid: int) -> int | None:
    """A Python worker of a site's Spark: a child of the daemon that the JVM has started."""
    for daemon in descendants_of(site_pid):
        if any(word in _command(daemon) for word in _WORKERS):
            workers = children_of(daemon)
            if workers:
                return max(workers)
    return None


def children_of(pid: int) -> list[int]:
    """The processes that a process has started and that are there."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return sorted(set(found))


def descendants_of(pid: int) -> list[int]:
    """All processes below a process."""
    found: list[int] = []
    for child in children_of(pid):
        found += [child, *descendants_of(child)]
    return found


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
