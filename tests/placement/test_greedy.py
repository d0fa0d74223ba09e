"""The greedy strategies give the plans of trying node by node, ties included."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.problems import Sizes, random_problem
from generators.violations import assert_same_violations
from placement.plain_scan import (
    Choose,
    PlainScan,
    scan_aels,
    scan_aels_rp,
    scan_aels_rp_la,
    scan_cloud_only,
    scan_tcep,
    small_first,
    upstream_first,
)
from placement.tied_problems import crowded_problem, tied_problem
from thalweg.check import check
from thalweg.model import Plan, Problem
from thalweg.placement.aels import aels
from thalweg.placement.aels_rp import aels_rp
from thalweg.placement.aels_rp_la import aels_rp_la
from thalweg.placement.cloud_only import cloud_only
from thalweg.placement.tcep import tcep

STRATEGIES = {
    "aels": aels,
    "aels-rp": aels_rp,
    "aels-rp-la-free": aels_rp_la,
    "cloud-only": cloud_only,
    "tcep-best-fit": tcep,
}
ORACLES: dict[str, tuple[Choose, Callable[[PlainScan], list[int]]]] = {
    "aels": (scan_aels, upstream_first),
    "aels-rp": (scan_aels_rp, upstream_first),
    "aels-rp-la-free": (scan_aels_rp_la, upstream_first),
    "cloud-only": (scan_cloud_only, upstream_first),
    "tcep-best-fit": (scan_tcep, small_first),
}
seeds = st.integers(0, 2**32 - 1)


def compare(name: str, problem: Problem) -> tuple[Plan, PlainScan]:
    plan = STRATEGIES[name](problem)
    scan = PlainScan(problem)
    expected = scan.run(*ORACLES[name])
    sources = {operator.name for operator in problem.application.sources}
    found = {i.operator: i.node for i in plan.placement if i.operator not in sources}
    assert found == expected
    assert_same_violations(plan.violations, check(plan, problem))
    return plan, scan


def compare_runners_up(plan: Plan, scan: PlainScan, problem: Problem) -> None:
    """The runner-up is the next best with room."""
    for reason in plan.reasons:
        if reason.why.startswith(("born", "no node")):
            continue
        expected = scan.runner_up[reason.operator]
        if expected is None:
            assert reason.runner_up is None
        else:
            assert reason.runner_up == problem.network.node_name(expected[0])
            assert reason.runner_up_cost == expected[1]


def compare_tied(name: str, seed: int) -> None:
    compare_all(name, tied_problem(seed))


def compare_crowded(name: str, seed: int) -> None:
    compare_all(name, crowded_problem(seed))


def compare_all(name: str, problem: Problem) -> None:
    plan, scan = compare(name, problem)
    if name in ("aels", "cloud-only"):
        compare_runners_up(plan, scan, problem)


def random_large_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    sizes = Sizes(sites=5, nodes_per_site=5, transforms=8)
    return random_problem(rng, sizes, cloud=True, pinned=float(rng.choice([0.0, 0.3, 0.8])))


@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=80)
@given(seed=seeds)
def test_with_many_ties_the_plan_is_that_of_trying_node_by_node(name: str, seed: int) -> None:
    compare_tied(name, seed)


@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=30)
@given(seed=seeds)
def test_where_room_runs_out_the_plan_is_that_of_trying_node_by_node(name: str, seed: int) -> None:
    compare_crowded(name, seed)


@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=30)
@given(seed=seeds)
def test_on_nasty_problems_the_plan_is_that_of_trying_node_by_node(name: str, seed: int) -> None:
    compare(name, random_large_problem(seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=3000)
@given(seed=seeds)
def test_thousands_of_plans_are_those_of_trying_node_by_node(name: str, seed: int) -> None:
    compare_tied(name, seed)
    compare_crowded(name, seed)
    compare(name, random_large_problem(seed))
