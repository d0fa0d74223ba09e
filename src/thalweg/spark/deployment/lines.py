"""Files to which lines are added, and which a crash may have cut off in the middle of one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path


def append_line(file: Path, line: bytes) -> None:
    """Add a line; one that a crash has cut off is left behind, ended."""
    with file.open("ab+") as opened:
        if opened.tell():
            opened.seek(-1, os.SEEK_END)
            opened.write(b"" if opened.read(1) == b"\n" else b"\n")
        opened.write(line + b"\n")


def append_durably(number: int, line: bytes) -> None:
    """Add a line to an open file, whole and on the disk; where that fails, none of it is there.

    A full disk takes the first part of a line: the next one would go on in the middle of it.
    """
    end = os.fstat(number).st_size
    try:
        rest = memoryview(line + b"\n")
        while rest:
            rest = rest[os.write(number, rest) :]
        os.fsync(number)
    except OSError:
        with suppress(OSError):
            os.ftruncate(number, end)
        raise


def older_file(file: Path) -> Path:
    """Where the lines of a file go when it is full: `decisions.jsonl` → `decisions.1.jsonl`."""
    return file.with_suffix(f".1{file.suffix}")


def turn_over(
    file: Path, more_bytes: int, most_bytes: int, keep: Callable[[bytes], Iterable[bytes]]
) -> None:
    """Make room for a line: a file that would have too many bytes becomes the older one.

    The new one begins with the lines that `keep` makes of both that were there: after a crash in
    the middle of this, the newer one may have none of its own.
    """
    older = older_file(file)
    if not file.exists() or file.stat().st_size + more_bytes <= most_bytes:
        return
    before = older.read_bytes() if older.exists() else b""
    head = b"".join(line + b"\n" for line in keep(before + file.read_bytes()))
    draft = file.with_name(f".{file.name}.new")
    draft.write_bytes(head)
    file.replace(older)
    draft.replace(file)
