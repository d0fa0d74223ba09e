from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import Sizes, random_placement, random_problem
from generators.slow import SlowTraffic
from generators.small import chain_problem, place
from thalweg.estimate.demand import estimate_demand
from thalweg.estimate.rates import estimate_rates
from thalweg.estimate.response import ResponseModel, emission_bytes
from thalweg.estimate.usage import Usage, estimate_usage, resource_weight
from thalweg.model import (
    CountWindow,
    Deployment,
    LinkWan,
    Operator,
    Placement,
    Problem,
    Tier,
    TimeWindow,
    deploy,
)

seeds = st.integers(0, 2**32 - 1)


def usage_of(problem: Problem, placement: Placement, **more: Any) -> Usage:
    deployment = deploy(problem, placement)
    rates = estimate_rates(deployment)
    return estimate_usage(deployment, rates, estimate_demand(deployment, rates), **more)


def times(*factors: float) -> float:
    """A product in which nothing, even of what is endless, is nothing."""
    return 0.0 if 0.0 in factors else math.prod(factors)


def ratio(above: float, below: float) -> float:
    if above == 0:
        return 0.0
    return math.inf if below == 0 else above / below


def slow_weight(most: float, free: float, wanted: float) -> float:
    if math.isinf(most):
        return 0.0
    return ratio(wanted, 0.0) if most == 0 else 1 - free / most + wanted / most


def slow_compute(slow: SlowTraffic) -> dict[int, float]:
    """Each site's part of CRU, formulas (5)–(11), (24) and (28)."""
    deployment = slow.deployment
    net = deployment.problem.network
    whole, parts = 0.0, dict.fromkeys(range(net.site_count), 0.0)
    for node in range(net.node_count):
        site = int(net.node_site[node])
        most = float(net.node_memory_bytes[node])
        if net.site_tier[site] == Tier.CLOUD:
            continue
        whole += most if math.isfinite(most) else 0.0
        used = sum(
            slow.memory(k)
            for k in range(deployment.size)
            if deployment.node[k] == node and slow.operators[k].kind == "transform"
        )
        free = float(net.node_memory_available_bytes[node])
        parts[site] += times(used, slow_weight(most, free, used))
    return {site: ratio(part, whole) for site, part in parts.items()}


def slow_network(slow: SlowTraffic, emission: list[float]) -> tuple[dict[int, float], float]:
    """Each site's part of NRU, formulas (12)–(14), (25) and (29); and B, formula (26)."""
    deployment = slow.deployment
    net = deployment.problem.network
    below = [site for site in range(net.site_count) if net.site_tier[site] != Tier.CLOUD]
    node_site = [int(net.node_site[n]) for n in deployment.node.tolist()]
    sent = dict.fromkeys(range(net.site_count), 0.0)
    largest = dict.fromkeys(range(net.site_count), 0.0)
    for edge, size in zip(slow.edges, emission, strict=True):
        start, end = node_site[edge.source], node_site[edge.target]
        if start in below and end not in below:
            sent[start] += slow.bps(edge)
            largest[start] = max(largest[start], size * 8)
    raw = dict.fromkeys(range(net.site_count), 0.0)
    for k, operator in enumerate(slow.operators):
        if operator.kind == "source":
            raw[int(deployment.origin[k])] += slow.events_in(k) * slow.size_in(k) * 8
    cost = dict.fromkeys(range(net.site_count), 0.0)
    slowest, whole, delay, figures = 0.0, 0.0, {}, {}
    for site in below:
        cloud = int(net.nearest_cloud[site])
        if cloud < 0:
            cost[site] = math.inf if sent[site] > 0 else 0.0
            continue
        most, free = (
            float(figure(site, cloud)) for figure in (net.wan.bandwidth_bps, net.wan.available_bps)
        )
        way = float(net.wan.latency_s(site, cloud))
        slowest = max(slowest, way + ratio(raw[site], free))
        delay[site] = way + ratio(largest[site], free)
        figures[site] = most, free
        whole += most if math.isfinite(most) else 0.0
    for site, (most, free) in figures.items():
        if math.isinf(slowest):
            relative = 1.0 if math.isinf(delay[site]) else 0.0
        else:
            relative = ratio(delay[site], slowest) if slowest > 0 else 0.0
        share = times(sent[site], slow_weight(most, free, sent[site]), relative)
        cost[site] = ratio(share, whole)
    return cost, sum(sent.values())


@given(seeds)
def test_usage_is_that_of_the_formulas_site_by_site(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, Sizes(transforms=4))
    deployment = deploy(problem, random_placement(rng, problem))
    rates = estimate_rates(deployment)
    usage = estimate_usage(deployment, rates, estimate_demand(deployment, rates))
    slow = SlowTraffic(deployment)
    compute = slow_compute(slow)
    emission = emission_bytes(deployment, rates, ResponseModel()).tolist()
    network, uplink = slow_network(slow, emission)
    assert usage.compute == pytest.approx(sum(compute.values()))
    assert usage.network == pytest.approx(sum(network.values()))
    assert usage.uplink_bps == pytest.approx(uplink)
    expected = [0.5 * compute[s] + 0.5 * network[s] for s in range(problem.network.site_count)]
    assert usage.site == pytest.approx(expected)
    assert usage.total == pytest.approx(sum(expected))
    for figure in (usage.compute, usage.network, usage.total, usage.uplink_bps):
        assert figure >= 0
    clouds = problem.network.site_tier == Tier.CLOUD
    assert (usage.site[clouds] == 0).all()


def two_fogs(**changes: Any) -> Problem:
    figures: dict[str, Any] = {
        "rate": 15.0,
        "event_size": 10.0,
        "rates": {("s", "f1"): 10.0, ("s", "f2"): 5.0},
        "fog": {"memory_bytes": 1000.0, "memory_available_bytes": 600.0},
        "link": {"bandwidth_bps": 2000.0, "bandwidth_available_bps": 1600.0},
    }
    return chain_problem(
        Operator(
            name="t", selectivity=0.5, memory_factor=1.5, replicable=True, window=TimeWindow(2, 1)
        ),
        **{**figures, **changes},
    )


def test_two_fogs_by_hand() -> None:
    problem = two_fogs()
    usage = usage_of(problem, place(problem, {"t@f1": "f1/n", "t": "dc/n", "z": "dc/n"}))
    # f1 runs t: 2 s · 10/s · 10 B · 1.5 = 300 B; W = 1 − 600/1000 + 300/1000 = 0.7.
    assert usage.compute == pytest.approx(300 * 0.7 / 2000)
    # Both send 400 bit/s: f1 what t lets through (5/s · 10 B), f2 all of its own.
    assert usage.uplink_bps == pytest.approx(800.0)
    # W = 1 − 1600/2000 + 400/2000 = 0.4. One emission of either is 400 bit: nd = 0.1 + 400/1600.
    # nd_max is f1's, had it sent all: 0.1 + 800/1600 s.
    each = 400 * 0.4 * (0.35 / 0.6) / 4000
    assert usage.network == pytest.approx(2 * each)
    assert usage.total == pytest.approx(0.5 * 0.105 + 0.5 * 2 * each)
    assert usage.site.tolist() == pytest.approx([0.5 * 0.105 + 0.5 * each, 0.5 * each, 0.0])


def test_weights_weigh() -> None:
    problem = two_fogs()
    placement = place(problem, {"t@f1": "f1/n", "t": "dc/n", "z": "dc/n"})
    plain = usage_of(problem, placement)
    for w_c, w_n in ((1.0, 0.0), (0.0, 1.0), (0.2, 0.7)):
        weighed = usage_of(problem, placement, compute_weight=w_c, network_weight=w_n)
        assert (weighed.compute, weighed.network) == (plain.compute, plain.network)
        assert weighed.total == pytest.approx(w_c * plain.compute + w_n * plain.network)
        assert weighed.site.sum() == pytest.approx(weighed.total)


def test_what_has_no_weight_adds_nothing_even_where_it_is_endless() -> None:
    problem = two_fogs(fog={"memory_bytes": 0.0})
    placement = place(problem, {"t@f1": "f1/n", "t": "dc/n", "z": "dc/n"})
    assert math.isinf(usage_of(problem, placement).total)
    network_only = usage_of(problem, placement, compute_weight=0.0, network_weight=1.0)
    assert network_only.total == pytest.approx(network_only.network)
    assert np.isfinite(network_only.site).all()


def test_each_stream_s_cost_is_its_own() -> None:
    # f1's term must not change with where f2's stream is cut; so costs can be summed per stream.
    problem = two_fogs()
    cuts = {
        (one, two): usage_of(
            problem,
            place(
                problem,
                {
                    **({"t@f1": "f1/n"} if one else {}),
                    **({"t@f2": "f2/n"} if two else {}),
                    **({} if one and two else {"t": "dc/n"}),
                    "z": "dc/n",
                },
            ),
        )
        for one in (False, True)
        for two in (False, True)
    }
    for one in (False, True):
        assert cuts[one, False].site[0] == cuts[one, True].site[0]
        assert cuts[False, one].site[1] == cuts[True, one].site[1]
    for (one, two), usage in cuts.items():
        parts = cuts[one, False].site[0] + cuts[False, two].site[1]
        assert usage.total == pytest.approx(parts)


def test_the_source_period_sets_the_size_of_raw_batches() -> None:
    problem = two_fogs()
    placement = place(problem, {"t": "dc/n", "z": "dc/n"})
    longer = usage_of(problem, placement, model=ResponseModel(source_period_s=2.0))
    # f1: nd = 0.1 + 1600/1600 = nd_max; f2: 0.1 + 800/1600.
    first = 800 * (0.2 + 0.4) * 1.0 / 4000
    second = 400 * (0.2 + 0.2) * (0.6 / 1.1) / 4000
    assert longer.network == pytest.approx(first + second)


@pytest.mark.parametrize(
    ("capacity", "available", "request_", "weight"),
    [
        (1000.0, 600.0, 300.0, 0.7),
        (1000.0, 1000.0, 0.0, 0.0),
        (1000.0, 0.0, 1000.0, 2.0),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, 1.0, math.inf),
        (math.inf, math.inf, 5.0, 0.0),
        (math.inf, 7.0, 5.0, 0.0),
    ],
)
def test_the_weight_of_a_resource(
    capacity: float, available: float, request_: float, weight: float
) -> None:
    found = resource_weight(np.array([capacity]), np.array([available]), np.array([request_]))
    assert found.tolist() == pytest.approx([weight])


def test_a_node_without_end_takes_no_cost_and_gives_none_to_others() -> None:
    problem = two_fogs()
    net = problem.network
    endless = np.array([1000.0, math.inf, math.inf])
    wide = net.with_available(
        node_memory_bytes=endless, node_memory_available_bytes=np.array([600.0, math.inf, math.inf])
    )
    both = Problem(application=problem.application, network=wide, rates=problem.rates)
    usage = usage_of(both, place(both, {"t@f1": "f1/n", "t@f2": "f2/n", "z": "dc/n"}))
    assert usage.compute == pytest.approx(300 * 0.7 / 1000)


def test_a_full_uplink_costs_but_is_a_number() -> None:
    problem = two_fogs(link={"bandwidth_bps": 2000.0, "bandwidth_available_bps": 0.0})
    usage = usage_of(problem, place(problem, {"t": "dc/n", "z": "dc/n"}))
    assert usage.network > 0
    assert not math.isnan(usage.total)
    nothing = two_fogs(link={"bandwidth_bps": 0.0})
    assert math.isinf(usage_of(nothing, place(nothing, {"t": "dc/n", "z": "dc/n"})).network)


def cut_off(problem: Problem) -> Problem:
    """The same without the link of f2."""
    net = problem.network
    wan = LinkWan(
        site_count=3,
        a=np.array([0], dtype=np.int32),
        b=np.array([2], dtype=np.int32),
        latency=np.array([0.1]),
        bandwidth=np.array([2000.0]),
        available=np.array([[1600.0, 1600.0]]),
    )
    return Problem(
        application=problem.application, network=net.with_available(wan=wan), rates=problem.rates
    )


def test_a_site_without_a_way_costs_for_ever_if_it_sends_and_else_nothing_to_anybody() -> None:
    problem = cut_off(two_fogs())
    sends = usage_of(problem, place(problem, {"t": "dc/n", "z": "dc/n"}))
    assert math.isinf(sends.site[1])
    assert 0 < sends.site[0] < math.inf
    quiet = usage_of(
        problem, place(problem, {"t@f2": "f2/n", "z@f2": "f2/n", "t": "dc/n", "z": "dc/n"})
    )
    assert quiet.network == pytest.approx(800 * (0.2 + 0.4) * 1.0 / 2000)


def test_without_a_cloud_there_is_no_uplink() -> None:
    problem = two_fogs()
    net = problem.network
    lone = Problem(
        application=problem.application,
        network=net.with_available(site_tier=np.array([1, 1, 0], dtype=np.uint8)),
        rates=problem.rates,
    )
    usage = usage_of(lone, place(lone, {"t": "dc/n", "z": "dc/n"}))
    assert (usage.network, usage.uplink_bps) == (0.0, 0.0)
    assert usage.compute > 0


def test_nothing_moving_costs_the_memory_alone() -> None:
    problem = chain_problem(
        Operator(name="t", memory=100.0, replicable=True, window=CountWindow(2)),
        rate=0.0,
        event_size=10.0,
        fog={"memory_bytes": 1000.0},
    )
    deployment: Deployment = deploy(
        problem, place(problem, {"t@f1": "f1/n", "t": "dc/n", "z": "dc/n"})
    )
    rates = estimate_rates(deployment)
    usage = estimate_usage(deployment, rates, estimate_demand(deployment, rates))
    assert usage.network == usage.uplink_bps == 0.0
    assert usage.compute == pytest.approx(120 * 0.12 / 2000)
