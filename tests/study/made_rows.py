"""Rows of a study, made by hand."""

from __future__ import annotations

from thalweg.study.families import FIGURES
from thalweg.study.result import Study

EMPTY = {figure.name: None for figure in FIGURES} | {
    "violations": "", "objective_name": "aggregate_latency_s", "objective": 1.0, "refusal": None,
    "note": None,
}  # fmt: skip


def row(strategy, seed, latency_s, *, feasible=True, case="net", **values):
    head = {"case": case, "application": "app", "network": case, "seed": seed, **values}
    figures = {"aggregate_latency_s": latency_s, "seconds": 0.5, "candidates": 3}
    return {**head, **EMPTY, **figures, "strategy": strategy, "feasible": feasible}


def study(rows, **arguments):
    names = tuple(dict.fromkeys(each["strategy"] for each in rows))
    seeds = tuple(dict.fromkeys(each["seed"] for each in rows))
    cases = tuple(dict.fromkeys(each["case"] for each in rows))
    given = {"strategies": names, "seeds": seeds, "cases": cases, "baseline": names[0]}
    return Study(rows=rows, **{**given, **arguments})


LATENCIES = {"a": [1.0, 2.0, 4.0, 3.0], "b": [2.0, 2.5, 4.5, 4.0], "c": [1.0, 2.0, 4.0, 3.0]}


def full():
    return [row(name, k, v) for k in range(4) for name in LATENCIES for v in [LATENCIES[name][k]]]
