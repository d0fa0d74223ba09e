"""Network coordinates: points and heights whose distances stand for measured round-trip times.

The model is that of Dabek, Cox, Kaashoek and Morris 2004, "Vivaldi: A Decentralized Network
Coordinate System": a node has a position in a Euclidean space, the core of the network, and a
height, its access link; a packet from a to b goes down a's height, across, and up b's height.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from thalweg.errors import Defects
from thalweg.estimate.round_trips import (
    DEFAULT_DIMENSIONS,
    DEFAULT_ROUNDS,
    FloatArray,
    IndexArray,
    RoundTrips,
    read_numbers,
    read_round_trips,
    show_shape,
)
from thalweg.estimate.vivaldi import polish as polish_points
from thalweg.estimate.vivaldi import relax
from thalweg.model.mesh import CoordinateWan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coordinates:
    """Where n nodes lie: `position` (n, d) and `height_s` (n,), both in seconds, read-only.

    >>> plane = Coordinates(position=[[0.0, 0.0], [0.03, 0.04]], height_s=[0.001, 0.002])
    >>> round(float(plane.distance_s(0, 1)), 6), float(plane.distance_s(1, 1))
    (0.053, 0.0)
    """

    position: FloatArray
    height_s: FloatArray

    def __post_init__(self) -> None:
        found = Defects()
        position = read_numbers(self.position, "position", found)
        height = read_numbers(self.height_s, "height_s", found)
        found.raise_if_any()
        rows = position.ndim == 2 and position.size > 0
        found.require(rows, "position", show_shape(position), "one row of numbers per node")
        finite = bool(np.isfinite(position).all())
        found.require(finite, "position", _extremes(position), "finite numbers")
        fitting = height.shape == position.shape[:1]
        found.require(fitting, "height_s", show_shape(height), "one height per row of position")
        fine = bool((np.isfinite(height) & (height >= 0)).all())
        found.require(fine, "height_s", _extremes(height), "finite numbers >= 0")
        found.raise_if_any()
        for name, array in (("position", position), ("height_s", height)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def nodes(self) -> int:
        """How many nodes have coordinates."""
        return len(self.height_s)

    @property
    def dimensions(self) -> int:
        """The dimensions of the Euclidean part."""
        return int(self.position.shape[1])

    def distance_s(self, a: ArrayLike, b: ArrayLike) -> FloatArray:
        """The estimated round trip between nodes a and b, which broadcast; 0 where a == b.

        ||p_a − p_b|| + h_a + h_b, as an array of the broadcast shape (0-d for two numbers).
        """
        found = Defects()
        first, second = self._indices(a, "a", found), self._indices(b, "b", found)
        found.raise_if_any()
        across = np.linalg.norm(self.position[first] - self.position[second], axis=-1)
        total = across + self.height_s[first] + self.height_s[second]
        return np.where(first == second, 0.0, total)

    def _indices(self, nodes: ArrayLike, name: str, found: Defects) -> IndexArray:
        index = np.asarray(nodes)
        rule = f"node numbers from 0 to {self.nodes - 1}"
        if index.size == 0:
            return index.astype(np.intp)
        if index.dtype.kind not in "iu":
            found.add(name, f"{index.dtype} values", rule)
        elif index.min() < 0 or index.max() >= self.nodes:
            # NumPy would read −1 as the last node.
            found.add(name, int(index.min() if index.min() < 0 else index.max()), rule)
        return index.astype(np.intp)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FitReport:
    """How well coordinates stand for the matrix they were fitted to.

    Errors are relative, |estimate − measured| / measured, over all measured pairs; `vivaldi_*` are
    those of the plain Vivaldi coordinates that the polish started from.
    """

    nodes: int
    pairs: int
    dimensions: int
    median_relative_error: float
    p90_relative_error: float
    vivaldi_median_relative_error: float
    vivaldi_p90_relative_error: float
    coordinates: Coordinates


def fit_coordinates(
    rtt_s: ArrayLike,
    *,
    rng: np.random.Generator,
    dimensions: int = DEFAULT_DIMENSIONS,
    rounds: int = DEFAULT_ROUNDS,
    polish: bool = True,
) -> Coordinates:
    """Coordinates whose distances approximate the measured round trips.

    First Vivaldi: in each of `rounds` synchronous rounds every node measures one random neighbour
    and moves along the spring between them, further when it trusts itself less than the neighbour.
    This finds the right arrangement from any start, but a node never settles: it keeps following
    its latest sample.

    Then, unless `polish` is false, L-BFGS on all pairs at once: it lowers the sum over pairs of
    ln(1 + (e/0.2)²), where e is the relative error, with heights >= 0. This (Cauchy's) loss is
    quadratic for small errors and nearly flat for large ones: no coordinates can meet the pairs
    whose detours violate the triangle inequality, and squares would bend all others towards them.

    The same matrix and generator state give the same coordinates. Another seed gives another
    arrangement, since distances do not change when all positions are turned or shifted. Bad input
    raises `InvalidInput`; so do nodes that no chain of measurements connects, because the distance
    between them would be invented.
    """
    trips = read_round_trips(rtt_s, dimensions=dimensions, rounds=rounds)
    found = relax(trips, dimensions, rounds, rng)
    return _coordinates(polish_points(trips, found, rng) if polish else found)


def fit_report(
    rtt_s: ArrayLike,
    *,
    rng: np.random.Generator,
    dimensions: int = DEFAULT_DIMENSIONS,
    rounds: int = DEFAULT_ROUNDS,
) -> FitReport:
    """Fit coordinates as `fit_coordinates` does, and say how well they fit before and after."""
    trips = read_round_trips(rtt_s, dimensions=dimensions, rounds=rounds)
    found = relax(trips, dimensions, rounds, rng)
    plain, polished = _coordinates(found), _coordinates(polish_points(trips, found, rng))
    before = np.quantile(_errors(plain, trips), [0.5, 0.9])
    after = np.quantile(_errors(polished, trips), [0.5, 0.9])
    return FitReport(
        nodes=trips.nodes,
        pairs=len(trips.rtt_s),
        dimensions=dimensions,
        median_relative_error=float(after[0]),
        p90_relative_error=float(after[1]),
        vivaldi_median_relative_error=float(before[0]),
        vivaldi_p90_relative_error=float(before[1]),
        coordinates=polished,
    )


def coordinate_wan(coordinates: Coordinates, bandwidth_bps: float) -> CoordinateWan:
    """The sites at these coordinates as a network; one way takes half a round trip."""
    return CoordinateWan(
        position_s=coordinates.position / 2.0,
        height_s=coordinates.height_s / 2.0,
        capacity_bps=bandwidth_bps,
    )


def relative_errors(coordinates: Coordinates, rtt_s: ArrayLike) -> FloatArray:
    """|estimate − measured| / measured of each measured pair a < b, ordered by a, then by b."""
    trips = read_round_trips(rtt_s, nodes=coordinates.nodes, connected=False)
    return _errors(coordinates, trips)


def _coordinates(points: tuple[FloatArray, FloatArray]) -> Coordinates:
    return Coordinates(position=points[0], height_s=points[1])


def _errors(coordinates: Coordinates, trips: RoundTrips) -> FloatArray:
    estimate = coordinates.distance_s(trips.a, trips.b)
    return np.asarray(np.abs(estimate - trips.rtt_s) / trips.rtt_s)


def _extremes(array: FloatArray) -> str:
    return f"values from {np.min(array)} to {np.max(array)}" if array.size else "no values"
