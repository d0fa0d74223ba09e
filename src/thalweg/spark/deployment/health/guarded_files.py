"""Files of a run, read so that whatever lies in their place, nobody waits or runs out of memory."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from thalweg.files.own_file import read_capped

# Far more than a run writes into a file that is read at once, or into a line.
_MOST_BYTES = 16 * 2**20


@contextmanager
def open_regular(file: Path) -> Iterator[BinaryIO]:
    """A regular file, open to be read.

    Raises:
        OSError: where it cannot be opened.
        ValueError: where it is a link, folder, pipe or device.
    """
    if not stat.S_ISREG(file.lstat().st_mode):
        raise ValueError("a link, folder, pipe or device")
    # What was a file a moment ago may be a pipe by now.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags), "rb") as opened:
        yield opened


def read_whole(file: Path) -> bytes:
    """All of a small file; raises `OSError`, or `ValueError` where it is no such file."""
    with open_regular(file) as opened:
        return read_capped(opened, _MOST_BYTES)


def read_json(file: Path) -> Any:
    """What a small file says; raises `RecursionError`, too, where it is nested too deeply."""
    return json.loads(read_whole(file))


def read_lines(file: Path) -> Iterator[bytes]:
    """The lines of a file, one after the other, split as a text is: after the last end is one more.

    Raises:
        OSError: where it cannot be read.
        ValueError: where it is no regular file, or a line has no end.
    """
    with open_regular(file) as opened:
        ended = True
        while line := opened.readline(_MOST_BYTES):
            ended = line.endswith(b"\n")
            if not ended and len(line) == _MOST_BYTES:
                raise ValueError(f"a line of more than {_MOST_BYTES} bytes")
            yield line.removesuffix(b"\n")
        if ended:
            yield b""
