"""Which leaf broker each vehicle is connected to, moment by moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thalweg.errors import Defects
from thalweg.migration.brokers import Brokers
from thalweg.migration.compiled.sampling import sample_rows
from thalweg.migration.fan import NOWHERE
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index
from thalweg.model.workload import Tracks

MARGIN_M = 50.0
"""Roads at the rim of a map leave it by a few metres; farther out nobody owns a position."""
_MOST_SHOWN = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Connections:
    """Positions and leaves of all vehicles at moments of equal distance; rows are vehicles."""

    names: tuple[str, ...]
    start_s: float
    step_s: float
    x_m: Floats
    """Shape (vehicles, steps); NaN where a vehicle is not on the map."""
    y_m: Floats
    leaf: Index
    """The number of the broker; `NOWHERE` where a vehicle is not on the map."""
    at_the_rim: int
    """Positions a little outside of all areas, given to the nearest leaf."""

    def __post_init__(self) -> None:
        freeze(self)

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        tracks: Tracks,
        brokers: Brokers,
        *,
        step_s: float = 1.0,
        margin_m: float = MARGIN_M,
    ) -> Connections:
        """Sample the tracks and connect each position to the leaf that owns it.

        A position farther than `margin_m` outside of all areas is refused, never dropped.
        """
        defects = Defects()
        users = int(tracks.user[-1]) + 1 if tracks.user.size else 0
        defects.require(users > 0, "tracks", "no position", "at least one")
        defects.require(users <= len(names), "names", len(names), f"a name for each of {users}")
        defects.require(
            bool(np.isfinite(step_s) and step_s > 0), "step_s", step_s, "a finite number > 0"
        )
        defects.raise_if_any()
        first = np.searchsorted(tracks.user, np.arange(len(names) + 1))
        start_s, end_s = float(tracks.time_s.min()), float(tracks.time_s.max())
        steps = int((end_s - start_s) / step_s + 1e-9) + 1
        row = sample_rows(tracks.time_s, first, start_s, step_s, steps)
        unseen = np.flatnonzero((row < 0).all(axis=1))
        defects.require(
            unseen.size == 0,
            "tracks",
            _some(names, unseen),
            "every vehicle on the map at some step",
            "take a shorter step",
        )
        defects.raise_if_any()
        there = row >= 0
        x, y = (np.where(there, figure[row], np.nan) for figure in (tracks.x_m, tracks.y_m))
        leaf, at_the_rim = _connect(names, x, y, there, brokers, margin_m, start_s, step_s)
        return cls(
            names=tuple(names),
            start_s=start_s,
            step_s=step_s,
            x_m=x,
            y_m=y,
            leaf=leaf,
            at_the_rim=at_the_rim,
        )

    @property
    def vehicles(self) -> int:
        """How many there are."""
        return int(self.leaf.shape[0])

    @property
    def steps(self) -> int:
        """How many moments there are."""
        return int(self.leaf.shape[1])

    @cached_property
    def there(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether a vehicle is on the map."""
        return np.asarray(self.leaf != NOWHERE)

    @cached_property
    def number(self) -> dict[str, int]:
        """The row of each vehicle by name."""
        return {name: row for row, name in enumerate(self.names)}

    def hand_overs(self) -> Index:
        """How often each vehicle changes its leaf."""
        before, after = self.leaf[:, :-1], self.leaf[:, 1:]
        changed = (before != after) & (before != NOWHERE) & (after != NOWHERE)
        return np.asarray(changed.sum(axis=1), dtype=np.int32)


def _connect(
    names: Sequence[str],
    x: Floats,
    y: Floats,
    there: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    brokers: Brokers,
    margin_m: float,
    start_s: float,
    step_s: float,
) -> tuple[Index, int]:
    leaf = np.full(x.shape, NOWHERE, dtype=np.int32)
    found = brokers.leaf_index.find(x[there], y[there])
    outside = np.flatnonzero(found < 0)
    if outside.size:
        nearest, distance = brokers.leaf_index.nearest(x[there][outside], y[there][outside])
        far = distance > margin_m
        if far.any():
            vehicle, moment = (axis[outside[far]] for axis in np.nonzero(there))
            gone = np.unique(vehicle)
            worst = int(np.argmax(distance[far]))
            at_s = start_s + step_s * float(moment[worst])
            defects = Defects()
            defects.add(
                "tracks",
                _some(names, gone),
                f"positions within {margin_m:g} m of the brokers' areas",
                f"{names[vehicle[worst]]} is {distance[far][worst]:.0f} m away at {at_s:g} s: "
                "cut the trace, or give the brokers a larger area",
            )
            defects.raise_if_any()
        found[outside] = nearest
    leaf[there] = brokers.leaves[found]
    return leaf, int(outside.size)


def _some(names: Sequence[str], which: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> str:
    shown = ", ".join(names[k] for k in which[:_MOST_SHOWN])
    return shown if which.size <= _MOST_SHOWN else f"{shown} and {which.size - _MOST_SHOWN} more"
