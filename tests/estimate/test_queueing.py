"""The queueing formulas, against high-precision roots and against simulated queues."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from thalweg.estimate.queueing import (
    dm1_root,
    dm1_sojourn_s,
    dm1_wait_s,
    md1_sojourn_s,
    md1_wait_s,
    mm1_sojourn_s,
    mm1_wait_s,
)

EVERY_TIME = (
    mm1_sojourn_s,
    mm1_wait_s,
    md1_sojourn_s,
    md1_wait_s,
    dm1_sojourn_s,
    dm1_wait_s,
)
POISSON_TIMES = (mm1_sojourn_s, mm1_wait_s, md1_sojourn_s, md1_wait_s)

any_float = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
# The distance to the stability limit, spread over its orders of magnitude.
excesses = st.floats(min_value=-15.0, max_value=2.8).map(lambda power: 10.0**power)


def slow_dm1(load_ratio: float) -> tuple[Decimal, Decimal]:
    """(γ, 1−γ) by bisection with 60 digits; the root in (ln(a)/a, 1) is the one wanted."""
    with localcontext() as context:
        context.prec = 60
        a = Decimal(load_ratio)
        low, high = a.ln() / a, Decimal(1)
        for _ in range(190):
            middle = (low + high) / 2
            if 1 - middle > (-a * middle).exp():
                low = middle
            else:
                high = middle
        return (-a * low).exp(), low


def close(got: float, wanted: Decimal, relative: float) -> bool:
    return abs(Decimal(float(got)) / wanted - 1) <= Decimal(relative)


@settings(deadline=None)
@given(excesses)
def test_dm1_root_and_wait_agree_with_a_60_digit_bisection(excess: float) -> None:
    a = 1.0 + excess
    gamma, idle = slow_dm1(a)
    assert close(dm1_root(a), gamma, 1e-12)
    assert close(dm1_wait_s(a, 1.0), gamma / (Decimal(a) * idle), 1e-12)


@pytest.mark.parametrize("excess", [2.3e-16, 1e-15, 1e-12, 1e-9, 1e-6])
def test_dm1_wait_keeps_its_digits_at_the_stability_limit(excess: float) -> None:
    a = 1.0 + excess
    gamma, idle = slow_dm1(a)
    assert close(dm1_wait_s(2.0 * a, 0.5), gamma / (2 * Decimal(a) * idle), 1e-12)


def test_dm1_wait_is_exact_to_the_last_digits_below_the_large_load_ratios() -> None:
    for excess in np.geomspace(1e-11, 1.0, 80):
        a = 1.0 + float(excess)
        gamma, idle = slow_dm1(a)
        assert close(dm1_wait_s(a, 1.0), gamma / (Decimal(a) * idle), 3e-15)


@pytest.mark.parametrize("load_ratio", [1.12, 1.13, 49.99, 50.0, 50.01, 51.0, 51.01, 700.0])
def test_dm1_root_is_continuous_where_its_method_changes(load_ratio: float) -> None:
    gamma, _ = slow_dm1(load_ratio)
    assert close(dm1_root(load_ratio), gamma, 1e-12)


@settings(deadline=None)
@given(any_float)
def test_dm1_root_is_always_a_probability(load_ratio: float) -> None:
    gamma = float(dm1_root(load_ratio))
    assert 0.0 <= gamma <= 1.0
    if not load_ratio > 1.0:
        assert gamma == 1.0


def test_dm1_root_vanishes_for_huge_load_ratios() -> None:
    assert dm1_root([1e6, 1e300, math.inf]).tolist() == [0.0, 0.0, 0.0]


@settings(deadline=None)
@given(st.lists(excesses, min_size=2, max_size=20))
def test_dm1_root_falls_as_the_server_gets_faster(found: list[float]) -> None:
    gammas = dm1_root(1.0 + np.sort(np.array(found)))
    assert np.all(gammas[1:] <= gammas[:-1] * (1.0 + 1e-12))


def simulated_waits(
    services: NDArray[np.float64], intervals: NDArray[np.float64], skip: int
) -> NDArray[np.float64]:
    """The mean wait of each row by Lindley's recursion: W' = max(0, W + S − T), from 0 on."""
    wait = np.zeros(len(services))
    total = np.zeros(len(services))
    for step in range(services.shape[1]):
        if step >= skip:
            total += wait
        wait = np.maximum(0.0, wait + services[:, step] - intervals[:, step])
    return total / (services.shape[1] - skip)


def exponential(rng: np.random.Generator, mean: float, shape: tuple[int, int]) -> NDArray:
    return rng.exponential(mean, shape)


def constant(rng: np.random.Generator, mean: float, shape: tuple[int, int]) -> NDArray:
    return np.full(shape, mean)


@pytest.mark.parametrize("load", [0.5, 0.8])
@pytest.mark.parametrize(
    ("service", "arrival", "formula"),
    [
        (exponential, exponential, lambda mu, lam: mm1_wait_s(mu, lam)),
        (constant, exponential, lambda mu, lam: md1_wait_s(mu, lam)),
        (exponential, constant, lambda mu, lam: dm1_wait_s(mu, 1.0 / lam)),
    ],
    ids=["M/M/1", "M/D/1", "D/M/1"],
)
def test_wait_is_what_a_simulated_queue_shows(
    service: Callable[..., NDArray], arrival: Callable[..., NDArray], formula: Callable, load: float
) -> None:
    rng = np.random.default_rng(7)
    service_rate, shape = 4.0, (1500, 1500)
    waits = simulated_waits(
        service(rng, 1.0 / service_rate, shape),
        arrival(rng, 1.0 / (load * service_rate), shape),
        skip=500,
    )
    deviation = waits.std(ddof=1) / math.sqrt(len(waits))
    wanted = float(formula(service_rate, load * service_rate))
    assert deviation < 0.02 * wanted, "too noisy to tell a wrong formula"
    assert abs(waits.mean() - wanted) < 4.0 * deviation


@settings(deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(0.0, 0.999))
def test_poisson_formulas_are_the_textbook_ones(mu: float, load: float) -> None:
    lam = load * mu
    rho = lam / mu
    assert float(mm1_sojourn_s(mu, lam)) == pytest.approx(1 / (mu - lam), rel=1e-12)
    assert float(mm1_wait_s(mu, lam)) == pytest.approx(1 / (mu - lam) - 1 / mu, abs=1e-9 / mu)
    assert float(md1_wait_s(mu, lam)) == pytest.approx(rho / (2 * mu * (1 - rho)), rel=1e-9)
    assert float(md1_sojourn_s(mu, lam)) == pytest.approx(
        float(md1_wait_s(mu, lam)) + 1 / mu, rel=1e-12
    )


@settings(deadline=None)
@given(any_float, any_float)
@example(math.nan, math.inf)
@example(math.inf, math.inf)
@example(5e-324, 0.0)
@example(1e308, 5e-324)
@example(math.inf, 0.0)
def test_no_input_raises_warns_or_yields_nan(first: float, second: float) -> None:
    with np.errstate(all="raise"):
        for time in EVERY_TIME:
            assert float(time(first, second)) >= 0.0


@settings(deadline=None)
@given(any_float, any_float)
def test_poisson_queues_are_infinite_exactly_where_they_are_unstable(mu: float, lam: float) -> None:
    stable = mu > lam >= 0.0
    for time in POISSON_TIMES:
        if not stable:
            assert float(time(mu, lam)) == math.inf
        elif mu - lam > 1e-300:
            assert float(time(mu, lam)) < math.inf


@settings(deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_dm1_is_infinite_exactly_where_it_is_unstable(mu: float, interval: float) -> None:
    for time in (dm1_wait_s, dm1_sojourn_s):
        assert math.isinf(float(time(mu, interval))) == (mu * interval <= 1.0)


@settings(deadline=None)
@given(st.floats(1e-3, 1e3), excesses)
def test_the_compiled_dm1_is_the_one_for_arrays(mu: float, excess: float) -> None:
    from thalweg.estimate.compiled.queueing import stable_dm1_sojourn_s

    interval = (1.0 + excess) / mu
    if mu * interval > 1.0:
        wanted = float(dm1_sojourn_s(mu, interval))
        assert stable_dm1_sojourn_s(mu, interval) == pytest.approx(wanted, rel=1e-12)


def test_a_negative_rate_and_a_negative_interval_are_no_stable_queue() -> None:
    assert float(dm1_wait_s(-2.0, -3.0)) == math.inf
    assert float(mm1_wait_s(-2.0, -3.0)) == math.inf


@pytest.mark.parametrize("time", EVERY_TIME)
def test_work_without_duration_takes_no_time(time: Callable) -> None:
    assert float(time(math.inf, 3.0)) == 0.0


@pytest.mark.parametrize("time", EVERY_TIME)
def test_a_server_that_never_serves_takes_forever(time: Callable) -> None:
    assert float(time(0.0, 3.0)) == math.inf
    assert float(time(0.0, 0.0)) == math.inf


def test_a_queue_without_arrivals_has_no_wait() -> None:
    assert float(mm1_wait_s(4.0, 0.0)) == 0.0
    assert float(md1_wait_s(4.0, 0.0)) == 0.0
    assert float(dm1_wait_s(4.0, math.inf)) == 0.0
    for time, second in ((mm1_sojourn_s, 0.0), (md1_sojourn_s, 0.0), (dm1_sojourn_s, math.inf)):
        assert float(time(4.0, second)) == 0.25


@pytest.mark.parametrize("time", EVERY_TIME)
def test_arrays_broadcast_and_agree_with_scalars(time: Callable) -> None:
    first = np.array([[0.5], [2.0], [math.inf]])
    second = np.array([0.1, 1.0, 1.9, 4.0])
    together = time(first, second)
    assert together.shape == (3, 4)
    assert together.dtype == np.float64
    alone = [[float(time(a, b)) for b in second] for a in first[:, 0]]
    assert together.tolist() == alone


def test_scalars_give_zero_dimensional_arrays() -> None:
    for time in EVERY_TIME:
        got = time(4, 1)
        assert isinstance(got, np.ndarray)
        assert got.shape == ()
