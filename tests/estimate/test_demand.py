from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import random_placement, random_problem
from generators.slow import SlowTraffic
from generators.small import chain_problem, place
from thalweg.estimate.demand import Demand, estimate_demand
from thalweg.estimate.rates import estimate_rates
from thalweg.model import CountWindow, Operator, Placement, Problem, TimeWindow, deploy


def demand_of(problem: Problem, placement: Placement) -> tuple[Demand, list[str]]:
    deployment = deploy(problem, placement)
    demand = estimate_demand(deployment, estimate_rates(deployment))
    return demand, [deployment.instance_name(k) for k in range(deployment.size)]


@given(st.integers(0, 2**32 - 1))
def test_demand_is_that_of_each_instance_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    deployment = deploy(problem, random_placement(rng, problem))
    demand = estimate_demand(deployment, estimate_rates(deployment))
    slow = SlowTraffic(deployment)
    everyone = range(deployment.size)
    assert demand.window_bytes == pytest.approx([slow.window_bytes(k) for k in everyone])
    assert demand.memory_bytes == pytest.approx([slow.memory(k) for k in everyone])
    assert demand.work_per_event == pytest.approx([slow.work(k) for k in everyone])
    assert demand.passes == pytest.approx([slow.passes(k) for k in everyone])
    load = [slow.work(k) * slow.events_in(k) * slow.passes(k) for k in everyone]
    assert demand.cpu_ips == pytest.approx(load)


def test_the_four_kinds_of_window_by_hand() -> None:
    problem = chain_problem(
        Operator(name="none", cpu_per_event=3.0, cpu_per_byte=2.0, memory=100.0),
        Operator(name="count", cpu_per_event=3.0, memory=7.0, window=CountWindow(6)),
        Operator(name="tumbling", cpu_per_byte=0.5, memory_factor=2.0, window=TimeWindow(5)),
        Operator(name="sliding", cpu_per_event=4.0, memory_factor=0.0, window=TimeWindow(6, 2)),
        rate=20.0,
        event_size=10.0,
        fogs=1,
    )
    hosts = dict.fromkeys(["none", "count", "tumbling", "sliding", "z"], "dc/n")
    demand, names = demand_of(problem, place(problem, hosts))
    rows = {
        name: [
            float(figures[k])
            for figures in (
                demand.window_bytes, demand.memory_bytes, demand.work_per_event,
                demand.passes, demand.cpu_ips,
            )
        ]
        for k, name in enumerate(names)
    }  # fmt: skip
    assert rows["s@f1"] == [0.0, 0.0, 0.0, 1.0, 0.0]
    # 3 + 2 · 10 instructions, 20 times a second.
    assert rows["none"] == [0.0, 100.0, 23.0, 1.0, 460.0]
    # 6 events of 10 B.
    assert rows["count"] == [60.0, 67.0, 3.0, 1.0, 60.0]
    # 5 s · 20/s · 10 B, twice; each event once.
    assert rows["tumbling"] == [1000.0, 2000.0, 5.0, 1.0, 100.0]
    # 6 s · 20/s · 10 B; each event lies in three windows.
    assert rows["sliding"] == [1200.0, 0.0, 4.0, 3.0, 240.0]


def test_nothing_arriving_needs_no_cpu_but_keeps_its_memory() -> None:
    problem = chain_problem(
        Operator(name="t", cpu_per_event=5.0, memory=9.0, window=TimeWindow(5)),
        rate=0.0,
        event_size=10.0,
        fogs=1,
    )
    demand, names = demand_of(problem, place(problem, {"t": "dc/n", "z": "dc/n"}))
    at = names.index("t")
    assert (demand.cpu_ips[at], demand.memory_bytes[at], demand.work_per_event[at]) == (0, 9, 5)
