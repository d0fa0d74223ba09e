"""What is known of somebody's way through the brokers: sequences of hosts, each with its weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats, Index

NOWHERE = -1
"""In place of a broker: not connected."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Fan:
    """A plan that may branch: a Markov chain over hosts, unrolled into weighted sequences.

    >>> fan = Fan.of([0.5, 0.5], [[1, 2, 2], [1, 1, 2]])
    >>> fan.distribution(1), fan.distribution(2)
    ({1: 0.5, 2: 0.5}, {2: 1.0})
    >>> fan.transitions(0)
    {(1, 1): 0.5, (1, 2): 0.5}
    """

    weight: Floats
    """Probability of each sequence; they add up to 1. The first one is the one to go by."""
    hosts: Index
    """Shape (sequences, steps); `NOWHERE` while not connected."""

    def __post_init__(self) -> None:
        defects = Defects()
        shape = self.hosts.shape
        good = len(shape) == 2 and shape[0] > 0 and self.weight.shape == shape[:1]
        defects.require(good, "hosts", shape, "a row of hosts for each of at least one weight")
        total = float(self.weight.sum())
        defects.require(
            bool((self.weight >= 0).all()) and abs(total - 1.0) < 1e-6,
            "weight",
            total,
            "probabilities that add up to 1",
        )
        defects.raise_if_any()
        freeze(self)

    @classmethod
    def of(cls, weight: npt.ArrayLike, hosts: npt.ArrayLike) -> Fan:
        """Equal sequences are one; the most likely comes first, ties as they were given."""
        rows, shares = np.asarray(hosts, dtype=np.int32), np.asarray(weight, dtype=float)
        if len(rows) > 1:
            rows, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
            summed = np.bincount(which.ravel(), weights=shares)
            order = np.lexsort((first, -summed))
            rows, shares = rows[order], summed[order]
        return cls(weight=shares, hosts=np.ascontiguousarray(rows))

    @classmethod
    def certain(cls, hosts: npt.ArrayLike) -> Fan:
        """A plan of one sequence."""
        return cls(weight=np.ones(1), hosts=np.atleast_2d(np.asarray(hosts, dtype=np.int32)))

    @property
    def steps(self) -> int:
        """How many steps ahead it goes."""
        return int(self.hosts.shape[1])

    @property
    def is_certain(self) -> bool:
        """Whether there is but one sequence."""
        return len(self.weight) == 1

    def distribution(self, step: int) -> dict[int, float]:
        """Probability of each host at a step, by its number."""
        hosts, which = np.unique(self.hosts[:, step], return_inverse=True)
        shares = np.bincount(which.ravel(), weights=self.weight)
        return dict(zip(hosts.tolist(), shares.tolist(), strict=True))

    def transitions(self, step: int) -> dict[tuple[int, int], float]:
        """Probability to be at one host at a step and at another one at the next."""
        pairs, which = np.unique(self.hosts[:, step : step + 2], axis=0, return_inverse=True)
        shares = np.bincount(which.ravel(), weights=self.weight)
        return {(int(a), int(b)): float(p) for (a, b), p in zip(pairs, shares, strict=True)}

    def probability(self, step: int, host: int) -> float:
        """How likely it is to be at a host at a step."""
        return float(self.weight[self.hosts[:, step] == host].sum())

    def narrowed(self, most: int) -> tuple[Fan, float]:
        """The most likely sequences alone, and how likely those are that were left out."""
        if len(self.weight) <= most:
            return self, 0.0
        kept = float(self.weight[:most].sum())
        return Fan(weight=self.weight[:most] / kept, hosts=self.hosts[:most]), 1.0 - kept
