"""A table in plain text."""

from __future__ import annotations

from collections.abc import Sequence


def format_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest entry, two spaces apart.

    >>> print(format_table(["a", "bb"], [["1", "2"], ["333", "4"]]))
    a    bb
    1    2
    333  4
    """
    table = [list(names), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(names))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )
