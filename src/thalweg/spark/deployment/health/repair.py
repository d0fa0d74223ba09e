"""What `thalweg doctor` does to a run that nobody holds: safe repairs, and a rebuild.

A rebuild keeps what was born: the rows of the sources, wherever they are logged. All that was made
of them is set aside, so that the next start works on all rows, from the first to the last. Epochs
go on counting, and those of the life before are fenced off before any of their batches: whatever
still comes of them, over a link or from a process that was thought dead, is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thalweg.errors import InvalidInput, ThalwegError
from thalweg.model.names import is_name
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.hand_over import Drain, Fence, StartEpoch
from thalweg.spark.deployment.health.aside import SetAsideFolder, mend
from thalweg.spark.deployment.health.checkpoint_facts import is_held
from thalweg.spark.deployment.health.own_places import LINKS, require_own_places
from thalweg.spark.deployment.health.refusal import examine_stake
from thalweg.spark.deployment.health.run_facts import read_journal, read_run
from thalweg.spark.deployment.health.stakes import RunPlaces, list_stakes
from thalweg.spark.deployment.journal import Journal
from thalweg.spark.deployment.whole_file import write_whole
from thalweg.spark.log import Log
from thalweg.spark.log.disk import names_in
from thalweg.spark.log.epoch import numbers_in
from thalweg.spark.log.founding import require_log
from thalweg.spark.log.names import EDGES, SOURCES, number_of

_READER = ".reader"
_MADE = ("checkpoints", "carried", "rehearsals", "history.json", "journal.jsonl")
Cuts = Mapping[str, tuple[str, ...]]


def repair(path: Path | str) -> tuple[str, ...]:
    """Do all repairs that are safe; returns each in words, nothing where none is needed.

    Raises:
        InvalidInput: where there is no run, or somebody holds it.
        ThalwegError: where a process of it is still there, a rebuild was begun, or a link leads out.
    """
    folder = RunFolder.of_run(path)
    with _kept_to_oneself(folder) as places:
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
        if not facts.journal.fault:
            stakes = list_stakes(places, facts.journal.sites)
            damages = [damage for stake in stakes for damage in examine_stake(stake)]
            told += mend(folder.path, damages, aside)
        if told:
            _calm(folder, "repaired by thalweg doctor")
        return tuple(told)


def rebuild(path: Path | str) -> tuple[str, ...]:
    """Set aside all that was made of the rows that were born; returns what was done, in words.

    One that is cut off is ended by another; until then the run refuses to start.

    Raises:
        InvalidInput: where there is no run, or somebody holds it.
        ThalwegError: where a process of it is still there, a log is away, or a link leads out.
    """
    folder = RunFolder.of_run(path)
    with _kept_to_oneself(folder) as places:
        for root in places.logs.values():
            # A disk that is away holds the rows that all is made of.
            require_log(root)
        epochs, cuts = _read_marker(folder)
        for fog in places.fogs:
            epochs[fog] = max(_last_epoch(places, fog), epochs.get(fog, -1))
        cuts = {**_last_cuts(folder, places), **cuts}
        _write_marker(folder, epochs, cuts)
        aside = SetAsideFolder(folder.path)
        moved = [item for item in _all_made(places) if aside.take(item)]
        for fog, last in epochs.items():
            for epoch in range(last + 1):
                for root in {places.log, places.log_of(fog)}:
                    Log(root).fence(fog, epoch, -1)
        _write_journal(places.journal, epochs, cuts)
        _calm(folder, "rebuilt by thalweg doctor")
        folder.rebuild_file.unlink()
        place = _short(folder, aside)
        told = [f"{item.relative_to(folder.path)}: set aside in {place}" for item in moved]
        return (*told, "the next `thalweg run` works on all rows again, from the first to the last")


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
    content = places.journal.read_bytes()
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


def _last_epoch(places: RunPlaces, fog: str) -> int:
    """The largest epoch that a fog has left a trace of; -1: none."""
    found = [-1]
    for name in names_in(places.folder / "checkpoints"):
        site, _, rest = name.rpartition("@")
        number = number_of(rest.partition(".")[0])
        if site == fog and number is not None:
            found.append(number)
    for root in {places.log, places.log_of(fog)}:
        found += numbers_in(root / EDGES / ".gates" / fog)
        for stream in Log(root).streams(EDGES):
            found += numbers_in(root / stream / fog)
    site_state = read_journal(places.journal, places.fogs).sites.get(fog)
    return max(*found, -1 if site_state is None else site_state.epoch)


def _last_cuts(folder: RunFolder, places: RunPlaces) -> dict[str, tuple[str, ...]]:
    """What ran last, by the journal, or else by the history; nothing where neither says it."""
    journal = read_journal(places.journal, places.fogs)
    known = {n: s.next_cut or s.cut for n, s in journal.sites.items() if s.phase != "idle"}
    if not known:
        try:
            known = dict(folder.read_history()[-1].cuts)
        except (InvalidInput, IndexError):
            return {}
    good = {fog: cut for fog, cut in known.items() if fog in places.fogs}
    return {fog: cut for fog, cut in good.items() if all(map(is_name, cut))}


def _write_journal(file: Path, epochs: Mapping[str, int], cuts: Cuts) -> None:
    """Begin a journal that says: these epochs have ended, and nothing of them counts."""
    with Journal(file) as journal:
        for fog, epoch in sorted(epochs.items()):
            if epoch < 0:
                continue
            cut = tuple(cuts.get(fog, ()))
            journal.write(StartEpoch(site=fog, epoch=epoch, cut=cut, start=None))
            journal.write(Drain(site=fog, epoch=epoch, cut=cut))
            journal.write(Fence(site=fog, epoch=epoch, last_batch=-1))


def _read_marker(folder: RunFolder) -> tuple[dict[str, int], dict[str, tuple[str, ...]]]:
    """What a rebuild that was cut off knew before it moved anything."""
    try:
        found: Any = json.loads(folder.rebuild_file.read_bytes())
        epochs = {str(fog): int(epoch) for fog, epoch in found["epochs"].items() if is_name(fog)}
        cuts = {str(fog): tuple(map(str, cut)) for fog, cut in found["cuts"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}, {}
    return epochs, cuts


def _write_marker(folder: RunFolder, epochs: Mapping[str, int], cuts: Cuts) -> None:
    write_whole(folder.rebuild_file, json.dumps({"epochs": epochs, "cuts": cuts}))


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
