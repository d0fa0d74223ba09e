"""How coordinates are found: Vivaldi's springs first, then a polish of all pairs at once."""

from __future__ import annotations

import numpy as np

from thalweg.estimate.round_trips import FloatArray, IndexArray, RoundTrips, sparse_matrix

# Vivaldi's tuning constants c_c (time step) and c_e (error weight), as its authors recommend.
_TIME_STEP = 0.25
_ERROR_WEIGHT = 0.25
# The relative error from which on the polish lets a pair count for less and less.
_TOLERATED_ERROR = 0.2
# The polish may take this many steps times pairs, within these bounds: small matrices are cheap.
_POLISH_WORK = 15_000_000
_FEWEST_STEPS, _MOST_STEPS = 100, 1_000
# Bounds the polish of large matrices: each of 5,000 nodes still is in 160 pairs.
_MOST_POLISHED_PAIRS = 400_000
# The pairs of a node that has no more than these are never left out.
_SCARCE_PAIRS = 32

Points = tuple[FloatArray, FloatArray]
"""Positions (n, d) and heights (n,), in seconds."""


def relax(trips: RoundTrips, dimensions: int, rounds: int, rng: np.random.Generator) -> Points:
    """Vivaldi's spring relaxation with height vectors, all nodes at once in each round."""
    graph = sparse_matrix(trips)
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
    return position * unit_s, height * unit_s


def _polished_pairs(trips: RoundTrips, rng: np.random.Generator) -> IndexArray:
    """All pairs, or where they are too many a random selection that leaves no node without."""
    count = len(trips.rtt_s)
    if count <= _MOST_POLISHED_PAIRS:
        return np.arange(count)
    degree = np.bincount(np.concatenate([trips.a, trips.b]), minlength=trips.nodes)
    scarce = np.minimum(degree[trips.a], degree[trips.b]) <= _SCARCE_PAIRS
    drawn = rng.choice(count, _MOST_POLISHED_PAIRS, replace=False)
    return np.union1d(np.flatnonzero(scarce), drawn)


def polish(trips: RoundTrips, start: Points, rng: np.random.Generator) -> Points:
    """The nearest minimum of the robust relative error (see `fit_coordinates`)."""
    from scipy.optimize import minimize
    from scipy.sparse import csr_array

    chosen = _polished_pairs(trips, rng)
    unit_s = float(np.median(trips.rtt_s))
    rtt = trips.rtt_s[chosen] / unit_s
    nodes, dimensions = start[0].shape
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
    roots, position = np.sqrt(start[1] / unit_s), start[0] / unit_s
    steps = min(max(_POLISH_WORK // len(rtt), _FEWEST_STEPS), _MOST_STEPS)
    best = minimize(
        loss_and_slope,
        np.concatenate([roots, position.ravel()]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-9},
    ).x
    return best[nodes:].reshape(nodes, dimensions) * unit_s, best[:nodes] ** 2 * unit_s
