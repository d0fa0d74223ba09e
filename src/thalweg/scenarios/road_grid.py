"""A city of straight roads: rows and columns of crossings, and a road each way between two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index
from thalweg.scenarios.rectangles import Area

MOST_ROADS = 1_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class RoadGrid:
    """`columns` × `rows` blocks of about `width_m` × `height_m`; crossing (0, 0) is south-west.

    Roads to the east come first, then those to the west, north and south; each of them row by row
    of crossings.
    """

    columns: int
    rows: int
    width_m: float
    height_m: float
    ends_m: Floats
    """x and y of the beginning, x and y of the end of each road."""
    length_m: Floats
    angle_deg: Floats
    """Where each road leads, clockwise from north."""
    speed_ms: Floats
    score: Floats
    """How fast the road is among all, as a normal score."""

    def __post_init__(self) -> None:
        freeze(self)

    def names(self) -> tuple[str, ...]:
        """The names of the roads: of the crossing where each begins, and where it leads."""
        along, across = self.columns * (self.rows + 1), (self.columns + 1) * self.rows
        wide, narrow = self.columns, self.columns + 1
        parts = (
            (along, wide, "e"),
            (along, wide, "w"),
            (across, narrow, "n"),
            (across, narrow, "s"),
        )
        return tuple(
            f"{letter}{k % columns}-{k // columns}"
            for count, columns, letter in parts
            for k in range(count)
        )

    def expand(self, legs: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Index]:
        """The vehicle and the road of each block of these legs, in their order.

        A leg is straight: the vehicle, column and row of its beginning, column and row of its end.
        """
        vehicle, column, row, to_column, to_row = legs
        across, along = to_row - row, to_column - column
        blocks = np.abs(across) + np.abs(along)
        leg = np.repeat(np.arange(vehicle.size), blocks)
        turn = np.arange(leg.size) - np.repeat(np.cumsum(blocks) - blocks, blocks)
        at_column = column[leg] + np.sign(along)[leg] * turn
        at_row = row[leg] + np.sign(across)[leg] * turn
        per_row, count = self.columns, self.columns * (self.rows + 1)
        over = (self.columns + 1) * self.rows
        # A road to the west or south is numbered like its twin the other way.
        edge = np.select(
            [along[leg] > 0, along[leg] < 0, across[leg] > 0],
            [
                at_row * per_row + at_column,
                count + at_row * per_row + at_column - 1,
                2 * count + at_row * (per_row + 1) + at_column,
            ],
            2 * count + over + (at_row - 1) * (per_row + 1) + at_column,
        )
        return vehicle[leg], edge.astype(np.int32)


def road_grid(
    rng: np.random.Generator, area_m: Area, block_m: float, jitter: float, road_ms: Floats
) -> RoadGrid | None:
    """Roads within an area, blocks as near to `block_m` as fits; None where there are too many.

    Crossings are off their place by up to `jitter` of a block to each side: hardly a road leads
    straight east or north. All roads of a row or column of crossings have one speed; over rows and
    columns these are spread evenly over the quantiles `road_ms`, in random order.
    """
    from scipy.special import ndtri

    west, south, east, north = area_m
    # Floats first: a very large area must not overflow.
    wide, high = max(2.0, (east - west) / block_m), max(2.0, (north - south) / block_m)
    if wide * high > MOST_ROADS / 4:
        return None
    columns, rows = round(wide), round(high)
    width_m, height_m = (east - west) / columns, (north - south) / rows
    off = rng.uniform(-jitter, jitter, (2, rows, columns))
    x = west + (np.arange(columns) + 0.5 + off[0]) * width_m
    y = south + (np.arange(rows)[:, None] + 0.5 + off[1]) * height_m
    crossing = np.stack([x, y], axis=2)
    along = np.concatenate([crossing[:, :-1], crossing[:, 1:]], axis=2).reshape(-1, 4)
    across = np.concatenate([crossing[:-1], crossing[1:]], axis=2).reshape(-1, 4)
    back = [2, 3, 0, 1]
    ends = np.concatenate([along, along[:, back], across, across[:, back]])
    place = (rng.permutation(rows + columns) + 0.5) / (rows + columns)
    of_row = np.repeat(place[:rows], columns - 1)
    of_column = np.tile(place[rows:], rows - 1)
    share = np.concatenate([of_row, of_row, of_column, of_column])
    way_x, way_y = ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1]
    return RoadGrid(
        columns=columns - 1,
        rows=rows - 1,
        width_m=width_m,
        height_m=height_m,
        ends_m=ends,
        length_m=np.hypot(way_x, way_y),
        angle_deg=np.degrees(np.arctan2(way_x, way_y)) % 360.0,
        speed_ms=np.interp(share, np.linspace(0.0, 1.0, road_ms.size), road_ms),
        score=ndtri(share),
    )
