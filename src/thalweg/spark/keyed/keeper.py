"""Keeps a keyed operator where it is wanted, whatever dies on the way."""

from __future__ import annotations

import time
from typing import Self

from thalweg.spark.deployment.restarts import RestartBudget
from thalweg.spark.keyed.move import Step
from thalweg.spark.keyed.mover import KeyedMover, MoveFailed, OnStep
from thalweg.spark.keyed.spec import KeyedSpec
from thalweg.spark.site.channel import SiteError
from thalweg.spark.site.sites import Sites


class KeyedKeeper:
    """A keyed operator on sites, with what it takes to go on when one of them dies.

    Use it as a context manager. A site that dies is started again, and what the operator had there
    too: all that counts is in the log. A move goes on from the step at which it was. After too many
    restarts of a site within a time it gives up, and says why.
    """

    def __init__(
        self,
        spec: KeyedSpec,
        sites: Sites,
        *,
        budget: RestartBudget | None = None,
        on_step: OnStep | None = None,
        on_done: OnStep | None = None,
    ) -> None:
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
            DeploymentFailed: where a site does not stay, however often it is started again.
            MoveFailed: where a step does not come about though all sites are there.
        """
        while True:
            try:
                return self._mover.go_to(to)
            except (MoveFailed, SiteError) as error:
                if not self._mend(str(error), to):
                    raise

    def tend(self, timeout_s: float = 0.0) -> bool:
        """Wait at most so long for something to happen to a site, and mend it; whether it was."""
        event = self._sites.next_event(timeout_s)
        if event is None or event.kind not in ("died", "query-failed"):
            return False
        return self._mend(event.detail)

    def _mend(self, cause: str, to: str | None = None) -> bool:
        """Start again what is dead of all that the operator needs; whether anything was."""
        state, mended = self._mover.state, False
        runs = [run for run in (state.running, state.successor) if run is not None]
        for site in dict.fromkeys([*(run.site for run in runs), *([to] if to else [])]):
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
        return mended

    def _restart(self, site: str, cause: str) -> None:
        while True:
            self._budget.spend(site, time.monotonic(), cause)
            try:
                self._sites.restart(site)
            except SiteError as error:
                cause = str(error)
            else:
                return
