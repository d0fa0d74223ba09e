"""Files that a command writes besides its result."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.cli.output import say

if TYPE_CHECKING:
    from thalweg.errors import Defects


def require_place(defects: Defects, path: Path | None, endings: tuple[str, ...]) -> None:
    """Remember a defect unless a file with one of these endings can be written there."""
    from thalweg.errors import Defect, InvalidInput

    if path is None:
        return
    found = []
    if path.suffix.lower() not in endings:
        found.append((path.suffix or None, f"a file name that ends in {' or '.join(endings)}", ""))
    if not path.parent.is_dir():
        found.append((None, "an existing folder to write into", f"make {path.parent} first"))
    if path.is_dir():
        found.append(("a folder", "a regular file, or none yet", ""))
    where = os.fspath(path)
    defects.absorb(
        InvalidInput(Defect(file=where, path="", value=v, rule=r, hint=h) for v, r, h in found)
    )


def require_folder(defects: Defects, path: Path | None) -> None:
    """Remember a defect unless files can be written into a folder of this name."""
    rule = "a folder, or a name that is not taken"
    free = path is None or not path.exists() or path.is_dir()
    defects.require(free, "--output", str(path), rule)


def write_beside(path: Path, write: Callable[[Path], None]) -> None:
    """Let a file be written beside its place and then moved there: whole or not at all."""
    from thalweg.errors import Defect, InvalidInput

    beside = path.with_name(f".{path.stem[:100]}.{secrets.token_hex(4)}{path.suffix}")
    try:
        try:
            write(beside)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        value = (error.strerror or str(error)).lower()
        rule = "a place that can be written"
        raise InvalidInput(
            [Defect(file=os.fspath(path), path="", value=value, rule=rule)]
        ) from None
    say(f"wrote {path}")
