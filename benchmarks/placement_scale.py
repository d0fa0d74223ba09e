"""How long does a placement take on up to 2.5 million nodes, and how does that grow?

Every strategy gets the same applications on the same networks. Beside them, as far as its time
allows, runs the paper's algorithm as it is written: every operator on every node, one by one.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import thalweg as tw
from benchmarks.measure import timed
from benchmarks.placement_plain import PlainSearch, TimeIsUp
from benchmarks.runner import REGISTER, Benchmark, Count, Result, Row, Settings
from thalweg.model import Network, Plan
from thalweg.placement.network_index import index_network
from thalweg.scenarios import cloud_edge, random_application
from thalweg.strategy import find_strategy

PUBLISHED = ("aels", "aels-rp", "aels-rp-la-free", "cloud-only", "tcep-best-fit")
OURS = "aels-rp-la-free+improve"
STRATEGIES = (*PUBLISHED, OURS)
GRAPHS = {9: "medium-9", 25: "large-1", 50: "extra-large"}
# Clouds, edge sites, devices per site.
SHAPES = (
    (10, 10, 10),
    (10, 10, 100),
    (100, 100, 100),
    (500, 500, 100),
    (500, 500, 500),
    (500, 500, 5009),
)
QUICK_SHAPES, SMOKE_SHAPES = SHAPES[:3], SHAPES[:2]
SEEDS, QUICK_SEEDS, SMOKE_SEEDS = 5, 2, 1
LARGE_NODES, MOST_OPERATORS = 250_500, 50
TARGETS_S = {
    "aels": 20e-3,
    "aels-rp": 20e-3,
    "aels-rp-la-free": 5e-3,
    "cloud-only": 5e-3,
    "tcep-best-fit": 20e-3,
}
EXPONENT_TARGET, BYTES_TARGET = 0.6, 100.0
IMPROVE_LIMIT_S, SMOKE_IMPROVE_LIMIT_S = 1.0, 0.1
PLAIN_LIMIT_S, QUICK_PLAIN_LIMIT_S, SMOKE_PLAIN_LIMIT_S = 30.0, 5.0, 0.5

RESOLUTION = "resolution time"
PLAIN = "plain algorithm"


@dataclass(frozen=True, slots=True)
class Case:
    """One application on one network."""

    problem: tw.Problem
    operators: int
    seed: int


def run(settings: Settings) -> Result:
    """Time every strategy on every network."""
    shapes = settings.pick(full=SHAPES, quick=QUICK_SHAPES, smoke=SMOKE_SHAPES)
    seeds = settings.pick(full=SEEDS, quick=QUICK_SEEDS, smoke=SMOKE_SEEDS)
    improve_s = SMOKE_IMPROVE_LIMIT_S if settings.smoke else IMPROVE_LIMIT_S
    rows: list[Row] = []
    unplaced = 0
    seconds: dict[tuple[str, int, int], float] = {}
    plain_fits = dict.fromkeys(GRAPHS, True)
    first_s = 0.0
    limit_s = settings.pick(
        full=PLAIN_LIMIT_S, quick=QUICK_PLAIN_LIMIT_S, smoke=SMOKE_PLAIN_LIMIT_S
    )
    for shape in shapes:
        network, built_s = timed(lambda shape=shape: cloud_edge(*shape, 0))
        index, indexed_s = timed(lambda network=network: index_network(network))
        nodes = network.node_count
        rows += _size_rows(network, index.held_bytes, built_s, indexed_s)
        for operators, graph in GRAPHS.items():
            settings.tell(f"{operators} operators on {nodes:,} nodes")
            cases = _cases(network, graph, operators, seeds)
            for name in STRATEGIES:
                plans, times = _plan_all(name, cases, improve_s)
                unplaced += sum(map(_count_unplaced, cases, plans))
                seconds[name, operators, nodes] = median(times)
                if name == "aels":
                    first_s = times[0]
                rows += _rows(name, operators, nodes, plans, times, improve_s)
                rows.append(_memory_row(name, cases[0], operators, nodes, improve_s))
            if plain_fits[operators]:
                row, plain_fits[operators] = _plain_row(cases[0], limit_s, first_s)
                rows += row
    rows += _growth(seconds, shapes)
    notes = [
        "applications with the figures of Table 4 of da Silva Veith et al., one for each seed",
        "resolution time: from the problem to the choice of all nodes; medians; code is warm",
        f"the plain algorithm is in Python; it is not tried again after {limit_s:g} s",
    ]
    counts = [Count(name="operators without a place", expected=0, counted=unplaced)]
    return Result(rows=rows, notes=notes, counts=counts)


def _count_unplaced(case: Case, plan: Plan) -> int:
    placed = {instance.operator for instance in plan.placement}
    return sum(each.name not in placed for each in case.problem.application.operators)


def _cases(network: Network, graph: str, operators: int, seeds: int) -> list[Case]:
    return [
        Case(
            tw.Problem(application=random_application(graph, network, seed=seed), network=network),
            operators,
            seed,
        )
        for seed in range(seeds)
    ]


def _plan_all(name: str, cases: list[Case], improve_s: float) -> tuple[list[Plan], list[float]]:
    strategy, options = find_strategy(name), _options(name, improve_s)
    strategy(cases[0].problem, **options)  # Compiles what has to be compiled.
    plans = [strategy(case.problem, **options) for case in cases]
    return plans, [plan.seconds for plan in plans]


def _options(name: str, improve_s: float) -> dict[str, Any]:
    return {"restarts": 0, "time_limit_s": improve_s} if name == OURS else {}


def _size_rows(network: Network, index_bytes: int, built_s: float, indexed_s: float) -> list[Row]:
    at = {"nodes": network.node_count}
    per_node = (network.held_bytes + index_bytes) / network.node_count
    small = network.node_count < LARGE_NODES  # A matrix of sites weighs more there than nodes.
    return [
        Row(measure="making the network", value=built_s, unit="s", at=at),
        Row(measure="making its index, once", value=indexed_s, unit="s", at=at),
        Row(
            measure="memory of network and index per node",
            value=per_node,
            unit="bytes",
            target=None if small else BYTES_TARGET,
            at=at,
        ),
    ]


def _rows(
    name: str,
    operators: int,
    nodes: int,
    plans: list[Plan],
    times: list[float],
    improve_s: float,
) -> list[Row]:
    at = {"strategy": name, "operators": operators, "nodes": nodes}
    large = nodes == LARGE_NODES and operators == MOST_OPERATORS
    feasible = sum(plan.feasible for plan in plans)
    return [
        *([_optima_row(plans, at, large, improve_s)] if name == OURS else []),
        Row(
            measure=RESOLUTION,
            value=median(times),
            unit="s",
            target=TARGETS_S.get(name) if large else None,
            at=at,
            note=f"median of {len(times)}, slowest {max(times) * 1e3:.1f} ms; {feasible} feasible",
        ),
        Row(measure="candidates", value=median(plan.candidates for plan in plans), at=at),
    ]


def _optima_row(plans: list[Plan], at: dict[str, Any], large: bool, improve_s: float) -> Row:
    """How many descents reached a local optimum; the plan's first reason begins with that."""
    descents = [int(plan.reasons[0].why.split()[0]) for plan in plans]
    return Row(
        measure=f"local optima reached within {improve_s:g} s, fewest",
        value=min(descents),
        target=1.0 if large else None,
        at_least=True,
        at=at,
        note=f"most {max(descents)}",
    )


def _memory_row(name: str, case: Case, operators: int, nodes: int, improve_s: float) -> Row:
    """The most that a strategy holds beside the network and its index, in a run of its own."""
    strategy = find_strategy(name)
    tracemalloc.start()
    try:
        strategy(case.problem, **_options(name, improve_s))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    at = {"strategy": name, "operators": operators, "nodes": nodes}
    return Row(measure="memory of a run", value=most / 1e6, unit="MB", at=at, note="seed 0")


def _plain_row(case: Case, limit_s: float, indexed_s: float) -> tuple[list[Row], bool]:
    """How long the plain algorithm takes; whether it may be tried on a larger network."""
    nodes = case.problem.network.node_count
    at = {"operators": case.operators, "nodes": nodes}
    try:
        _, seconds = timed(lambda: PlainSearch(case.problem, limit_s=limit_s).place_all())
    except TimeIsUp:
        return [], False
    rows = [
        Row(measure=PLAIN, value=seconds, unit="s", at=at),
        Row(
            measure="plain algorithm against aels",
            value=seconds / indexed_s,
            unit="times",
            at=at,
            note="seed 0",
        ),
    ]
    return rows, True


def _growth(
    seconds: dict[tuple[str, int, int], float], shapes: tuple[tuple[int, int, int], ...]
) -> list[Row]:
    nodes = [clouds + sites * devices for clouds, sites, devices in shapes]
    rows = []
    for name in STRATEGIES:
        for operators in GRAPHS:
            times = [seconds[name, operators, count] for count in nodes]
            slope, _ = np.polyfit(np.log(nodes), np.log(times), 1)
            rows.append(
                Row(
                    measure="growth with the nodes",
                    value=float(slope),
                    unit="exponent",
                    target=EXPONENT_TARGET if name == "aels" else None,
                    at={
                        "strategy": name,
                        "operators": operators,
                        "from": nodes[0],
                        "to": nodes[-1],
                    },
                    note="slope of log time over log nodes",
                )
            )
    return rows


def plot(result: Result, path: Path) -> None:
    """Draw time over nodes, a panel for each number of operators."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.5), layout="constrained")
    for axes, operators in zip(figure.subplots(1, len(GRAPHS), sharey=True), GRAPHS, strict=True):
        for name in (*STRATEGIES, PLAIN):
            points = [
                (row.at["nodes"], row.value)
                for row in result.rows
                if row.at.get("operators") == operators
                and (row.measure == PLAIN if name == PLAIN else row.at.get("strategy") == name)
                and row.measure in (RESOLUTION, PLAIN)
            ]
            if points:
                axes.loglog(*zip(*points, strict=True), marker="o", markersize=4, label=name)
        axes.set_title(f"{operators} operators", fontsize=10)
        axes.set_xlabel("nodes")
        axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    figure.axes[0].set_ylabel("seconds for a placement")
    figure.savefig(path, dpi=130)


REGISTER.add(
    Benchmark(
        name="placement_scale",
        question="How long does a placement take on millions of nodes, and how does that grow?",
        run=run,
        plot=plot,
    )
)
