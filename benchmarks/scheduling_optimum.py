"""Is `tsoo-optimal` the optimum, and how far from it are the others?

Every combination of cuts of every stream is placed, estimated and checked, one by one, and the
cheapest that keeps every limit is compared with what the strategies answer.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import thalweg as tw
from benchmarks.runner import REGISTER, Benchmark, Count, Result, Row, Settings
from thalweg.estimate.evaluate import make_plan
from thalweg.model import Limits
from thalweg.scenarios import device_rates, fog_cloud, taxi_demand, taxi_fares
from thalweg.scheduling.schedule import Table
from thalweg.strategy import find_strategy

RIVALS = ("tsoo-both-ways", "atsoo-both-ways", "trcs", "fog-only", "fc-interplay")
FOGS = 2


def run(settings: Settings) -> Result:
    """Compare on random problems of two fogs."""
    cases = settings.pick(full=60, quick=10, smoke=2)
    combinations, equal, feasible = 0, 0, 0
    better = 0
    gaps: dict[str, list[float]] = {name: [] for name in RIVALS}
    missed = dict.fromkeys(RIVALS, 0)
    for case in range(cases):
        settings.tell(f"case {case + 1} of {cases}")
        problem = _problem(case)
        best, tried = _try_all(problem)
        combinations += tried
        feasible += best is not None
        plan = find_strategy("tsoo-optimal")(problem)
        equal += _agree(plan, best)
        for name in RIVALS:
            rival = find_strategy(name)(problem)
            if best is not None and rival.feasible:
                gaps[name].append(rival.objective / best - 1.0)
            better += rival.feasible and (best is None or rival.objective < best * (1 - 1e-9))
            missed[name] += best is not None and not rival.feasible
    rows = [
        Row(measure="problems", value=cases),
        Row(measure="combinations of cuts tried", value=combinations),
        Row(measure="problems that some combination solves", value=feasible),
        Row(
            measure="tsoo-optimal equals the best combination",
            value=equal,
            target=cases,
            at_least=True,
        ),
    ]
    for name in RIVALS:
        mean = float(np.mean(gaps[name])) if gaps[name] else None
        rows.append(Row(measure="mean gap to the best", value=mean, at={"strategy": name}))
        rows.append(
            Row(measure="solvable but not solved", value=missed[name], at={"strategy": name})
        )
    return Result(
        rows=rows,
        notes=["two fogs, taxi applications, random rates and limits"],
        counts=[Count(name="plans better than the best", expected=0, counted=better)],
    )


def _problem(case: int) -> tw.Problem:
    rng = np.random.default_rng(case)
    limits = Limits(
        response_time_s=float(rng.uniform(0.35, 0.9)), uplink_bps=float(rng.uniform(5e6, 3e8))
    )
    make = taxi_fares if case % 2 else taxi_demand
    network = fog_cloud(FOGS, seed=case, same_vm=bool(rng.random() < 0.5))
    scarce = network.node_memory_bytes * rng.uniform(0.01, 1.0, network.node_count)
    return tw.Problem(
        application=make(seed=case, limits=limits),
        network=network.with_available(node_memory_available_bytes=scarce),
        rates=device_rates(FOGS, int(rng.integers(500, 8_000)), rng, share=0.5),
    )


def _try_all(problem: tw.Problem) -> tuple[float | None, int]:
    table = Table.of(problem)
    best, tried = None, 0
    for choice in product(range(len(table.cuts)), repeat=FOGS):
        plan = make_plan(
            problem, table.place(np.array(choice)), strategy="all", objective_name="usage"
        )
        tried += 1
        if plan.feasible and (best is None or plan.objective < best):
            best = plan.objective
    return best, tried


def _agree(plan: tw.Plan, best: float | None) -> bool:
    if best is None or not plan.feasible:
        return best is None and not plan.feasible
    return abs(plan.objective - best) <= 1e-9 * best


REGISTER.add(
    Benchmark(
        name="scheduling_optimum",
        question="Is tsoo-optimal the optimum, and how far from it are the others?",
        run=run,
    )
)
