"""The timeline of a run as it grows: what was appended is read, and nothing twice."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from thalweg.files.own_file import require_own
from thalweg.spark.deployment.timeline import NEW, OLD, Line, read_lines
from thalweg.web.picture import GAUGES

_MOST_LINES = 100_000
_MOST_BYTES = 64 * 2**20


class TimelineReader:
    """Keeps the lines of a run's timeline, each with its number; many threads may ask.

    Lines that cannot be drawn are left out. Of very many the oldest are forgotten; numbers go on.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._lines: list[Line] = []
        self._forgotten = 0
        self._inode: int | None = None
        self._offset = 0

    def lines(self) -> list[Line]:
        """All lines that are known now, oldest first."""
        with self._lock:
            self._read()
            return list(self._lines)

    def since(self, number: int) -> tuple[list[Line], int]:
        """The lines after so many, and how many there are with them."""
        with self._lock:
            self._read()
            begin = max(number - self._forgotten, 0)
            return self._lines[begin:], self._forgotten + len(self._lines)

    def until(self, number: int) -> list[Line]:
        """The lines that are not after so many, as far as they are known still."""
        with self._lock:
            self._read()
            return self._lines[: max(number - self._forgotten, 0)]

    def _read(self) -> None:
        try:
            found: int | None = (self._folder / NEW).stat().st_ino
        except OSError:
            found = None
        if found != self._inode:
            # The file that was read so far is the older one now, and may have grown before that.
            older = self._folder / OLD
            with suppress(OSError, ValueError):
                known = self._inode is not None and older.stat().st_ino == self._inode
                self._append(older, self._offset if known else 0)
            self._inode, self._offset = found, 0
        if found is not None:
            with suppress(OSError, ValueError):
                self._offset = self._append(self._folder / NEW, self._offset)

    def _append(self, file: Path, offset: int) -> int:
        """Take in the whole lines of a file from there on; returns where they end."""
        require_own(self._folder, file)
        with file.open("rb") as opened:
            opened.seek(offset)
            text = opened.read(_MOST_BYTES)
        whole = text[: text.rfind(b"\n") + 1]
        self._lines += [line for line in read_lines(whole) if is_drawable(line)]
        more = len(self._lines) - _MOST_LINES
        if more > 0:
            self._forgotten += more
            del self._lines[:more]
        return offset + len(whole)


def is_drawable(line: Line) -> bool:
    """Whether a line has the shape of what a run writes, with numbers that are some.

    >>> is_drawable({"kind": "mark", "at_s": 1.0, "mark": "restart", "title": "fog-1 is back"})
    True
    >>> is_drawable({"kind": "cuts", "at_s": 1.0})
    False
    """
    if not _is_number(line.get("at_s")):
        return False
    kind = line["kind"]
    if kind == "mark":
        return isinstance(line.get("mark"), str) and isinstance(line.get("title"), str)
    if not _is_rates(line.get("rates")):
        return False
    if kind == "cuts":
        cuts = line.get("cuts")
        return isinstance(cuts, dict) and all(
            isinstance(cut, list) and all(isinstance(name, str) for name in cut)
            for cut in cuts.values()
        )
    figures, links = line.get("figures") or {}, line.get("links") or {}
    groups = [line.get(name) or {} for name in ("sites", "operators", "links")]
    return (
        isinstance(figures, dict)
        and all(isinstance(group, dict) for group in groups)
        and all(isinstance(of, dict) for group in groups for of in group.values())
        # What else is said of a run is read figure by figure.
        and _is_table({name: figures.get(name) for name in GAUGES})
        and all("bps" in of and _is_table({"bps": of["bps"]}) for of in links.values())
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_table(value: object) -> bool:
    """Whether it is a mapping to numbers, some of which may be unknown."""
    return isinstance(value, Mapping) and all(v is None or _is_number(v) for v in value.values())


def _is_rates(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and all(map(_is_table, value.values())))
