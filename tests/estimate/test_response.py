from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import lambertw

from generators.problems import random_placement, random_problem
from generators.slow import Edge, SlowTraffic
from generators.small import chain_problem, place
from thalweg.errors import InvalidInput
from thalweg.estimate.demand import estimate_demand
from thalweg.estimate.rates import estimate_rates
from thalweg.estimate.response import (
    Response,
    ResponseModel,
    estimate_response,
)
from thalweg.model import (
    CountWindow,
    Deployment,
    Operator,
    Placement,
    Problem,
    TimeWindow,
    deploy,
)

seeds = st.integers(0, 2**32 - 1)


def response_of(
    problem: Problem, placement: Placement, model: ResponseModel | None = None
) -> tuple[Deployment, Response]:
    deployment = deploy(problem, placement)
    rates = estimate_rates(deployment)
    demand = estimate_demand(deployment, rates)
    return deployment, estimate_response(deployment, rates, demand, model)


def slow_wait_s(mu: float, interval_s: float) -> float:
    """D/M/1: the root of γ = exp(−a(1−γ)) in closed form, by Lambert's W."""
    a = mu * interval_s
    if a <= 1:
        return math.inf
    gamma = float(-lambertw(-a * math.exp(-a)).real / a) if a < 700 else 0.0
    return gamma / (mu * (1 - gamma))


def slow_operator_s(slow: SlowTraffic, instance: int) -> float:
    """Formulas (19)–(23)."""
    operator, deployment = slow.operators[instance], slow.deployment
    if operator.kind != "transform":
        return 0.0
    node, net = int(deployment.node[instance]), deployment.problem.network
    neighbours = sum(
        1
        for k in range(deployment.size)
        if deployment.node[k] == node and slow.operators[k].kind == "transform"
    )
    sharing = neighbours + int(net.node_operators[node])
    cpu = float(net.node_cpu_ips[node]) / sharing
    window, rate = operator.window, slow.events_in(instance)
    events = 1.0
    if isinstance(window, CountWindow):
        events = float(window.events)
    elif isinstance(window, TimeWindow):
        events = window.length * rate
    work = events * slow.work(instance)
    if work == 0:
        return 0.0
    if cpu == 0:
        return math.inf
    mu = cpu / work
    if isinstance(window, TimeWindow):
        return slow_wait_s(mu, window.slide) + 1 / mu
    rho = rate / events / mu
    return math.inf if rho >= 1 else rho / (2 * mu * (1 - rho)) + 1 / mu


def slow_crossing_s(slow: SlowTraffic, edge: Edge, model: ResponseModel) -> float:
    """Formulas (17) and (18)."""
    net = slow.deployment.problem.network
    a, b = int(slow.deployment.node[edge.source]), int(slow.deployment.node[edge.target])
    if a == b:
        return 0.0
    size = slow.emission_bytes(edge, model.source_period_s)
    ends = net.site_names[net.node_site[a]], net.site_names[net.node_site[b]]
    latency = float(net.latency_s(a, b))
    if ends in model.probes:
        seconds, probe_bytes = model.probes[ends]
        return latency + seconds * size / probe_bytes
    if size == 0:
        return latency
    free = float(net.available_bps(a, b))
    return math.inf if free == 0 else latency + size * 8 / free


@given(seeds)
def test_the_response_time_is_that_of_the_slowest_path_walked(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    names = problem.network.site_names
    probes = {
        (str(rng.choice(names)), str(rng.choice(names))): (float(rng.uniform(0, 1)), 500.0)
        for _ in range(int(rng.integers(0, 3)))
    }
    model = ResponseModel(source_period_s=float(rng.choice([0.1, 1.0, 3.0])), probes=probes)
    deployment, response = response_of(problem, random_placement(rng, problem), model)
    slow = SlowTraffic(deployment)
    at = {k: slow_operator_s(slow, k) for k in range(deployment.size)}
    along = {edge: slow_crossing_s(slow, edge, model) for edge in slow.edges}
    assert response.operator_s == pytest.approx(list(at.values()), rel=1e-5)
    assert response.crossing_s == pytest.approx(list(along.values()), rel=1e-9)
    worst: dict[int, float] = {}
    for path in slow.paths():
        born = path[0]
        assert isinstance(born, int)
        delay = problem.network.site_edge_delay_s[deployment.origin[born]]
        seconds = float(delay) + slow.path_sum(path, at, along)
        worst[born] = max(worst.get(born, 0.0), seconds)
    assert response.stream_s == pytest.approx([worst[k] for k in sorted(worst)], rel=1e-5)
    assert response.response_time_s == pytest.approx(max(worst.values()), rel=1e-5)
    for figures in (response.operator_s, response.crossing_s, response.stream_s):
        assert not np.isnan(figures).any()
        assert (figures >= 0).all()


def test_a_time_window_in_the_fog_by_hand() -> None:
    problem = chain_problem(
        Operator(name="w", cpu_per_event=100.0, selectivity=0.1, window=TimeWindow(2, 1)),
        rate=10.0,
        event_size=100.0,
        fogs=1,
        fog={"cpu_ips": 8000.0, "operators": 1, "lan_latency_s": 0.01},
        cloud={"lan_latency_s": 0.002},
        link={"bandwidth_bps": 9000.0, "bandwidth_available_bps": 4000.0},
        site={"edge_delay_s": 0.05},
    )
    deployment, response = response_of(problem, place(problem, {"w": "f1/n", "z": "dc/n"}))
    names = [deployment.instance_name(k) for k in range(deployment.size)]
    # A window holds 2 s · 10/s = 20 events: 2000 instructions. Another application's operator
    # takes half of the 8000 instr/s: μ = 2 windows/s, one every β = 1 s. γ = exp(−2(1−γ)) is
    # 0.20318787, the wait γ/(2(1−γ)) = 0.12750048 s, the work 1/2 s.
    own = 0.12750048 + 0.5
    assert response.operator_s[names.index("w")] == pytest.approx(own, abs=1e-8)
    # One emission: 1/s · 1 s · 100 B = 800 bit over 4000 bit/s; 0.1 s of WAN, 0.012 s of LAN.
    assert response.crossing_s.tolist() == pytest.approx([0.0, 0.2 + 0.112])
    assert response.response_time_s == pytest.approx(0.05 + own + 0.312, abs=1e-8)
    assert response.stream_s.tolist() == [response.response_time_s]


def test_a_count_window_in_the_cloud_by_hand() -> None:
    problem = chain_problem(
        Operator(name="w", cpu_per_event=100.0, window=CountWindow(5)),
        rate=10.0,
        event_size=100.0,
        fogs=1,
        cloud={"cpu_ips": 2000.0},
        link={"bandwidth_bps": 40_000.0},
    )
    placement = place(problem, {"w": "dc/n", "z": "dc/n"})
    deployment, response = response_of(problem, placement)
    names = [deployment.instance_name(k) for k in range(deployment.size)]
    # 10/5 = 2 windows/s of 500 instructions: μ = 4/s, ρ = 1/2, wait = 0.5/(2 · 4 · 0.5) = 0.125 s.
    assert response.operator_s[names.index("w")] == pytest.approx(0.125 + 0.25)
    # Raw data crosses once a second: 10 · 100 B = 8000 bit over 40,000 bit/s.
    assert response.crossing_s.tolist() == pytest.approx([0.1 + 0.2, 0.0])
    assert response.response_time_s == pytest.approx(0.675)
    _, slower = response_of(problem, placement, ResponseModel(source_period_s=3.0))
    assert slower.response_time_s == pytest.approx(0.675 + 0.4)


def test_a_measured_transfer_is_scaled_to_the_emission() -> None:
    problem = chain_problem(Operator(name="w"), rate=10.0, event_size=100.0, fogs=1)
    placement = place(problem, {"w": "dc/n", "z": "dc/n"})
    # 500 B took 0.4 s, so 1000 B take 0.8 s, whatever the link says; the way back is no matter.
    model = ResponseModel(probes={("f1", "dc"): (0.4, 500.0), ("dc", "f1"): (9.0, 1.0)})
    _, response = response_of(problem, placement, model)
    assert response.crossing_s.tolist() == pytest.approx([0.1 + 0.8, 0.0])


def test_the_cpu_is_shared_by_the_operators_on_a_node_but_not_by_sources_and_sinks() -> None:
    problem = chain_problem(
        Operator(name="a", cpu_per_event=100.0),
        Operator(name="b", cpu_per_event=100.0),
        rate=1.0,
        event_size=1.0,
        fogs=1,
        fog={"cpu_ips": 1200.0, "operators": 1},
    )
    placement = place(problem, {"a": "f1/n", "b": "f1/n", "z": "f1/n"})
    deployment, response = response_of(problem, placement)
    names = [deployment.instance_name(k) for k in range(deployment.size)]
    # Three share: 400 instr/s each, μ = 4/s, ρ = 1/4: wait 0.25/(2 · 4 · 0.75) = 1/24 s.
    expected = 1 / 24 + 0.25
    assert response.operator_s[names.index("a")] == pytest.approx(expected)
    assert response.operator_s[names.index("s@f1")] == response.operator_s[names.index("z")] == 0
    assert response.response_time_s == pytest.approx(2 * expected)


def test_in_the_cloud_the_load_is_that_of_all_streams_that_arrive_unprocessed() -> None:
    problem = chain_problem(
        Operator(name="w", cpu_per_event=100.0, replicable=True, window=TimeWindow(1)),
        rate=30.0,
        event_size=1.0,
        fogs=3,
        cloud={"cpu_ips": 4000.0},
    )
    hosts = {"w": "dc/n", "z": "dc/n"}
    deployment, all_cloud = response_of(problem, place(problem, hosts))
    names = [deployment.instance_name(k) for k in range(deployment.size)]
    # 30 events a window, 3000 instructions: μ = 4/3.
    expected = slow_wait_s(4 / 3, 1.0) + 3 / 4
    assert all_cloud.operator_s[names.index("w")] == pytest.approx(expected)
    deployment, one_fog = response_of(problem, place(problem, {**hosts, "w@f2": "f2/n"}))
    names = [deployment.instance_name(k) for k in range(deployment.size)]
    # f2 works for itself: 20 events are left, μ = 2.
    assert one_fog.operator_s[names.index("w")] == pytest.approx(slow_wait_s(2.0, 1.0) + 0.5)


@pytest.mark.parametrize(
    "window", [TimeWindow(1), CountWindow(10), None], ids=["time", "count", "none"]
)
@pytest.mark.parametrize("cpu", [0.0, 900.0, 1000.0])
def test_what_cannot_keep_up_takes_for_ever(window: Any, cpu: float) -> None:
    problem = chain_problem(
        Operator(name="w", cpu_per_event=100.0, window=window),
        rate=10.0,
        event_size=1.0,
        fogs=1,
        cloud={"cpu_ips": cpu},
    )
    _, response = response_of(problem, place(problem, {"w": "dc/n", "z": "dc/n"}))
    assert math.isinf(response.response_time_s)


def test_a_window_that_nothing_falls_into_takes_no_time() -> None:
    problem = chain_problem(
        Operator(name="w", cpu_per_event=100.0, window=TimeWindow(1)),
        rate=0.0,
        event_size=1.0,
        fogs=1,
        cloud={"cpu_ips": 0.0},
        link={"bandwidth_bps": 0.0},
    )
    _, response = response_of(problem, place(problem, {"w": "dc/n", "z": "dc/n"}))
    assert response.response_time_s == pytest.approx(0.1)


@pytest.mark.parametrize("period", [0.0, -1.0, math.nan, math.inf])
def test_a_period_lasts(period: float) -> None:
    with pytest.raises(InvalidInput, match="source_period_s"):
        ResponseModel(source_period_s=period)


@pytest.mark.parametrize("probe", [(-1.0, 5.0), (math.nan, 5.0), (math.inf, 5.0), (1.0, 0.0),
                                   (1.0, math.nan), (1.0, -2.0)])  # fmt: skip
def test_a_probe_has_a_time_and_a_size(probe: tuple[float, float]) -> None:
    with pytest.raises(InvalidInput, match=r"probes\[a, b\]"):
        ResponseModel(probes={("a", "b"): probe})


def test_a_probe_between_unknown_sites_is_refused_with_a_hint() -> None:
    problem = chain_problem(Operator(name="w"), rate=1.0, event_size=1.0, fogs=1)
    model = ResponseModel(probes={("f11", "dc"): (1.0, 1.0)})
    with pytest.raises(InvalidInput, match=r'need a site of net\. Hint: did you mean "f1"'):
        response_of(problem, place(problem, {"w": "dc/n", "z": "dc/n"}), model)
