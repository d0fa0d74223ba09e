"""How many values a Parquet file says it holds, read from its footer by ourselves.

Arrow tells the same of each column, and ends the whole process over a footer that is damaged there.
The footer is a structure in Thrift's compact protocol; only what leads to the counts is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, Any

_MAGIC = b"PAR1"
_MOST_FOOTER_BYTES = 16 * 2**20
_DEEPEST = 16
# The places of the counts: row groups, columns, what is told of one, its number of values.
_ROW_GROUPS, _COLUMNS, _TOLD, _VALUES = 4, 1, 3, 5
_WANTED = frozenset({_ROW_GROUPS, _COLUMNS, _TOLD, _VALUES})
_TRUE, _FALSE, _BYTE, _DOUBLE, _TEXT, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)


def count_values(file: IO[bytes]) -> int:
    """The values of all columns in all row groups; an element of a list is a value, too.

    Raises:
        ValueError: where the footer is damaged, or too large.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or not 0 < length <= min(size - 8, _MOST_FOOTER_BYTES):
        raise ValueError("a footer that is damaged or too large")
    file.seek(size - 8 - length)
    try:
        footer = _Reader(file.read(length)).read_struct(0)
        chunks = [c for group in footer.get(_ROW_GROUPS, []) for c in group.get(_COLUMNS, [])]
        counts = [int(chunk[_TOLD][_VALUES]) for chunk in chunks]
    except (IndexError, KeyError, AttributeError, TypeError):
        raise ValueError("a footer that is damaged") from None
    if any(count < 0 for count in counts):
        raise ValueError("a footer with counts below 0")
    return sum(counts)


class _Reader:
    """Goes over a structure once; raises `IndexError` or `ValueError` for what is none."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._others: dict[int, Callable[[int], Any]] = {
            _TRUE: lambda _: True,
            _FALSE: lambda _: False,
            _BYTE: lambda _: self._skip(1),
            _DOUBLE: lambda _: self._skip(8),
            _TEXT: lambda _: self._skip(self._whole()),
            _LIST: self._read_list,
            _SET: self._read_list,
            _MAP: self._read_map,
            _STRUCT: self.read_struct,
            **dict.fromkeys(_INTEGERS, lambda _: self._signed()),
        }

    def read_struct(self, depth: int) -> dict[int, Any]:
        """The fields by their number, as far as one of them is wanted."""
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step = head >> 4
            number = number + step if step else self._signed()
            value = self._read(head & 15, depth + 1)
            if number in _WANTED:
                found[number] = value
        return found

    def _read(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST or kind not in self._others:
            raise ValueError("a footer that is damaged")
        return self._others[kind](depth)

    def _read_list(self, depth: int) -> list[Any]:
        head = self._byte()
        count, kind = head >> 4, head & 15
        count = self._whole() if count == 15 else count
        # An element has at least a byte, also a truth value in a list.
        if count > len(self._data) - self._at:
            raise ValueError("a footer that is damaged")
        if kind in (_TRUE, _FALSE):
            return [self._byte() for _ in range(count)]
        return [self._read(kind, depth + 1) for _ in range(count)]

    def _read_map(self, depth: int) -> None:
        count = self._whole()
        kinds = self._byte() if count else 0
        if count > len(self._data) - self._at:
            raise ValueError("a footer that is damaged")
        for _ in range(count):
            self._read(kinds >> 4, depth + 1)
            self._read(kinds & 15, depth + 1)

    def _byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _skip(self, count: int) -> None:
        self._at += count
        if self._at > len(self._data):
            raise IndexError

    def _whole(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a footer that is damaged")

    def _signed(self) -> int:
        value = self._whole()
        return (value >> 1) ^ -(value & 1)
