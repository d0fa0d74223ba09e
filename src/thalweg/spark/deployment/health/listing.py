"""What is in the folders of a checkpoint: files named by numbers, and folders. No link counts."""

from __future__ import annotations

from pathlib import Path

from thalweg.spark.log.names import number_of


def number_in(file: Path) -> int:
    """The number that a file is named by, which it is known to be."""
    return int(file.name.partition(".")[0])


def files_in(folder: Path, ending: str) -> list[Path]:
    """The files there that are named by a number and this ending, in order."""
    found = [
        entry
        for entry in _listing(folder)
        if entry.name.endswith(ending)
        and number_of(entry.name.removesuffix(ending) if ending else entry.name) is not None
    ]
    return sorted(found, key=number_in)


def folders_in(folder: Path) -> list[Path]:
    """The folders there, in the order of their names."""
    return sorted(entry for entry in _listing(folder) if entry.is_dir() and not entry.is_symlink())


def _listing(folder: Path) -> list[Path]:
    if folder.is_symlink():
        return []
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
