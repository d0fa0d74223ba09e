from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, milp

from thalweg.scheduling.knapsack import pack


def random_case(seed, rows, columns, *, whole=False):
    rng = np.random.default_rng(seed)
    draw = (
        (lambda: rng.integers(0, 6, (rows, columns)).astype(float))
        if whole
        else (lambda: rng.random((rows, columns)))
    )
    cost, weight = draw(), draw()
    allowed = rng.random((rows, columns)) < 0.8
    low, high = weight.min(axis=0).sum(), weight.max(axis=0).sum()
    return cost, weight, allowed, float(0.9 * low + rng.random() * (high - 0.9 * low))


def try_all(cost, weight, allowed, capacity):
    columns = [np.flatnonzero(column) for column in allowed.T]
    costs = [
        sum(cost[row, k] for k, row in enumerate(choice))
        for choice in product(*columns)
        if sum(weight[row, k] for k, row in enumerate(choice)) <= capacity
    ]
    return min(costs, default=None)


@settings(deadline=None, max_examples=400)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_the_packing_is_the_best_of_all_choices(seed, rows, columns, whole):
    case = random_case(seed, rows, columns, whole=whole)
    _, weight, allowed, capacity = case
    best, found = try_all(*case), pack(*case)
    assert (found is None) == (best is None)
    if found is not None:
        streams = np.arange(columns)
        assert found.proven
        assert allowed[found.choice, streams].all()
        assert weight[found.choice, streams].sum() <= capacity * (1 + 1e-9)
        assert found.cost == pytest.approx(best, rel=1e-9)
        assert found.bound == pytest.approx(best, rel=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_larger_packings_cost_what_highs_says(seed):
    cost, weight, allowed, capacity = random_case(seed, 12, 12)
    found = pack(cost, weight, allowed, capacity)
    flat = allowed.ravel()
    one_each = np.kron(np.ones((1, 12)), np.eye(12))
    result = milp(
        cost.ravel(),
        integrality=np.ones(144),
        bounds=(0, flat.astype(float)),
        constraints=[
            LinearConstraint(one_each, 1, 1),
            LinearConstraint(weight.ravel()[None, :], -np.inf, capacity),
        ],
        options={"mip_rel_gap": 0.0},
    )
    assert (found is None) == (not result.success)
    if found is not None:
        assert found.cost == pytest.approx(result.fun, rel=1e-7)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 5))
def test_with_too_few_states_the_bound_is_still_below_every_choice(seed, rows, columns):
    case = random_case(seed, rows, columns)
    best, found = try_all(*case), pack(*case, most_states=1)
    assert (found is None) == (best is None)
    if found is not None:
        assert found.bound <= best * (1 + 1e-9) <= found.cost * (1 + 1e-9) ** 2
