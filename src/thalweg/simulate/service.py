"""How the time of service varies around its mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.simulate.compiled.draws import DETERMINISTIC, EMPIRICAL, EXPONENTIAL

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Exponential:
    """Memoryless: the second M of an M/M/1 queue."""

    @property
    def code(self) -> int:
        """What kernels call it."""
        return EXPONENTIAL

    @property
    def factors(self) -> Floats:
        """Values to choose from; none here."""
        return _ONE


@dataclass(frozen=True, slots=True)
class Deterministic:
    """Always the mean: the D of an M/D/1 queue."""

    @property
    def code(self) -> int:
        """What kernels call it."""
        return DETERMINISTIC

    @property
    def factors(self) -> Floats:
        """Values to choose from; none here."""
        return _ONE


@dataclass(frozen=True, slots=True, eq=False)
class Empirical:
    """As measured: one of these values at random, in proportion to their mean.

    >>> Empirical([1.0, 1.0, 4.0]).factors.tolist()
    [0.5, 0.5, 2.0]
    """

    values: npt.ArrayLike

    def __post_init__(self) -> None:
        defects = Defects()
        try:
            values = np.asarray(self.values, dtype=float)
        except (TypeError, ValueError):
            values = np.empty(0)
        good = values.ndim == 1 and values.size > 0 and bool(np.isfinite(values).all())
        good = good and bool((values >= 0).all()) and float(values.sum()) > 0
        defects.require(good, "values", f"{values.size} values", "finite numbers >= 0, not all 0")
        defects.raise_if_any()
        scaled = values / values.mean()
        scaled.setflags(write=False)
        object.__setattr__(self, "values", scaled)

    @property
    def code(self) -> int:
        """What kernels call it."""
        return EMPIRICAL

    @property
    def factors(self) -> Floats:
        """Values to choose from, with the mean 1."""
        return np.asarray(self.values)


Service = Exponential | Deterministic | Empirical
_ONE = np.ones(1)
