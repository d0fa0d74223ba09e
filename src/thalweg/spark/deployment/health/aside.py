"""Moves what is damaged out of the way: nothing is ever deleted.

FOLDER/set-aside/NUMBER/…     what was moved, under the path that it had in the folder
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from thalweg.errors import ThalwegError
from thalweg.spark.deployment.health.damage import Damage
from thalweg.spark.deployment.whole_file import write_whole
from thalweg.spark.log.epoch import numbers_in

FOLDER = "set-aside"


def list_set_aside(folder: Path) -> tuple[Path, ...]:
    """The places of what was moved before, the newest first; no link counts."""
    places = (folder / FOLDER / str(number) for number in reversed(numbers_in(folder / FOLDER)))
    return tuple(place for place in places if place.is_dir() and not place.is_symlink())


class SetAsideFolder:
    """One place for all that is moved at one time; it is made when something is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        above = folder / FOLDER
        if above.is_symlink():
            raise ThalwegError(f"{above} leads elsewhere. Hint: make it a folder of its own.")
        self.path = above / str(max(numbers_in(above), default=0) + 1)

    def take(self, path: Path) -> bool:
        """Move a file or a folder here; False where there is none."""
        target = self.path / path.relative_to(self._folder)
        if not os.path.lexists(path):
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # A folder of the run may be on another disk.
            shutil.move(path, target)
        return True

    def keep(self, name: str, content: bytes) -> None:
        """Keep a piece of a file here that was cut off."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_bytes(content)


def mend(
    folder: Path, damages: Iterable[Damage], aside: SetAsideFolder | None = None
) -> tuple[str, ...]:
    """Mend what can be mended; returns what was done, in words."""
    place, told = aside or SetAsideFolder(folder), []
    for damage in damages:
        if not damage.is_mendable:
            continue
        moved = [path for path in damage.aside if place.take(path)]
        for path, text in damage.renewed:
            write_whole(path, text)
        done = f"set aside in {place.path.relative_to(folder)}" if moved else "written anew"
        told.append(f"{damage.where.relative_to(folder)} {damage.what}: {done}; {damage.then}")
    return tuple(told)
