from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from generators.problems import random_placement, random_problem
from generators.slow import SlowTraffic
from generators.small import fog_problem, place
from thalweg.estimate.rates import estimate_rates
from thalweg.model import Operator, Stream, deploy

NET = tw.scenarios.cloud_edge(1, 2, 3)

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.sampled_from(["mean", "formula-5"]))
def test_rates_and_sizes_are_those_of_asking_upstream_one_by_one(seed: int, sizes: str) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    deployment = deploy(problem, random_placement(rng, problem))
    rates = estimate_rates(deployment, sizes=sizes)  # type: ignore[arg-type]
    slow = SlowTraffic(deployment, sizes=sizes)
    everyone = range(deployment.size)
    assert rates.events_in == pytest.approx([slow.events_in(k) for k in everyone])
    assert rates.events_out == pytest.approx([slow.events_out(k) for k in everyone])
    assert rates.size_in == pytest.approx([slow.size_in(k) for k in everyone])
    assert rates.size_out == pytest.approx([slow.size_out(k) for k in everyone])
    assert rates.flow == pytest.approx([slow.flow(edge) for edge in slow.edges])
    assert rates.flow_size == pytest.approx([slow.size_out(edge.source) for edge in slow.edges])
    assert rates.flow_bps == pytest.approx([slow.bps(edge) for edge in slow.edges])
    for figures in vars(rates).values():
        assert np.isfinite(figures).all()
        assert (figures >= 0).all()


def test_a_join_takes_in_the_mean_size_or_by_formula_5_the_sum() -> None:
    problem = fog_problem(
        [
            Operator(name="half", selectivity=0.5, compression=3.0),
            Operator(name="join", selectivity=0.1, compression=2.0),
        ],
        [
            Stream(source="s", target="half"),
            Stream(source="s", target="join", probability=0.25),
            Stream(source="half", target="join"),
            Stream(source="join", target="z"),
        ],
        rate=80.0,
        event_size=10.0,
    )
    deployment = deploy(problem, place(problem, {"half": "dc/n", "join": "dc/n", "z": "dc/n"}))
    join = [deployment.instance_name(k) for k in range(deployment.size)].index("join")
    rates = estimate_rates(deployment)
    # Both fogs together: 80 events/s of 10 B. A quarter comes straight, 20/s of 10 B; half of all
    # come through "half", 40/s of 30 B.
    assert rates.events_in[join] == pytest.approx(60.0)
    assert rates.size_in[join] == pytest.approx((20 * 10 + 40 * 30) / 60)
    assert rates.events_out[join] == pytest.approx(6.0)
    assert rates.size_out[join] == pytest.approx(2 * (20 * 10 + 40 * 30) / 60)
    paper = estimate_rates(deployment, sizes="formula-5")
    assert paper.events_in[join] == pytest.approx(60.0)
    # Two source instances with 10 B · 0.25 each, and "half", which takes in 10 + 10 B and puts
    # out three times as much.
    assert paper.size_in[join] == pytest.approx(2 * 2.5 + 60.0)


def test_where_nothing_arrives_sizes_are_the_plain_mean() -> None:
    problem = fog_problem(
        [Operator(name="big", compression=5.0), Operator(name="join")],
        [
            Stream(source="s", target="big"),
            Stream(source="s", target="join"),
            Stream(source="big", target="join"),
            Stream(source="join", target="z"),
        ],
        rate=0.0,
        event_size=10.0,
        fogs=1,
    )
    deployment = deploy(problem, place(problem, {"big": "dc/n", "join": "dc/n", "z": "dc/n"}))
    rates = estimate_rates(deployment)
    assert rates.flow.tolist() == [0.0] * 4
    join = [deployment.instance_name(k) for k in range(deployment.size)].index("join")
    assert rates.size_in[join] == pytest.approx((10 + 50) / 2)


def test_a_thousand_inputs_add_up() -> None:
    names = [f"t{k}" for k in range(1000)]
    problem = fog_problem(
        [Operator(name=name, selectivity=0.5) for name in names] + [Operator(name="join")],
        [Stream(source="s", target=name, probability=0.001) for name in names]
        + [Stream(source=name, target="join") for name in names]
        + [Stream(source="join", target="z")],
        rate=1000.0,
        event_size=7.0,
        fogs=1,
    )
    hosts = dict.fromkeys([*names, "join", "z"], "dc/n")
    deployment = deploy(problem, place(problem, hosts))
    rates = estimate_rates(deployment)
    join = [deployment.instance_name(k) for k in range(deployment.size)].index("join")
    assert rates.events_in[join] == pytest.approx(500.0)
    assert rates.size_in[join] == pytest.approx(7.0)


def test_replicas_carry_their_own_site_s_rate() -> None:
    problem = fog_problem(
        [Operator(name="t", replicable=True, selectivity=0.5)],
        [Stream(source="s", target="t"), Stream(source="t", target="z")],
        rate=100.0,
        event_size=1.0,
        rates={("s", "f1"): 30.0},
    )
    deployment = deploy(problem, place(problem, {"t@f1": "f1/n", "t@f2": "f2/n", "z": "dc/n"}))
    rates = estimate_rates(deployment)
    found = {deployment.instance_name(k): float(rates.events_in[k]) for k in range(deployment.size)}
    assert found == {"s@f1": 30.0, "s@f2": 50.0, "t@f1": 30.0, "t@f2": 50.0, "z": 40.0}


def test_rates_are_found_once_for_all_placements_of_a_problem_and_anew_for_another() -> None:
    app, net = tw.scenarios.random_application("etl", NET, seed=1), NET
    first, second = (tw.Problem(application=app, network=net) for _ in range(2))
    once = [
        estimate_rates(deploy(problem, tw.plan(app, net).placement)) for problem in (first, first)
    ]
    assert once[0] is once[1]
    birth = (app.sources[0].name, net.site_names[int(second.births.site[0])])
    doubled = tw.Problem(
        application=app, network=net, rates={birth: 2 * float(second.births.rate[0])}
    )
    again = estimate_rates(deploy(doubled, tw.plan(app, net).placement))
    assert again.flow.sum() > once[0].flow.sum()
