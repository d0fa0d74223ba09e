"""Vehicles on a map: where each of them was, and on which road."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index
from thalweg.model.workload import Tracks

_OPTIONAL = ("speed_ms", "angle_deg", "edge", "pos_m")


@dataclass(frozen=True, eq=False, kw_only=True)
class VehicleTracks:
    """The tracks of named vehicles; user v of `tracks` is the vehicle `names[v]`.

    Every vehicle has at least one row. Speed, angle (degrees clockwise from north), road and
    metres along the road stand beside the rows of `tracks`, or are None where nobody knows them.

    >>> one = Tracks(user=np.array([0, 0, 1]), time_s=np.array([0.0, 1.0, 5.0]),
    ...              x_m=np.array([0.0, 9.0, 3.0]), y_m=np.zeros(3))
    >>> found = VehicleTracks(names=("a", "b"), tracks=one)
    >>> found, found.first_row.tolist(), found.at("a").x_m.tolist()
    (<VehicleTracks: 2 vehicles, 3 positions over 5 s>, [0, 2, 3], [0.0, 9.0])
    """

    names: tuple[str, ...]
    tracks: Tracks
    speed_ms: Floats | None = None
    angle_deg: Floats | None = None
    edge: Index | None = None
    """Position in `edge_names`; −1 where the road is not known."""
    edge_names: tuple[str, ...] = ()
    pos_m: Floats | None = None
    filled: int = 0
    """How many rows were not measured but put between two that were."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "edge_names", tuple(self.edge_names))
        defects = Defects()
        user = self.tracks.user
        distinct = len(set(self.names)) == len(self.names)
        defects.require(distinct, "names", "a name twice", "each vehicle once")
        seen = np.unique(user)
        defects.require(
            np.array_equal(seen, np.arange(len(self.names))),
            "tracks.user",
            f"{seen.size} users",
            f"rows of each of the {len(self.names)} vehicles, numbered from 0",
        )
        for name in _OPTIONAL:
            values = getattr(self, name)
            if values is not None:
                good = values.shape == user.shape and bool(np.isfinite(values).all())
                defects.require(good, name, values.shape, f"{user.size} finite numbers")
        if self.edge is not None and self.edge.size:
            inside = self.edge.min() >= -1 and self.edge.max() < len(self.edge_names)
            rule = f"positions in edge_names, −1…{len(self.edge_names) - 1}"
            defects.require(bool(inside), "edge", int(self.edge.max()), rule)
        defects.require(0 <= self.filled <= user.size, "filled", self.filled, "a number of rows")
        defects.raise_if_any()
        freeze(self)

    def __repr__(self) -> str:
        rows = self.tracks.user.size
        return f"<VehicleTracks: {self.count} vehicles, {rows} positions over {self.span_s:g} s>"

    @property
    def count(self) -> int:
        """How many vehicles there are."""
        return len(self.names)

    @cached_property
    def start_s(self) -> float:
        """The first moment of all; 0 without vehicles."""
        return float(self.tracks.time_s.min(initial=np.inf)) if self.count else 0.0

    @cached_property
    def end_s(self) -> float:
        """The last moment of all; 0 without vehicles."""
        return float(self.tracks.time_s.max(initial=-np.inf)) if self.count else 0.0

    @property
    def span_s(self) -> float:
        """From the first moment of all to the last."""
        return self.end_s - self.start_s

    @cached_property
    def first_row(self) -> npt.NDArray[np.int64]:
        """The rows of vehicle v are first_row[v]…first_row[v + 1] − 1."""
        rows = np.bincount(self.tracks.user, minlength=self.count)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(rows)]).astype(np.int64)

    def at(self, vehicle: int | str) -> Tracks:
        """The rows of one vehicle, by its number or name."""
        number = self.names.index(vehicle) if isinstance(vehicle, str) else vehicle
        rows = slice(int(self.first_row[number]), int(self.first_row[number + 1]))
        of = self.tracks
        return Tracks(
            user=of.user[rows], time_s=of.time_s[rows], x_m=of.x_m[rows], y_m=of.y_m[rows]
        )
