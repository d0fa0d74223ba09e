"""How long the aggregate latency of an application takes, beside walking its paths one by one."""

from __future__ import annotations

import math
import time
from pathlib import Path
from statistics import median

import numpy as np

import thalweg as tw
from benchmarks.measure import median_seconds
from benchmarks.runner import Result, Row, Settings
from thalweg.estimate.demand import estimate_demand
from thalweg.estimate.latency import Latencies, aggregate_latency_s, estimate_latencies
from thalweg.estimate.rates import estimate_rates
from thalweg.model.deployment import Deployment, deploy_indices

# Layers × width: always 50 operators (and a source and a sink), from 625 to 33 million paths.
SHAPES = ((2, 25), (5, 10), (10, 5), (25, 2))
HEADLINE = (10, 5)
TARGET_S = 1e-3
MOST_WALKED_WHEN_QUICK, MOST_WALKED_IN_SMOKE = 100_000, 1_000

COUNTED = "aggregate latency of a deployment"
WALKED = "the same by walking every path"


def measure_paths(settings: Settings) -> list[Row]:
    """The sweep over the number of paths, with the pieces at the shape that has a target."""
    turns = settings.pick(full=500, quick=50, smoke=2)
    most_walked = settings.pick(
        full=math.inf, quick=MOST_WALKED_WHEN_QUICK, smoke=MOST_WALKED_IN_SMOKE
    )
    side = 5 if settings.smoke else 500
    network = tw.scenarios.cloud_edge(side, side, side, seed=0)
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for shape in SHAPES:
        problem = _layered_problem(network, *shape)
        paths = problem.application.path_count
        settings.tell(f"aggregate latency over {paths:,} paths")
        deployments = [_new_deployment(problem, rng) for _ in range(turns)]
        counted_s = _time_counting(deployments)
        at = {"operators": 50, "paths": paths}
        rows.append(
            Row(
                measure=COUNTED,
                value=counted_s,
                unit="s",
                target=TARGET_S if shape == HEADLINE else None,
                at=at,
                note=f"median of {turns} random placements",
            )
        )
        if shape == HEADLINE:
            rows += _measure_pieces(network, problem, rng, turns)
        if paths <= most_walked:
            walked_s = _time_walking(deployments[0])
            times = walked_s / counted_s
            rows.append(Row(measure=WALKED, value=walked_s, unit="s", at=at))
            rows.append(Row(measure="counting is faster", value=times, unit="times", at=at))
    return rows


def _measure_pieces(
    network: tw.Network, problem: tw.Problem, rng: np.random.Generator, turns: int
) -> list[Row]:
    """Where the time goes, and what comes on top when less is known beforehand."""
    steps = ("rates", "demand", "service and communication times", "path counts and their sum")
    seconds: dict[str, list[float]] = {step: [] for step in steps}
    for deployment in [_new_deployment(problem, rng) for _ in range(turns)]:
        marks = [time.perf_counter()]
        rates = estimate_rates(deployment)
        marks.append(time.perf_counter())
        demand = estimate_demand(deployment, rates)
        marks.append(time.perf_counter())
        latencies = estimate_latencies(deployment, rates, demand)
        marks.append(time.perf_counter())
        aggregate_latency_s(deployment, latencies)
        marks.append(time.perf_counter())
        for step, spent in zip(steps, np.diff(marks).tolist(), strict=True):
            seconds[step].append(spent)
    at = {"paths": problem.application.path_count}
    pieces = [
        Row(measure=f"of that: {step}", value=median(spent), unit="s", at=at)
        for step, spent in seconds.items()
    ]
    placed = iter([_random_indices(problem, rng) for _ in range(turns)])
    unfolded_s = median_seconds(
        lambda: _aggregate_latency(deploy_indices(problem, *next(placed))), repeats=turns - 1
    )
    unseen = [_layered_problem(network, *HEADLINE) for _ in range(min(turns, 50))]
    first = iter([(new, _random_indices(new, rng)) for new in unseen])

    def take_next() -> None:
        new, indices = next(first)
        _aggregate_latency(deploy_indices(new, *indices))

    first_s = median_seconds(take_next, repeats=len(unseen) - 1)
    return [
        *pieces,
        Row(
            measure="aggregate latency of a placement",
            value=unfolded_s,
            unit="s",
            at=at,
            note="unfolded into a deployment, then all of the above",
        ),
        Row(
            measure="aggregate latency of an application's first placement",
            value=first_s,
            unit="s",
            at=at,
            note="the same, and the application's graph is analysed",
        ),
    ]


def _layered_problem(network: tw.Network, layers: int, width: int) -> tw.Problem:
    # A source in one site only: replicas in 500 sites would be another question.
    pin = tw.Pin(site=network.site_names[0])
    app = tw.scenarios.layered_application(layers, width, source_pin=pin)
    return tw.Problem(application=app, network=network)


def _random_indices(
    problem: tw.Problem, rng: np.random.Generator
) -> tuple[list[int], list[int], list[int]]:
    """Every operator once, on a random node; the source where it is born."""
    births = problem.births
    count = len(problem.application.operators)
    node = rng.integers(problem.network.node_count, size=count)
    origin = np.full(count, -1)
    node[births.operator], origin[births.operator] = births.node, births.site
    return list(range(count)), node.tolist(), origin.tolist()


def _new_deployment(problem: tw.Problem, rng: np.random.Generator) -> Deployment:
    return deploy_indices(problem, *_random_indices(problem, rng))


def _aggregate_latency(deployment: Deployment) -> float:
    rates = estimate_rates(deployment)
    demand = estimate_demand(deployment, rates)
    return aggregate_latency_s(deployment, estimate_latencies(deployment, rates, demand))


def _time_counting(deployments: list[Deployment]) -> float:
    """From a deployment to its aggregate latency, each deployment once."""
    turn = iter(deployments)
    total = 0.0

    def next_one() -> None:
        nonlocal total
        total += _aggregate_latency(next(turn))

    seconds = median_seconds(next_one, repeats=len(deployments) - 1)
    if not math.isfinite(total):
        raise RuntimeError("an operator cannot keep up: the aggregate latency is infinite")
    return seconds


def _time_walking(deployment: Deployment) -> float:
    """Seconds for walking every path; the sum has to be the one that counting gives."""
    rates = estimate_rates(deployment)
    latencies = estimate_latencies(deployment, rates, estimate_demand(deployment, rates))
    paths = deployment.problem.application.path_count
    counted = aggregate_latency_s(deployment, latencies)
    walked = sum_over_paths(deployment, latencies)
    # Ten million additions in a row leave some 1e-9 of rounding.
    if not math.isclose(counted, walked, rel_tol=1e-7):
        raise RuntimeError(f"counting gives {counted} s, walking {walked} s")
    repeats = max(1, min(50, MOST_WALKED_WHEN_QUICK // paths))
    return median_seconds(lambda: sum_over_paths(deployment, latencies), repeats=repeats, warm_up=0)


def sum_over_paths(deployment: Deployment, latencies: Latencies) -> float:
    """The sum of the latencies of all paths, the obvious way: no names, no objects, only sums."""
    graph = deployment.graph
    service, transfer = latencies.service_s.tolist(), latencies.communication_s.tolist()
    leaving: list[list[tuple[int, float]]] = [[] for _ in range(graph.size)]
    for edge, (a, b) in enumerate(zip(graph.source.tolist(), graph.target.tolist(), strict=True)):
        leaving[a].append((b, transfer[edge] + service[b]))
    total = 0.0
    waiting = [(root, service[root]) for root in np.flatnonzero(graph.roots).tolist()]
    while waiting:
        vertex, so_far = waiting.pop()
        if not leaving[vertex]:
            total += so_far
        for target, step in leaving[vertex]:
            waiting.append((target, so_far + step))
    return total


def plot_paths(result: Result, path: Path) -> None:
    """Draw seconds over the number of paths: counted, and walked one by one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot(xlabel="paths", ylabel="seconds", xscale="log", yscale="log")
    axes.set_title("Aggregate latency of 50 operators")
    for measure, label in ((COUNTED, "counted"), (WALKED, "walked one by one")):
        axes.plot(*result.sweep(measure, by="paths"), "o-", label=label)
    axes.axhline(TARGET_S, color="grey", linewidth=0.8, label="target")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
