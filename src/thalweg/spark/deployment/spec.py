"""What is deployed: a pipeline on fog sites and a cloud, and where everything of it lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thalweg.errors import Defects
from thalweg.model.names import require_name
from thalweg.spark.deployment.hand_over import SiteState, StartEpoch
from thalweg.spark.link.link import DIRECTORY, directory_in, parse_link
from thalweg.spark.pipeline.code import PipelineCode
from thalweg.spark.query.carry import carry_folder
from thalweg.spark.query.spec import DEAD_LETTER, QuerySpec, require_bad_rows

# No epoch of a run: a number that none will ever reach.
_REHEARSAL = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSpec:
    """What is deployed: a pipeline on fog sites and a cloud, in one folder."""

    pipeline: str
    """`package.module:attribute`."""
    folder: Path
    fogs: tuple[str, ...]
    cloud: str = "cloud"
    trigger: str = "1 s"
    rows_per_batch: int | None = None
    margin_s: float = 3.0
    """How far event time may go on while an epoch is made ready."""
    durable: bool = True
    """Whether what is published survives a power cut; without, only the death of processes."""
    bad_rows: str = DEAD_LETTER
    """What becomes of a row that makes an operator fail; see `QuerySpec`."""
    watched: bool = True
    """Whether rows are counted at every operator."""
    link: str | None = None
    """How rows come from the fogs to the cloud, see `parse_link`; None: all have one log."""
    code: PipelineCode | None = None
    """The code that every site has to run; None: whatever it finds."""

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
            code=self.code,
            **own,
        )

    def rehearsal(self, site: str, cut: tuple[str, ...]) -> QuerySpec:
        """A query of this cut that reads and publishes in a folder of its own."""
        folder = self.folder / "rehearsals" / site
        return QuerySpec(
            site=site,
            epoch=_REHEARSAL,
            role="fog",
            pipeline=self.pipeline,
            log=folder / "log",
            checkpoint=folder / "checkpoint",
            cut=cut,
            trigger=self.trigger,
            durable=False,
            bad_rows=self.bad_rows,
            watched=self.watched,
            code=self.code,
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
