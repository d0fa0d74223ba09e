"""Network coordinates: points and heights whose distances stand for measured round-trip times.

The model is that of Dabek, Cox, Kaashoek and Morris 2004, "Vivaldi: A Decentralized Network
Coordinate System": a node has a position in a Euclidean space, the core of the network, and a
height, its access link; a packet from a to b goes down a's height, across, and up b's height.

A round-trip matrix is an (n, n) array of seconds. NaN and 0 mean "not measured", the diagonal is
not read, and where both directions of a pair were measured their mean counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg.errors import Defects
from thalweg.units import DURATION

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

DEFAULT_DIMENSIONS = 5
DEFAULT_ROUNDS = 500

# Vivaldi's tuning constants c_c (time step) and c_e (error weight), as its authors recommend.
_TIME_STEP = 0.25
_ERROR_WEIGHT = 0.25
# The relative error from which on the polish lets a pair count for less and less.
_TOLERATED_ERROR = 0.2
# The polish may take this many steps times pairs, within these bounds: small matrices are cheap.
_POLISH_WORK = 15_000_000
_FEWEST_STEPS, _MOST_STEPS = 100, 1_000
_POLISH_MEMORY = 20
_MOST_HALVINGS = 30
# Bounds the polish of large matrices: each of 5,000 nodes still is in 160 pairs.
_MOST_POLISHED_PAIRS = 400_000
# The pairs of a node that has no more than these are never left out.
_SCARCE_PAIRS = 32

_MOST_DIMENSIONS = 32
_MOST_ROUNDS = 1_000_000
_SHORTEST_RTT_S = 1e-9
_MOST_ENTRIES_SHOWN = 10


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
        position = _read_numbers(self.position, "position", found)
        height = _read_numbers(self.height_s, "height_s", found)
        found.raise_if_any()
        rows = position.ndim == 2 and position.size > 0
        found.require(rows, "position", _shape(position), "one row of numbers per node")
        finite = bool(np.isfinite(position).all())
        found.require(finite, "position", _extremes(position), "finite numbers")
        fitting = height.shape == position.shape[:1]
        found.require(fitting, "height_s", _shape(height), "one height per row of position")
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
    trips = _read_round_trips(rtt_s, dimensions=dimensions, rounds=rounds)
    plain = _relax(trips, dimensions, rounds, rng)
    return _polish(trips, plain, rng) if polish else plain


def fit_report(
    rtt_s: ArrayLike,
    *,
    rng: np.random.Generator,
    dimensions: int = DEFAULT_DIMENSIONS,
    rounds: int = DEFAULT_ROUNDS,
) -> FitReport:
    """Fit coordinates as `fit_coordinates` does, and say how well they fit before and after."""
    trips = _read_round_trips(rtt_s, dimensions=dimensions, rounds=rounds)
    plain = _relax(trips, dimensions, rounds, rng)
    polished = _polish(trips, plain, rng)
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


def relative_errors(coordinates: Coordinates, rtt_s: ArrayLike) -> FloatArray:
    """|estimate − measured| / measured of each measured pair a < b, ordered by a, then by b."""
    trips = _read_round_trips(rtt_s, nodes=coordinates.nodes, connected=False)
    return _errors(coordinates, trips)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RoundTrips:
    """The measured pairs a < b, ordered by a, then by b, with their round trips."""

    nodes: int
    a: IndexArray
    b: IndexArray
    rtt_s: FloatArray


def _errors(coordinates: Coordinates, trips: _RoundTrips) -> FloatArray:
    estimate = coordinates.distance_s(trips.a, trips.b)
    return np.asarray(np.abs(estimate - trips.rtt_s) / trips.rtt_s)


def _read_round_trips(
    rtt_s: ArrayLike,
    *,
    dimensions: int = DEFAULT_DIMENSIONS,
    rounds: int = DEFAULT_ROUNDS,
    nodes: int | None = None,
    connected: bool = True,
) -> _RoundTrips:
    """The measured pairs of a matrix; raises all that is wrong with it and with the settings."""
    found = Defects()
    matrix = _read_numbers(rtt_s, "rtt_s", found)
    if not found:
        _require_round_trips(matrix, nodes, found)
    _require_count(dimensions, "dimensions", _MOST_DIMENSIONS, found)
    _require_count(rounds, "rounds", _MOST_ROUNDS, found)
    found.raise_if_any()
    trips = _pairs_of(matrix)
    found.require(len(trips.a) > 0, "rtt_s", "no measured pair", "at least one measured pair")
    if connected and len(trips.a) > 0:
        _require_connected(trips, found)
    found.raise_if_any()
    return trips


def _require_round_trips(matrix: FloatArray, nodes: int | None, found: Defects) -> None:
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] >= 2
    if not square or len(matrix) != (nodes or len(matrix)):
        rule = f"{nodes} × {nodes} numbers" if nodes else "n × n numbers, n >= 2"
        found.add("rtt_s", _shape(matrix), rule)
        return
    fine = np.isnan(matrix) | (matrix == 0.0)
    fine |= (matrix >= _SHORTEST_RTT_S) & (matrix <= DURATION.largest)
    np.fill_diagonal(fine, True)
    wrong = np.argwhere(~fine)
    rule = f"seconds between {_SHORTEST_RTT_S:g} and {DURATION.largest:g}"
    for i, j in wrong[:_MOST_ENTRIES_SHOWN]:
        hint = "write nan (or 0) for a pair that was not measured"
        found.add(f"rtt_s[{i}][{j}]", float(matrix[i, j]), rule, hint)
    if len(wrong) > _MOST_ENTRIES_SHOWN:
        found.add("rtt_s", f"{len(wrong)} such entries in all", rule)


def _pairs_of(matrix: FloatArray) -> _RoundTrips:
    measured = matrix > 0.0
    total = np.where(measured, matrix, 0.0)
    total += total.T.copy()
    a, b = np.nonzero(np.triu(measured | measured.T, 1))
    times_measured = measured[a, b].astype(np.float64) + measured[b, a]
    return _RoundTrips(nodes=len(matrix), a=a, b=b, rtt_s=total[a, b] / times_measured)


def _require_connected(trips: _RoundTrips, found: Defects) -> None:
    # SciPy is loaded where it is used: importing it takes longer than all of Thalweg.
    from scipy.sparse.csgraph import connected_components

    groups, group_of = connected_components(_graph(trips), directed=False)
    if groups > 1:
        stranger = int(np.flatnonzero(group_of != group_of[0])[0])
        found.add(
            "rtt_s",
            f"{groups} groups of nodes without a measurement between them",
            "a chain of measured pairs between any two nodes",
            f"measure node {stranger} against node 0, or leave it out",
        )


def _graph(trips: _RoundTrips) -> Any:
    """The round trips as a symmetric sparse matrix."""
    from scipy.sparse import coo_array

    ends = (np.concatenate([trips.a, trips.b]), np.concatenate([trips.b, trips.a]))
    both = np.concatenate([trips.rtt_s, trips.rtt_s])
    return coo_array((both, ends), shape=(trips.nodes, trips.nodes)).tocsr()


def _relax(
    trips: _RoundTrips, dimensions: int, rounds: int, rng: np.random.Generator
) -> Coordinates:
    """Vivaldi's spring relaxation with height vectors, all nodes at once in each round."""
    graph = _graph(trips)
    # In units of the typical round trip, the constants below hold for a rack and for the planet.
    unit_s = float(np.median(trips.rtt_s))
    first, degree = graph.indptr[:-1], np.diff(graph.indptr)
    position = rng.normal(scale=0.01, size=(trips.nodes, dimensions))
    height = np.full(trips.nodes, 0.01)
    error = np.ones(trips.nodes)
    for _ in range(rounds):
        sample = first + rng.integers(degree)
        other, rtt = graph.indices[sample], graph.data[sample] / unit_s
        apart = position - position[other]
        heights = height + height[other]
        estimate = np.sqrt((apart * apart).sum(axis=1)) + heights
        balance = error / (error + error[other])
        weight = _ERROR_WEIGHT * balance
        # No worse than 100 %: one absurd sample must not make a node distrust itself for long.
        sample_error = np.minimum(np.abs(estimate - rtt) / rtt, 1.0)
        # Heights stay above 0, so an estimate does too, even where two positions coincide.
        pull = _TIME_STEP * balance * (rtt - estimate) / estimate
        position = position + pull[:, np.newaxis] * apart
        height = np.maximum(height + pull * heights, 1e-6)
        error = np.maximum(sample_error * weight + error * (1.0 - weight), 1e-6)
    return Coordinates(position=position * unit_s, height_s=height * unit_s)


def _polished_pairs(trips: _RoundTrips, rng: np.random.Generator) -> IndexArray:
    """All pairs, or where they are too many a random selection that leaves no node without."""
    count = len(trips.rtt_s)
    if count <= _MOST_POLISHED_PAIRS:
        return np.arange(count)
    degree = np.bincount(np.concatenate([trips.a, trips.b]), minlength=trips.nodes)
    scarce = np.minimum(degree[trips.a], degree[trips.b]) <= _SCARCE_PAIRS
    drawn = rng.choice(count, _MOST_POLISHED_PAIRS, replace=False)
    return np.union1d(np.flatnonzero(scarce), drawn)


def _polish(trips: _RoundTrips, start: Coordinates, rng: np.random.Generator) -> Coordinates:
    """The nearest minimum of the robust relative error (see `fit_coordinates`)."""
    from scipy.sparse import csr_array

    chosen = _polished_pairs(trips, rng)
    unit_s = float(np.median(trips.rtt_s))
    rtt = trips.rtt_s[chosen] / unit_s
    nodes, dimensions = start.position.shape
    # Rows are pairs: `between @ p` is p_a − p_b, and `between.T @ f` sums the forces per node.
    ends = np.stack([trips.a[chosen], trips.b[chosen]], axis=1).ravel()
    rows = np.arange(0, 2 * len(rtt) + 1, 2)
    shape = (len(rtt), nodes)
    between = csr_array((np.tile([1.0, -1.0], len(rtt)), ends, rows), shape=shape)
    along = csr_array((np.ones(2 * len(rtt)), ends, rows), shape=shape)
    between_back, along_back = between.T.tocsr(), along.T.tocsr()

    def loss_and_slope(unknowns: FloatArray) -> tuple[float, FloatArray]:
        position = unknowns[nodes:].reshape(nodes, dimensions)
        apart = between @ position
        # The tiny addend keeps the slope finite where two nodes coincide.
        across = np.sqrt(np.einsum("ij,ij->i", apart, apart) + 1e-18)
        roots = unknowns[:nodes]
        error = ((across + along @ (roots * roots)) / rtt - 1.0) / _TOLERATED_ERROR
        squared = error * error
        force = 2.0 / _TOLERATED_ERROR * error / (1.0 + squared) / rtt
        slope = between_back @ ((force / across)[:, np.newaxis] * apart)
        loss = float(np.log1p(squared).sum())
        return loss, np.concatenate([2.0 * roots * (along_back @ force), slope.ravel()])

    # The square roots of the heights are free numbers, where the heights have a bound.
    roots, position = np.sqrt(start.height_s / unit_s), start.position / unit_s
    steps = min(max(_POLISH_WORK // len(rtt), _FEWEST_STEPS), _MOST_STEPS)
    best = _descend(loss_and_slope, np.concatenate([roots, position.ravel()]), steps)
    return Coordinates(
        position=best[nodes:].reshape(nodes, dimensions) * unit_s,
        height_s=best[:nodes] ** 2 * unit_s,
    )


def _descend(
    loss_and_slope: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray, steps: int
) -> FloatArray:
    """A minimum near the start: L-BFGS (Nocedal 1980) with step halving, for at most `steps`.

    SciPy's own spends most of its time waking BLAS threads for its 40 × 40 matrices.
    """
    point, (loss, slope) = start, loss_and_slope(start)
    memory: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=_POLISH_MEMORY)
    for _ in range(steps):
        step = -_inverse_curvature(memory, slope)
        descent = float(step @ slope)
        for _ in range(_MOST_HALVINGS):
            new_loss, new_slope = loss_and_slope(point + step)
            if new_loss <= loss + 1e-4 * descent:
                break
            step, descent = step / 2.0, descent / 2.0
        else:
            break
        change = new_slope - slope
        bend = float(step @ change)
        # Only a valley's curvature may enter, so that each step leads downhill.
        if bend > 1e-12 * float(change @ change):
            memory.append((step, change, bend))
        gain = loss - new_loss
        point, loss, slope = point + step, new_loss, new_slope
        if gain <= 1e-10 * loss + 1e-12:
            break
    return point


def _inverse_curvature(
    memory: deque[tuple[FloatArray, FloatArray, float]], slope: FloatArray
) -> FloatArray:
    """The inverse Hessian that the remembered steps suggest, times the slope."""
    if not memory:
        return slope * min(1.0, 0.1 / float(np.abs(slope).max(initial=1e-300)))
    product = slope
    weights = []
    for step, change, bend in reversed(memory):
        weights.append(float(step @ product) / bend)
        product = product - weights[-1] * change
    _, change, bend = memory[-1]
    product = product * (bend / float(change @ change))
    for (step, change, bend), weight in zip(memory, reversed(weights), strict=True):
        product = product + (weight - float(change @ product) / bend) * step
    return product


def _read_numbers(values: ArrayLike, path: str, found: Defects) -> FloatArray:
    """A copy as float64; an empty array and a defect for anything but real numbers."""
    try:
        array = np.asarray(values)
    except ValueError:
        found.add(path, "rows of different lengths", "an array of numbers")
        return np.empty(0)
    if array.dtype.kind not in "fiu":
        found.add(path, f"an array of {array.dtype}", "an array of numbers")
        return np.empty(0)
    return np.array(array, dtype=np.float64, order="C")


def _require_count(value: int, path: str, most: int, found: Defects) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    found.require(whole and 1 <= value <= most, path, value, f"a whole number from 1 to {most}")


def _shape(array: FloatArray) -> str:
    return f"an array of shape {array.shape}"


def _extremes(array: FloatArray) -> str:
    return f"values from {np.min(array)} to {np.max(array)}" if array.size else "no values"
