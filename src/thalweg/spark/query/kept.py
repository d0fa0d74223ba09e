"""Files with rows of open windows that wait for the next epoch: what they have to be.

Whoever hands them over writes down what they are. A file that is lost or torn afterwards is then
noticed, and not taken for one that has no rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

ROWS_FILE = "0.parquet"
MISSING = "is missing"
_PARQUET = b"PAR1"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRows:
    """A file of rows as it was when they were handed over."""

    rows: int
    file_bytes: int
    sha256: str

    def __post_init__(self) -> None:
        """Raise `ValueError`, as whatever is wrong with a line of a journal."""
        for name in ("rows", "file_bytes"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{name} is {value!r}, and no whole number >= 0")
        if not isinstance(self.sha256, str):
            raise ValueError(f"sha256 is {self.sha256!r}, and no text")


def describe_file(file: Path, rows: int) -> KeptRows:
    """What is to be written down of a file that was just made; raises `OSError`."""
    return KeptRows(rows=rows, file_bytes=file.stat().st_size, sha256=_digest_of(file))


def find_fault(file: Path, kept: KeptRows | None = None) -> str:
    """What is wrong with a file of rows, in a few words; nothing where all is well.

    Without what it was, only whether it is a whole Parquet file.
    """
    try:
        found_bytes = file.stat().st_size
        if not found_bytes:
            return "is empty"
        if kept is None:
            return "" if _is_parquet(file, found_bytes) else "is torn: it is no whole Parquet"
        if found_bytes != kept.file_bytes:
            return f"is torn: it has {found_bytes} bytes of {kept.file_bytes}"
        return "" if _digest_of(file) == kept.sha256 else "is torn: its bytes are others than were"
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"


def _digest_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _is_parquet(file: Path, file_bytes: int) -> bool:
    if file_bytes <= 2 * len(_PARQUET):
        return False
    with file.open("rb") as opened:
        head = opened.read(len(_PARQUET))
        opened.seek(-len(_PARQUET), 2)
        return head == _PARQUET == opened.read(len(_PARQUET))
