"""Measured round trips between nodes, read from a matrix.

A round-trip matrix is an (n, n) array of seconds. NaN and 0 mean "not measured", the diagonal is
not read, and where both directions of a pair were measured their mean counts.
"""

from __future__ import annotations

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

_MOST_DIMENSIONS = 32
_MOST_ROUNDS = 1_000_000
_SHORTEST_RTT_S = 1e-9
_MOST_ENTRIES_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrips:
    """The measured pairs a < b, ordered by a, then by b, with their round trips."""

    nodes: int
    a: IndexArray
    b: IndexArray
    rtt_s: FloatArray


def read_round_trips(
    rtt_s: ArrayLike,
    *,
    dimensions: int = DEFAULT_DIMENSIONS,
    rounds: int = DEFAULT_ROUNDS,
    nodes: int | None = None,
    connected: bool = True,
) -> RoundTrips:
    """The measured pairs of a matrix; raises all that is wrong with it and with the settings."""
    found = Defects()
    matrix = read_numbers(rtt_s, "rtt_s", found)
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
        found.add("rtt_s", show_shape(matrix), rule)
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


def _pairs_of(matrix: FloatArray) -> RoundTrips:
    measured = matrix > 0.0
    total = np.where(measured, matrix, 0.0)
    total += total.T.copy()
    a, b = np.nonzero(np.triu(measured | measured.T, 1))
    times_measured = measured[a, b].astype(np.float64) + measured[b, a]
    return RoundTrips(nodes=len(matrix), a=a, b=b, rtt_s=total[a, b] / times_measured)


def _require_connected(trips: RoundTrips, found: Defects) -> None:
    # SciPy is loaded where it is used: importing it takes longer than all of Thalweg.
    from scipy.sparse.csgraph import connected_components

    groups, group_of = connected_components(sparse_matrix(trips), directed=False)
    if groups > 1:
        stranger = int(np.flatnonzero(group_of != group_of[0])[0])
        found.add(
            "rtt_s",
            f"{groups} groups of nodes without a measurement between them",
            "a chain of measured pairs between any two nodes",
            f"measure node {stranger} against node 0, or leave it out",
        )


def sparse_matrix(trips: RoundTrips) -> Any:
    """The round trips as a symmetric sparse matrix."""
    from scipy.sparse import coo_array

    ends = (np.concatenate([trips.a, trips.b]), np.concatenate([trips.b, trips.a]))
    both = np.concatenate([trips.rtt_s, trips.rtt_s])
    return coo_array((both, ends), shape=(trips.nodes, trips.nodes)).tocsr()


def read_numbers(values: ArrayLike, path: str, found: Defects) -> FloatArray:
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


def show_shape(array: FloatArray) -> str:
    """How an array of the wrong shape is shown in a message."""
    return f"an array of shape {array.shape}"
