"""What `thalweg doctor` does to a run that nobody holds: safe repairs, and a rebuild.

A rebuild keeps what was born: the rows of the sources, wherever they are logged. All that was made
of them is set aside, so that the next start works on all rows, from the first to the last. Epochs
go on counting, and those of the life before are fenced off before any of their batches: whatever
still comes of them, over a link or from a process that was thought dead, is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from thalweg.errors import InvalidInput, ThalwegError
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.hand_over import Drain, Fence, StartEpoch
from thalweg.spark.deployment.health.aside import SetAsideFolder, mend
from thalweg.spark.deployment.health.checkpoint_facts import is_held
from thalweg.spark.deployment.health.former_life import (
    FormerLife,
    find_former_life,
    keep_former_life,
)
from thalweg.spark.deployment.health.own_places import LINKS, require_own_places
from thalweg.spark.deployment.health.refusal import examine_stake
from thalweg.spark.deployment.health.run_facts import read_journal, read_run
from thalweg.spark.deployment.health.stakes import RunPlaces, list_stakes
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.log import Log
from thalweg.spark.log.disk import Disk, names_in
from thalweg.spark.log.founding import require_log
from thalweg.spark.log.names import SOURCES

_READER = ".reader"
_MADE = ("checkpoints", "carried", "rehearsals", "history.json", "journal.jsonl")


def repair(path: Path | str) -> tuple[str, ...]:
    """Do all repairs that are safe; returns each in words, nothing where none is needed.

    Raises:
        InvalidInput: where there is no run, or somebody holds it.
        ThalwegError: where a process of it is still there, a rebuild was begun, a link is in
            the way, or something cannot be written.
    """
    folder = RunFolder.of_run(path)
    with _explained("repair", folder), _kept_to_oneself(folder) as places:
        if folder.rebuild_file.exists():
            raise ThalwegError(
                "a rebuild was begun and not ended. Hint: `--rebuild --yes` ends it."
            )
        facts = read_run(folder, places.fogs, 0.0)
        aside = SetAsideFolder(folder.path)
        told = [*_repair_journal(places, aside)]
        for name, fault in (
            ("status.json", facts.status_fault),
            ("history.json", facts.history_fault),
        ):
            if fault and aside.take(folder.path / name):
                told.append(f"{name} cannot be read: set aside in {_short(folder, aside)}")
        if facts.journal.fault:
            return tuple(told)
        stakes = list_stakes(places, facts.journal.sites)
        damages = [damage for stake in stakes for damage in examine_stake(stake)]
        told += mend(folder.path, damages, aside)
        # Where something is left that a start refuses, what ended the run has not been seen to.
        if told and not any(damage.is_fatal for damage in damages):
            _calm(folder, "repaired by thalweg doctor")
        return tuple(told)


def rebuild(path: Path | str) -> tuple[str, ...]:
    """Set aside all that was made of the rows that were born; returns what was done, in words.

    One that is cut off is ended by another; until then the run refuses to start.

    Raises:
        InvalidInput: where there is no run, or somebody holds it.
        ThalwegError: where a process of it is still there, a log is away, a link is in the way,
            nothing says which epochs there were, or something cannot be written.
    """
    folder = RunFolder.of_run(path)
    with _explained("rebuild", folder), _kept_to_oneself(folder) as places:
        for root in places.logs.values():
            # A disk that is away holds the rows that all is made of.
            require_log(root)
        life = find_former_life(folder, places)
        aside = SetAsideFolder(folder.path)
        keep_former_life(folder, life)
        moved = [item for item in _all_made(places) if aside.take(item)]
        for fog, last in life.epochs.items():
            for epoch in range(last + 1):
                for root in {places.log, places.log_of(fog)}:
                    Log(root).fence(fog, epoch, -1)
        _write_journal(places.journal, life)
        _calm(folder, "rebuilt by thalweg doctor")
        # The new journal has its name on the disk before the marker is gone.
        Disk().sync_folder(folder.path)
        folder.rebuild_file.unlink()
        place = _short(folder, aside)
        told = [f"{item.relative_to(folder.path)}: set aside in {place}" for item in moved]
        return (*told, "the next `thalweg run` works on all rows again, from the first to the last")


@contextmanager
def _explained(action: str, folder: RunFolder) -> Iterator[None]:
    """Turn what the system says within the block into an error for people."""
    try:
        yield
    except OSError as error:
        cause = os.strerror(error.errno) if error.errno else str(error)
        raise ThalwegError(
            f"cannot {action} the run: {error.filename or folder.path}: {cause}. Hint: see that "
            "this user may write there, that there is room, and that no file is where a folder has "
            "to be; then ask again."
        ) from error


@contextmanager
def _kept_to_oneself(folder: RunFolder) -> Iterator[RunPlaces]:
    """Hold the folder of a run of which no process is left."""
    places = RunPlaces.of(folder.path, folder.read_manifest())
    with folder.hold():
        require_own_places(places)
        held = [
            name.removesuffix(".lock")
            for name in sorted(names_in(folder.path / "checkpoints"))
            if name.endswith(".lock")
            and is_held(folder.path / "checkpoints" / name.removesuffix(".lock"))
        ]
        left = read_run(folder, places.fogs, 0.0).left_over
        if held or left:
            who = ", ".join([*held, *(f"process {pid} of {site}" for site, pid in left.items())])
            raise ThalwegError(
                f"of a run that is gone, something still runs: {who}. "
                "Hint: it ends by itself within seconds; if not, kill it, which loses nothing."
            )
        yield places


def _repair_journal(places: RunPlaces, aside: SetAsideFolder) -> Iterator[str]:
    """Cut off a last line that was never finished, and keep it."""
    if not read_journal(places.journal, places.fogs).torn:
        return
    content = Journal(places.journal).content()
    whole = content.rfind(b"\n") + 1
    aside.keep(places.journal.name, content[whole:])
    with Journal(places.journal):
        # Whoever opens it to write cuts off what was not finished.
        pass
    place = aside.path.relative_to(places.folder)
    yield f"the torn last line of journal.jsonl: set aside in {place}; that step is taken again"


def _all_made(places: RunPlaces) -> Iterator[Path]:
    """All that was made of the rows that were born, and how far links were."""
    for name in _MADE:
        yield places.folder / name
    for root in places.logs.values():
        for name in sorted(names_in(root)):
            if name == LINKS:
                # The reader's name stays: what it has not read yet is of the life before.
                yield from (root / LINKS / n for n in names_in(root / LINKS) if n != _READER)
            elif name != SOURCES and not name.startswith("."):
                yield root / name


def _write_journal(file: Path, life: FormerLife) -> None:
    """Begin a journal that says: these epochs have ended, and nothing of them counts."""
    with Journal(file) as journal:
        for fog, epoch in sorted(life.epochs.items()):
            if epoch < 0:
                continue
            cut = tuple(life.cuts.get(fog, ()))
            journal.write(StartEpoch(site=fog, epoch=epoch, cut=cut, start=None))
            journal.write(Drain(site=fog, epoch=epoch, cut=cut))
            journal.write(Fence(site=fog, epoch=epoch, last_batch=-1))


def _calm(folder: RunFolder, note: str) -> None:
    """What ended the run last has been seen to: say so where people look."""
    try:
        status = folder.read_status()
    except InvalidInput:
        return
    if status:
        folder.write_status({**status, "state": "ended", "error": None, "note": note})


def _short(folder: RunFolder, aside: SetAsideFolder) -> Path:
    return aside.path.relative_to(folder.path)
