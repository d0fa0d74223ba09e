"""Every strategy on one application graph and one network, for all draws of its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.check import check
from thalweg.estimate.latency import aggregate_window_s
from thalweg.experiments.aels.execution import NOT_EXECUTED, execute_all
from thalweg.model.deployment import deploy
from thalweg.model.network import Network
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.placement.network_index import index_network
from thalweg.scenarios.graphs import GRAPHS
from thalweg.scenarios.random_application import DRAWS_PER_GRAPH, random_application
from thalweg.scenarios.topologies import TOPOLOGIES, topology
from thalweg.strategy import find_strategy

PUBLISHED = ("aels", "aels-rp", "aels-rp-la", "cloud-only", "tcep")
OURS = "aels-rp-la+improve"
STRATEGIES = (*PUBLISHED, OURS)
# Enough for a descent from the plan that it is given; for all of them on a large network it is not.
IMPROVE_LIMIT_S = 0.08
TRIAL_GRAPH = "etl"

COLUMNS = pa.schema(
    [
        ("group", pa.string()),
        ("nodes", pa.int64()),
        ("size", pa.string()),
        ("operators", pa.int64()),
        ("draw", pa.int64()),
        ("strategy", pa.string()),
        ("seconds", pa.float64()),
        ("candidates", pa.int64()),
        ("feasible", pa.bool_()),
        ("broken", pa.string()),
        ("aggregate_latency_s", pa.float64()),
        # The part of it that no placement changes: the time that windows take to fill.
        ("window_latency_s", pa.float64()),
        ("worst_latency_s", pa.float64()),
        ("paths", pa.float64()),
        # What the independent checker found in a plan that is called feasible.
        ("violations", pa.int64()),
        # What a simulated minute of a feasible plan found.
        ("simulated_latency_s", pa.float64()),
        ("simulated_window_s", pa.float64()),
        ("simulated_paths", pa.float64()),
        ("hops", pa.int64()),
        ("simulation_s", pa.float64()),
    ]
)


def list_points(limit: int | None = None) -> tuple[list[dict[str, object]], int]:
    """Pairs of network and graph, and how many draws of each; all of them, or about `limit` runs.

    With a limit the pairs are spread evenly over all of them.
    """
    pairs: list[dict[str, object]] = [
        {"topology": network, "graph": graph} for network in TOPOLOGIES for graph in GRAPHS
    ]
    if limit is None or limit >= len(pairs) * DRAWS_PER_GRAPH:
        return pairs, DRAWS_PER_GRAPH
    draws = max(1, limit // len(pairs))
    count = min(len(pairs), ceil(limit / draws))
    # Both ends, and evenly between them: the smallest and the largest network are always there.
    chosen = np.unique(np.linspace(0, len(pairs) - 1, count).round().astype(int))
    return [pairs[k] for k in chosen.tolist()], draws


def run_point(point: Mapping[str, Any]) -> list[dict[str, object]]:
    """A row for each draw and strategy."""
    shape = TOPOLOGIES[point["topology"]]
    graph = GRAPHS[point["graph"]]
    network = _network(shape.name)
    rows: list[dict[str, object]] = []
    for draw in range(int(point["draws"])):
        application = random_application(graph.name, network, draw=draw)
        problem = Problem(application=application, network=network)
        plans = [_plan(name, problem) for name in STRATEGIES]
        feasible = [plan.placement for plan in plans if plan.feasible]
        seed = f"aels/{shape.name}/{graph.name}/{draw}"
        executions = iter(execute_all(problem, feasible, seed))
        windows_s = aggregate_window_s(deploy(problem, plans[0].placement))
        rows += [
            {
                "group": shape.group,
                "nodes": network.node_count,
                "size": graph.size,
                "operators": len(graph.transforms),
                "draw": draw,
                "window_latency_s": windows_s,
                **_figures(plan, problem),
                **(asdict(next(executions)) if plan.feasible else NOT_EXECUTED),
            }
            for plan in plans
        ]
    return rows


def _plan(name: str, problem: Problem) -> Plan:
    options = {"time_limit_s": IMPROVE_LIMIT_S, "restarts": 0} if name == OURS else {}
    return find_strategy(name)(problem, **options)


def _figures(plan: Plan, problem: Problem) -> dict[str, object]:
    found = check(plan, problem.application, problem.network) if plan.feasible else ()
    estimate = plan.estimate
    return {
        "strategy": plan.strategy,
        "seconds": plan.seconds,
        "candidates": plan.candidates,
        "feasible": plan.feasible,
        "broken": ", ".join(sorted({violation.constraint for violation in plan.violations})),
        "aggregate_latency_s": estimate.aggregate_latency_s,
        "worst_latency_s": estimate.worst_latency_s,
        "paths": estimate.path_count,
        "violations": len(found),
    }


@lru_cache(maxsize=1)
def _network(name: str) -> Network:
    """A network, its index made, and the strategies tried once: their code may have to compile."""
    network = topology(name)
    index_network(network)
    problem = Problem(application=random_application(TRIAL_GRAPH, network, seed=1), network=network)
    for strategy in STRATEGIES:
        _plan(strategy, problem)
    return network
