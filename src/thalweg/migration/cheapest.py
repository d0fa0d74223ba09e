"""How likely each of several uncertain costs is to end up the least."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from thalweg.errors import Defects
from thalweg.model.graph import Floats

Spread = Literal["uniform", "normal"]
_POINTS = 801
_WIDE = 6.0
"""Standard deviations beyond which a normal cost is not looked for."""


def probability_of_least(
    costs: npt.ArrayLike, error: npt.ArrayLike, *, spread: Spread = "uniform"
) -> Floats:
    """P(X_j is the least) = ∫ f_j(y) ∏_{x≠j} P(X_x > y) dy, costs independent of each other.

    `error` is how far each cost may be off: half the width of a uniform cost, the standard
    deviation of a normal one. Where nothing is uncertain the least is the least; ties share.

    >>> probability_of_least([1.0, 1.0], [0.5, 0.5]).tolist()
    [0.5, 0.5]
    >>> probability_of_least([1.0, 3.0], [0.5, 0.5]).tolist()
    [1.0, 0.0]
    """
    mean, off = np.asarray(costs, dtype=float), np.asarray(error, dtype=float)
    defects = Defects()
    good = mean.ndim == 1 and mean.size > 0 and bool(np.isfinite(mean).all())
    defects.require(good, "costs", mean.shape, "at least one finite cost")
    sane = off.shape == mean.shape and bool((off >= 0).all() and np.isfinite(off).all())
    defects.require(sane, "error", off.shape, "a finite number >= 0 for each cost")
    defects.require(spread in ("uniform", "normal"), "spread", spread, "uniform or normal")
    defects.raise_if_any()
    if not off.any():
        least = mean == mean.min()
        return np.asarray(least / least.sum())
    # A cost that is certain still needs a width that the points can see.
    off = np.maximum(off, 1e-6 * off.max())
    reach = off * (_WIDE if spread == "normal" else 1.0)
    found = np.array([_least(j, mean, off, reach, spread) for j in range(mean.size)])
    return np.asarray(found / found.sum())


def _least(j: int, mean: Floats, off: Floats, reach: Floats, spread: Spread) -> float:
    """The integral for one cost, by the trapezium rule between all kinks."""
    low, high = mean[j] - reach[j], mean[j] + reach[j]
    kinks = np.concatenate([mean - reach, mean + reach, mean])
    inside = kinks[(kinks > low) & (kinks < high)]
    y = np.unique(np.concatenate([np.linspace(low, high, _POINTS), inside]))
    z = (y - mean[:, None]) / off[:, None]
    if spread == "uniform":
        above = np.clip(0.5 - 0.5 * z, 0.0, 1.0)
        density = np.full(y.size, 1.0 / (2.0 * off[j]))
    else:
        above = ndtr(-z)
        density = np.exp(-0.5 * z[j] ** 2) / (off[j] * np.sqrt(2.0 * np.pi))
    above[j] = 1.0
    return float(np.trapezoid(density * above.prod(axis=0), y))
