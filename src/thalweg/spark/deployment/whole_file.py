"""Files that are there whole or not at all: written beside their place, and moved there."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from thalweg.spark.log.disk import Disk


def write_whole(file: Path, text: str, *, durable: bool = False) -> None:
    """Write a file so that a reader sees the one before, or all of the new one.

    A link at its place is replaced, not followed. With `durable`, the file and its name are on the
    disk afterwards, and a power cut does not take them.
    """
    draft = file.with_name(f".{file.name}.{uuid4().hex}")
    try:
        with draft.open("x", encoding="utf-8") as opened:
            opened.write(text)
            if durable:
                opened.flush()
                os.fsync(opened.fileno())
        draft.replace(file)
        if durable:
            Disk().sync_folder(file.parent)
    finally:
        draft.unlink(missing_ok=True)
