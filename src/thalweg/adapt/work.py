"""Work per event of each operator, from what whole batches took.

What is measured is the CPU of a batch: a constant of its site and fragment, for what a batch costs
whatever is in it, and the work of all operators of the fragment on their events. The declared
figures are the prior, in proportion to which a batch's work is shared out: all of them may be wrong
by one factor, and each by another one. Batches with other operators, or in another proportion, set
operators apart; what they do not distinguish keeps a wide interval.

With x for operators, s for sites with their fragments, n for events (counted once for each window
that they are in) and w for the declared work per event, a batch's instructions y are

    y = a_s + Σ_x n_x w_x exp(g + d_x) + noise

with normal priors of mean 0 on g (all declarations share an error of this factor) and on each d_x.
The posterior's mode is found by Gauss–Newton steps, the intervals by Laplace's approximation around
it, with a wider prior on each d_x: of several operators that batches do not tell apart, one alone
may be the wrong one, and a prior by which one is would change its mind about which.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.adapt.ratio import Estimate
from thalweg.model.graph import Floats

COMMON_SPREAD, OWN_SPREAD = math.log(30.0), math.log(2.0)
"""Standard deviations of the common factor and of each operator's own, as logarithms."""
WRONG_SPREAD = math.log(6.0)
"""The standard deviation of an operator's own factor, where that may be the wrong one."""
KEPT_BATCHES = 40
_STEPS = 40
_LARGEST_STEP = 1.5
_LARGEST_LOG = 100.0
_LEAST_NOISE = 0.02
_OUTLIER = 1.5
_Z_95 = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWork:
    """The instructions of one batch, and how many events each of its operators worked on."""

    site: str
    instructions: float
    events: Mapping[str, float]

    @property
    def place(self) -> tuple[str, ...]:
        """Where batches cost the same whatever is in them: the site with what it runs."""
        return (self.site, *sorted(self.events))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkHistory:
    """The last batches of each site that were measured."""

    batches: Mapping[str, tuple[BatchWork, ...]] = field(default_factory=dict)

    def add(self, batch: BatchWork) -> WorkHistory:
        """The history with one more batch; the oldest of its site goes when there are many."""
        kept = (*self.batches.get(batch.site, ()), batch)[-KEPT_BATCHES:]
        return WorkHistory(batches={**self.batches, batch.site: kept})

    def estimate(
        self, declared: Mapping[str, float], *, vague: Collection[str] = ()
    ) -> dict[str, Estimate]:
        """By which factor each operator's work is off what was declared, for those that worked.

        Of the `vague` ones nothing was declared: what is given stands for it. Nothing is found out
        from figures that no computer can put in one equation.
        """
        rows = [batch for site in sorted(self.batches) for batch in self.batches[site]]
        names = [n for n in declared if any(row.events.get(n, 0.0) > 0 for row in rows)]
        if not names:
            return {}
        try:
            # Numbers that are too large or too small for an equation have no solution to show.
            with np.errstate(all="ignore"):
                return _Fit(rows, names, declared, vague).estimates()
        except np.linalg.LinAlgError:
            return {}


class _Fit:
    """The least squares of one history."""

    def __init__(
        self,
        rows: Sequence[BatchWork],
        names: Sequence[str],
        declared: Mapping[str, float],
        vague: Collection[str],
    ) -> None:
        self._names = names
        self._own_spread = [COMMON_SPREAD if name in vague else OWN_SPREAD for name in names]
        places = sorted({row.place for row in rows})
        self._measured = np.array([row.instructions for row in rows])
        self._expected = np.array(
            [[row.events.get(name, 0.0) * declared[name] for name in names] for row in rows]
        )
        self._constant = np.array([[float(row.place == each) for each in places] for row in rows])
        self._counts = [sum(row.events.get(name, 0.0) for row in rows) for name in names]

    def estimates(self) -> dict[str, Estimate]:
        # Parameters: g, d of each operator, a of each site (in units of the largest batch).
        scale = max(float(self._measured.max()), 1e-9)
        y, x = self._measured / scale, self._expected / scale
        operators, places = x.shape[1], self._constant.shape[1]
        parameters = np.zeros(1 + operators + places)
        own = slice(1, 1 + operators)
        prior = np.concatenate(([COMMON_SPREAD], self._own_spread, np.ones(places))) ** -2.0
        # Started at the factor that explains all of it, steps do not overshoot.
        total = float(x.sum())
        parameters[0] = math.log(max(float(y.sum()) / total, 1e-6)) if total > 0 else 0.0
        noise = np.full(y.size, 0.1)
        # Parameters explain some of the noise, too.
        freedom = math.sqrt(y.size / max(1.0, y.size - operators - places))
        for _ in range(_STEPS):
            residual, slope = self._linearise(parameters, y, x)
            # Some batches take much longer than they should; they must not count for all others.
            weight = (
                np.minimum(1.0, _OUTLIER * noise / np.maximum(np.abs(residual), 1e-12)) / noise**2
            )
            precision = (slope * weight[:, None]).T @ slope + np.diag(prior)
            gradient = slope.T @ (weight * residual) - prior * parameters
            step = np.linalg.solve(precision, gradient)
            step *= min(1.0, _LARGEST_STEP / max(float(np.abs(step).max()), 1e-12))
            parameters += step
            # What is left unexplained is the noise, of all batches in proportion to their size.
            residual, _ = self._linearise(parameters, y, x)
            relative = np.abs(residual) / np.maximum(y, 1e-3)
            unexplained = 1.4826 * freedom * float(np.median(relative))
            noise = np.maximum(y, 1e-3) * max(unexplained, _LEAST_NOISE)
            if float(np.abs(step).max()) < 1e-4:
                break
        wide = np.maximum(self._own_spread, WRONG_SPREAD) ** -2.0
        precision[own, own] += np.diag(np.minimum(prior[own], wide) - prior[own])
        covariance = np.linalg.inv(precision)
        if not (np.abs(parameters) < _LARGEST_LOG).all() or not np.isfinite(covariance).all():
            return {}
        return self._describe(parameters, covariance)

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
                high=math.exp(min(high, 7 * _LARGEST_LOG)),
                count=self._counts[place],
            )
        return found


def _interval(pick: Floats, parameters: Floats, covariance: Any) -> tuple[float, float]:
    """Where a sum of parameters is, with 95 % confidence."""
    middle = float(pick @ parameters)
    half = _Z_95 * math.sqrt(max(0.0, float(pick @ covariance @ pick)))
    return middle - half, middle + half
