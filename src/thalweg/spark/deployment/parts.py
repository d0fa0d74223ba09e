"""What a run works with, and what it asks about its cuts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from thalweg.adapt.controller import Controller
from thalweg.adapt.events import Event, Situation
from thalweg.adapt.state import ControllerState
from thalweg.spark.deployment.chronicle import Chronicle
from thalweg.spark.deployment.decisions import Verdict
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.operations import InlineOperations, Operations
from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.deployment.restarts import RestartBudget
from thalweg.spark.deployment.runtime import Runtime
from thalweg.spark.deployment.tally import Tally
from thalweg.spark.deployment.watch import Watcher


class Decides(Protocol):
    """What decides about a run's cuts; see `thalweg.spark.deployment.decisions.Adapter`."""

    @property
    def controller(self) -> Controller:
        """What it asks."""
        ...

    def learn(self, state: ControllerState, events: Iterable[Event]) -> ControllerState:
        """What is known after these events."""
        ...

    def look(
        self, state: ControllerState, now_s: float, cuts: Cuts
    ) -> tuple[Verdict, ControllerState]:
        """What to do about the cuts that run, and what to remember."""
        ...

    def observe(self, state: ControllerState, now_s: float, cuts: Cuts) -> Situation | None:
        """What the cuts cost, and nothing decided."""
        ...

    def hold(self, state: ControllerState, now_s: float, by: str) -> ControllerState:
        """Remember that cuts were set by hand."""
        ...

    def begin_change(self, state: ControllerState, now_s: float) -> ControllerState:
        """Remember that cuts are being changed."""
        ...

    def end_change(
        self, state: ControllerState, now_s: float, *, done: bool = True
    ) -> ControllerState:
        """Remember that the change under way has ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """What a run works with."""

    runtime: Runtime
    folder: RunFolder
    tally: Tally
    require_cuts: Callable[[Cuts], None]
    watcher: Watcher | None = None
    """Without one, only what is in the log is known."""
    adapter: Decides | None = None
    """Without one, cuts change only by hand."""
    budget: RestartBudget = field(default_factory=RestartBudget)
    chronicle: Chronicle | None = None
    """Without one, nothing is kept of how the run was doing."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What every status says of the run: its pipeline, its network, …"""
    clock: Callable[[], float] = time.monotonic
    """Tells how long things take: it only goes forward, whatever is done to the time of day."""
    mended: Sequence[str] = ()
    """What had to be mended before it could go on, in words."""
    find_outage: Callable[[], str | None] = lambda: None
    """What keeps the disks of the run from being written, if anything does."""
    is_stopping: Callable[[], bool] = lambda: False
    """Whether somebody has asked it to end."""
    sleep: Callable[[float], None] = time.sleep
    operations: Operations = field(default_factory=InlineOperations)
    """Does what takes long: beside the run, or at once."""
    speed_ips: Callable[[], Mapping[str, float]] = dict
    """Instructions/s of a core of each site, as far as they are known by now."""
    publish: Callable[[dict[str, Any]], None] | None = None
    """Takes a status when there is another; without one, it goes into the folder."""
