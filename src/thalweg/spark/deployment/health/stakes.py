"""What a run has to go on with: the epochs whose checkpoints the next start needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from thalweg.model.names import is_name
from thalweg.spark.deployment.folder import RunManifest
from thalweg.spark.deployment.hand_over import SiteState
from thalweg.spark.log import Log
from thalweg.spark.log.disk import names_in
from thalweg.spark.log.epoch import last_batch_of
from thalweg.spark.log.names import SOURCES, EpochPlace
from thalweg.spark.query.carry import carry_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlaces:
    """Where everything of a run lies, known without its pipeline."""

    folder: Path
    fogs: tuple[str, ...]
    cloud: str
    ships: bool

    @classmethod
    def of(cls, folder: Path, manifest: RunManifest) -> RunPlaces:
        """The places of a run; names that are none are left out, as they become paths."""
        fogs = tuple(fog for fog in manifest.fogs if is_name(fog))
        cloud = manifest.cloud if is_name(manifest.cloud) else "cloud"
        return cls(folder=folder, fogs=fogs, cloud=cloud, ships=bool(manifest.ships))

    @property
    def journal(self) -> Path:
        """Where steps are written down."""
        return self.folder / "journal.jsonl"

    @property
    def log(self) -> Path:
        """The cloud's log."""
        return self.folder / "log"

    @property
    def logs(self) -> dict[str, Path]:
        """Every log, by the site that has it for its own; the cloud's first."""
        own = {fog: self.log_of(fog) for fog in self.fogs} if self.ships else {}
        return {self.cloud: self.log, **own}

    def log_of(self, site: str) -> Path:
        """Where a site publishes."""
        own = self.ships and site != self.cloud
        return self.folder / "logs" / site if own else self.log

    def carried(self, site: SiteState) -> tuple[Path, ...]:
        """What the epoch before has handed over to the one that runs at a site."""
        folder = self.folder / "carried" / f"{site.site}@{site.epoch - 1}"
        edges = [edge for edge in site.carried if all(map(is_name, str(edge).split("+")))]
        return tuple(carry_folder(folder, edge) / "0.parquet" for edge in edges)

    def checkpoint(self, site: str, epoch: int) -> Path:
        """The checkpoint of an epoch."""
        return self.folder / "checkpoints" / f"{site}@{epoch}"


def has_fog_checkpoints(folder: Path, fogs: Collection[str]) -> bool:
    """Whether a fog has ever worked; a step is written down before it does."""
    names = (name.rpartition("@") for name in names_in(folder / "checkpoints"))
    return any(site in fogs and epoch.isdecimal() for site, _, epoch in names)


def journaled(journal: Path) -> bool:
    """Whether anything was ever written down."""
    return journal.exists() and journal.stat().st_size > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """An epoch that goes on at the next start: its checkpoint, and the log that it publishes in."""

    site: str
    epoch: int
    checkpoint: Path
    log: Path
    carried: tuple[Path, ...] = ()
    """Files with rows of open windows that were handed over to it."""

    @property
    def name(self) -> str:
        """The name of its query."""
        return f"{self.site}@{self.epoch}"

    @property
    def published(self) -> int:
        """The last batch that it has published in any stream; -1: none."""
        return last_published(self.log, self.site, self.epoch)


def list_stakes(places: RunPlaces, sites: Mapping[str, SiteState]) -> tuple[Stake, ...]:
    """The cloud's epoch, those that run at fogs, and those that were got ready for them."""
    epochs: list[tuple[str, int, tuple[Path, ...]]] = [(places.cloud, 0, ())]
    for name, site in sorted(sites.items()):
        if site.phase == "running":
            epochs.append((name, site.epoch, places.carried(site)))
        if site.phase != "idle" and places.checkpoint(name, site.epoch + 1).exists():
            epochs.append((name, site.epoch + 1, ()))
    return tuple(
        Stake(
            site=site,
            epoch=epoch,
            checkpoint=places.checkpoint(site, epoch),
            log=places.log_of(site),
            carried=carried,
        )
        for site, epoch, carried in epochs
    )


def last_published(root: Path, site: str, epoch: int) -> int:
    """The last batch that a site has published in an epoch, in whatever stream; -1: none."""
    places = (
        EpochPlace(root=root, stream=stream, site=site, epoch=epoch)
        for stream in derived_streams(root)
    )
    return max(map(last_batch_of, places), default=-1)


def derived_streams(root: Path) -> Iterator[str]:
    """All streams of a log but those of rows that were born at sites."""
    for kind in sorted(filter(is_name, names_in(root))):
        if kind != SOURCES:
            yield from Log(root).streams(kind)
