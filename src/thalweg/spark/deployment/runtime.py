"""The sites of a run with their coordinator: what a run tells them, and what they tell."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from thalweg.errors import ThalwegError
from thalweg.scheduling.cuts import list_cuts
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.deployment.hand_over import Step
from thalweg.spark.deployment.health.refusal import look_over_queries
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log import Log
from thalweg.spark.pipeline import load_pipeline
from thalweg.spark.site.channel import SiteError
from thalweg.spark.site.site import SiteEvent, SiteSpec, SiteStatus
from thalweg.spark.site.sites import Sites

Cuts = Mapping[str, tuple[str, ...]]
# For the first rows to come; a site that has none yet rehearses without.
_REHEARSAL_PATIENCE_S = 60.0


class Runtime(Protocol):
    """What a run asks of its sites."""

    @property
    def cuts(self) -> dict[str, tuple[str, ...]]:
        """What runs at every fog where something runs."""
        ...

    def go_to(self, cuts: Cuts) -> Sequence[object]:
        """Take every step to these cuts; returns them."""
        ...

    def restart(self, site: str, query: str | None = None) -> Sequence[str]:
        """Start a site again that has died, or only a query of it that has failed.

        Gives what had to be mended for it, in words.
        """
        ...

    def is_alive(self, site: str) -> bool:
        """Whether a site's process is there."""
        ...

    def next_event(self, timeout_s: float) -> SiteEvent | None:
        """What a site did unasked, waited for at most this long."""
        ...

    def status(self) -> Mapping[str, SiteStatus]:
        """What all sites are doing."""
        ...

    def records(self) -> Sequence[Mapping[str, Any]]:
        """What the batches of all sites did since this was last asked."""
        ...

    def stop(self) -> object:
        """End every query after the batch under way."""
        ...


def is_busy() -> bool:
    """Whether more is to be done on this machine than it has cores for."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)


class SparkRuntime:
    """The runtime on Spark."""

    def __init__(
        self, sites: Sites, coordinator: Coordinator, rehearsed: tuple[str, ...] = ()
    ) -> None:
        """`rehearsed` are operators that sites get ready for beforehand; none: they do not."""
        self._sites, self._coordinator = sites, coordinator
        self._rehearsed = rehearsed
        self._ready: set[str] = set()

    @property
    def cuts(self) -> dict[str, tuple[str, ...]]:
        """What runs at every fog where something runs."""
        return self._coordinator.state.cuts

    def go_to(self, cuts: Cuts) -> tuple[Step, ...]:
        """Take every step to these cuts; returns them."""
        self._rehearse_first(cuts)
        taken = self._coordinator.go_to(cuts)
        self.rehearse_all()
        return taken

    def _rehearse_first(self, cuts: Cuts) -> None:
        """Have sites where nothing runs yet get ready for whatever they may have to run.

        Later they would do it beside their work, when the first rows come.
        """
        large = set(self._rehearsed)
        first = [site for site in cuts if site not in self.cuts and set(cuts[site]) != large]
        rehearsals = [self._rehearsal(site) for site in first]
        threads = [
            threading.Thread(target=rehearse, daemon=True) for rehearse in rehearsals if rehearse
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def rehearse_all(self) -> None:
        """Have every fog where something runs get ready for more, if it has not yet."""
        for site in self.cuts:
            self._rehearse(site)

    def restart(self, site: str, query: str | None = None) -> Sequence[str]:
        """Start a site again, or only a query of it, from where its checkpoints are.

        Sites of which the cloud misses something that their link has lost send everything again.

        Raises:
            DeploymentFailed: where a checkpoint is damaged, and nothing may go on from it.
        """
        # Asked first: a new process has to find out anew.
        missing = self._find_missing(site)
        queries = self._sites[site].queries
        failed = [spec for spec in queries if spec.name == query]
        mended: Sequence[str] = ()
        if failed or not self.is_alive(site):
            folder = self._coordinator.spec.folder
            mended = look_over_queries(folder, failed or queries)
        if failed and self.is_alive(site):
            self._sites[site].start(failed[0])
        else:
            self._sites.restart(site)
            self._coordinator.forget_pace()
            self._ready.discard(site)
            # Where there is more to do than cores for it, what waits for the site comes first: it
            # gets ready after the next change.
            if site in self.cuts and not is_busy():
                self._rehearse(site)
        return (*mended, *self._have_sent_again(missing))

    def _find_missing(self, site: str) -> dict[str, str]:
        """What a link has lost, by the fog that sent it, as far as the cloud knows."""
        spec = self._coordinator.spec
        if site == spec.cloud and spec.ships and self.is_alive(site):
            # Whoever cannot answer is started again, and finds it once more.
            with suppress(SiteError):
                return self._sites[site].gaps(spec.query(site, 0))
        return {}

    def _have_sent_again(self, missing: Mapping[str, str]) -> list[str]:
        """Have these fogs send all that they have: what the cloud knows is dropped by its key."""
        told = []
        for fog, gap in missing.items():
            what, _, _ = gap.partition(" Hint: ")
            # A fog that does not answer is mended by itself; the cloud will still miss it then.
            with suppress(SiteError):
                self._sites[fog].send_again(self._coordinator.spec.query(fog, 0))
                told.append(f"{fog} sends everything again, as its link has lost some: {what}")
        return told

    def _rehearse(self, site: str) -> None:
        """Have a new process get ready, beside its work, for what it may have to run later.

        The first query with state takes Spark much longer to make than the second, and so do its
        first rows.
        """
        if set(self.cuts[site]) == set(self._rehearsed):
            return
        # On a machine that is busy, rows would keep the real ones waiting.
        rehearse = self._rehearsal(site, with_rows=not is_busy())
        if rehearse is not None:
            threading.Thread(target=rehearse, daemon=True, name=f"rehearsal of {site}").start()

    def _rehearsal(self, site: str, *, with_rows: bool = False) -> Callable[[], None] | None:
        """What makes a process ready; None where it is, or there is nothing to get ready for."""
        if site in self._ready or not self._rehearsed:
            return None
        self._ready.add(site)
        spec = self._coordinator.spec
        query, log = spec.rehearsal(site, self._rehearsed), spec.log_of(site)

        def rehearse() -> None:
            # It is a favour to later moves; whatever is wrong with the site is told elsewhere.
            with suppress(ThalwegError):
                rows_from = log if with_rows else None
                self._sites[site].rehearse(query, rows_from, _REHEARSAL_PATIENCE_S)

        return rehearse

    def is_alive(self, site: str) -> bool:
        """Whether a site's process is there."""
        return self._sites[site].alive

    def next_event(self, timeout_s: float) -> SiteEvent | None:
        """What a site did unasked, waited for at most this long."""
        return self._sites.next_event(timeout_s)

    def status(self) -> dict[str, SiteStatus]:
        """What all sites are doing; of those that do not answer soon, what they said last."""
        return self._sites.status()

    def records(self) -> list[Mapping[str, Any]]:
        """What the batches of all sites did since this was last asked; dead ones tell nothing."""
        return [*self._sites.records()]

    def stop(self) -> Any:
        """End every query after the batch under way."""
        return self._coordinator.stop()


@contextmanager
def open_runtime(spec: DeploymentSpec, sites: Sequence[SiteSpec]) -> Iterator[SparkRuntime]:
    """Start the sites, all at the same time, and go on with what the journal says ran there."""
    with Sites(shown=True) as started:
        started.start(sites)
        with Coordinator(spec, started, Log(spec.log)) as coordinator:
            runtime = SparkRuntime(started, coordinator, largest_cut(spec.pipeline))
            runtime.rehearse_all()
            yield runtime


def largest_cut(pipeline: str) -> tuple[str, ...]:
    """All operators that may run at a site at the same time; of several such cuts, the first."""
    application = load_pipeline(pipeline).application
    cuts = list_cuts(application)
    members = cuts.members[int(cuts.members.sum(axis=1).argmax())]
    pairs = zip(application.operators, members.tolist(), strict=True)
    return tuple(o.name for o, inside in pairs if inside and o.kind != "source")
