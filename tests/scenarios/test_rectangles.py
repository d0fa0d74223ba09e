"""Rectangles cut into grids."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.scenarios.rectangles import cut_rectangles, even_grid, square_grid

sides = st.floats(0.5, 10_000)


@settings(max_examples=100, deadline=None)
@given(columns=st.integers(1, 9), rows=st.integers(1, 9), width=sides, height=sides)
def test_parts_share_their_edges_and_the_outer_ones_are_the_whole_s(columns, rows, width, height):
    whole = np.array([[-3.0, 7.0, width - 3.0, height + 7.0]])
    parts = cut_rectangles(whole, columns, rows).reshape(rows, columns, 4)
    assert (parts[:, 1:, 0] == parts[:, :-1, 2]).all()
    assert (parts[1:, :, 1] == parts[:-1, :, 3]).all()
    west, south, east, north = whole[0]
    assert (parts[:, 0, 0] == west).all() and (parts[:, -1, 2] == east).all()
    assert (parts[0, :, 1] == south).all() and (parts[-1, :, 3] == north).all()


@given(parts=st.integers(1, 300), width=sides, height=sides)
def test_an_even_grid_has_all_parts_and_the_nearest_factors(parts, width, height):
    columns, rows = even_grid(parts, width, height)
    assert columns * rows == parts
    differences = [abs(k - parts // k) for k in range(1, parts + 1) if parts % k == 0]
    assert abs(columns - rows) == min(differences)
    assert columns == rows or (columns > rows) == (width >= height)


@given(parts=st.integers(1, 300), width=sides, height=sides)
def test_a_square_grid_s_parts_are_the_squarest_of_all_grids(parts, width, height):
    def stretch(columns: int, rows: int) -> float:
        ratio = (width / columns) / (height / rows)
        return max(ratio, 1 / ratio)

    columns, rows = square_grid(parts, width, height)
    assert columns * rows == parts
    grids = [(parts // k, k) for k in range(1, parts + 1) if parts % k == 0]
    assert stretch(columns, rows) <= min(stretch(*grid) for grid in grids) * (1 + 1e-9)
