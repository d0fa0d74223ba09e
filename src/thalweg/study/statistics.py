"""Means with intervals, paired tests and ranks; plain functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
ROUNDING = 1e-9
"""Figures that differ by no more than this share of the larger one are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean of n values; the bounds of its interval are None for a single value."""

    n: int
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """How values differ from those they are paired with: the mean difference and two tests."""

    difference: Mean
    t_p: float
    wilcoxon_p: float


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Mean:
    """The mean with its confidence interval, by Student's t; there has to be a value.

    >>> found = mean_interval([1.0, 2.0, 3.0])
    >>> found.mean, round(found.high - found.mean, 4)
    (2.0, 2.4841)
    """
    given = np.asarray(values, dtype=float)
    if not np.isfinite(given).all():
        return Mean(n=given.size, mean=math.inf, low=None, high=None)
    mean = float(given.mean())
    if given.size < 2:
        return Mean(n=given.size, mean=mean, low=None, high=None)
    from scipy.special import stdtrit

    error = float(given.std(ddof=1)) / math.sqrt(given.size)
    half = float(stdtrit(given.size - 1, 0.5 + confidence / 2)) * error
    return Mean(n=given.size, mean=mean, low=mean - half, high=mean + half)


def paired_test(values: Sequence[float], baseline: Sequence[float]) -> PairedTest:
    """The paired t-test and Wilcoxon's signed-rank test of at least two finite pairs.

    Differences that are rounding count as none. Where all pairs are equal both p are 1.
    """
    a, b = np.asarray(values, dtype=float), np.asarray(baseline, dtype=float)
    difference = np.where(is_same(a, b), 0.0, a - b)
    return PairedTest(
        difference=mean_interval(difference.tolist()),
        t_p=_t_test(difference),
        wilcoxon_p=_signed_rank_test(difference),
    )


def is_same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two figures differ by rounding at most."""
    return np.asarray(np.abs(a - b) <= ROUNDING * np.maximum(np.abs(a), np.abs(b)))


def _t_test(difference: np.ndarray) -> float:
    from scipy.special import stdtr

    if not difference.any():
        return 1.0
    spread = float(difference.std(ddof=1))
    if spread == 0:
        return 0.0
    t = float(difference.mean()) / (spread / math.sqrt(difference.size))
    return float(2.0 * stdtr(difference.size - 1, -abs(t)))


def _signed_rank_test(difference: np.ndarray) -> float:
    if not difference.any():
        return 1.0
    from scipy.stats import wilcoxon

    return float(wilcoxon(difference[difference != 0]).pvalue)


def adjust_holm(p_values: Sequence[float]) -> list[float]:
    """The p-values after Holm's correction for testing all of them, in their order.

    >>> adjust_holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for place, position in enumerate(sorted(range(len(p_values)), key=lambda k: p_values[k])):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[position]))
        adjusted[position] = least
    return adjusted


def rank(values: Sequence[float]) -> list[float]:
    """Ranks from 1, the least value first; values that tie share the mean of their ranks.

    >>> rank([3.0, 1.0, 1.0, float("inf")])
    [3.0, 1.5, 1.5, 4.0]
    """
    order = sorted(range(len(values)), key=lambda k: values[k])
    ranks = [0.0] * len(values)
    begin = 0
    while begin < len(order):
        first, end = values[order[begin]], begin + 1
        while end < len(order) and _ties(values[order[end]], first):
            end += 1
        for position in order[begin:end]:
            ranks[position] = (begin + 1 + end) / 2
        begin = end
    return ranks


def _ties(larger: float, first: float) -> bool:
    return larger == first or larger - first <= ROUNDING * max(abs(larger), abs(first)) < math.inf


def friedman(ranks: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """χ² and p of Friedman's test on blocks of ranks, corrected for ties.

    None for fewer than two blocks or three columns; where all tie χ² is 0 and p is 1.
    """
    table = np.asarray(ranks, dtype=float)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 3:
        return None
    from scipy.special import chdtrc

    n, k = table.shape
    within = float(((table - (k + 1) / 2) ** 2).sum())
    if within == 0:
        return 0.0, 1.0
    between = float(((table.sum(axis=0) - n * (k + 1) / 2) ** 2).sum())
    chi2 = (k - 1) * between / within
    return chi2, float(chdtrc(k - 1, chi2))
