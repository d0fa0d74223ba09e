"""Keeps a keyed operator where it is wanted, whatever dies on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from thalweg.errors import InvalidInput
from thalweg.spark.deployment.restarts import DeploymentFailed, RestartBudget
from thalweg.spark.deployment.storage import Blips, find_outage_at
from thalweg.spark.keyed.move import Step
from thalweg.spark.keyed.mover import KeyedMover, MoveFailed, OnStep
from thalweg.spark.keyed.spec import KeyedSpec
from thalweg.spark.log.disk import LogError
from thalweg.spark.site.channel import SiteError
from thalweg.spark.site.sites import Sites

_OUTAGE_LOOK_S = 0.5
_OUTAGE_PATIENCE_S = 3600.0


class KeyedKeeper:
    """A keyed operator on sites, with what it takes to go on when one of them dies.

    Use it as a context manager. A site that dies is started again, and what the operator had there
    too: all that counts is in the log. A move goes on from the step at which it was. While the disk
    of the log is away or full it waits, and tells `on_outage` what for. After too many restarts of
    a site within a time, or too long without a disk, it gives up, and says why.
    """

    def __init__(
        self,
        spec: KeyedSpec,
        sites: Sites,
        *,
        budget: RestartBudget | None = None,
        on_step: OnStep | None = None,
        on_done: OnStep | None = None,
        on_outage: Callable[[str], None] | None = None,
        outage_patience_s: float = _OUTAGE_PATIENCE_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._spec = spec
        self._on_outage = on_outage or (lambda _outage: None)
        self._outage_patience_s = outage_patience_s
        self._sleep = sleep
        self._blips = Blips()
        self._sites = sites
        self._budget = budget or RestartBudget()
        self._mover = KeyedMover(spec, sites, on_step=on_step, on_done=on_done)

    def __enter__(self) -> Self:
        while True:
            try:
                self._mover.__enter__()
            except SiteError as error:
                self._restart(error.site, str(error))
            else:
                return self

    def __exit__(self, *_: object) -> None:
        self._mover.__exit__()

    @property
    def site(self) -> str | None:
        """Where the operator's next batch is committed."""
        return self._mover.state.site

    @property
    def restarts(self) -> int:
        """How often a site had to be started again."""
        return self._budget.total

    def go_to(self, to: str) -> tuple[Step, ...]:
        """Take every step to a site; returns those of the last attempt, with which it got there.

        Raises:
            InvalidInput: where there is no such site.
            DeploymentFailed: where a site does not stay, however often it is started again, or a
                disk does not come back.
            MoveFailed: where a step does not come about though all sites are there.
        """
        while True:
            try:
                return self._mover.go_to(to)
            except (MoveFailed, SiteError, InvalidInput, LogError, OSError) as error:
                if not self._wait_out(error) and not self._mend(str(error), to):
                    raise

    def tend(self, timeout_s: float = 0.0) -> bool:
        """Wait at most so long for something to happen to a site, and mend it; whether it was."""
        event = self._sites.next_event(timeout_s)
        if event is None or event.kind not in ("died", "query-failed"):
            return False
        return self._mend(event.detail)

    def _mend(self, cause: str, to: str | None = None) -> bool:
        """Start again what is dead of all that the operator needs; whether anything was."""
        self._wait_out()
        state, mended = self._mover.state, False
        runs = [run for run in (state.running, state.successor) if run is not None]
        wanted = [to] if to is not None and to in self._sites else []
        for site in dict.fromkeys([*(run.site for run in runs), *wanted]):
            if not self._sites[site].alive:
                self._restart(site, cause)
                mended = True
        try:
            for run in runs:
                if self._mover.has_failed(run):
                    self._budget.spend(run.site, time.monotonic(), cause)
                    mended = True
            self._mover.resume()
        except SiteError as error:
            # It died meanwhile, or does not take the query: counted, so this has an end.
            self._restart(error.site, str(error))
            return self._mend(cause, to)
        except (InvalidInput, LogError, OSError) as error:
            # A site refuses what it is told where its log has gone.
            if not self._wait_out(error):
                raise
            return self._mend(cause, to)
        return mended

    def _restart(self, site: str, cause: str) -> None:
        while True:
            self._wait_out()
            self._budget.spend(site, time.monotonic(), cause)
            try:
                self._sites.restart(site)
            except SiteError as error:
                cause = str(error)
            else:
                return

    def _wait_out(self, error: Exception | None = None) -> bool:
        """Wait until the log can be written; whether there was anything to wait for.

        An error of a disk that is well again by now counts as something, for a few times.

        Raises:
            DeploymentFailed: where that takes too long.
        """
        outage = self._find_outage()
        if outage is None:
            if not self._blips.let_pass(error, time.monotonic()):
                return False
            self._sleep(_OUTAGE_LOOK_S)
            return True
        self._on_outage(outage)
        waited_s = 0.0
        while outage is not None:
            if waited_s >= self._outage_patience_s:
                raise DeploymentFailed(f"waited {waited_s:g} s in vain: {outage}")
            self._sleep(_OUTAGE_LOOK_S)
            waited_s += _OUTAGE_LOOK_S
            outage = self._find_outage()
        return True

    def _find_outage(self) -> str | None:
        return find_outage_at([self._spec.log], self._spec.folder)
