"""What a run has to go on with: the epochs whose checkpoints the next start needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from thalweg.model.names import is_name
from thalweg.spark.deployment.hand_over import SiteState
from thalweg.spark.deployment.health.damage import Damage
from thalweg.spark.deployment.manifest import RunManifest
from thalweg.spark.log import Log
from thalweg.spark.log.disk import names_in
from thalweg.spark.log.epoch import last_batch_of
from thalweg.spark.log.names import SOURCES, EpochPlace
from thalweg.spark.query.carry import carry_file
from thalweg.spark.query.kept import MISSING, KeptRows, find_fault


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
        return tuple(carry_file(folder, edge) for edge in edges)

    def kept(self, site: SiteState) -> dict[Path, KeptRows]:
        """What the last epoch has handed over to the next one of a site, which is not started."""
        folder = self.folder / "carried" / f"{site.site}@{site.epoch}"
        edges = (site.kept or {}) if site.phase in ("exported", "fenced") else {}
        return {
            carry_file(folder, edge): kept
            for edge, kept in edges.items()
            if all(map(is_name, str(edge).split("+")))
        }

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
    kept: Mapping[Path, KeptRows] = field(default_factory=dict)
    """Such files of a hand-over under way, which can still be made again."""

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
    stakes = [_stake(places, places.cloud, 0)]
    for name, site in sorted(sites.items()):
        if site.phase == "running":
            stakes.append(_stake(places, name, site.epoch, carried=places.carried(site)))
        kept, ready = places.kept(site), places.checkpoint(name, site.epoch + 1).exists()
        if site.phase != "idle" and (ready or kept):
            stakes.append(_stake(places, name, site.epoch + 1, kept=kept))
    return tuple(stakes)


def _stake(
    places: RunPlaces,
    site: str,
    epoch: int,
    *,
    carried: tuple[Path, ...] = (),
    kept: Mapping[Path, KeptRows] | None = None,
) -> Stake:
    return Stake(
        site=site,
        epoch=epoch,
        checkpoint=places.checkpoint(site, epoch),
        log=places.log_of(site),
        carried=carried,
        kept=kept or {},
    )


def find_lost_windows(stake: Stake) -> Iterator[Damage]:
    """Files of a hand-over under way that are not what they were; the next start makes them again.

    One that is torn is set aside before. Where one is missing, there is nothing else to do.
    """
    then = "the rows of these open windows are made again from the log"
    for file, kept in stake.kept.items():
        fault = find_fault(file, kept)
        if fault == MISSING:
            what = f"{fault}: the next `thalweg run` goes on with the hand-over, and {then}"
            yield Damage(where=file, what=what, harmless=True)
        elif fault:
            yield Damage(where=file, what=fault, aside=(file,), then=then)


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
