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
from thalweg.spark.deployment.hand_over import (
    DeploymentState,
    Drain,
    ExportState,
    Fence,
    Prepare,
    SiteState,
    StartEpoch,
    Step,
    next_steps,
    outline,
    plan_start,
)
from thalweg.spark.deployment.hand_over import learn as learn_step
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.link.link import DIRECTORY, directory_in, parse_link
from thalweg.spark.log import Log
from thalweg.spark.pipeline.windows import Opening
from thalweg.spark.query.carry import CarryOrder, carry_folder
from thalweg.spark.query.spec import DEAD_LETTER, QuerySpec, require_bad_rows

if TYPE_CHECKING:
    from thalweg.spark.query.checkpoint import Stand

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

    def prepare(self, query: QuerySpec) -> object:
        """Get a query ready that will be started soon."""
        ...

    def newest_ms(self, query: str) -> int | None:
        """The latest event time that a running query has been given."""
        ...

    def carry(self, query: QuerySpec, order: CarryOrder) -> object:
        """Hand over the open windows of a query that was drained."""
        ...

    def ship(self, query: QuerySpec, batch: int) -> object:
        """Wait until all that a query has published up to a batch is safe with its link."""
        ...

    def await_arrival(self, query: QuerySpec, site: str, epoch: int, batch: int) -> object:
        """Wait until all that another site has shipped up to a batch is in this query's log."""
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
    margin_s: float = 6.0
    """How far event time may go on while an epoch is made ready."""
    durable: bool = True
    """Whether what is published survives a power cut; without, only the death of processes."""
    bad_rows: str = DEAD_LETTER
    """What becomes of a row that makes an operator fail; see `QuerySpec`."""
    watched: bool = True
    """Whether rows are counted at every operator."""
    link: str | None = None
    """How rows come from the fogs to the cloud, see `parse_link`; None: all have one log."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder).absolute())
        object.__setattr__(self, "fogs", tuple(self.fogs))
        defects = Defects()
        for position, name in enumerate((*self.fogs, self.cloud)):
            require_name(defects, f"sites[{position}]", name)
        names = (*self.fogs, self.cloud)
        defects.require(len(set(names)) == len(names), "sites", names, "each site once")
        require_bad_rows(defects, self.bad_rows)
        defects.require(bool(self.fogs), "fogs", self.fogs, "at least one fog site")
        defects.attempt("", self._check_link)
        defects.raise_if_any()

    @property
    def log(self) -> Path:
        """Where the cloud's rows are, and without a link those of all sites."""
        return self.folder / "log"

    @property
    def ships(self) -> bool:
        """Whether fogs have logs of their own, from which rows go over a link."""
        return self.link is not None and parse_link(self.link).ships

    def log_of(self, site: str) -> Path:
        """Where a site publishes, and the gateways of its sources do."""
        own = self.ships and site != self.cloud
        return self.folder / "logs" / site if own else self.log

    @property
    def journal(self) -> Path:
        """Where steps are written down."""
        return self.folder / "journal.jsonl"

    def query(self, site: str, epoch: int, step: StartEpoch | SiteState | None = None) -> QuerySpec:
        """What the site runs in this epoch; a checkpoint is never shared by two epochs."""
        own: dict[str, Any] = {"sites": self.fogs if site == self.cloud else ()}
        if step is not None:
            handed = self.carried(site, epoch - 1)
            own |= {name: getattr(step, name) for name in ("cut", "start", "clock_ms", "gates")}
            own["carried"] = {edge: str(carry_folder(handed, edge)) for edge in step.carried}
        return QuerySpec(
            site=site,
            epoch=epoch,
            role="cloud" if site == self.cloud else "fog",
            pipeline=self.pipeline,
            log=self.log_of(site),
            link=self.link if self.ships else None,
            checkpoint=self.folder / "checkpoints" / f"{site}@{epoch}",
            trigger=self.trigger,
            rows_per_batch=self.rows_per_batch,
            durable=self.durable,
            bad_rows=self.bad_rows,
            watched=self.watched,
            **own,
        )

    def carried(self, site: str, epoch: int) -> Path:
        """Where the open windows of an epoch lie for the next one."""
        return self.folder / "carried" / f"{site}@{epoch}"

    def _check_link(self) -> None:
        """Raise `InvalidInput` for a link that is none, or leads elsewhere."""
        link = parse_link("directory" if self.link is None else self.link)
        if link.ships and link.kind == DIRECTORY:
            defects = Defects()
            leads_here = Path(directory_in(link.address)).resolve() == self.log.resolve()
            rule = f"directory://{self.log}: that is where the cloud reads"
            defects.require(leads_here, "link", self.link, rule)
            defects.raise_if_any()


class Coordinator:
    """Keeps a deployment at the cuts that are wanted; use it as a context manager."""

    def __init__(
        self,
        spec: DeploymentSpec,
        sites: Mapping[str, RunsQueries],
        log: TakesFences,
        *,
        openings: Mapping[str, Opening] | None = None,
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
        self._openings = _find_openings(spec) if openings is None else openings
        self.state = DeploymentState.of(spec.fogs, self._openings)

    def __enter__(self) -> Coordinator:
        self._journal.__enter__()
        try:
            self.state = self._journal.state(self.spec.fogs, self._openings)
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
            # One site after the other: between its preparation and its barrier time goes on.
            self._take(steps[0])
            taken.append(steps[0])
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
                self._sites[site.site].start(self.spec.query(site.site, site.epoch, site))
        self.go_to({})

    def _take(self, step: Step) -> None:
        self._on_step(step)
        site, reached = self._sites[step.site], dict[str, Any]()
        state = self.state.sites[step.site]
        if isinstance(step, StartEpoch):
            site.start(self.spec.query(step.site, step.epoch, step))
        elif isinstance(step, Prepare):
            reached = {"gates": self._prepare(step, state)}
        elif isinstance(step, Drain):
            stand = site.drain(self.spec.query(step.site, step.epoch).name)
            reached = {
                # An epoch that finished nothing ends where it began.
                "offsets": dict(stand.offsets) or (state.start and dict(state.start)),
                "last_batch": stand.batch,
                "watermark_ms": stand.watermark_ms,
                "newest_ms": stand.newest_ms,
            }
        elif isinstance(step, ExportState):
            order = CarryOrder(
                offsets=state.offsets or {},
                batch=step.batch,
                folder=str(self.spec.carried(step.site, step.epoch)),
                keep=step.keep,
                send=step.send,
            )
            site.carry(self.spec.query(step.site, step.epoch, state), order)
        elif isinstance(step, Fence):
            self._fence(step)
        self._journal.write(step, **reached)
        self.state = learn_step(self.state, step, **reached)

    def _fence(self, step: Fence) -> None:
        """End an epoch in the cloud's log, once all of it is there, and in the site's own."""
        if self.spec.ships and step.last_batch >= 0:
            # Asked of both ends each time: either may have been started again since the barrier.
            ended = self.spec.query(step.site, step.epoch)
            self._sites[step.site].ship(ended, step.last_batch)
            cloud = self.spec.query(self.spec.cloud, 0)
            self._sites[self.spec.cloud].await_arrival(
                cloud, step.site, step.epoch, step.last_batch
            )
        self._log.fence(step.site, step.epoch, step.last_batch)
        if self.spec.ships:
            Log(self.spec.log_of(step.site)).fence(step.site, step.epoch, step.last_batch)

    def _prepare(self, step: Prepare, state: SiteState) -> dict[str, int]:
        """Get an epoch ready; a site that cannot will start it from nothing."""
        site = self._sites[step.site]
        newest_ms = site.newest_ms(self.spec.query(step.site, step.epoch - 1).name)
        known = [t for t in (newest_ms, state.newest_ms) if t is not None]
        ahead_ms = max(known) + round(self.spec.margin_s * 1000) if known else None
        start = plan_start(state, step.cut, ahead_ms, self._openings)
        site.prepare(self.spec.query(step.site, step.epoch, start))
        return dict(start.gates)


def _find_openings(spec: DeploymentSpec) -> Mapping[str, Opening]:
    from thalweg.spark.pipeline.reference import load_pipeline

    return load_pipeline(spec.pipeline).openings
