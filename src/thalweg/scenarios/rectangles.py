"""Rectangles on a map, and how they are cut into smaller ones without gap or overlap."""

from __future__ import annotations

import math

import numpy as np

from thalweg.model.graph import Floats

Area = tuple[float, float, float, float]
"""West, south, east, north, in metres."""


def cut_rectangles(rectangles: Floats, columns: int, rows: int) -> Floats:
    """Each rectangle cut into a grid, from its south-west corner, row by row.

    Neighbours share their edge exactly: a part's east is the next one's west, bit by bit.

    >>> cut_rectangles(np.array([[0.0, 0.0, 4.0, 2.0]]), columns=2, rows=1)
    array([[0., 0., 2., 2.],
           [2., 0., 4., 2.]])
    """
    west, south, east, north = rectangles.T
    x = np.linspace(west, east, columns + 1, axis=1)
    y = np.linspace(south, north, rows + 1, axis=1)
    parts = np.empty((len(rectangles), rows, columns, 4))
    parts[..., 0] = x[:, None, :-1]
    parts[..., 1] = y[:, :-1, None]
    parts[..., 2] = x[:, None, 1:]
    parts[..., 3] = y[:, 1:, None]
    return parts.reshape(-1, 4)


def even_grid(parts: int, width: float, height: float) -> tuple[int, int]:
    """Columns and rows as near to each other as they can be; the longer side gets more.

    >>> even_grid(4, 7670, 3500), even_grid(6, 1, 2), even_grid(7, 2, 1)
    ((2, 2), (2, 3), (7, 1))
    """
    few = next(k for k in range(math.isqrt(parts), 0, -1) if parts % k == 0)
    many = parts // few
    return (many, few) if width >= height else (few, many)


def square_grid(parts: int, width: float, height: float) -> tuple[int, int]:
    """Columns and rows that make the parts as square as they can be; ties: more columns.

    >>> square_grid(40, 7670, 3500)
    (10, 4)
    """
    grids = [(parts // rows, rows) for rows in range(1, parts + 1) if parts % rows == 0]
    return min(grids, key=lambda grid: abs(math.log(width / grid[0] / (height / grid[1]))))
