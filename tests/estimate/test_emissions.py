"""The events of one emission: one definition in the estimator, the stream tables, the checker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators.problems import random_placement, random_problem
from generators.slow import SlowTraffic
from generators.small import chain_problem, fog_problem, place
from scheduling.problems import random_fog_problem
from thalweg.check.limits import count_emissions
from thalweg.check.traffic import measure_traffic
from thalweg.check.unfold import unfold
from thalweg.estimate.rates import estimate_rates
from thalweg.estimate.response import ResponseModel, emission_bytes
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
from thalweg.scheduling.traffic import measure_streams

seeds = st.integers(0, 2**32 - 1)
periods = st.sampled_from([0.1, 1.0, 3.0])


def estimate(deployment: Deployment, source_period_s: float = 1.0) -> list[float]:
    """Bytes of one emission on each edge, by the estimator."""
    model = ResponseModel(source_period_s=source_period_s)
    found: list[float] = emission_bytes(deployment, estimate_rates(deployment), model).tolist()
    return found


def by_name(problem: Problem, placement: Placement) -> dict[tuple[str, str], float]:
    """The same by the names of sender and receiver."""
    deployment = deploy(problem, placement)
    graph, name = deployment.graph, deployment.instance_name
    ends = [
        (name(a), name(b))
        for a, b in zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    ]
    return dict(zip(ends, estimate(deployment), strict=True))


@given(seeds, periods)
def test_the_estimator_agrees_with_emissions_found_by_recursion(seed: int, period_s: float) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    deployment = deploy(problem, random_placement(rng, problem))
    slow = SlowTraffic(deployment)
    expected = [slow.emission_bytes(edge, period_s) for edge in slow.edges]
    assert estimate(deployment, period_s) == pytest.approx(expected, rel=1e-9, abs=0)


@given(seeds)
def test_the_checker_agrees_with_emissions_found_by_recursion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    placement = random_placement(rng, problem)
    unfolded, broken = unfold(problem, placement)
    assert not broken
    found = count_emissions(problem, measure_traffic(problem, unfolded))
    deployment = deploy(problem, placement)
    slow, names = SlowTraffic(deployment), problem.network.site_names

    def copy(instance: int) -> tuple[str, str | None]:
        origin = int(deployment.origin[instance])
        return slow.operators[instance].name, None if origin < 0 else names[origin]

    expected = {(copy(e.source), copy(e.target)): slow.emission_events(e) for e in slow.edges}
    assert found == pytest.approx(expected, rel=1e-9, abs=0)


@given(seeds, st.integers(1, 3), st.integers(1, 6), periods)
def test_the_stream_tables_agree_with_emissions_of_each_stream_alone(
    seed: int, fogs: int, transforms: int, period_s: float
) -> None:
    problem = random_fog_problem(seed, fogs=fogs, transforms=transforms)
    app, net, births = problem.application, problem.network, problem.births
    traffic = measure_streams(problem, ResponseModel(source_period_s=period_s))
    expected = np.zeros_like(traffic.emission_bits)
    for column, site in enumerate(traffic.site.tolist()):
        rates = {
            (app.operators[o].name, net.site_names[s]): float(rate) if s == site else 0.0
            for o, s, rate in zip(births.operator, births.site, births.rate, strict=True)
        }
        alone = Problem(application=app, network=net, rates=rates)
        hosts = {o.name: net.node_name(traffic.cloud) for o in app.operators if o.kind != "source"}
        deployment = deploy(alone, place(alone, hosts))
        slow = SlowTraffic(deployment)
        for stream, edge in zip(deployment.stream.tolist(), slow.edges, strict=True):
            # A source in another site has nothing to emit.
            expected[stream, column] += 8.0 * slow.emission_bytes(edge, period_s)
    assert traffic.emission_bits == pytest.approx(expected, rel=1e-9, abs=0)


@given(seeds, periods)
def test_without_windows_every_emission_is_the_flow_of_one_source_period(
    seed: int, period_s: float
) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    app = problem.application
    plain = replace(app, operators=[replace(o, window=None) for o in app.operators])
    problem = replace(problem, application=plain)
    deployment = deploy(problem, random_placement(rng, problem))
    slow = SlowTraffic(deployment)
    expected = [slow.bps(edge) / 8 * period_s for edge in slow.edges]
    assert estimate(deployment, period_s) == pytest.approx(expected)


def test_a_row_that_parsing_makes_larger_makes_the_batch_larger() -> None:
    # 10/s of 100 B in batches of 1 s: 1000 B; parsed rows are a fifth larger, the same 10 of them.
    problem = chain_problem(
        Operator(name="parse", compression=1.2), rate=10.0, event_size=100.0, fogs=1
    )
    emission = by_name(problem, place(problem, {"parse": "f1/n", "z": "dc/n"}))
    assert emission["s@f1", "parse"] == pytest.approx(1000.0)
    assert emission["parse", "z"] == pytest.approx(1200.0)


def test_what_follows_a_window_emits_at_the_period_of_the_window() -> None:
    # Every 2 s, 10/s · 2 s = 20 events; half of these go on. A full count window is 8 events.
    for window, worked_on in ((TimeWindow(6, 2), 20.0), (CountWindow(8), 8.0)):
        problem = chain_problem(
            Operator(name="window", window=window),
            Operator(name="filter", selectivity=0.5),
            Operator(name="format", compression=3.0),
            rate=10.0,
            event_size=100.0,
            fogs=1,
        )
        hosts = dict.fromkeys(("window", "filter", "format"), "f1/n")
        emission = by_name(problem, place(problem, {**hosts, "z": "dc/n"}))
        assert emission["window", "filter"] == pytest.approx(worked_on * 100)
        assert emission["filter", "format"] == pytest.approx(worked_on / 2 * 100)
        assert emission["format", "z"] == pytest.approx(worked_on / 2 * 300)


def test_several_inputs_are_one_emission_of_each() -> None:
    # 10/s in batches of 1 s, and 5/s in windows of 4 s: 10 + 20 events of 100 B, from 15/s; that
    # is 15/s · the mean of their periods, weighted by rate: (10 · 1 s + 5 · 4 s) / 15 = 2 s.
    problem = fog_problem(
        [
            Operator(name="window", selectivity=0.5, window=TimeWindow(4)),
            Operator(name="merge", selectivity=0.4),
        ],
        [
            Stream(source="s", target="window"),
            Stream(source="s", target="merge"),
            Stream(source="window", target="merge"),
            Stream(source="merge", target="z"),
        ],
        rate=10.0,
        event_size=100.0,
        fogs=1,
    )
    emission = by_name(problem, place(problem, {"window": "f1/n", "merge": "f1/n", "z": "dc/n"}))
    assert emission["merge", "z"] == pytest.approx((10 + 20) * 0.4 * 100)
    assert emission["merge", "z"] == pytest.approx(15 * 0.4 * 2 * 100)


def test_replicas_that_meet_are_one_emission_of_each() -> None:
    problem = chain_problem(
        Operator(name="parse", replicable=True),
        Operator(name="merge", selectivity=0.5),
        rate=30.0,
        event_size=100.0,
        fogs=3,
    )
    hosts = {"parse@f1": "f1/n", "parse": "dc/n", "merge": "dc/n", "z": "dc/n"}
    emission = by_name(problem, place(problem, hosts))
    assert emission["parse@f1", "merge"] == pytest.approx(1000.0)
    assert emission["parse", "merge"] == pytest.approx(2000.0)
    assert emission["merge", "z"] == pytest.approx(1500.0)


@pytest.mark.parametrize("window", [None, CountWindow(5), TimeWindow(1)], ids=str)
def test_where_nothing_flows_nothing_is_emitted(window: CountWindow | TimeWindow | None) -> None:
    problem = chain_problem(
        Operator(name="w", window=window), Operator(name="x"), rate=0.0, event_size=1.0, fogs=1
    )
    emission = by_name(problem, place(problem, {"w": "f1/n", "x": "f1/n", "z": "dc/n"}))
    assert list(emission.values()) == [0.0, 0.0, 0.0]
