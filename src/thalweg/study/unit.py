"""One piece of a study: a problem at a seed, through all values of the last swept parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.errors import InvalidInput
from thalweg.model import Placement, Problem
from thalweg.study.planned import Outcome, Row, figure_row, plan_each
from thalweg.study.variation import Values, options_at, vary_network, vary_problem


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is the same for all pieces of a study."""

    strategies: tuple[str, ...]
    options: Mapping[str, Any]
    current: Placement | None = None
    simulate_s: float | None = None


def run_unit(
    settings: Settings,
    problem: Problem,
    steps: Sequence[Values],
    *,
    case: str,
    seed: int | None,
) -> list[Row]:
    """A row for each step and strategy.

    What moves is counted from `current`, or from the strategy's own plan of the step before.
    """
    before = dict.fromkeys(settings.strategies, settings.current)
    rows = []
    network, factors = problem.network, None
    for values in steps:
        if factors != (wanted := (values.get("latency", 1), values.get("bandwidth", 1))):
            network, factors = vary_network(problem.network, values), wanted
        at = vary_problem(problem, network, values)
        options = {**settings.options, **options_at(values)}
        head = {
            "case": case,
            "application": at.application.name,
            "network": at.network.name,
            "seed": seed,
            **values,
        }
        for outcome in plan_each(at, settings.strategies, options, settings.current):
            row = figure_row(at, outcome, before[outcome.strategy])
            if settings.simulate_s is not None and outcome.plan is not None:
                row |= _simulate(at, outcome, settings.simulate_s, seed or 0)
            rows.append({**head, **row})
            if settings.current is None and outcome.plan is not None:
                before[outcome.strategy] = outcome.plan.placement
    return rows


def _simulate(problem: Problem, outcome: Outcome, seconds: float, seed: int) -> Row:
    """What a simulation of a feasible plan finds: mean latency of events, and the 99th per cent."""
    plan = outcome.plan
    if plan is None or not plan.feasible:
        return {}
    from thalweg.simulate.run import simulate

    try:
        found = simulate(
            problem.application,
            problem.network,
            plan,
            seconds=seconds,
            seed=seed,
            rates=problem.rates,
        )
    except InvalidInput as error:
        return {"note": "not simulated: " + "; ".join(str(defect) for defect in error.defects)}
    p99_s = found.rows("applications")[0]["latency_p99_s"]
    note = None if found.stopped_s is None else f"simulated for {found.stopped_s:.3g} s only"
    return {
        "simulated_latency_s": None if math.isnan(found.latency_s) else found.latency_s,
        "simulated_p99_s": None if math.isnan(p99_s) else float(p99_s),
        "note": note,
    }
