"""Carries out hand-overs: starts epochs, drains them, fences them, and writes each step down.

Everything that it needs to know is in the journal and in the checkpoints. So a coordinator that was
killed is followed by one that reads the journal, starts again what ran, and ends the hand-over that
was under way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from thalweg.errors import Defects
from thalweg.model.names import require_name
from thalweg.spark.hand_over import (
    DeploymentState,
    Drain,
    Fence,
    StartEpoch,
    Step,
    next_steps,
    outline,
)
from thalweg.spark.hand_over import learn as learn_step
from thalweg.spark.journal import Journal
from thalweg.spark.query_spec import QuerySpec

if TYPE_CHECKING:
    from thalweg.spark.checkpoint import Stand

Cuts = Mapping[str, tuple[str, ...]]
OnStep = Callable[[Step], None]


class RunsQueries(Protocol):
    """What a coordinator asks of a site."""

    def start(self, query: QuerySpec) -> object:
        """Start a query; one that has run before goes on from its checkpoint."""
        ...

    def drain(self, query: str) -> Stand:
        """End a query after the batch under way, and say where it stands."""
        ...


class TakesFences(Protocol):
    """What a coordinator asks of the log."""

    def fence(self, site: str, epoch: int, last_batch: int | None = None) -> object:
        """End an epoch for every reader; to do it again changes nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSpec:
    """What is deployed: a pipeline on fog sites and a cloud, in one folder."""

    pipeline: str
    """`package.module:attribute`."""
    folder: Path
    fogs: tuple[str, ...]
    cloud: str = "cloud"
    trigger: str = "200 ms"
    rows_per_batch: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder).absolute())
        object.__setattr__(self, "fogs", tuple(self.fogs))
        defects = Defects()
        for position, name in enumerate((*self.fogs, self.cloud)):
            require_name(defects, f"sites[{position}]", name)
        names = (*self.fogs, self.cloud)
        defects.require(len(set(names)) == len(names), "sites", names, "each site once")
        defects.require(bool(self.fogs), "fogs", self.fogs, "at least one fog site")
        defects.raise_if_any()

    @property
    def log(self) -> Path:
        """Where rows travel."""
        return self.folder / "log"

    @property
    def journal(self) -> Path:
        """Where steps are written down."""
        return self.folder / "journal.jsonl"

    def query(
        self,
        site: str,
        epoch: int,
        cut: tuple[str, ...] = (),
        start: Mapping[str, Any] | None = None,
    ) -> QuerySpec:
        """What the site runs in this epoch; a checkpoint is never shared by two epochs."""
        return QuerySpec(
            site=site,
            epoch=epoch,
            role="cloud" if site == self.cloud else "fog",
            pipeline=self.pipeline,
            log=self.log,
            checkpoint=self.folder / "checkpoints" / f"{site}@{epoch}",
            cut=cut,
            start=start,
            trigger=self.trigger,
            rows_per_batch=self.rows_per_batch,
        )


class Coordinator:
    """Keeps a deployment at the cuts that are wanted; use it as a context manager."""

    def __init__(
        self,
        spec: DeploymentSpec,
        sites: Mapping[str, RunsQueries],
        log: TakesFences,
        *,
        on_step: OnStep | None = None,
    ) -> None:
        missing = sorted({*spec.fogs, spec.cloud} - set(sites))
        defects = Defects()
        for name in missing:
            defects.add("sites", name, "a site that was started")
        defects.raise_if_any()
        self.spec = spec
        self._sites, self._log = sites, log
        self._journal = Journal(spec.journal)
        self._on_step = on_step or (lambda _step: None)
        self.state = DeploymentState.of(spec.fogs)

    def __enter__(self) -> Coordinator:
        self._journal.__enter__()
        try:
            self.state = self._journal.state(self.spec.fogs)
            self._resume()
        except BaseException:
            self._journal.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        self._journal.__exit__(*error)

    def outline(self, wanted: Cuts) -> tuple[str, ...]:
        """The steps to these cuts in words, without taking any."""
        return outline(self.state, wanted)

    def go_to(self, wanted: Cuts) -> tuple[Step, ...]:
        """Take every step to these cuts, site by site; returns them. Other sites go on."""
        taken: list[Step] = []
        while steps := next_steps(self.state, wanted):
            for step in steps:
                self._take(step)
                taken.append(step)
        return tuple(taken)

    def stop(self) -> dict[str, Stand]:
        """End every query after the batch under way; the next coordinator goes on from there."""
        stands = {}
        for site in (*sorted(self.state.cuts), self.spec.cloud):
            epoch = 0 if site == self.spec.cloud else self.state.sites[site].epoch
            stands[site] = self._sites[site].drain(self.spec.query(site, epoch).name)
        return stands

    def _resume(self) -> None:
        """Start again what ran, and end the hand-overs that were begun."""
        self._sites[self.spec.cloud].start(self.spec.query(self.spec.cloud, 0))
        for site in self.state.sites.values():
            if site.phase == "running":
                query = self.spec.query(site.site, site.epoch, site.cut, site.start)
                self._sites[site.site].start(query)
        self.go_to({})

    def _take(self, step: Step) -> None:
        self._on_step(step)
        offsets, last_batch = None, -1
        if isinstance(step, StartEpoch):
            query = self.spec.query(step.site, step.epoch, step.cut, step.start)
            self._sites[step.site].start(query)
        elif isinstance(step, Drain):
            stand = self._sites[step.site].drain(self.spec.query(step.site, step.epoch).name)
            last_batch = stand.batch
            # An epoch that finished nothing ends where it began.
            offsets = dict(stand.offsets) or self._begun(step.site)
        elif isinstance(step, Fence):
            self._log.fence(step.site, step.epoch, step.last_batch)
        self._journal.write(step, offsets=offsets, last_batch=last_batch)
        self.state = learn_step(self.state, step, offsets=offsets, last_batch=last_batch)

    def _begun(self, site: str) -> dict[str, Any] | None:
        start = self.state.sites[site].start
        return None if start is None else dict(start)
