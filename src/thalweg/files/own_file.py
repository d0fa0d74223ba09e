"""Files of a stored folder: what is in the folder is read, and nothing that it only points to."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_PIECE_BYTES = 1 << 20


def read_own_bytes(folder: Path, file: Path, most_bytes: int) -> bytes:
    """The contents of a regular file in a folder; no link leads out of it, and no pipe blocks.

    Raises:
        OSError: where it cannot be read.
        ValueError: where it is none of that, or larger.
    """
    require_own(folder, file)
    # What was a file a moment ago may be a pipe by now.
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(handle, "rb") as opened:
        return read_capped(opened, most_bytes)


def read_capped(opened: BinaryIO, most_bytes: int) -> bytes:
    """The contents of an open file; raises `ValueError` where they are more, before all is read."""
    contents, is_large = bytearray(), os.fstat(opened.fileno()).st_size > most_bytes
    # Piece by piece: to ask for as much as it may be would take that much memory.
    while not is_large and (piece := opened.read(_PIECE_BYTES)):
        contents += piece
        is_large = len(contents) > most_bytes
    if is_large:
        raise ValueError(f"more than {most_bytes} bytes")
    return bytes(contents)


def open_own(file: Path) -> int:
    """The number of a regular file, open to read and to add to; made where there is none.

    No link is followed, and no pipe blocks.

    Raises:
        OSError: where it cannot be opened.
        ValueError: where it is a link, or no regular file.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        number = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise ValueError("a link, folder, pipe or device") from None
        raise
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise ValueError("a link, folder, pipe or device")
    return number


def require_own(folder: Path, file: Path) -> None:
    """Raise `ValueError` unless this is a regular file in the folder, also behind links."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise ValueError("a folder, pipe or device")
    if not file.resolve().is_relative_to(folder.resolve()):
        raise ValueError("a link that leads out of its folder")
