"""Mean waiting and sojourn times of single-server queues in the steady state.

Every function broadcasts its arguments and returns a float64 array of the broadcast shape (0-d for
scalars; `float(...)` unwraps it). Rates are per second, times are seconds.

Infinity is an answer: it means that the queue grows without bound. That holds for every input that
does not describe a stable queue: an arrival rate that reaches the service rate (also where both are
zero or both infinite), a negative rate, NaN. No input raises, warns, or yields NaN. A service rate
of infinity is work that takes no time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

# Above this load ratio, γ is so small that a(1−γ) and a are the same float64.
LARGE_LOAD_RATIO = 50.0
# Newton from `_first_guess` reaches float64's precision in three steps; one to spare.
NEWTON_STEPS = 4
# Below this exponent the series of the excess is exact to float64; above it, the closed form is.
SERIES_LIMIT = 0.25


def mm1_sojourn_s(service_rate: ArrayLike, arrival_rate: ArrayLike) -> FloatArray:
    """Mean time from arrival to departure in M/M/1, 1/(μ−λ).

    >>> float(mm1_sojourn_s(10.0, 8.0)), float(mm1_sojourn_s(10.0, 10.0))
    (0.5, inf)
    """
    mu, lam, stable = _poisson_queue(service_rate, arrival_rate)
    with np.errstate(all="ignore"):
        return np.where(stable, 1.0 / (mu - lam), np.inf)


def mm1_wait_s(service_rate: ArrayLike, arrival_rate: ArrayLike) -> FloatArray:
    """Mean time from arrival to the start of service in M/M/1, ρ/(μ−λ) with ρ = λ/μ.

    >>> float(mm1_wait_s(10.0, 8.0))
    0.4
    """
    mu, lam, stable = _poisson_queue(service_rate, arrival_rate)
    with np.errstate(all="ignore"):
        return np.where(stable, (lam / mu) / (mu - lam), np.inf)


def md1_wait_s(service_rate: ArrayLike, arrival_rate: ArrayLike) -> FloatArray:
    """Mean time from arrival to the start of service in M/D/1, ρ/(2μ(1−ρ)) with ρ = λ/μ.

    >>> float(md1_wait_s(10.0, 8.0)), float(md1_wait_s(10.0, 0.0)), float(md1_wait_s(0.0, 0.0))
    (0.2, 0.0, inf)
    """
    # Half of M/M/1 exactly; μ−λ keeps the digits that 1−ρ loses close to the stability limit.
    with np.errstate(all="ignore"):
        return np.asarray(0.5 * mm1_wait_s(service_rate, arrival_rate))


def md1_sojourn_s(service_rate: ArrayLike, arrival_rate: ArrayLike) -> FloatArray:
    """Mean time from arrival to departure in M/D/1: the wait and one service time, 1/μ.

    >>> round(float(md1_sojourn_s(10.0, 8.0)), 12)
    0.3
    """
    return _add_service(md1_wait_s(service_rate, arrival_rate), service_rate)


def dm1_root(load_ratio: ArrayLike) -> FloatArray:
    """The root γ in (0, 1) of γ = exp(−a(1−γ)) for a = μβ > 1; 1.0 (unstable) otherwise.

    γ is the chance that an arrival of D/M/1 finds the server busy.

    >>> round(float(dm1_root(2.0)), 9), float(dm1_root(1.0)), float(dm1_root(1e300))
    (0.20318787, 1.0, 0.0)
    """
    a = np.asarray(load_ratio, dtype=np.float64)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(a > 1.0, np.exp(-_dm1_exponent(a)), 1.0))


def dm1_wait_s(service_rate: ArrayLike, interval_s: ArrayLike) -> FloatArray:
    """Mean wait in D/M/1, γ/(μ(1−γ)): one arrival every `interval_s`, service Exp(μ).

    Infinite where μβ <= 1; the product as float64 rounds it decides, so that 10 per second and
    0.1 s is the unstable queue that it looks like.

    >>> round(float(dm1_wait_s(10.0, 0.2)), 9), float(dm1_wait_s(10.0, 0.1))
    (0.025500097, inf)
    """
    mu, interval = np.broadcast_arrays(
        np.asarray(service_rate, dtype=np.float64), np.asarray(interval_s, dtype=np.float64)
    )
    with np.errstate(all="ignore"):
        a = mu * interval
        stable = (a > 1.0) & (mu > 0.0)
        a = np.where(stable, a, 2.0)
        exponent = _dm1_exponent(a)
        # 1−γ as exponent/a: subtracting γ from 1 would lose all digits close to the limit.
        idle = np.where(np.isinf(a), 1.0, exponent / a)
        wait = np.exp(-exponent) / idle / np.where(stable, mu, 1.0)
        return np.where(stable, wait, np.inf)


def dm1_sojourn_s(service_rate: ArrayLike, interval_s: ArrayLike) -> FloatArray:
    """Mean time from arrival to departure in D/M/1: the wait and one mean service time, 1/μ.

    >>> round(float(dm1_sojourn_s(10.0, 0.2)), 9)
    0.125500097
    """
    return _add_service(dm1_wait_s(service_rate, interval_s), service_rate)


def _poisson_queue(
    service_rate: ArrayLike, arrival_rate: ArrayLike
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Both rates, harmless where the queue is unstable, and where it is stable."""
    mu = np.asarray(service_rate, dtype=np.float64)
    lam = np.asarray(arrival_rate, dtype=np.float64)
    stable = np.asarray((mu > lam) & (lam >= 0.0))
    return np.where(stable, mu, 1.0), np.where(stable, lam, 0.0), stable


def _add_service(wait_s: FloatArray, service_rate: ArrayLike) -> FloatArray:
    """The wait and one service time; an infinite wait stays infinite whatever the rate is."""
    mu = np.asarray(service_rate, dtype=np.float64)
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(wait_s), wait_s + 1.0 / mu, np.inf)


def _dm1_exponent(a: FloatArray) -> FloatArray:
    """s = −ln γ = a(1−γ) for a > 1, to float64's relative precision; unspecified elsewhere.

    In s the equation reads a − 1 = s/(1−exp(−s)) − 1. Its right side r(s) rises from s/2 at 0 to
    s − 1 at infinity, is convex and almost straight, so Newton needs no safeguard; and a − 1 is
    exact close to the stability limit, where γ itself would lose every digit. The slope is
    (1+r)(s−r)/s, which has no cancellation at small s.
    """
    excess = np.clip(np.nan_to_num(a - 1.0, nan=1.0), 1e-17, LARGE_LOAD_RATIO)
    s = _first_guess(excess)
    for _ in range(NEWTON_STEPS):
        r = _excess_of(s)
        s = s - (r - excess) * s / ((1.0 + r) * (s - r))
    return np.where(a > LARGE_LOAD_RATIO, a, s)


def _first_guess(excess: FloatArray) -> FloatArray:
    """The s at which the first two terms of the series, s/2 + s²/12, give the excess."""
    return np.asarray(4.0 * excess / (1.0 + np.sqrt(1.0 + 4.0 / 3.0 * excess)))


def _excess_of(s: FloatArray) -> FloatArray:
    """r(s) = s/(1−exp(−s)) − 1 without cancellation (Bernoulli numbers for small s)."""
    q = s * s
    series = s / 2 + q * (
        1 / 12 - q * (1 / 720 - q * (1 / 30240 - q * (1 / 1209600 - q / 47900160)))
    )
    return np.where(s < SERIES_LIMIT, series, s / -np.expm1(-s) - 1.0)
