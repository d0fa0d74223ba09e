"""Whether there is a log in a folder at all, or only the place where its disk belongs.

A disk that is away leaves an empty folder, or none. To begin a new log there would be to write what
nobody finds again when the disk is back. So a log has a mark, made once by whoever founds it, and
whoever goes on with a log needs that mark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from thalweg.spark.log.disk import Disk, LogError, explained, make_folders

_MARK = ".log"


class LogAway(LogError):
    """There is no log where there was one: its disk is away."""


def found_log(root: Path | str) -> None:
    """Make a folder a log, unless it is one; to do it again changes nothing.

    Raises:
        LogError: where the folder cannot be written.
    """
    folder = Path(root)
    if (folder / _MARK).is_file():
        return
    with explained("write to the log", folder):
        make_folders(Disk(), folder)
        draft = folder / f"{_MARK}-{uuid4().hex}"
        try:
            with draft.open("x") as file:
                os.fsync(file.fileno())
            draft.replace(folder / _MARK)
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()


def is_log(root: Path | str) -> bool:
    """Whether there is a log.

    Raises:
        LogError: where the disk does not say.
    """
    folder = Path(root)
    with explained("read the log", folder):
        return (folder / _MARK).is_file()


def require_log(root: Path | str) -> None:
    """Raise `LogAway` where there is no log to go on with."""
    if not is_log(root):
        raise _explain_absence(Path(root))


def _explain_absence(root: Path) -> LogAway:
    # Somebody who was writing when the disk went may have left folders there.
    with explained("read the log", root):
        left = root.is_dir() and any(each.is_dir() for each in root.iterdir())
    mark = f" (a log whose mark was removed: `touch {root / _MARK}`)" if left else ""
    return LogAway(
        f"there is no log in {root}. Hint: if there was one, its disk is away: bring it back, and "
        f"the same command goes on{mark}. Nothing is begun anew in its place."
    )


@contextmanager
def while_there(root: Path | str) -> Iterator[None]:
    """Raise `LogError` unless there was a log all through the block.

    A log that is away looks like one in which there is nothing. To take it for that would be to
    believe that everything has been read.
    """
    require_log(root)
    yield
    require_log(root)


class HeldLog:
    """A log that was there: tells whether something is in it, and not in what took its place."""

    def __init__(self, root: Path, number: int) -> None:
        self._root = root
        self._number = number

    def require(self, path: Path) -> None:
        """Raise `LogAway` unless a path below the root is in this very log."""
        if not self.has(path):
            raise LogAway(
                f"cannot write to the log: {path} was written while the disk of {self._root} was "
                "away. Hint: bring the disk back, and do the same again; nothing counts of it."
            )

    def has(self, path: Path) -> bool:
        """Whether a path below the root is in this very log."""
        try:
            with explained("read the log", path):
                os.stat(path.relative_to(self._root), dir_fd=self._number)
        except LogError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return False
            raise
        return True


@contextmanager
def holding_log(root: Path | str) -> Iterator[HeldLog]:
    """A log by its descriptor, which stays that of its disk whatever is done to the name.

    Raises:
        LogError: where there is no log.
    """
    folder = Path(root)
    try:
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        raise _explain_absence(folder) from None
    except OSError as error:
        with explained("read the log", folder):
            raise error
    try:
        held = HeldLog(folder, number)
        if not held.has(folder / _MARK):
            raise _explain_absence(folder)
        yield held
    finally:
        os.close(number)
