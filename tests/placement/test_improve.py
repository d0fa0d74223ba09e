"""What `improve` promises, against trying moves one by one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from generators.problems import Sizes, random_problem
from generators.small import fog_problem
from thalweg.check import check
from thalweg.errors import InvalidInput
from thalweg.estimate.evaluate import make_plan
from thalweg.model import (
    Application,
    Instance,
    Limits,
    Operator,
    Pin,
    Placement,
    Plan,
    Problem,
    Stream,
)
from thalweg.placement.improve import improve
from thalweg.placement.local_search import ways
from thalweg.placement.local_search.board import Board
from thalweg.placement.local_search.descents import STARTS
from thalweg.scenarios import GRAPHS, broker_tree, cloud_edge, fog_cloud, random_application
from thalweg.strategy import find_strategy

SEEDS = st.integers(0, 2**32 - 1)
SIZES = Sizes(sites=4, nodes_per_site=3, sources=2, transforms=4, sinks=2)


def draw_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, SIZES, pinned=0.2)
    if rng.random() < 0.3:
        return problem
    application = replace(problem.application, limits=Limits())
    return Problem(application=application, network=problem.network, rates=problem.rates)


def random_start(seed: int, problem: Problem) -> Placement:
    """Every operator once, anywhere that its pin allows."""
    rng = np.random.default_rng(seed)
    board = Board.of(problem, None)
    assert board is not None
    nodes = board.anywhere()
    for copy in board.movable:
        allowed = problem.allowed_nodes(int(board.skeleton.operator[copy]))
        nodes[copy] = (
            rng.integers(problem.network.node_count) if allowed is None else (rng.choice(allowed))
        )
    return board.place(nodes)


def is_no_worse(plan: Plan, other: Plan) -> bool:
    if not other.feasible:
        return True
    return plan.feasible and plan.objective <= other.objective * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_the_answer_is_no_worse_than_what_it_began_with(seed: int) -> None:
    problem = draw_problem(seed)
    start = make_plan(problem, random_start(seed, problem), strategy="start")
    plan = improve(problem, start.placement, restarts=1)
    assert is_no_worse(plan, start)
    assert bool(check(plan, problem)) != plan.feasible
    for name in STARTS:
        try:
            published = find_strategy(name)(problem)
        except InvalidInput:
            continue
        assert is_no_worse(plan, published), name


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_no_single_move_makes_the_answer_better(seed: int) -> None:
    problem = draw_problem(seed)
    plan = improve(problem, random_start(seed, problem), restarts=0)
    if not plan.feasible:
        return
    where = {instance.operator: instance.node for instance in plan.placement}
    net = problem.network
    for index, operator in enumerate(problem.application.operators):
        if operator.kind == "source":
            continue
        allowed = problem.allowed_nodes(index)
        for node in range(net.node_count) if allowed is None else allowed.tolist():
            if net.node_name(node) == where[operator.name]:
                continue
            moved = [
                replace(i, node=net.node_name(node)) if i.operator == operator.name else i
                for i in plan.placement
            ]
            other = make_plan(problem, Placement.of(moved), strategy="moved")
            assert not other.feasible or other.objective >= plan.objective * (1 - 1e-9)


@pytest.mark.parametrize("graph", ["stats", "medium-9", "large-2", "extra-large"])
def test_the_same_seed_gives_the_same_plan(graph: str) -> None:
    network = cloud_edge(2, 4, 5, seed=1)
    problem = Problem(application=random_application(graph, network, 4), network=network)
    plan = improve(problem, seed=7, time_limit_s=60.0, restarts=3)
    assert plan == improve(problem, seed=7, time_limit_s=60.0, restarts=3)
    assert "each to a local optimum" in plan.reasons[0].why


@pytest.mark.parametrize("graph", GRAPHS)
def test_every_published_strategy_is_reached_or_beaten(graph: str) -> None:
    network = cloud_edge(3, 5, 8, seed=3)
    problem = Problem(application=random_application(graph, network, 8), network=network)
    plan = find_strategy("aels-rp-la-free+improve")(problem, time_limit_s=60.0, restarts=2)
    assert plan.strategy == "aels-rp-la-free+improve"
    assert bool(check(plan, problem)) != plan.feasible
    for name in STARTS:
        assert is_no_worse(plan, find_strategy(name)(problem)), name


def _chain(length: int, **source: object) -> Application:
    names = [f"o{k}" for k in range(length)]
    born = {"rate": 5.0, "event_size": 20.0, "pin": Pin(tier="edge"), **source}
    return Application(
        name="chain",
        operators=[
            Operator(name="in", kind="source", **born),  # type: ignore[arg-type]
            *(Operator(name=name, cpu_per_event=100.0) for name in names),
            Operator(name="out", kind="sink", pin=Pin(tier="cloud")),
        ],
        streams=[
            Stream(source=a, target=b) for a, b in zip(["in", *names], [*names, "out"], strict=True)
        ],
    )


def test_what_is_told_about_the_next_best_node_is_true() -> None:
    network = cloud_edge(2, 3, 4, seed=2, lan_bandwidth_bps=1e9)
    problem = Problem(application=random_application("stats", network, 2), network=network)
    plan = improve(problem)
    assert plan.feasible
    told = [reason for reason in plan.reasons if reason.runner_up is not None]
    assert len(told) == len(GRAPHS["stats"].transforms)
    for reason in told:
        assert reason.cost == pytest.approx(plan.objective, rel=1e-9)
        moved = [
            replace(i, node=reason.runner_up) if i.operator == reason.operator else i
            for i in plan.placement
        ]
        other = make_plan(problem, Placement.of(moved), strategy="moved")
        assert other.feasible
        assert other.objective == pytest.approx(reason.runner_up_cost, rel=1e-9)
        assert reason.considered > 0


def test_moved_operators_say_from_where() -> None:
    network = cloud_edge(1, 2, 3, seed=0)
    application = _chain(1, pin=Pin(node="edge-0/1"))
    problem = Problem(application=application, network=network)
    start = Placement.of(
        [
            Instance(operator="in", node="edge-0/1", origin="edge-0"),
            Instance(operator="o0", node="edge-1/0"),
            Instance(operator="out", node="cloud-0"),
        ]
    )
    plan = improve(problem, start)
    assert plan.placement.node_of("o0") in ("edge-0/1", "cloud-0")
    assert "moved from edge-1/0" in plan.explain("o0")
    assert "descents, each to a local optimum" in plan.explain("o0")


def test_without_time_the_start_is_the_answer() -> None:
    network = cloud_edge(2, 4, 5)
    problem = Problem(application=random_application("large-2", network, 6), network=network)
    start = find_strategy("tcep-best-fit")(problem)
    plan = improve(problem, start.placement, time_limit_s=0)
    assert plan.placement == start.placement
    assert plan.reasons[0].why.startswith("0 descents, the time was up")
    better = improve(problem, start.placement, time_limit_s=60.0)
    assert better.objective < plan.objective


def test_a_placement_outside_of_its_pins_is_brought_back() -> None:
    network = cloud_edge(1, 2, 3, seed=0)
    problem = Problem(application=_chain(2, pin=Pin(node="edge-0/1")), network=network)
    astray = Placement.of(
        [
            Instance(operator="in", node="edge-1/1", origin="edge-0"),
            Instance(operator="o0", node="cloud-0"),
            Instance(operator="o1", node="edge-1/0"),
            Instance(operator="out", node="edge-1/0"),
        ]
    )
    plan = improve(problem, astray)
    assert plan.feasible
    assert plan.placement.node_of("out") == "cloud-0"


def test_an_overloaded_start_is_repaired() -> None:
    network = cloud_edge(1, 2, 6, seed=0, cloud_mips=1.0, device_mips=(1.0,))
    application = _chain(6, pin=Pin(node="edge-0/1"), rate=1500.0)
    problem = Problem(application=application, network=network)
    crowded = [Instance(operator="in", node="edge-0/1", origin="edge-0")]
    crowded += [Instance(operator=f"o{k}", node="cloud-0") for k in range(6)]
    heavy = replace(
        application,
        operators=[
            replace(o, cpu_per_event=200.0) if o.kind == "transform" else o
            for o in application.operators
        ],
    )
    problem = Problem(application=heavy, network=network)
    start = Placement.of([*crowded, Instance(operator="out", node="cloud-0")])
    assert not make_plan(problem, start, strategy="start").feasible
    plan = improve(problem, start)
    assert plan.feasible
    assert check(plan, problem) == []


def test_replicas_are_kept_as_they_are() -> None:
    streams = [Stream(source="s", target="a"), Stream(source="a", target="z")]
    work = Operator(name="a", cpu_per_event=10.0, replicable=True)
    problem = fog_problem([work], streams, rate=2.0, event_size=10.0)
    current = find_strategy("fog-only")(problem).placement
    plan = improve(problem, current)
    assert plan.placement == current
    assert all("replicas are not moved" in reason.why for reason in plan.reasons)


def test_options_that_make_no_sense_are_refused_together() -> None:
    network = cloud_edge(1, 1, 1)
    with pytest.raises(InvalidInput) as refused:
        tw.plan(_chain(1), network, "improve", time_limit_s="1 s", seed=-1, restarts=2.5)
    paths = [defect.path for defect in refused.value.defects]
    assert paths == ["time_limit_s", "seed", "restarts"]


def test_one_site_and_no_cloud_will_do() -> None:
    network = cloud_edge(0, 1, 3, seed=0)
    application = _chain(2)
    sink = replace(application.operators[-1], pin=None)
    application = replace(application, operators=[*application.operators[:-1], sink])
    plan = tw.plan(application, network, "improve")
    assert plan.feasible
    # All where the events are born: nothing travels.
    assert {instance.node for instance in plan.placement} == {"edge-0/0"}


def test_an_operator_with_a_thousand_inputs() -> None:
    network = cloud_edge(2, 1000, 1, seed=0)
    plan = tw.plan(_chain(2, rate=1000.0), network, "improve", restarts=1, time_limit_s=60.0)
    assert plan.feasible
    assert plan.estimate.path_count == 1000


def test_ten_thousand_operators_in_a_chain() -> None:
    network = cloud_edge(2, 5, 5, seed=0)
    application = _chain(10_000, pin=Pin(node="edge-0/0"), rate=0.5)
    plan = tw.plan(application, network, "improve", time_limit_s=0.2)
    assert plan.feasible
    assert "the time was up" in plan.reasons[0].why


def test_streams_without_events_cost_only_their_way() -> None:
    network = cloud_edge(1, 2, 2, seed=0)
    plan = tw.plan(_chain(3, pin=Pin(node="edge-0/0"), rate=0.0), network, "improve")
    assert plan.feasible
    assert math.isfinite(plan.objective)


def test_more_sites_than_can_be_searched_are_left_as_they_are() -> None:
    network = fog_cloud(400)
    application = _chain(1, pin=Pin(tier="fog"))
    plan = tw.plan(application, network, "improve")
    assert "more sites are in use than can be searched" in plan.reasons[0].why
    assert plan.placement == tw.plan(application, network, "aels-rp-la-free").placement


def test_some_sites_of_a_large_routed_network_are_searched() -> None:
    network = fog_cloud(400)
    application = _chain(2, pin=Pin(site="fog-7"))
    plan = tw.plan(application, network, "improve")
    assert plan.feasible
    assert {i.node.partition("/")[0] for i in plan.placement} <= {"fog-7", "cloud"}


def test_the_sites_searched_lie_around_every_site_that_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = broker_tree(levels=4, fan_out=4)
    monkeypatch.setattr(ways, "_MOST_ROUTED_SITES", 8)
    first, last = (network.site_index[name] for name in ("broker-3-0", "broker-3-63"))
    found = ways.find_ways(network, np.array([first, last]))
    assert found is not None
    assert found.sites.size == 8
    names = {network.site_names[site] for site in found.sites.tolist()}
    # The parent is nearest to each of them.
    assert {"broker-2-0", "broker-2-15", "cloud"} <= names
