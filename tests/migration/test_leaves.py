"""Leaves by position, against a loop over all rectangles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import InvalidInput
from thalweg.migration.leaves import LeafIndex
from thalweg.scenarios import broker_tree


def owner_of(areas, x: float, y: float) -> int:
    for number, (west, south, east, north) in enumerate(areas):
        if west <= x < east and south <= y < north:
            return number
    return -1


def away_from(area, x: float, y: float) -> float:
    west, south, east, north = area
    return math.hypot(max(west - x, 0.0, x - east), max(south - y, 0.0, y - north))


@st.composite
def cut_maps(draw):
    """Rectangles that do not overlap: a map cut in two, time and again, and some of it left out."""
    areas = [(-4.0, 0.0, 12.0, 8.0)]
    for _ in range(draw(st.integers(0, 7))):
        west, south, east, north = areas.pop(draw(st.integers(0, len(areas) - 1)))
        share = draw(st.sampled_from([0.25, 0.5, 1 / 3]))
        if draw(st.booleans()):
            middle = west + share * (east - west)
            areas += [(west, south, middle, north), (middle, south, east, north)]
        else:
            middle = south + share * (north - south)
            areas += [(west, south, east, middle), (west, middle, east, north)]
    keep = draw(st.lists(st.booleans(), min_size=len(areas), max_size=len(areas)))
    return [area for area, kept in zip(areas, keep, strict=True) if kept] or areas[:1]


@given(areas=cut_maps(), seed=st.integers(0, 2**32))
def test_the_owner_is_that_of_a_loop_over_all_rectangles(areas, seed):
    rng = np.random.default_rng(seed)
    corners = np.array(areas)
    # Anywhere, and right on edges and corners.
    x = np.concatenate([rng.uniform(-6, 14, 30), rng.choice(corners[:, [0, 2]].ravel(), 30)])
    y = np.concatenate([rng.uniform(-2, 10, 30), rng.choice(corners[:, [1, 3]].ravel(), 30)])
    rng.shuffle(y)
    index = LeafIndex(areas)
    found = index.find(x, y)
    assert found.tolist() == [owner_of(areas, *point) for point in zip(x, y, strict=True)]
    assert found.dtype == np.int32
    leaf, distance_m = index.nearest(x, y)
    for k, point in enumerate(zip(x, y, strict=True)):
        if found[k] >= 0:
            assert (leaf[k], distance_m[k]) == (found[k], 0.0)
        else:
            away = [away_from(area, *point) for area in areas]
            assert distance_m[k] == pytest.approx(min(away))
            assert away[leaf[k]] == pytest.approx(min(away))


def test_of_leaves_as_near_the_first_one_is_taken():
    index = LeafIndex([[5.0, 0.0, 6.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
    leaf, distance_m = index.nearest([3.0, 1.0], [0.5, 1.0])
    assert leaf.tolist() == [0, 1]
    assert distance_m.tolist() == [2.0, 0.0]


@given(levels=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_every_position_in_a_broker_tree_has_a_leaf(levels, seed):
    areas = broker_tree(levels).site_area_m[: 4 ** (levels - 1)]
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, 7_670, 50), rng.uniform(0, 3_500, 50)
    found = LeafIndex(areas).find(x, y)
    assert found.tolist() == [owner_of(areas, *point) for point in zip(x, y, strict=True)]
    assert (found >= 0).all()


def test_shapes_are_kept_and_what_is_no_number_has_no_owner():
    index = LeafIndex([[0.0, 0.0, 1.0, 1.0]])
    assert index.find(np.full((2, 3), 0.5), np.full((2, 3), 0.5)).tolist() == [[0] * 3] * 2
    assert index.find([math.nan, 0.5, math.inf], [0.5, math.nan, 0.5]).tolist() == [-1] * 3
    assert index.find([], []).size == 0
    assert len(index) == 1


@pytest.mark.parametrize(
    ("areas", "match"),
    [
        ([[0, 0, 2, 2], [1, 1, 3, 3]], "area 0 and area 1, which overlap"),
        ([[0, 0, 2, 2], [5, 5, 6, 6], [0, 0, 2, 2]], "area 0 and area 2, which overlap"),
        ([[0, 0, math.nan, 1]], r"areas_m\[0\].*finite metres"),
        ([[0, 0, math.inf, 1]], "finite metres"),
        ([[0, 0, 1, 1], [2, 0, 1, 1]], r"areas_m\[1\]"),
        ([[0, 0, 0, 1]], "west below east"),
        ([], "at least one"),
        ([[0, 0, 1]], "west, south, east, north"),
    ],
)
def test_bad_areas_are_refused(areas, match):
    with pytest.raises(InvalidInput, match=match):
        LeafIndex(areas)


def test_bad_positions_are_refused():
    index = LeafIndex([[0.0, 0.0, 1.0, 1.0]])
    with pytest.raises(InvalidInput, match="as many y as x"):
        index.find([1.0, 2.0], [1.0])
    with pytest.raises(InvalidInput, match="finite numbers"):
        index.nearest([math.nan], [1.0])


def test_areas_whose_edges_cut_the_map_too_often_are_refused(monkeypatch):
    monkeypatch.setattr("thalweg.migration.leaves.MOST_CELLS", 15)
    with pytest.raises(InvalidInput, match="line the areas up"):
        LeafIndex([[0.0, 0.0, 1.0, 1.0], [2.0, 2.0, 3.0, 3.0]])
