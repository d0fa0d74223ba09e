"""What a run works with, and what it asks about its cuts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from thalweg.adapt.observation import Observation
from thalweg.spark.deployment.chronicle import Chronicle
from thalweg.spark.deployment.decisions import AdapterState, Verdict
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.operations import InlineOperations, Operations
from thalweg.spark.deployment.plan import Cuts
from thalweg.spark.deployment.restarts import RestartBudget
from thalweg.spark.deployment.runtime import Runtime
from thalweg.spark.deployment.tally import Rates, Tally
from thalweg.spark.deployment.watch import Watcher


class Decides(Protocol):
    """What a run asks about its cuts; see `thalweg.spark.deployment.decisions.Adapter`."""

    def look(
        self, state: AdapterState, now_s: float, cuts: Cuts, rates: Rates | None
    ) -> tuple[Verdict, AdapterState]:
        """What to do about the cuts that run, and what to remember."""
        ...

    def hold(self, state: AdapterState, now_s: float, by: str) -> AdapterState:
        """Remember that cuts were set by hand."""
        ...

    def observe(self, now_s: float, cuts: Cuts, rates: Rates) -> Observation:
        """What the cuts cost at these rates."""
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
    publish: Callable[[dict[str, Any]], None] | None = None
    """Takes a status when there is another; without one, it goes into the folder."""
