"""What the rows of a study say together: means, tests against a baseline, ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from thalweg.study.families import FIGURES
from thalweg.study.planned import Row
from thalweg.study.statistics import (
    ROUNDING,
    adjust_holm,
    friedman,
    mean_interval,
    paired_test,
    rank,
)


def group_rows(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by the values of these columns, in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def summarise(rows: Sequence[Row], varied: Sequence[str]) -> list[Row]:
    """For each case, value, strategy and figure the mean over the seeds with a feasible plan."""
    found = []
    keys = ("case", *varied)
    for key, group in group_rows(rows, keys).items():
        head = dict(zip(keys, key, strict=True))
        listed = [
            {**head, **listed}
            for (strategy,), own in group_rows(group, ("strategy",)).items()
            for listed in _means(strategy, own)
        ]
        mark_best(listed)
        found += listed
    return found


def _means(strategy: str, rows: Sequence[Row]) -> list[Row]:
    planned = [row for row in rows if row["feasible"] is not None]
    feasible = [row for row in planned if row["feasible"]]
    counts = {"planned": len(planned), "feasible": len(feasible)}
    listed = []
    for figure in FIGURES:
        values = [row[figure.name] for row in feasible if row[figure.name] is not None]
        if values:
            mean = asdict(mean_interval(values))
            listed.append({"strategy": strategy, "figure": figure.name, **counts, **mean})
    return listed


def mark_best(rows: Sequence[Row]) -> None:
    """Mark the least mean of each figure, ties all, among strategies that are feasible most often.

    A mean over fewer feasible plans may be of the easier seeds only.
    """
    for group in group_rows(rows, ("figure",)).values():
        most = max(row["feasible"] for row in group)
        able = [row["mean"] for row in group if row["feasible"] == most]
        least = min(able)
        for row in group:
            ties = row["mean"] - least <= ROUNDING * max(abs(row["mean"]), abs(least))
            row["best"] = row["feasible"] == most and bool(ties or row["mean"] == least)


def compare_pairs(rows: Sequence[Row], varied: Sequence[str], baseline: str) -> list[Row]:
    """For each case, value, strategy and figure the paired tests against the baseline.

    Pairs are the seeds at which both have a feasible plan; there have to be two. The p-values are
    corrected after Holm for the number of strategies that are tested against the baseline.
    """
    found = []
    keys = ("case", *varied)
    for key, group in group_rows(rows, keys).items():
        head = dict(zip(keys, key, strict=True))
        own = {name: {r["seed"]: r for r in part if r["feasible"]}
               for (name,), part in group_rows(group, ("strategy",)).items()}  # fmt: skip
        for figure in FIGURES:
            listed = [
                {**head, "strategy": name, "figure": figure.name, "baseline": baseline, **test}
                for name, each in own.items()
                if name != baseline
                and (test := _test(each, own.get(baseline, {}), figure.name)) is not None
            ]
            for kind in ("t_p", "wilcoxon_p"):
                for row, p in zip(listed, adjust_holm([row[kind] for row in listed]), strict=True):
                    row[f"{kind}_holm"] = p
            found += listed
    return found


def _test(own: dict[Any, Row], baseline: dict[Any, Row], figure: str) -> Row | None:
    pairs = [
        (own[seed][figure], baseline[seed][figure])
        for seed in own
        if seed in baseline and _is_finite(own[seed][figure]) and _is_finite(baseline[seed][figure])
    ]
    if len(pairs) < 2:
        return None
    test = paired_test([a for a, _ in pairs], [b for _, b in pairs])
    between = test.difference
    base = sum(b for _, b in pairs) / len(pairs)
    return {
        "n": between.n,
        "difference": between.mean,
        "low": between.low,
        "high": between.high,
        "relative": between.mean / base if base else None,
        "t_p": test.t_p,
        "wilcoxon_p": test.wilcoxon_p,
    }


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def rank_strategies(rows: Sequence[Row], varied: Sequence[str], cases: Sequence[str]) -> list[Row]:
    """Mean ranks of the strategies in each case, and over all of them, for each figure.

    A block is a problem at a seed and a value; plans that are not feasible rank last. Ranked are
    the strategies that have a plan everywhere. χ² and p are Friedman's.
    """
    found: list[Row] = []
    for case in (*cases, *([None] if len(cases) > 1 else [])):
        own = [row for row in rows if case in (None, row["case"])]
        without = {row["strategy"] for row in own if row["feasible"] is None}
        blocks = group_rows(
            (row for row in own if row["strategy"] not in without), ("case", "seed", *varied)
        )
        for figure in FIGURES:
            found += _rank(case, figure.name, list(blocks.values()))
    return found


def _rank(case: str | None, figure: str, blocks: Sequence[Sequence[Row]]) -> list[Row]:
    def value(row: Row) -> float | None:
        return math.inf if not row["feasible"] else row[figure]

    full = [block for block in blocks if all(value(row) is not None for row in block)]
    known = any(row["feasible"] for block in full for row in block)
    if not full or len(full[0]) < 2 or not known:
        return []
    ranks = [rank([_number(value(row)) for row in block]) for block in full]
    test = friedman(ranks)
    return [
        {
            "case": case,
            "figure": figure,
            "strategy": row["strategy"],
            "mean_rank": sum(each[k] for each in ranks) / len(ranks),
            "first": sum(
                bool(block[k]["feasible"]) and each[k] == min(each)
                for block, each in zip(full, ranks, strict=True)
            ),
            "blocks": len(ranks),
            "friedman_chi2": None if test is None else test[0],
            "friedman_p": None if test is None else test[1],
        }
        for k, row in enumerate(full[0])
    ]


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def list_refusals(rows: Sequence[Row], cases: Sequence[str]) -> dict[str, str]:
    """Strategy that cannot take a problem → why; where it takes others, of which case."""
    found: dict[str, str] = {}
    for (strategy,), own in group_rows(rows, ("strategy",)).items():
        refused = group_rows((r for r in own if r["refusal"] is not None), ("case",))
        reasons = {case: part[0]["refusal"] for (case,), part in refused.items()}
        if not reasons:
            continue
        everywhere = len(reasons) == len(cases) and len(set(reasons.values())) == 1
        each = [reason if everywhere else f"{case}: {reason}" for case, reason in reasons.items()]
        found[strategy] = "; ".join(dict.fromkeys(each))
    return found
