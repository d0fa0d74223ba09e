from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import thalweg as tw
from scheduling.problems import random_fog_problem
from thalweg.estimate.evaluate import make_plan
from thalweg.scheduling.rewrite import count_changes
from thalweg.scheduling.schedule import Table
from thalweg.strategy import find_strategy

RIVALS = [
    "ru-min-cut",
    "data-min-cut",
    "fog-only",
    "tsoo-both-ways",
    "atsoo-both-ways",
    "trcs",
    "fc-interplay",
]


def solve(problem, current=None, **options):
    return find_strategy("tsoo-optimal")(problem, current, **options)


def try_all(problem, cost=lambda plan: plan.objective, *, most):
    """The least cost of all combinations of cuts that break nothing; None where there is none."""
    table = Table.of(problem)
    streams = table.traffic.site.size
    assume(len(table.cuts) ** streams <= most)
    best = None
    for combination in product(range(len(table.cuts)), repeat=streams):
        placement = table.place(np.array(combination))
        plan = make_plan(problem, placement, strategy="all", objective_name="usage")
        if plan.feasible and (best is None or cost(plan) < best):
            best = cost(plan)
    return best


def compare_with_all(seed, fogs, transforms, most):
    problem = random_fog_problem(seed, fogs=fogs, transforms=transforms)
    best = try_all(problem, most=most)
    plan = solve(problem)
    assert plan.feasible == (best is not None)
    if best is not None:
        assert plan.gap == 0
        assert plan.objective == pytest.approx(best, rel=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5))
def test_no_combination_of_cuts_is_better(seed, fogs, transforms):
    compare_with_all(seed, fogs, transforms, most=100)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5))
def test_no_combination_of_cuts_is_better_in_more_and_larger_cases(seed, fogs, transforms):
    compare_with_all(seed, fogs, transforms, most=1300)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.floats(0.0001, 0.1))
def test_with_a_price_on_changes_no_combination_is_better_either(seed, fogs, transforms, weight):
    problem = random_fog_problem(seed, fogs=fogs, transforms=transforms)
    table = Table.of(problem)
    rng = np.random.default_rng(seed)
    running = table.place(rng.integers(len(table.cuts), size=table.traffic.site.size))

    def cost(plan):
        changes = count_changes(problem.application, running, plan.placement)
        return plan.objective + weight * changes.total

    best = try_all(problem, cost, most=100)
    plan = solve(problem, running, reschedule_weight=weight)
    assert plan.feasible == (best is not None)
    if best is not None:
        assert plan.gap == 0
        assert cost(plan) == pytest.approx(best, rel=1e-9)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**6), st.integers(1, 10), st.integers(1, 7))
def test_no_rival_is_feasible_where_it_is_not_or_cheaper(seed, fogs, transforms):
    problem = random_fog_problem(seed, fogs=fogs, transforms=transforms)
    plan = solve(problem)
    for name in RIVALS:
        rival = find_strategy(name)(problem)
        if rival.feasible:
            assert plan.feasible
            assert plan.objective <= rival.objective * (1 + 1e-9)


def test_the_number_of_boxes_is_checked():
    problem = random_fog_problem(0)
    with pytest.raises(tw.InvalidInput, match="most_boxes"):
        solve(problem, most_boxes=0)
    with pytest.raises(tw.InvalidInput, match="reschedule_weight"):
        solve(problem, reschedule_weight=-1.0)
