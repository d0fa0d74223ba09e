"""How far from the optimum are the placements of each strategy?

On random small problems `exact` proves what the least aggregate latency is, or that no placement
keeps every constraint; every other strategy is compared with that. Networks and applications are
those of the evaluation of da Silva Veith et al., made small, with CPU, memory and bandwidth scarce
in some of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

import thalweg as tw
from benchmarks.runner import REGISTER, Benchmark, Count, Result, Row, Settings
from thalweg.scenarios import GRAPHS, OperatorRanges, cloud_edge, random_application
from thalweg.strategy import find_strategy

PUBLISHED = ("aels", "aels-rp", "aels-rp-la-free", "cloud-only", "tcep-best-fit")
IMPROVED = ("improve", "aels-rp-la-free+improve")
MOST_OPERATORS = 9
MOST_NODES = 20
# A gap smaller than this is rounding.
_ROUNDING = 1e-9


@dataclass
class Tally:
    """What one strategy did on all problems."""

    gaps: list[float] = field(default_factory=list)
    """Of the problems that it solved."""
    optimal: int = 0
    missed: int = 0
    """Problems that have a solution, but it found none."""
    seconds: list[float] = field(default_factory=list)


def run(settings: Settings) -> Result:
    """Solve the problems with every strategy that there is."""
    cases = settings.pick(full=500, quick=60, smoke=3)
    known = tw.strategies()
    names = [name for name in PUBLISHED + IMPROVED if set(name.split("+")) <= known.keys()]
    tallies = {name: Tally() for name in names}
    proof = Tally()
    infeasible, proven = 0, 0
    details: list[Mapping[str, object]] = []
    for case in range(cases):
        settings.tell(f"case {case + 1} of {cases}")
        problem = small_problem(case)
        best = find_strategy("exact")(problem)
        proof.seconds.append(best.seconds)
        none = any("proven: no feasible" in reason.why for reason in best.reasons)
        proven += best.gap == 0 or none
        infeasible += none
        detail: dict[str, object] = {"case": case, "optimum_s": None if none else best.objective}
        for name, tally in tallies.items():
            plan = find_strategy(name)(problem)
            tally.seconds.append(plan.seconds)
            if plan.feasible and best.feasible:
                gap = plan.objective / best.objective - 1.0 if best.objective > 0 else 0.0
                tally.gaps.append(gap)
                tally.optimal += gap <= _ROUNDING
                detail[name] = gap
            else:
                tally.missed += best.feasible
        details.append(detail)
    rows = [
        Row(measure="problems", value=cases),
        Row(measure="problems without a feasible placement", value=infeasible),
        Row(measure="proven by exact", value=proven, target=cases, at_least=True),
        Row(measure="time of exact, median", value=float(np.median(proof.seconds)), unit="s"),
        Row(measure="time of exact, longest", value=float(np.max(proof.seconds)), unit="s"),
    ]
    for name, tally in tallies.items():
        rows += _rows(name, tally, cases - infeasible)
    notes = [
        f"at most {MOST_OPERATORS} operators between pinned sources and sinks, on at most"
        f" {MOST_NODES} nodes",
        "gaps are over the problems that a strategy solved",
    ]
    better = sum(gap < -_ROUNDING for tally in tallies.values() for gap in tally.gaps)
    counts = [Count(name="plans better than the optimum", expected=0, counted=better)]
    return Result(rows=rows, notes=notes, details=details, counts=counts)


def _rows(name: str, tally: Tally, solvable: int) -> list[Row]:
    at = {"strategy": name}
    gaps = np.array(tally.gaps) * 100.0
    target = name == "aels-rp-la-free+improve"
    return [
        Row(
            measure="mean gap",
            value=float(gaps.mean()) if gaps.size else None,
            unit="%",
            target=1.0 if target else None,
            at=at,
        ),
        Row(
            measure="95th percentile of the gap",
            value=float(np.percentile(gaps, 95)) if gaps.size else None,
            unit="%",
            target=5.0 if target else None,
            at=at,
        ),
        Row(measure="optimal", value=tally.optimal, at=at),
        Row(
            measure="feasible",
            value=len(tally.gaps),
            target=solvable if target else None,
            at_least=True,
            at=at,
        ),
        Row(measure="solvable but not solved", value=tally.missed, at=at),
        Row(measure="median time", value=float(np.median(tally.seconds)), unit="s", at=at),
    ]


def small_problem(case: int) -> tw.Problem:
    """A problem of the evaluation's sort, small, and tight in one resource or another."""
    rng = np.random.default_rng(case)
    clouds, sites = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    devices = int(rng.integers(1, (MOST_NODES - clouds) // sites + 1))
    network = cloud_edge(
        clouds,
        sites,
        devices,
        seed=case,
        cloud_mips=float(rng.choice([304.51, 40.0, 12.0])),
        device_memory_bytes=float(rng.choice([1e9, 2e5, 2e4])),
        lan_bandwidth_bps=float(rng.choice([1e9, 200e6, 50e6])),
        wan_bandwidth_bps=float(rng.choice([1e9, 50e6])),
    )
    left = rng.uniform(0.4, 1.0, network.node_count) if rng.random() < 0.5 else 1.0
    network = network.with_available(node_cpu_available_ips=network.node_cpu_ips * left)
    graphs = [n for n, g in GRAPHS.items() if len(g.transforms) <= MOST_OPERATORS]
    busy = bool(rng.random() < 0.5)
    ranges = OperatorRanges() if busy else OperatorRanges(rate=(50, 1_500))
    application = random_application(
        str(rng.choice(graphs)), network, seed=case, ranges=ranges, splitters="share"
    )
    return tw.Problem(application=application, network=network)


REGISTER.add(
    Benchmark(
        name="placement_quality",
        question="How far from the optimum are the placements of each strategy?",
        run=run,
    )
)
