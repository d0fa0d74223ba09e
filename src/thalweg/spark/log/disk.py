"""The few file-system steps that the log is made of, and what people are told when one fails."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from thalweg.errors import ThalwegError

_BUFFER_BYTES = 1 << 20
_MOST_SMALL_BYTES = 1 << 26
_HINTS = {
    errno.ENOSPC: "free some space there, or keep the log on a larger disk",
    errno.EDQUOT: "free some space there, or raise the quota",
    errno.EROFS: "mount it for writing, or keep the log elsewhere",
    errno.EACCES: "let this user write there, or keep the log elsewhere",
    errno.EPERM: "let this user write there, or keep the log elsewhere",
    errno.ENOTDIR: "a file is where a folder has to be",
}
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


class LogError(ThalwegError):
    """The log cannot be written or read; the message names the path and the cause."""


class Disk:
    """What the log does to a file system, one method for each kind of call.

    With `durable`, what is synced survives a power cut; without, only the death of the process,
    and nobody waits for the disk.
    """

    def __init__(self, *, durable: bool = True) -> None:
        self.durable = durable

    def make_folder(self, path: Path) -> None:
        """Make one folder in a folder that exists."""
        path.mkdir()

    def create(self, path: Path) -> BinaryIO:
        """A new file, open for writing."""
        return path.open("xb", buffering=_BUFFER_BYTES)

    def sync_file(self, file: BinaryIO) -> None:
        """Bring what was written to the disk."""
        file.flush()
        if self.durable:
            os.fsync(file.fileno())

    def sync_folder(self, path: Path) -> None:
        """Bring the names in a folder to the disk."""
        if self.durable:
            number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(number)
            finally:
                os.close(number)

    def rename(self, source: Path, target: Path) -> None:
        """Give a folder its final name; fails where a folder with something in it has that name."""
        source.rename(target)


def move_into_place(disk: Disk, source: Path, target: Path) -> bool:
    """Make `source` appear as `target`, whole and at once; False where something is there already.

    The source must not be empty: it is what is in a folder that protects it from being replaced.
    """
    try:
        disk.rename(source, target)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    disk.sync_folder(target.parent)
    return True


def make_folders(disk: Disk, path: Path, *, below: Path | None = None) -> None:
    """Make a folder and those above it that are missing, but for `below` and what is above that."""
    if path.is_dir():
        return
    if path == below:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    make_folders(disk, path.parent, below=below)
    try:
        disk.make_folder(path)
    except FileExistsError:
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from None
    else:
        disk.sync_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Remove a folder so that nobody who still writes to it can publish it half removed."""
    trash = path.with_name(f".trash-{uuid4().hex}")
    try:
        path.rename(trash)
    except OSError:
        return
    shutil.rmtree(trash, ignore_errors=True)


def names_in(folder: Path) -> list[str]:
    """The names in a folder; none where there is no such folder."""
    try:
        return [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []


def read_small(path: Path) -> bytes:
    """All of a manifest or a fence; nobody waits for what lies in its place and is no file."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is a folder, pipe or device")
        if found.st_size > _MOST_SMALL_BYTES:
            raise OSError(f"it has more than {_MOST_SMALL_BYTES} bytes")
        with os.fdopen(number, "rb", buffering=0, closefd=False) as opened:
            return opened.read()
    finally:
        os.close(number)


@contextmanager
def explained(action: str, path: Path) -> Iterator[None]:
    """Turn what the system says within the block into an error for people."""
    try:
        yield
    except OSError as error:
        cause = os.strerror(error.errno) if error.errno else str(error)
        place = error.filename or path
        hint = _HINTS.get(error.errno or 0)
        text = f"cannot {action}: {place}: {cause}"
        raise LogError(f"{text}. Hint: {hint}." if hint else text) from error
