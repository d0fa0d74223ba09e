"""What all readers of tables share: bytes of a regular file, rows with their lines, bad rows."""

from __future__ import annotations

import csv
import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NoReturn

from thalweg.errors import Defect, InvalidInput, nearest
from thalweg.files.text import LARGEST_FILE_BYTES

LARGEST_CSV_BYTES = LARGEST_FILE_BYTES
MOST_ROWS_TOLD = 20
MOST_ROWS_COUNTED = 100_000

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHUNK_BYTES = 1024 * 1024
_MOST_NEIGHBOURS = 2000
_LONGEST_NUMBER = 60
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)


class BadRows:
    """Counts the rows that break a rule, and keeps what is wrong with the first of them."""

    def __init__(self, file: str) -> None:
        self.count = 0
        self._file = file
        self._kept: list[Defect] = []

    @property
    def is_full(self) -> bool:
        """Whether there are more bad rows than anyone wants counted."""
        return self.count > MOST_ROWS_COUNTED

    def add(self, tell: Callable[[], Sequence[Defect]]) -> None:
        """Count a bad row; what is wrong with it is asked of the first of them only."""
        self.count += 1
        if self.count <= MOST_ROWS_TOLD:
            self._kept += [replace(defect, file=self._file) for defect in tell()]

    def raise_if_any(self) -> None:
        """Raise what was remembered, and how many bad rows there are."""
        if not self.count:
            return
        if self.count > MOST_ROWS_TOLD:
            hint = "mend these first, then check the file again"
            count = f"more than {MOST_ROWS_COUNTED}" if self.is_full else str(self.count)
            bad = f"{count} bad rows, the first {MOST_ROWS_TOLD} of them above"
            rule = "a table without bad rows"
            self._kept.append(Defect(file=self._file, path="", value=bad, rule=rule, hint=hint))
        raise InvalidInput(self._kept) from None


def read_contents(path: str | os.PathLike[str], largest: int, hint: str = "") -> bytes:
    """The contents of a regular file; a pipe or device is never opened, so nothing can block.

    Raises:
        InvalidInput: where there is no such file, or one that is too large; `hint` says what then.
    """
    name = os.fspath(path)
    file = show_file(name)
    try:
        _require_regular(Path(name).stat(), file)
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            # Once more on the open file: by now the name may mean another one.
            _require_regular(os.fstat(handle), file)
            contents = bytearray()
            while chunk := os.read(handle, _CHUNK_BYTES):
                contents += chunk
                if len(contents) > largest:
                    refuse_file(file, "more", f"a file of at most {largest} bytes", hint)
            return bytes(contents)
        finally:
            os.close(handle)
    except FileNotFoundError:
        refuse_file(file, None, "an existing file", _neighbour_hint(Path(name)))
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        refuse_file(file, why, "a file that can be read")


def read_rows(contents: bytes, file: str) -> Iterator[tuple[int, list[str]]]:
    """Every row of a CSV file, with its line; blank lines are passed over."""
    source = contents.removeprefix(_BYTE_ORDER_MARK)
    if not source.strip():
        refuse_file(file, None, "the names of the columns, and rows below", "the file is empty")
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{source[error.start]:02x} at offset {error.start}"
        line = source.count(b"\n", 0, error.start) + 1
        refuse_file(file, found, "UTF-8 text", "save the file as UTF-8", line=line)
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for row in rows:
            if row:
                yield line, row
            line = rows.line_num + 1
    except csv.Error as error:
        hint = "quotes stand around a whole cell"
        refuse_file(file, str(error), "a row of cells between commas", hint, line=line)


def require_header(header: Sequence[str], columns: Sequence[str], file: str) -> None:
    """Raise `InvalidInput` unless the first row names these columns, each once, in any order."""
    found: list[Defect] = []

    def tell(value: object, rule: str, hint: str) -> None:
        found.append(Defect(file=file, line=1, path="", value=value, rule=rule, hint=hint))

    for name in columns:
        if header.count(name) != 1:
            got = f"{header.count(name)} columns called {name}" if name in header else None
            tell(got, f"a column called {name}", f"the columns are {', '.join(columns)}")
    for name in dict.fromkeys(header):
        if name not in columns:
            tell(name, "a known column", nearest(name, columns))
    if found:
        raise InvalidInput(found[: 2 * MOST_ROWS_TOLD]) from None


def tell_width(line: int, row: Sequence[str], header: Sequence[str]) -> list[Defect]:
    """What is wrong with a row that has another number of cells than the header."""
    got = f"{len(row)} cell{'s' if len(row) != 1 else ''}"
    rule = f"{len(header)} cells, as in the header"
    return [Defect(path="", line=line, value=got, rule=rule)]


def read_number(cell: str) -> float | None:
    """The number in a cell; None where there is none. Spaces around it do no harm."""
    bare = cell.strip()
    is_number = len(bare) <= _LONGEST_NUMBER and _NUMBER.fullmatch(bare)
    return float(bare) if is_number else None


def number_hint(cell: str) -> str:
    """What keeps a cell from being a number."""
    bare = cell.strip()
    if not bare:
        return "no cell is empty"
    has_unit = re.match(rf"{_NUMBER.pattern}\s*[^\W\d]", bare[: 2 * _LONGEST_NUMBER])
    return "a cell has no unit: write the number alone" if has_unit else ""


def show_file(name: str) -> str:
    """The name of a file, with nothing in it that a terminal could obey."""
    return name if name.isprintable() else ascii(name)


def refuse_file(
    file: str, value: object, rule: str, hint: str = "", line: int | None = None
) -> NoReturn:
    """Refuse a file for one reason."""
    raise InvalidInput(
        [Defect(file=file, path="", value=value, rule=rule, hint=hint, line=line)]
    ) from None


def _require_regular(status: os.stat_result, file: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        refuse_file(file, "a folder", "a file")
    if not stat.S_ISREG(status.st_mode):
        refuse_file(file, "a pipe, socket or device", "a regular file")


def _neighbour_hint(path: Path) -> str:
    try:
        beside = islice(path.parent.iterdir(), _MOST_NEIGHBOURS)
        names = sorted(p.name for p in beside if p.suffix.lower() == path.suffix.lower())
    except (OSError, ValueError):
        return "its folder does not exist either"
    return nearest(path.name, [name for name in names if name.isprintable()])
