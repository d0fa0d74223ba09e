"""An epoch of the log on disk: which batches are published in it, and the gate before them."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from thalweg.spark.log.disk import Disk, make_folders, move_into_place, names_in, remove_folder
from thalweg.spark.log.names import BATCHES_PER_GROUP, EpochPlace, number_of

OPEN, CLOSED = "open", "closed"
NEW, TRASH = ".new-", ".trash-"


def list_batches(place: EpochPlace, after: int) -> list[int]:
    """The batches published after one, in order, with none left out between them.

    A folder that is written to while it is listed may show a later name and not an earlier one.
    Batches are published in order: all up to the last one seen were there when the first look
    ended, so a second look shows them.
    """
    seen = _look(place, after)
    if not seen:
        return []
    newest = max(seen)
    return sorted(batch for batch in _look(place, after) if batch <= newest)


def last_batch_of(place: EpochPlace, upto: int | None = None) -> int:
    """The last batch published, or the last one up to a batch; -1: none is."""
    for group in reversed(numbers_in(place.folder)):
        batches = numbers_in(place.folder / str(group))
        found = [batch for batch in batches if upto is None or batch <= upto]
        if found:
            return found[-1]
    return -1


def make_gate(disk: Disk, gate: Path, *, root: Path) -> None:
    """Make the gate of an epoch in a log, open, unless it has one.

    It comes into being together with what is in it, so that a gate that was closed cannot be
    opened by somebody who believes that there is none.
    """
    if not gate.is_dir():
        make_folders(disk, gate.parent, below=root)
        draft = gate.with_name(f"{NEW}{gate.name}-{uuid4().hex}")
        disk.make_folder(draft)
        disk.make_folder(draft / OPEN)
        disk.sync_folder(draft)
        move_into_place(disk, draft, gate)
    for name in names_in(gate.parent):
        if name.startswith((f"{NEW}{gate.name}-", TRASH)):
            remove_folder(gate.parent / name)


def close_gate(disk: Disk, gate: Path) -> None:
    """Let nothing through any more that is not through yet."""
    try:
        move_into_place(disk, gate / OPEN, gate / CLOSED)
    except FileNotFoundError:
        if not (gate / CLOSED).is_dir():
            raise
    for name in names_in(gate / CLOSED):
        remove_folder(gate / CLOSED / name)


def _look(place: EpochPlace, after: int) -> list[int]:
    first = (after + 1) // BATCHES_PER_GROUP
    groups = [number for number in numbers_in(place.folder) if number >= first]
    batches = (b for group in groups for b in numbers_in(place.folder / str(group)))
    return [batch for batch in batches if batch > after]


def numbers_in(folder: Path) -> list[int]:
    """The numbers that name something in a folder, in order."""
    numbers = (number_of(name) for name in names_in(folder))
    return sorted(number for number in numbers if number is not None)
