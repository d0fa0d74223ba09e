"""The compiled search against the estimators, placement by placement and move by move."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.problems import Sizes, random_problem
from thalweg.estimate.evaluate import make_plan
from thalweg.model import Limits, Plan, Problem
from thalweg.placement.local_search.board import Board
from thalweg.placement.local_search.compiled.moves import LEAST_GAIN, find_best
from thalweg.placement.local_search.search import Search
from thalweg.scenarios import OperatorRanges, cloud_edge, random_application

SEEDS = st.integers(0, 2**32 - 1)
SIZES = Sizes(sites=4, nodes_per_site=3, sources=2, transforms=5, sinks=2)


def random_nodes(rng: np.random.Generator, board: Board) -> np.ndarray:
    """Every copy that may move somewhere its pin allows."""
    nodes = board.anywhere()
    for copy in board.movable:
        allowed = board.problem.allowed_nodes(int(board.skeleton.operator[copy]))
        count = board.problem.network.node_count
        nodes[copy] = rng.integers(count) if allowed is None else rng.choice(allowed)
    return nodes


def plan_of(board: Board, nodes: np.ndarray) -> Plan:
    return make_plan(board.problem, board.place(nodes), strategy="test")


def board_and_search(problem: Problem) -> tuple[Board, Search]:
    board = Board.of(problem, None)
    assert board is not None
    return board, Search(board.figures, math.inf)


def as_it_can_be(rng: np.random.Generator, problem: Problem) -> Problem:
    """The problem without its limits, as often as not: few placements keep them."""
    if rng.random() < 0.5:
        return problem
    application = replace(problem.application, limits=Limits())
    return Problem(application=application, network=problem.network, rates=problem.rates)


def alike_problem(rng: np.random.Generator) -> Problem:
    """Sites with many nodes of the same sort, at very different LAN latencies.

    Links have room for some of the flows that might use them, nodes for some of the operators.
    """
    network = cloud_edge(
        int(rng.integers(1, 3)),
        2,
        int(rng.integers(3, 7)),
        seed=int(rng.integers(1000)),
        cloud_mips=float(rng.choice([4.0, 100.0])),
        device_mips=(3.0,),
        device_memory_bytes=float(rng.choice([2e4, 1e6])),
        lan_latency_s=(1e-3, 50e-3),
        lan_bandwidth_bps=float(rng.choice([2e6, 4e6, 1e9])),
        wan_bandwidth_bps=float(rng.choice([1e6, 3e6, 1e9])),
    )
    ranges = OperatorRanges(
        rate=(100, 400), event_bytes=(100, 500), selectivity=(0.7, 1.0), compression=(0.7, 1.0)
    )
    graph = str(rng.choice(["train", "stats", "pred", "medium-9"]))
    application = random_application(
        graph, network, int(rng.integers(1000)), ranges=ranges, splitters="copy"
    )
    limits = Limits(
        response_time_s=float(rng.choice([math.inf, math.inf, 0.15, 0.3])),
        uplink_bps=float(rng.choice([math.inf, math.inf, 0.3e6, 1e6])),
    )
    return Problem(application=replace(application, limits=limits), network=network)


def any_problem(rng: np.random.Generator) -> Problem:
    if rng.random() < 0.6:
        return alike_problem(rng)
    return as_it_can_be(rng, random_problem(rng, SIZES, pinned=0.1))


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_a_placement_costs_and_violates_what_the_estimators_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    board, search = board_and_search(any_problem(rng))
    for _ in range(4):
        nodes = random_nodes(rng, board)
        violation, latency_s = search.put(nodes)
        plan = plan_of(board, nodes)
        assert (violation == 0) == plan.feasible, plan.violations
        if math.isfinite(plan.objective):
            assert latency_s == pytest.approx(plan.objective, rel=1e-9, abs=1e-15)
        else:
            assert violation > 0


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_the_best_node_is_the_best_of_all_nodes(seed: int) -> None:
    """Groups of copies are weighed against trying every node, with a plan for each."""
    rng = np.random.default_rng(seed)
    board, search = board_and_search(any_problem(rng))
    search.descend_from(random_nodes(rng, board))
    if search.violation > 0 or not board.movable:
        return
    # Some way off the optimum there is more to choose from.
    for _ in range(4):
        nodes = search.best_nodes.copy()
        off = rng.permutation(list(board.movable))[: int(rng.integers(0, 4))]
        nodes[off] = random_nodes(rng, board)[off]
        violation, latency_s = search.put(nodes)
        if violation > 0:
            continue
        members = rng.permutation(list(board.movable))[: int(rng.integers(1, 4))].astype(np.int64)
        change, found = find_best(
            board.figures, search.state, members, members.size, -LEAST_GAIN * latency_s
        )
        best, where = latency_s * (1 - LEAST_GAIN), -1
        for node in range(board.problem.network.node_count):
            moved = nodes.copy()
            moved[members] = node
            plan = plan_of(board, moved)
            if plan.feasible and plan.objective < best - 1e-12 * abs(best):
                best, where = plan.objective, node
        if where < 0:
            assert found < 0 or change >= -1e-9 * latency_s
            continue
        assert found >= 0
        moved = nodes.copy()
        moved[members] = found
        assert plan_of(board, moved).feasible
        assert latency_s + change == pytest.approx(best, rel=1e-9, abs=1e-15)
        assert plan_of(board, moved).objective == pytest.approx(best, rel=1e-9, abs=1e-15)


def test_the_random_problems_have_feasible_placements() -> None:
    """Else the test above would test nothing."""
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        board, search = board_and_search(any_problem(rng))
        search.descend_from(random_nodes(rng, board))
        found += search.violation == 0 and len(board.movable) > 1
    assert found >= 15
