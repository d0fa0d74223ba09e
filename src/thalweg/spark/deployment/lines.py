"""Files to which lines are added, and which a crash may have cut off in the middle of one."""

from __future__ import annotations

import os
from pathlib import Path


def append_line(file: Path, line: bytes) -> None:
    """Add a line; one that a crash has cut off is left behind, ended."""
    with file.open("ab+") as opened:
        if opened.tell():
            opened.seek(-1, os.SEEK_END)
            opened.write(b"" if opened.read(1) == b"\n" else b"\n")
        opened.write(line + b"\n")
