from __future__ import annotations

import math
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import random_placement, random_problem
from generators.slow import Edge, SlowTraffic
from generators.small import chain_problem, fog_problem, place
from thalweg.estimate.demand import estimate_demand
from thalweg.estimate.evaluate import evaluate
from thalweg.estimate.latency import (
    Latencies,
    aggregate_latency_s,
    estimate_latencies,
    transfer_time_s,
    walk_paths,
    worst_latency_s,
)
from thalweg.estimate.rates import estimate_rates
from thalweg.model import (
    CountWindow,
    Deployment,
    Operator,
    Placement,
    Problem,
    Stream,
    TimeWindow,
    deploy,
)

seeds = st.integers(0, 2**32 - 1)


def latencies_of(problem: Problem, placement: Placement) -> tuple[Deployment, Latencies]:
    deployment = deploy(problem, placement)
    rates = estimate_rates(deployment)
    return deployment, estimate_latencies(deployment, rates, estimate_demand(deployment, rates))


def slow_service_s(slow: SlowTraffic, instance: int) -> float:
    """Formula (7)."""
    net = slow.deployment.problem.network
    rate, window = slow.events_in(instance), slow.operators[instance].window
    work = slow.work(instance) * slow.passes(instance)
    seconds = 0.0
    if work > 0:
        cpu = float(net.node_cpu_available_ips[slow.deployment.node[instance]])
        # μ − λ, with both sides times the work, so that nothing is divided by a CPU of 0.
        spare = cpu - rate * work
        seconds += work / spare if spare > 0 else math.inf
    if isinstance(window, CountWindow) and rate > 0:
        seconds += window.events / rate
    if isinstance(window, TimeWindow):
        seconds += window.slide
    return seconds


def slow_transfer_s(slow: SlowTraffic, edge: Edge) -> float:
    """Formula (8)."""
    net = slow.deployment.problem.network
    a, b = int(slow.deployment.node[edge.source]), int(slow.deployment.node[edge.target])
    if a == b:
        return 0.0
    bits = 8 * slow.size_out(edge.source)
    seconds = float(net.latency_s(a, b))
    free = float(net.available_bps(a, b))
    if bits > 0 and math.isfinite(free):
        spare = free - slow.flow(edge) * bits
        seconds += bits / spare if spare > 0 else math.inf
    return seconds


@given(seeds)
def test_service_and_communication_times_are_those_of_the_formulas(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    deployment, latencies = latencies_of(problem, random_placement(rng, problem))
    slow = SlowTraffic(deployment)
    service = [slow_service_s(slow, k) for k in range(deployment.size)]
    assert latencies.service_s == pytest.approx(service, rel=1e-6)
    transfer = [slow_transfer_s(slow, edge) for edge in slow.edges]
    assert latencies.communication_s == pytest.approx(transfer, rel=1e-6)


@given(seeds)
def test_aggregate_and_worst_latency_are_those_of_walking_every_path(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    evaluation = evaluate(problem, random_placement(rng, problem))
    deployment, latencies = evaluation.deployment, evaluation.latencies
    slow = SlowTraffic(deployment)
    at = dict(enumerate(latencies.service_s.tolist()))
    along = dict(zip(slow.edges, latencies.communication_s.tolist(), strict=True))
    walked = [slow.path_sum(path, at, along) for path in slow.paths()]
    assert aggregate_latency_s(deployment, latencies) == pytest.approx(sum(walked))
    assert worst_latency_s(deployment, latencies) == pytest.approx(max(walked))
    assert evaluation.estimate.path_count == len(walked)
    assert evaluation.estimate.aggregate_latency_s == aggregate_latency_s(deployment, latencies)
    assert not math.isnan(evaluation.estimate.aggregate_latency_s)


@given(seeds)
def test_paths_are_walked_one_by_one_each_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    deployment, latencies = latencies_of(problem, random_placement(rng, problem))
    slow = SlowTraffic(deployment)
    at = dict(enumerate(latencies.service_s.tolist()))
    along = dict(zip(slow.edges, latencies.communication_s.tolist(), strict=True))
    expected = []
    for path in slow.paths():
        instances = [path[0], *(edge.target for edge in path[1:] if isinstance(edge, Edge))]
        names = tuple(deployment.instance_name(k) for k in instances if isinstance(k, int))
        expected.append((names, slow.path_sum(path, at, along)))
    found = [(path.instances, path.latency_s) for path in walk_paths(deployment, latencies)]
    # The order is part of the promise: roots by index, then edges by index.
    assert [names for names, _ in found] == [names for names, _ in expected]
    assert [seconds for _, seconds in found] == pytest.approx([s for _, s in expected])


def test_formula_7_by_hand() -> None:
    # 1000 of 1600 instr/s free, 10 instructions per event: μ = 100/s, λ = 60/s: 1/40 s in the
    # queue; 30 events come in 30/60 s.
    problem = chain_problem(
        Operator(name="t", cpu_per_event=10.0, window=CountWindow(30)),
        rate=60.0,
        event_size=10.0,
        fogs=1,
        cloud={"cpu_ips": 1600.0, "cpu_available_ips": 1000.0},
    )
    deployment, latencies = latencies_of(problem, place(problem, {"t": "dc/n", "z": "dc/n"}))
    names = [deployment.instance_name(k) for k in range(deployment.size)]
    assert latencies.service_s[names.index("t")] == pytest.approx(0.025 + 0.5)
    assert latencies.service_s[names.index("z")] == 0.0


def test_formula_8_by_hand_with_both_lan_hops() -> None:
    # 8000 bit/s free, 80 bit per event: 100/s, 60/s used: 1/40 s; 0.1 s WAN, 0.01 + 0.002 s LAN.
    problem = chain_problem(
        Operator(name="t"),
        rate=60.0,
        event_size=10.0,
        fogs=1,
        fog={"lan_latency_s": 0.01, "lan_bandwidth_bps": 1e6},
        cloud={"lan_latency_s": 0.002},
        link={"bandwidth_bps": 1e6, "bandwidth_available_bps": 8000.0},
    )
    deployment, latencies = latencies_of(problem, place(problem, {"t": "dc/n", "z": "dc/n"}))
    assert latencies.communication_s.tolist() == pytest.approx([0.025 + 0.112, 0.0])
    assert aggregate_latency_s(deployment, latencies) == pytest.approx(0.137)
    # A LAN that is narrower than the link decides.
    narrow = chain_problem(
        Operator(name="t"),
        rate=60.0,
        event_size=10.0,
        fogs=1,
        fog={"lan_latency_s": 0.01, "lan_bandwidth_bps": 6400.0},
    )
    _, latencies = latencies_of(narrow, place(narrow, {"t": "dc/n", "z": "dc/n"}))
    assert latencies.communication_s[0] == pytest.approx(1 / (80 - 60) + 0.11)


def test_the_rate_on_the_stream_counts_not_all_that_arrives() -> None:
    # Two fogs with 30/s each meet at t: each stream carries 30/s over its own 8000 bit/s link.
    problem = chain_problem(
        Operator(name="t"), rate=60.0, event_size=10.0, link={"bandwidth_bps": 8000.0}
    )
    _, latencies = latencies_of(problem, place(problem, {"t": "dc/n", "z": "dc/n"}))
    assert latencies.communication_s[:2] == pytest.approx([1 / (100 - 30) + 0.1] * 2)


def test_a_time_window_hands_on_once_per_slide_and_works_on_events_again() -> None:
    # 3 passes · 10 instructions: μ = 1000/30 = 33.3/s, λ = 30/s: 0.3 s; and 2 s of slide.
    problem = chain_problem(
        Operator(name="t", cpu_per_event=10.0, window=TimeWindow(6, 2)),
        rate=30.0,
        event_size=1.0,
        fogs=1,
        cloud={"cpu_ips": 1000.0},
    )
    deployment, latencies = latencies_of(problem, place(problem, {"t": "dc/n", "z": "dc/n"}))
    names = [deployment.instance_name(k) for k in range(deployment.size)]
    assert latencies.service_s[names.index("t")] == pytest.approx(0.3 + 2.0)


@pytest.mark.parametrize("free", [0.0, 599.9, 600.0])
def test_a_node_that_cannot_keep_up_takes_for_ever(free: float) -> None:
    problem = chain_problem(
        Operator(name="t", cpu_per_event=10.0),
        rate=60.0,
        event_size=10.0,
        fogs=1,
        cloud={"cpu_ips": 1000.0, "cpu_available_ips": free},
    )
    deployment, latencies = latencies_of(problem, place(problem, {"t": "dc/n", "z": "dc/n"}))
    assert math.isinf(aggregate_latency_s(deployment, latencies))
    assert math.isinf(worst_latency_s(deployment, latencies))


@pytest.mark.parametrize(
    ("free", "flow", "size", "expected"),
    [
        (8000.0, 60.0, 10.0, 0.025 + 0.5),
        (8000.0, 100.0, 10.0, math.inf),
        (8000.0, 0.0, 10.0, 0.01 + 0.5),
        (0.0, 0.0, 10.0, math.inf),
        (0.0, 5.0, 0.0, 0.5),
        (math.inf, 5.0, 10.0, 0.5),
        (math.inf, 0.0, 0.0, 0.5),
    ],
)
def test_the_edges_of_formula_8(free: float, flow: float, size: float, expected: float) -> None:
    def one(value: Any) -> Any:
        return np.array([value])

    got = transfer_time_s(one(free), one(0.5), one(flow), one(size), one(False))
    assert got.tolist() == pytest.approx([expected])
    assert transfer_time_s(one(free), one(0.5), one(flow), one(size), one(True)).tolist() == [0.0]


def test_infinitely_many_paths_never_make_a_number_that_is_none() -> None:
    count = 1_100
    transforms, streams, before = [], [], "s"
    for k in range(count):
        left, right, meet = f"l{k}", f"r{k}", f"m{k}"
        transforms += [Operator(name=n, selectivity=0.5) for n in (left, right, meet)]
        streams += [Stream(source=before, target=n) for n in (left, right)]
        streams += [Stream(source=n, target=meet) for n in (left, right)]
        before = meet
    streams.append(Stream(source=before, target="z"))
    problem = fog_problem(transforms, streams, rate=1.0, event_size=1.0, fogs=1)
    names = [operator.name for operator in transforms]
    together = evaluate(problem, place(problem, dict.fromkeys([*names, "z"], "f1/n"))).estimate
    assert math.isinf(together.path_count)
    # Nothing takes any time, however often it is counted.
    assert together.aggregate_latency_s == 0.0
    apart = evaluate(problem, place(problem, dict.fromkeys([*names, "z"], "dc/n"))).estimate
    assert math.isinf(apart.aggregate_latency_s)
    assert apart.worst_latency_s == pytest.approx(0.1 + 1 / (1e6 / 8 - 1))


def test_a_chain_of_ten_thousand_operators_adds_up() -> None:
    names = [f"t{k}" for k in range(10_000)]
    problem = chain_problem(
        *(Operator(name=name, cpu_per_event=1.0) for name in names),
        rate=1.0,
        event_size=1.0,
        fogs=1,
        cloud={"cpu_ips": 11.0},
    )
    placement = place(problem, dict.fromkeys([*names, "z"], "dc/n"))
    deployment, latencies = latencies_of(problem, placement)
    expected = 10_000 * 0.1 + 0.1 + 1 / (1e6 / 8 - 1)
    assert aggregate_latency_s(deployment, latencies) == pytest.approx(expected)
    assert worst_latency_s(deployment, latencies) == pytest.approx(expected)


def test_of_very_many_paths_as_many_as_wanted_are_walked() -> None:
    names = [f"t{k}" for k in range(40)]
    path = ["s", *names, "z"]
    streams = [Stream(source=a, target=b) for a, b in pairwise(path)]
    streams += [Stream(source=a, target=b) for a, b in zip(path, path[2:], strict=False)]
    problem = fog_problem(
        [Operator(name=name, selectivity=0.5) for name in names],
        streams,
        rate=1.0,
        event_size=1.0,
        fogs=1,
    )
    deployment, latencies = latencies_of(
        problem, place(problem, dict.fromkeys([*names, "z"], "dc/n"))
    )
    first = next(walk_paths(deployment, latencies))
    assert first.instances == ("s@f1", *names, "z")
    assert len(list(islice(walk_paths(deployment, latencies), 1000))) == 1000
