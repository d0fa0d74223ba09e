"""A table in plain text that fits a width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

WIDTH = 100
"""How wide a table may be where no terminal says otherwise."""
_GAP = 2
_SHORT = 12
"""Entries of so many characters, such as a quantity with its unit, stay on one line if they can."""
_SPACES = re.compile(r"[ \t\n\r\x0b\x0c]+")  # Where `textwrap` breaks a line.


def format_table(names: Sequence[str], rows: Sequence[Sequence[str]], *, width: int = WIDTH) -> str:
    """Columns as wide as their widest entry, two spaces apart; wide ones wrap between words.

    No line is longer than `width` unless a single word is: where wrapping is not enough, a row
    becomes a block of lines, one for each of its entries.

    >>> print(format_table(["a", "bb"], [["1", "2"], ["333", "4"]]))
    a    bb
    1    2
    333  4
    >>> print(format_table(["site", "why"], [["fog", "the least usage of all"]], width=16))
    site  why
    fog   the least
          usage of
          all
    """
    widths = fit_columns(names, rows, width)
    if widths is None and not rows:
        return "\n".join(wrap("  ".join(names), width))
    if widths is None:
        return "\n\n".join(_format_block(names, row, width) for row in rows)
    return "\n".join(line for row in (names, *rows) for line in _format_row(row, widths))


def fit_columns(
    names: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, gap: int = _GAP
) -> list[int] | None:
    """A width for each column with which all of them fit; None where words are too long for it.

    The widest columns give way first, and all of them alike.
    """
    table = [names, *rows]
    natural = [max(len(row[column]) for row in table) for column in range(len(names))]
    room = width - gap * (len(names) - 1)
    if sum(natural) <= room:
        return natural
    for short in (_SHORT, 0):
        least = [
            max(min(wide, short), *(_longest_word(row[column]) for row in table))
            for column, wide in enumerate(natural)
        ]
        if sum(least) <= room:
            return _cap(natural, least, room)
    return None


def wrap(text: str, width: int = WIDTH, *, indent: str = "") -> list[str]:
    """The text in lines of at most `width`, broken between words; longer words stay whole."""
    if len(text) <= width:
        return [text]
    lines = textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return lines or [""]


def _cap(natural: list[int], least: list[int], room: int) -> list[int]:
    """The widths cut at one height, as high as possible, none below its least."""
    low, high = 0, max(natural)
    while low < high:
        cap = (low + high + 1) // 2
        taken = sum(min(n, max(cap, m)) for n, m in zip(natural, least, strict=True))
        low, high = (cap, high) if taken <= room else (low, cap - 1)
    return [min(n, max(low, m)) for n, m in zip(natural, least, strict=True)]


def _longest_word(text: str) -> int:
    return max(map(len, _SPACES.split(text)))


def _format_row(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    cells = [wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
    return [
        (" " * _GAP)
        .join(
            (cell[line] if line < len(cell) else "").ljust(width)
            for cell, width in zip(cells, widths, strict=True)
        )
        .rstrip()
        for line in range(max(map(len, cells), default=0))
    ]


def _format_block(names: Sequence[str], row: Sequence[str], width: int) -> str:
    """A row as lines of name and entry; what is too long goes on below, indented."""
    lines = []
    for name, cell in zip(names, row, strict=True):
        lines += wrap(f"{name}: {cell}" if name else cell, width, indent=" " * _GAP)
    return "\n".join(lines)
