"""Work per event from whole batches: what can be told apart, and what cannot."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from thalweg.adapt.work import COMMON_SPREAD, KEPT_BATCHES, OWN_SPREAD, BatchWork, WorkHistory

DECLARED = {"a": 9000.0, "b": 1500.0, "c": 12000.0}


def history(true, fragments, seed=0, noise=0.02, constant=2e5, batches=20):
    rng, found = np.random.default_rng(seed), WorkHistory()
    for site, names in fragments.items():
        for _ in range(batches):
            events = {name: float(rng.integers(20, 400)) for name in names}
            work = constant + sum(events[name] * true[name] for name in names)
            measured = work * float(rng.normal(1.0, noise))
            found = found.add(BatchWork(site=site, instructions=measured, events=events))
    return found


@pytest.mark.parametrize("factor", [1 / 30, 1 / 3, 3.0, 30.0])
@pytest.mark.parametrize("wrong", ["a", "c"])
def test_an_operator_that_is_wrong_alone_is_found_where_batches_tell_it_apart(factor, wrong):
    true = {**DECLARED, wrong: DECLARED[wrong] * factor}
    found = history(true, {"fog": "abc", "cloud": "ac"}).estimate(DECLARED)
    assert found[wrong].low <= factor * 1.1
    assert found[wrong].high >= factor / 1.1
    if factor > 1:
        assert found[wrong].value == pytest.approx(factor, rel=0.3)


@pytest.mark.parametrize("factor", [1 / 30, 30.0])
def test_a_common_error_is_shared_out_in_proportion(factor):
    true = {name: work * factor for name, work in DECLARED.items()}
    rng, found = np.random.default_rng(1), WorkHistory()
    for _ in range(30):
        # All operators see the same events: nothing tells them apart.
        count = float(rng.integers(50, 400))
        work = sum(count * each for each in true.values())
        batch = BatchWork(site="fog", instructions=work, events=dict.fromkeys(true, count))
        found = found.add(batch)
    estimates = found.estimate(DECLARED)
    total = sum(DECLARED[n] * e.value for n, e in estimates.items())
    assert total == pytest.approx(factor * sum(DECLARED.values()), rel=0.1)
    for estimate in estimates.values():
        assert estimate.value == pytest.approx(factor, rel=0.5)
        assert estimate.high / estimate.low > 2.0


def test_what_batches_say_nothing_of_stays_as_declared():
    found = history(DECLARED, {"fog": "abc"}, noise=0.5, constant=5e8).estimate(DECLARED)
    assert all(estimate.value == 1.0 for estimate in found.values())
    assert WorkHistory().estimate(DECLARED) == {}
    assert "c" not in history(DECLARED, {"fog": "ab"}).estimate(DECLARED)


def test_the_mode_is_the_one_that_a_plain_search_finds():
    """The posterior written out, searched by SciPy from several starts; shares no code."""
    true = {"a": 30 * 9000.0, "b": 1500.0, "c": 12000.0}
    given = history(true, {"fog": "abc", "cloud": "ac"}, noise=0.01)
    rows = [b for site in sorted(given.batches) for b in given.batches[site]]
    names, sites = list(DECLARED), sorted(given.batches)
    scale = max(row.instructions for row in rows)

    def cost(x, noise):
        common, own, constants = x[0], x[1:4], x[4:]
        total = (common / COMMON_SPREAD) ** 2 + sum((own / OWN_SPREAD) ** 2) + sum(constants**2)
        for row in rows:
            expected = constants[sites.index(row.site)] + sum(
                row.events.get(n, 0.0) * DECLARED[n] * np.exp(common + own[k]) / scale
                for k, n in enumerate(names)
            )
            measured = row.instructions / scale
            total += ((measured - expected) / (noise * measured)) ** 2
        return total

    starts = [np.zeros(6), np.r_[2.0, np.zeros(5)]]
    searched = [minimize(cost, start, args=(0.02,), method="Powell") for start in starts]
    best = min(searched, key=lambda result: result.fun)
    found = given.estimate(DECLARED)
    wanted = {name: np.exp(best.x[0] + best.x[1 + k]) for k, name in enumerate(names)}
    assert found["a"].value == pytest.approx(wanted["a"], rel=0.05)
    work = [sum(DECLARED[n] * each[n] for n in names) for each in (wanted, values_of(found))]
    assert work[1] == pytest.approx(work[0], rel=0.05)


def values_of(found):
    return {name: estimate.value for name, estimate in found.items()}


def test_only_the_last_batches_of_a_site_are_kept():
    found = history(DECLARED, {"fog": "a"}, batches=3 * KEPT_BATCHES)
    assert len(found.batches["fog"]) == KEPT_BATCHES


def test_what_reads_as_no_work_at_all_and_figures_beyond_numbers_find_nothing_out():
    nothing = WorkHistory()
    for _ in range(4):
        nothing = nothing.add(BatchWork(site="fog", instructions=1e-300, events={"a": 1e9}))
    for declared in ({"a": 1e300}, {"a": 1e-300}):
        assert all(e.low <= e.value <= e.high for e in nothing.estimate(declared).values())


def test_an_operator_without_a_declaration_does_not_put_its_work_on_others():
    """`b` is declared rightly; nothing is known of `c`, which is ten times as much."""
    true = {"b": 1e4, "c": 1e5}
    given = history(true, {"fog": "bc", "cloud": "b"}, noise=0.01)
    found = given.estimate({"b": 1e4, "c": 1e4}, vague={"c"})
    assert found["b"].value == pytest.approx(1.0, rel=0.1)
    assert found["c"].value == pytest.approx(10.0, rel=0.1)
