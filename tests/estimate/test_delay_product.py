from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import random_placement, random_problem, random_tree
from generators.slow import SlowTraffic
from generators.small import chain_problem, place
from thalweg.estimate.delay_product import delay_product_bits, flow_delay_product_bits
from thalweg.estimate.rates import estimate_rates
from thalweg.model import LinkWan, Operator, Problem, TreeWan, deploy


def tree_delay_s(tree: TreeWan, a: int, b: int) -> float:
    """Up from both ends until they meet, one link at a time."""

    def way_up(site: int) -> list[int]:
        way = [site]
        while tree.parent[way[-1]] >= 0:
            way.append(int(tree.parent[way[-1]]))
        return way

    left, right = way_up(a), way_up(b)
    only_one = set(left) ^ set(right)
    return sum(float(tree.latency[site]) for site in only_one)


@given(st.integers(0, 2**32 - 1))
def test_on_a_tree_each_flow_costs_bandwidth_times_the_delay_of_its_links(seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain = random_problem(rng)
    tree = random_tree(rng, plain.network.site_count)
    net = plain.network.with_available(wan=tree)
    problem = Problem(application=plain.application, network=net, rates=plain.rates)
    deployment = deploy(problem, random_placement(rng, problem))
    slow = SlowTraffic(deployment)
    expected = []
    for edge in slow.edges:
        a, b = int(deployment.node[edge.source]), int(deployment.node[edge.target])
        delay = 0.0
        if a != b:
            delay = tree_delay_s(tree, int(net.node_site[a]), int(net.node_site[b]))
            delay += float(net.node_lan_latency_s[a] + net.node_lan_latency_s[b])
        expected.append(slow.bps(edge) * delay)
    rates = estimate_rates(deployment)
    assert flow_delay_product_bits(deployment, rates) == pytest.approx(expected)
    assert delay_product_bits(deployment, rates) == pytest.approx(sum(expected))


def test_by_hand() -> None:
    # 10/s of 100 B from each of two fogs over 0.1 s: 2 · 8000 bit/s · 0.1 s.
    problem = chain_problem(Operator(name="t"), rate=20.0, event_size=100.0)
    deployment = deploy(problem, place(problem, {"t": "dc/n", "z": "dc/n"}))
    assert delay_product_bits(deployment, estimate_rates(deployment)) == pytest.approx(1600.0)


@pytest.mark.parametrize(("rate", "expected"), [(0.0, 0.0), (1.0, np.inf)])
def test_where_no_way_leads_only_nothing_is_carried_for_free(rate: float, expected: float) -> None:
    plain = chain_problem(Operator(name="t"), rate=rate, event_size=100.0, fogs=1)
    nothing = np.empty(0, dtype=np.int32)
    wan = LinkWan(
        site_count=2, a=nothing, b=nothing, latency=np.empty(0), bandwidth=np.empty(0),
        available=np.empty((0, 2)),
    )  # fmt: skip
    problem = Problem(application=plain.application, network=plain.network.with_available(wan=wan))
    deployment = deploy(problem, place(problem, {"t": "dc/n", "z": "dc/n"}))
    assert delay_product_bits(deployment, estimate_rates(deployment)) == expected
