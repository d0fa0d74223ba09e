"""Loops as they are and as they are compiled: the same numbers, and Numba only where it pays."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest

import thalweg as tw
from thalweg import compiling
from thalweg.compiling import kernel, leaf, plain_loops, report_compiling
from thalweg.model import Problem
from thalweg.scenarios import cloud_edge, fog_cloud, random_application, taxi_demand
from thalweg.strategy import find_strategy, require_options

FOGS = fog_cloud(4, seed=2)
EDGE = cloud_edge(2, 3, 4, seed=1)


@leaf
def double(value):
    return 2.0 * value


@kernel
def add_doubles(values, parts):
    total = 0.0
    for value in values:
        total += double(value)
    return total / parts


def cases():
    for name in tw.strategies():
        for seed in range(3):
            yield name, random_application("stats", EDGE, seed=seed), EDGE
        yield name, taxi_demand(), FOGS


@pytest.mark.parametrize(("name", "application", "network"), list(cases()))
def test_a_plan_is_the_same_however_its_loops_run(name, application, network):
    # A search that its time limit ends has another answer on a busy machine.
    options = {"time_limit_s": 600.0}
    try:
        require_options(name, options)
    except tw.InvalidInput:
        options = {}

    def plan(*, plain):
        with plain_loops() if plain else nullcontext():
            problem = Problem(application=application, network=network)
            return find_strategy(name)(problem, None, **options)

    try:
        compiled = plan(plain=False)
    except tw.InvalidInput as error:
        with pytest.raises(tw.InvalidInput, match=str(error)[:20].replace("[", r"\[")):
            plan(plain=True)
        return
    assert plan(plain=True).to_dict() | {"seconds": 0} == compiled.to_dict() | {"seconds": 0}


def test_kernels_call_the_same_form_of_others():
    values = np.array([1.0, 2.0, 3.0])
    with plain_loops():
        assert add_doubles(values, 3.0) == 4.0
        # As NumPy has it, not as Python does.
        assert add_doubles(values, 0.0) == np.inf
        assert type(add_doubles(values, 3.0)) is float
    assert add_doubles(values, 3.0) == 4.0
    assert add_doubles(values, 0.0) == np.inf
    assert double.plain(2.0) == 4.0


def test_a_loop_that_has_taken_long_is_compiled(monkeypatch):
    @kernel
    def wait(values):
        return values.sum()

    monkeypatch.setattr(type(wait), "_worth_s", 0.0)
    with plain_loops():
        assert wait(np.ones(3)) == 3.0
        assert "compiled" not in vars(wait)
        assert wait(np.ones(3)) == 3.0
    assert "compiled" in vars(wait)


def test_compiling_is_reported():
    reports = []
    with report_compiling(lambda: reports.append(1)):
        # One that is kept nowhere.
        compiling.Kernel(lambda values: values.sum(), cache=False).compiled(np.ones(3))
    assert reports


def test_a_small_problem_loads_no_compiler(tmp_path):
    program = """
import json, sys
import thalweg as tw
app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
found = [tw.plan(app, net, name).objective for name in ("cloud-only", "aels", "improve")]
print(json.dumps(["numba" in sys.modules, found]))
"""
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded, found = json.loads(told.stdout)
    assert not loaded
    assert len(found) == 3


def test_what_loops_are_worth_follows_from_what_was_kept(tmp_path):
    assert add_doubles._worth_s in (compiling.LOADING_S, compiling.COMPILING_S)


def test_a_search_is_compiled_for_a_problem_that_is_not_small():
    @compiling.search_kernel
    def search(values):
        return values.sum()

    with plain_loops(compiling.SEARCH_CELLS):
        assert search(np.ones(3)) == 3.0
        assert "compiled" not in vars(search)
    with plain_loops(compiling.SEARCH_CELLS + 1):
        assert search(np.ones(3)) == 3.0
    assert "compiled" in vars(search)
