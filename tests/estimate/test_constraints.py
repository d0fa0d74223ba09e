from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from generators.problems import random_placement, random_problem
from generators.violations import assert_same_violations
from thalweg.check import check
from thalweg.estimate.evaluate import make_plan
from thalweg.model import Plan, Problem

CONSTRAINTS = {
    "pin",
    "replicable",
    "cpu",
    "memory",
    "stability",
    "bandwidth",
    "response-time",
    "uplink",
}


def random_plan(seed: int) -> tuple[Problem, Plan]:
    rng = np.random.default_rng(seed)
    # Some networks are generous, so that not everything fails at once.
    problem = random_problem(rng)
    if seed % 3 == 0:
        net = problem.network
        ample = np.full(net.node_count, 1e12)
        net = net.with_available(
            node_cpu_ips=ample,
            node_cpu_available_ips=ample,
            node_memory_bytes=ample,
            node_memory_available_bytes=ample,
        )
        problem = Problem(application=problem.application, network=net, rates=problem.rates)
    astray = 0.0 if seed % 2 else 0.25
    placement = random_placement(rng, problem, astray=astray)
    return problem, make_plan(problem, placement, strategy="random")


def agree(seeds: range) -> Counter[str]:
    """Compare on every seed; how often each constraint was violated, and how often none."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        problem, plan = random_plan(seed)
        checked = check(plan, problem)
        try:
            assert_same_violations(plan.violations, checked)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        assert plan.feasible == (not checked)
        seen.update({violation.constraint for violation in checked} or {"none"})
        # A queue that never ends is the one reason for an endless latency.
        endless = any(violation.constraint == "stability" for violation in checked)
        assert math.isinf(plan.estimate.aggregate_latency_s) == endless
    return seen


@pytest.mark.parametrize("first", range(0, 360, 60))
def test_estimator_and_checker_find_the_same_violations(first: int) -> None:
    seen = agree(range(first, first + 60))
    assert seen["none"] > 0
    assert len(seen) > 6


def test_the_random_cases_violate_every_constraint() -> None:
    assert set(agree(range(120))) == CONSTRAINTS | {"none"}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 18_000, 1_000))
def test_estimator_and_checker_find_the_same_violations_many_times(first: int) -> None:
    agree(range(first, first + 1_000))


def test_violations_come_in_a_defined_order() -> None:
    places = [
        ["replicable", "pin"],
        ["cpu", "memory"],
        ["stability"],
        ["bandwidth"],
        ["response-time", "uplink"],
    ]
    rank = {name: k for k, group in enumerate(places) for name in group}
    assert set(rank) == CONSTRAINTS
    for seed in range(60):
        _, plan = random_plan(seed)
        ranks = [rank[violation.constraint] for violation in plan.violations]
        assert ranks == sorted(ranks)
