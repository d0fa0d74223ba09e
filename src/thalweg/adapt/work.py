"""Work per event of each operator, from what whole batches took.

What is measured is the CPU of a batch: a constant of its site, for what a batch costs whatever is
in it, and the work of all operators of the fragment on their events. The declared figures are the
prior, in proportion to which a batch's work is shared out: all of them may be wrong by one factor,
and each by another one. Batches with other operators, or in another proportion, tell operators
apart; what they do not tell apart keeps a wide interval.

With x for operators, s for sites, n for events (counted once for each window that they are in) and
w for the declared work per event, the model of a batch's instructions y is

    y = a_s + Σ_x n_x w_x exp(g + d_x) + noise

with normal priors of mean 0 on g (all declarations share an error of this factor) and on each d_x.
The posterior's mode is found by Gauss–Newton steps, the intervals by Laplace's approximation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.adapt.ratio import Estimate
from thalweg.model.graph import Floats

COMMON_SPREAD, OWN_SPREAD = math.log(30.0), math.log(2.0)
"""Standard deviations of the common factor and of each operator's own, as logarithms."""
KEPT_BATCHES = 40
_STEPS = 40
_LARGEST_STEP = 1.5
_LEAST_NOISE = 0.02
_Z_95 = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWork:
    """The instructions of one batch, and how many events each operator worked on in it."""

    site: str
    instructions: float
    events: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkHistory:
    """The last batches of each site that were measured."""

    batches: Mapping[str, tuple[BatchWork, ...]] = field(default_factory=dict)

    def add(self, batch: BatchWork) -> WorkHistory:
        """The history with one more batch; the oldest of its site goes when there are many."""
        kept = (*self.batches.get(batch.site, ()), batch)[-KEPT_BATCHES:]
        return WorkHistory(batches={**self.batches, batch.site: kept})

    def estimate(self, declared: Mapping[str, float]) -> dict[str, Estimate]:
        """By which factor each operator's work is off what was declared, for those that worked."""
        rows = [batch for site in sorted(self.batches) for batch in self.batches[site]]
        names = [n for n in declared if any(row.events.get(n, 0.0) > 0 for row in rows)]
        return _Fit(rows, names, declared).estimates() if names else {}


class _Fit:
    """The least squares of one history."""

    def __init__(
        self, rows: Sequence[BatchWork], names: Sequence[str], declared: Mapping[str, float]
    ) -> None:
        self._names = names
        sites = sorted({row.site for row in rows})
        self._measured = np.array([row.instructions for row in rows])
        self._expected = np.array(
            [[row.events.get(name, 0.0) * declared[name] for name in names] for row in rows]
        )
        self._constant = np.array([[float(row.site == site) for site in sites] for row in rows])
        self._counts = [sum(row.events.get(name, 0.0) for row in rows) for name in names]

    def estimates(self) -> dict[str, Estimate]:
        # Parameters: g, d of each operator, a of each site (in units of the largest batch).
        scale = max(float(self._measured.max()), 1e-9)
        y, x = self._measured / scale, self._expected / scale
        operators, sites = x.shape[1], self._constant.shape[1]
        parameters = np.zeros(1 + operators + sites)
        spread = np.concatenate(
            ([COMMON_SPREAD], np.full(operators, OWN_SPREAD), np.full(sites, 1.0))
        )
        # Started at the factor that explains all of it, steps do not overshoot.
        total = float(x.sum())
        parameters[0] = math.log(max(float(y.sum()) / total, 1e-6)) if total > 0 else 0.0
        noise = np.full(y.size, 0.1)
        for _ in range(_STEPS):
            residual, slope = self._linearise(parameters, y, x)
            weight = 1.0 / noise**2
            precision = (slope * weight[:, None]).T @ slope + np.diag(spread**-2.0)
            gradient = slope.T @ (weight * residual) - parameters / spread**2
            step = np.linalg.solve(precision, gradient)
            step *= min(1.0, _LARGEST_STEP / max(float(np.abs(step).max()), 1e-12))
            parameters += step
            # What is left unexplained is the noise, of all batches in proportion to their size.
            residual, _ = self._linearise(parameters, y, x)
            relative = np.abs(residual) / np.maximum(y, 1e-3)
            noise = np.maximum(y, 1e-3) * max(1.4826 * float(np.median(relative)), _LEAST_NOISE)
            if float(np.abs(step).max()) < 1e-4:
                break
        return self._describe(parameters, np.linalg.inv(precision))

    def _linearise(self, parameters: Floats, y: Floats, x: Floats) -> tuple[Floats, Floats]:
        """What the model leaves of the measurements, and its slope in every parameter."""
        operators = x.shape[1]
        parts = x * np.exp(parameters[0] + parameters[1 : 1 + operators])
        constants = parameters[1 + operators :]
        residual = y - parts.sum(axis=1) - self._constant @ constants
        slope = np.concatenate((parts.sum(axis=1)[:, None], parts, self._constant), axis=1)
        return residual, slope

    def _describe(self, parameters: Floats, covariance: Any) -> dict[str, Estimate]:
        share = self._expected.sum(axis=0)
        whole = np.zeros(parameters.size)
        whole[0] = 1.0
        whole[1 : 1 + share.size] = share / max(float(share.sum()), 1e-300)
        low, high = _interval(whole, parameters, covariance)
        # As long as the work of all together agrees with what was declared, so may each of them.
        is_agreed = low <= 0.0 <= high
        found = {}
        for place, name in enumerate(self._names):
            pick = np.zeros(parameters.size)
            pick[0] = pick[1 + place] = 1.0
            low, high = _interval(pick, parameters, covariance)
            value = 0.0 if is_agreed and low <= 0.0 <= high else float(pick @ parameters)
            found[name] = Estimate(
                value=math.exp(value),
                low=math.exp(low),
                high=math.exp(min(high, 700.0)),
                count=self._counts[place],
            )
        return found


def _interval(pick: Floats, parameters: Floats, covariance: Any) -> tuple[float, float]:
    """Where a sum of parameters is, with 95 % confidence."""
    middle = float(pick @ parameters)
    half = _Z_95 * math.sqrt(max(0.0, float(pick @ covariance @ pick)))
    return middle - half, middle + half
