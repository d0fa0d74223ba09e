"""`exact` against trying every combination of nodes."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.problems import Sizes, random_problem
from generators.small import fog_problem
from thalweg.check import check
from thalweg.errors import InvalidInput
from thalweg.estimate.evaluate import make_plan
from thalweg.model import Instance, Limits, Operator, Placement, Plan, Problem, Stream
from thalweg.placement.branch_and_bound.bounds import Bounds
from thalweg.placement.branch_and_bound.search import search_all
from thalweg.placement.exact import exact
from thalweg.placement.improve import improve
from thalweg.placement.local_search.board import Board
from thalweg.placement.local_search.search import Search
from thalweg.scenarios import OperatorRanges, cloud_edge, random_application, topology

SEEDS = st.integers(0, 2**32 - 1)
SIZES = Sizes(sites=3, nodes_per_site=2, sources=2, transforms=3, sinks=2)
MOST_COMBINATIONS = 700


def least_of_all(problem: Problem) -> float | None:
    """The least aggregate latency of all placements that keep everything; ∞ for none.

    None where there are too many placements to try.
    """
    board = Board.of(problem, None)
    assert board is not None
    pools = []
    for copy in board.movable:
        allowed = problem.allowed_nodes(int(board.skeleton.operator[copy]))
        pools.append(range(problem.network.node_count) if allowed is None else allowed.tolist())
    if math.prod(len(pool) for pool in pools) > MOST_COMBINATIONS:
        return None
    best = math.inf
    nodes = board.anywhere()
    for chosen in product(*pools):
        nodes[list(board.movable)] = chosen
        plan = make_plan(problem, board.place(nodes), strategy="all")
        if plan.feasible:
            best = min(best, plan.objective)
    return best


def tight_problem(rng: np.random.Generator) -> Problem:
    """An application that hardly fits: devices with room for one or two operators, a small cloud.

    Many devices are alike but for their LAN latency; sometimes not even that differs.
    """
    mips = rng.choice([2.0, 3.0, 5.0], int(rng.integers(1, 3)))
    network = cloud_edge(
        1,
        1 if rng.random() < 0.6 else 2,
        int(rng.integers(2, 4)),
        seed=int(rng.integers(1000)),
        cloud_mips=float(rng.choice([3.0, 6.0, 20.0])),
        device_mips=tuple(mips.tolist()),
        lan_latency_s=(0.5e-3, float(rng.choice([0.5e-3, 5e-3, 60e-3]))),
        lan_bandwidth_bps=float(rng.choice([5e6, 1e9])),
        wan_latency_s=(10e-3, 85e-3),
        wan_bandwidth_bps=float(rng.choice([4e6, 1e9])),
    )
    ranges = OperatorRanges(rate=(100, 400), cpu_per_event=(4_000, 9_000), selectivity=(0.7, 1.0))
    graph = str(rng.choice(["train", "stats", "etl"]))
    application = random_application(graph, network, int(rng.integers(1000)), ranges=ranges)
    return Problem(application=application, network=network)


def least_below(problem: Problem, most_s: float) -> float:
    """The least aggregate latency below `most_s` of all placements that keep everything, or that.

    By the compiled evaluation, which other tests compare with the estimators: it is fast enough
    for more placements.
    """
    board = Board.of(problem, None)
    assert board is not None
    search, nodes = Search(board.figures, math.inf), board.anywhere()
    copies, best = list(board.movable), most_s

    def place(k: int) -> None:
        nonlocal best
        violation, latency_s = search.put(nodes)
        if violation > 0 or latency_s >= best:
            return
        if k == len(copies):
            best = latency_s
            return
        for node in range(problem.network.node_count):
            nodes[copies[k]] = node
            place(k + 1)
        nodes[copies[k]] = -1

    nodes[copies] = -1
    place(0)
    return best


def search_alone(problem: Problem, known_s: float) -> float:
    """What the search finds below a latency without any placement to begin with; ∞ for nothing."""
    board = Board.of(problem, None)
    assert board is not None
    bounds = Bounds(board.figures, board.anywhere(), known_s)
    answer = search_all(bounds, gap=0.0, deadline=math.inf, most_steps=10**7)
    assert answer.proven
    if answer.node is None:
        return math.inf
    plan = make_plan(problem, board.place(answer.node), strategy="search")
    assert plan.feasible
    return plan.objective


def steps_of(plan: Plan) -> int:
    """How many placements were looked at."""
    return int(plan.reasons[0].why.split("; ")[-1].split()[0])


def draw_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, SIZES, pinned=0.2)
    if rng.random() < 0.5:
        return problem
    application = replace(problem.application, limits=Limits())
    return Problem(application=application, network=problem.network, rates=problem.rates)


def assert_is_best(plan: Plan, problem: Problem, best: float) -> None:
    if math.isinf(best):
        assert not plan.feasible
        assert plan.gap is None
        assert "proven: no feasible placement" in plan.reasons[0].why
        return
    assert plan.feasible
    assert check(plan, problem) == []
    assert plan.objective == pytest.approx(best, rel=1e-9, abs=1e-15)
    assert plan.gap == 0


def assert_none_is_better(problem: Problem) -> None:
    plan = exact(problem)
    most_s = plan.objective * (1 - 1e-9) if plan.feasible else math.inf
    assert least_below(problem, most_s) == most_s
    assert_is_best(plan, problem, plan.objective if plan.feasible else math.inf)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_exact_is_the_best_of_all_placements(seed: int) -> None:
    problem = draw_problem(seed)
    best = least_of_all(problem)
    if best is not None:
        assert_is_best(exact(problem), problem, best)
        assert search_alone(problem, math.inf) == pytest.approx(best, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_exact_is_the_best_where_the_operators_hardly_fit(seed: int) -> None:
    assert_none_is_better(tight_problem(np.random.default_rng(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 150))
def test_exact_is_the_best_where_the_operators_hardly_fit_many_times(seed: int) -> None:
    assert_none_is_better(tight_problem(np.random.default_rng(seed)))


@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_the_optimum_by_itself(seed: int) -> None:
    """Knowing nothing, or a placement that is hardly worse; the local search finds most optima."""
    problem = tight_problem(np.random.default_rng(seed))
    plan = exact(problem)
    best = plan.objective if plan.feasible else math.inf
    for known_s in (math.inf, best * (1 + 1e-5)):
        assert search_alone(problem, known_s) == pytest.approx(best, rel=1e-9)


def test_the_tight_problems_make_it_search() -> None:
    plans = [exact(tight_problem(np.random.default_rng(seed))) for seed in range(60)]
    assert sum(plan.feasible for plan in plans) >= 20
    assert sum(not plan.feasible for plan in plans) >= 3
    assert sum(steps_of(plan) > 20 for plan in plans) >= 5


@pytest.mark.parametrize("seed", range(12))
def test_the_gap_is_true_where_the_search_was_stopped(seed: int) -> None:
    problem = tight_problem(np.random.default_rng(seed))
    best, stopped = exact(problem), exact(problem, most_steps=3)
    if not best.feasible:
        assert stopped.gap is None
        return
    assert stopped.feasible
    assert stopped.gap is not None
    assert stopped.objective <= best.objective * (1 + stopped.gap) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_a_gap_that_is_allowed_is_kept(seed: int) -> None:
    problem = tight_problem(np.random.default_rng(seed))
    best, close = exact(problem), exact(problem, gap=0.05)
    assert close.feasible == best.feasible
    if best.feasible:
        assert close.gap is not None
        assert close.gap <= 0.05 * (1 + 1e-9)
        assert best.objective <= close.objective * (1 + 1e-12)
        assert close.objective <= best.objective * (1 + close.gap) * (1 + 1e-9)
        assert steps_of(close) <= steps_of(best)
        proven = any("no placement has less" in reason.why for reason in close.reasons)
        assert proven == (close.gap == 0)


@pytest.mark.parametrize("seed", range(6))
def test_exact_is_no_worse_than_improve(seed: int) -> None:
    network = cloud_edge(2, 3, 5, seed=seed)
    problem = Problem(application=random_application("medium-9", network, seed), network=network)
    best, good = exact(problem), improve(problem)
    assert best.feasible or not good.feasible
    assert best.objective <= good.objective * (1 + 1e-12)


def test_a_large_network_gets_a_proven_gap() -> None:
    network = topology("regular-100x100x10")
    application = random_application("large-3", network, 2)
    problem = Problem(application=application, network=network)
    plan = exact(problem)
    assert plan.feasible
    assert plan.gap is not None
    assert 0 <= plan.gap < 0.2
    assert check(plan, problem) == []


def test_the_same_question_gets_the_same_answer() -> None:
    problem = tight_problem(np.random.default_rng(0))
    assert exact(problem) == exact(problem)
    assert exact(problem, most_steps=5) == exact(problem, most_steps=5)


def test_what_is_all_pinned_is_answered_at_once() -> None:
    problem = fog_problem([], [Stream(source="s", target="z")], rate=1.0, event_size=10.0, fogs=1)
    assert exact(problem).gap == 0


def _two_in_a_row() -> Problem:
    streams = [Stream(source="s", target="a"), Stream(source="a", target="z")]
    work = Operator(name="a", cpu_per_event=10.0, replicable=True)
    return fog_problem([work], streams, rate=2.0, event_size=10.0)


def test_replicas_are_kept_as_they_are() -> None:
    problem = _two_in_a_row()
    sites = ("f1", "f2")
    current = Placement.of(
        [
            *(Instance(operator=o, node=f"{f}/n", origin=f) for o in ("s", "a") for f in sites),
            Instance(operator="z", node="dc/n"),
        ]
    )
    plan = exact(problem, current)
    assert plan.placement == current
    assert plan.gap is None
    assert "replicas" in plan.reasons[0].why


def test_options_that_make_no_sense_are_refused_together() -> None:
    with pytest.raises(InvalidInput) as refused:
        exact(_two_in_a_row(), time_limit_s=-1.0, gap=-0.1, most_steps=1.5)  # type: ignore[arg-type]
    assert [defect.path for defect in refused.value.defects] == [
        "time_limit_s",
        "most_steps",
        "gap",
    ]
