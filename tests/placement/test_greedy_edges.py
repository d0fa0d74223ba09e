"""What the greedy strategies do at the edges: no room, no cloud, no events, very many of all."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import thalweg as tw
from generators.problems import random_problem
from generators.small import chain_problem, fog_problem
from generators.violations import assert_same_violations
from placement.plain_scan import PlainScan
from placement.test_greedy import ORACLES, STRATEGIES, random_large_problem
from placement.tied_problems import tied_problem
from thalweg.check import check
from thalweg.model import (
    Link,
    MeshWan,
    Node,
    Operator,
    Pin,
    Problem,
    Site,
    Stream,
    build_network,
)
from thalweg.placement.greedy import scopes, steps
from thalweg.scenarios import cloud_edge, random_application
from thalweg.testing import check_strategy

EVERY = pytest.mark.parametrize("name", STRATEGIES)
NOT_ONLY_CLOUDS = pytest.mark.parametrize("name", [n for n in STRATEGIES if n != "cloud-only"])


def hosts(plan: tw.Plan) -> dict[str, str]:
    return {i.operator: i.node for i in plan.placement}


def reason_of(plan: tw.Plan, operator: str) -> tw.model.Reason:
    return next(reason for reason in plan.reasons if reason.operator == operator)


def chain_on(network: tw.Network, count: int, *, cpu: float, source: str, sink: str) -> Problem:
    names = ["s", *(f"t{k}" for k in range(count)), "z"]
    operators = [
        Operator(name="s", kind="source", rate=1.0, event_size=1.0, pin=Pin(node=source)),
        *(Operator(name=n, cpu_per_event=cpu, memory=1.0) for n in names[1:-1]),
        Operator(name="z", kind="sink", pin=Pin(node=sink)),
    ]
    streams = [Stream(source=a, target=b) for a, b in itertools.pairwise(names)]
    app = tw.Application(name="chain", operators=operators, streams=streams)
    return Problem(application=app, network=network)


@NOT_ONLY_CLOUDS
def test_without_a_cloud_everything_runs_at_the_edge(name: str) -> None:
    for seed in range(30):
        problem = random_problem(np.random.default_rng(seed), cloud=False)
        plan = STRATEGIES[name](problem)
        scan = PlainScan(problem)
        expected = scan.run(*ORACLES[name])
        assert {k: n for k, n in hosts(plan).items() if k in expected} == expected
        assert_same_violations(plan.violations, check(plan, problem))


@EVERY
@pytest.mark.parametrize("tier", ["edge", "cloud"])
def test_one_site_alone_is_enough(name: str, tier: str) -> None:
    nodes = tuple(
        Node(name=f"n{k}", cpu_ips=1e6, memory_bytes=1e6, lan_latency_s=1e-3) for k in range(3)
    )
    network = build_network("net", [Site(name="only", tier=tier, nodes=nodes)], [])
    problem = chain_on(network, 5, cpu=100.0, source="only/n1", sink="only/n2")
    if name == "cloud-only" and tier == "edge":
        with pytest.raises(tw.InvalidInput, match="at least one cloud"):
            STRATEGIES[name](problem)
        return
    plan = STRATEGIES[name](problem)
    assert plan.feasible
    assert check(plan, problem) == []
    if name != "tcep-best-fit":
        # Nothing is nearer to an operator than its sender.
        assert {hosts(plan)[f"t{k}"] for k in range(5)} == {"only/n1"}


@EVERY
def test_streams_that_carry_nothing_hinder_nobody(name: str) -> None:
    problem = chain_problem(
        Operator(name="t", selectivity=0.0, compression=0.0, cpu_per_event=5.0, memory=3.0),
        rate=0.0,
        event_size=1.0,
        fogs=2,
    )
    plan = STRATEGIES[name](problem)
    assert plan.feasible
    assert check(plan, problem) == []


@EVERY
def test_an_operator_with_a_thousand_inputs_gets_a_node(name: str) -> None:
    names = [f"t{k}" for k in range(1_000)]
    problem = fog_problem(
        [*(Operator(name=n) for n in names), Operator(name="join", memory=1.0)],
        [Stream(source="s", target=n, probability=0.001) for n in names]
        + [Stream(source=n, target="join") for n in names]
        + [Stream(source="join", target="z")],
        rate=100.0,
        event_size=1.0,
    )
    plan = STRATEGIES[name](problem)
    assert plan.feasible
    assert check(plan, problem) == []


@EVERY
def test_a_source_in_a_thousand_sites_feeds_one_operator(name: str) -> None:
    network = cloud_edge(3, 1_000, 2, seed=5)
    app = tw.Application(
        name="wide",
        operators=[
            Operator(name="s", kind="source", rate=5e3, event_size=10.0, pin=Pin(tier="edge")),
            Operator(name="t", cpu_per_event=10.0),
            Operator(name="z", kind="sink", pin=Pin(site="cloud-1")),
        ],
        streams=[Stream(source="s", target="t"), Stream(source="t", target="z")],
    )
    problem = Problem(application=app, network=network)
    plan = STRATEGIES[name](problem)
    assert plan.feasible
    assert check(plan, problem) == []


@EVERY
def test_ten_thousand_operators_in_a_row_get_a_node_each(name: str) -> None:
    network = cloud_edge(10, 20, 100, seed=1)
    problem = chain_on(network, 10_000, cpu=100.0, source="edge-0/0", sink="edge-1/0")
    plan = STRATEGIES[name](problem)
    assert plan.feasible
    assert len(plan.placement) == 10_002


@EVERY
def test_looking_in_parts_gives_the_same_plan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [tied_problem(seed) for seed in range(40)]
    problems += [random_large_problem(seed) for seed in range(20)]
    whole = [STRATEGIES[name](problem) for problem in problems]
    monkeypatch.setattr(scopes, "MOST_FIGURES", 3)
    monkeypatch.setattr(steps, "MOST_FIGURES", 3)
    # So that rows that are known are forgotten, too.
    monkeypatch.setattr(scopes, "_FIRST_ROWS", 1)
    for problem, plan in zip(problems, whole, strict=True):
        assert STRATEGIES[name](problem).placement == plan.placement


def small_network(edge: dict[str, Any], cloud: dict[str, Any], **link: float) -> tw.Network:
    """Edge site `e` with nodes a and b, and the cloud `c`; ample but for the figures given."""
    ample = {"cpu_ips": 1e9, "memory_bytes": 1e9}
    sites = [
        Site(name="e", tier="edge", nodes=tuple(Node(name=n, **{**ample, **edge}) for n in "ab")),
        Site(name="c", tier="cloud", nodes=(Node(name="n", **{**ample, **cloud}),)),
    ]
    figures = {"latency_s": 0.1, "bandwidth_bps": 1e6, **link}
    return build_network("net", sites, [Link(a="e", b="c", **figures)])


def small_problem(network: tw.Network, *, sink: str = "e/b", **operator: Any) -> Problem:
    app = tw.Application(
        name="app",
        operators=[
            Operator(name="s", kind="source", rate=10.0, event_size=100.0, pin=Pin(node="e/a")),
            Operator(**{"name": "t", "cpu_per_event": 100.0, "memory": 50.0, **operator}),
            Operator(name="z", kind="sink", pin=Pin(node=sink)),
        ],
        streams=[Stream(source="s", target="t"), Stream(source="t", target="z")],
    )
    return Problem(application=app, network=network)


@EVERY
def test_what_has_no_cpu_anywhere_is_told_with_the_nearest_miss(name: str) -> None:
    network = small_network({"cpu_ips": 300.0}, {"cpu_ips": 900.0})
    plan = STRATEGIES[name](small_problem(network))
    assert not plan.feasible
    why = reason_of(plan, "t").why
    assert "nearest miss: cpu: c/n: needs 1 kIPS of cpu, has 900 IPS" in why
    assert "cpu" in {violation.constraint for violation in plan.violations}


@EVERY
def test_what_has_no_memory_where_it_has_cpu_is_told_with_the_nearest_miss(name: str) -> None:
    network = small_network({"cpu_ips": 300.0}, {"memory_bytes": 40.0})
    plan = STRATEGIES[name](small_problem(network))
    assert "nearest miss: memory: c/n: needs 50 B of memory, has 40 B" in reason_of(plan, "t").why


@EVERY
def test_a_link_that_is_too_narrow_is_told(name: str) -> None:
    # Of 8 kbps 5 get through; at the edge there is no CPU.
    network = small_network({"cpu_ips": 300.0}, {}, bandwidth_bps=5e3)
    plan = STRATEGIES[name](small_problem(network))
    miss = "nearest miss: stability: e/a → c/n: needs 8 kbps of bandwidth, has 5 kbps"
    assert miss in reason_of(plan, "t").why
    assert not plan.feasible


@pytest.mark.parametrize("name", ["aels", "cloud-only"])
def test_when_the_ways_to_the_two_best_are_full_the_third_is_taken(name: str) -> None:
    ample = {"memory_bytes": 1e9, "cpu_ips": 1e9}
    names = ["e", "near", "next", "far", "farther"]
    nodes = (Node(name="n", **ample),)
    sites = [Site(name="e", tier="edge", nodes=(Node(name="n", cpu_ips=1e3, memory_bytes=1e9),))]
    sites += [Site(name=n, tier="cloud", nodes=nodes) for n in names[1:]]
    star = [Link(a="e", b=n, latency_s=0.1, bandwidth_bps=1e3) for n in names[1:]]
    latency = np.tile([0.0, 0.1, 0.2, 0.3, 0.4], (5, 1))
    bps = np.full((5, 5), 1e3)
    network = build_network("net", sites, star).with_available(
        wan=MeshWan(latency=latency, bandwidth=bps, available=bps)
    )
    # 600 bit/s for each of them: a link takes one.
    work = [Operator(name=n, cpu_per_event=1e4, selectivity=0.0) for n in "abc"]
    app = tw.Application(
        name="app",
        operators=[
            Operator(name="s", kind="source", rate=1.0, event_size=75.0, pin=Pin(site="e")),
            *work,
            Operator(name="z", kind="sink", pin=Pin(site="e")),
        ],
        streams=[Stream(source=a, target=b) for o in "abc" for a, b in (("s", o), (o, "z"))],
    )
    plan = STRATEGIES[name](Problem(application=app, network=network))
    assert [hosts(plan)[o] for o in "abc"] == ["near/n", "next/n", "far/n"]
    assert [reason_of(plan, o).runner_up for o in "abc"] == ["next/n", "far/n", "farther/n"]
    assert plan.feasible


@EVERY
def test_sources_and_sinks_on_full_nodes_stay_where_they_are_pinned(name: str) -> None:
    network = small_network({"memory_bytes": 10.0}, {})
    problem = small_problem(network, sink="e/b")
    full = Problem(
        application=tw.Application(
            name="app",
            operators=[
                *problem.application.operators[:2],
                Operator(name="z", kind="sink", memory=30.0, pin=Pin(node="e/b")),
            ],
            streams=problem.application.streams,
        ),
        network=network,
    )
    plan = STRATEGIES[name](full)
    assert hosts(plan) == {"s": "e/a", "t": "c/n", "z": "e/b"}
    assert [(v.constraint, v.place) for v in plan.violations] == [("memory", "e/b")]
    assert "needs 30 B of memory, has 10 B" in reason_of(plan, "z").why


def test_each_region_goes_to_its_own() -> None:
    network = small_network({}, {})
    edge = STRATEGIES["aels-rp"](small_problem(network, sink="e/b"))
    assert hosts(edge)["t"] == "e/a"
    assert reason_of(edge, "t").why.startswith("edge region: least added latency")
    cloud = STRATEGIES["aels-rp"](small_problem(network, sink="c/n"))
    assert hosts(cloud)["t"] == "c/n"
    assert reason_of(cloud, "t").why.startswith("cloud region: the cloud nearest to its sinks")
    full = small_network({"cpu_ips": 500.0}, {})
    moved = STRATEGIES["aels-rp"](small_problem(full, sink="e/b"))
    assert hosts(moved)["t"] == "c/n"
    assert reason_of(moved, "t").why.startswith("edge region, no room at the edge")


def test_candidates_further_off_are_looked_at_when_none_near_has_room() -> None:
    ample = {"cpu_ips": 1e9, "memory_bytes": 1e9}
    small = {"cpu_ips": 10.0, "memory_bytes": 1e9}
    sites = [
        Site(name="home", tier="edge", nodes=(Node(name="n", **small),)),
        *(Site(name=f"e{k}", tier="edge", nodes=(Node(name="n", **small),)) for k in range(3)),
        Site(name="far", tier="edge", nodes=(Node(name="n", **ample),)),
        Site(name="c", tier="cloud", nodes=(Node(name="n", **small),)),
    ]
    links = [
        Link(a="home", b=site.name, latency_s=0.01 * k, bandwidth_bps=1e6)
        for k, site in enumerate(sites)
        if k
    ]
    app = tw.Application(
        name="app",
        operators=[
            Operator(name="s", kind="source", rate=10.0, event_size=10.0, pin=Pin(site="home")),
            Operator(name="t", cpu_per_event=100.0),
            Operator(name="z", kind="sink", pin=Pin(site="home")),
        ],
        streams=[Stream(source="s", target="t"), Stream(source="t", target="z")],
    )
    plan = STRATEGIES["aels-rp-la-free"](
        Problem(application=app, network=build_network("net", sites, links))
    )
    assert hosts(plan)["t"] == "far/n"
    assert "further on" in reason_of(plan, "t").why
    assert plan.feasible


@EVERY
def test_every_operator_has_a_reason_with_what_was_looked_at(name: str) -> None:
    network = cloud_edge(5, 10, 20, seed=2)
    problem = Problem(application=random_application("etl", network, seed=1), network=network)
    plan = STRATEGIES[name](problem)
    by_name = {reason.operator: reason for reason in plan.reasons}
    assert set(by_name) == {operator.name for operator in problem.application.operators}
    looked = 0
    for operator in problem.application.operators:
        reason = by_name[operator.name]
        if operator.kind != "source":
            assert reason.considered > 0
            assert reason.cost is not None
            looked += reason.considered
        assert "{" not in reason.why
    assert 0 < looked <= plan.candidates
    assert plan.explain(problem.application.operators[-1].name)


@EVERY
def test_what_runs_now_changes_nothing(name: str) -> None:
    problem = tied_problem(3)
    first = STRATEGIES[name](problem)
    assert STRATEGIES[name](problem, first.placement) == first


@EVERY
def test_it_keeps_what_every_strategy_promises(name: str) -> None:
    report = check_strategy(STRATEGIES[name])
    assert report.refused == 0
    assert report.feasible > 0
