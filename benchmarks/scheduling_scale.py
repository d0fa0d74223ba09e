"""How long does a decision between fog and cloud take, and how does that grow with the fogs?

Rates change at every decision, and every strategy gets its own last answer as what runs now. The
network, the limits and the cloud grow with the number of fogs, so that a decision is as hard for
each fog at every size.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

import thalweg as tw
from benchmarks.measure import timed
from benchmarks.runner import REGISTER, Benchmark, Count, Result, Row, Settings
from thalweg.model import Limits, Plan
from thalweg.scenarios import device_rates, fog_cloud, taxi_demand
from thalweg.scenarios.taxi import LIMITS, TaxiFigures
from thalweg.strategy import find_strategy

STRATEGIES = (
    "data-min-cut",
    "ru-min-cut",
    "fog-only",
    "tsoo-both-ways",
    "atsoo-both-ways",
    "trcs",
    "fc-interplay",
    "tsoo-optimal",
)
SIZES = (10, 100, 1_000, 10_000)
QUICK_SIZES, SMOKE_SIZES = (10, 100, 1_000), (10, 20)
SMALL, LARGE = SIZES[0], SIZES[-1]
DEVICES_PER_FOG = (1_000, 1_500, 2_000, 2_500)
"""From where the cheapest cuts keep every limit to where they do not."""
SMALL_TARGET_S, RATIO_TARGET, EXPONENT_TARGET, GAP_TARGET = 5e-3, 3.0, 1.1, 1e-3
LARGE_TARGETS_S = {"atsoo-both-ways": 0.1, "tsoo-both-ways": 0.5, "tsoo-optimal": 2.0}

CALL = "a decision, plan included"
SEARCH = "a decision, the search alone"


def run(settings: Settings) -> Result:
    """Time every strategy at every size."""
    sizes = settings.pick(full=SIZES, quick=QUICK_SIZES, smoke=SMOKE_SIZES)
    counts: list[Count] = []
    rows: list[Row] = []
    seconds: dict[tuple[str, int], float] = {}
    for fogs in sizes:
        problems = _problems(fogs, turns=_turns(fogs, settings))
        for name in STRATEGIES:
            settings.tell(f"{name} on {fogs:,} fogs")
            plans, times = _decide(name, problems)
            counts.append(_count_decided(name, fogs, problems, plans))
            seconds[name, fogs] = median(times)
            rows += _rows(name, fogs, plans, times)
        rows += _measure_binding(fogs, settings)
    for name in STRATEGIES:
        # Over all sizes, and between the largest two: at few fogs most of the time is fixed.
        for some in (sizes, sizes[-2:]):
            slope = _exponent(some, [seconds[name, fogs] for fogs in some])
            rows.append(
                Row(
                    measure="growth with the fogs",
                    value=slope,
                    unit="exponent",
                    target=EXPONENT_TARGET,
                    at={"strategy": name, "from": some[0], "to": some[-1]},
                    note="slope of log time over log fogs",
                )
            )
    ratio = seconds["tsoo-optimal", SMALL] / seconds["tsoo-both-ways", SMALL]
    rows.append(
        Row(
            measure="tsoo-optimal takes as long as tsoo",
            value=ratio,
            unit="times",
            target=RATIO_TARGET,
            at={"fogs": SMALL},
        )
    )
    notes = [
        "taxi-demand, 11 operators, 21 cuts; medians; compiled code is warm",
        f"{', '.join(map(str, DEVICES_PER_FOG))} devices for each fog in turn, split at random",
    ]
    return Result(rows=rows, notes=notes, counts=counts)


def _count_decided(name: str, fogs: int, problems: list[tw.Problem], plans: list[Plan]) -> Count:
    """A strategy that forgets fogs is fast: every source has to be in every plan, at each fog."""
    name = f"sources in the plans of {name} for {fogs:,} fogs"
    expected = sum(problem.births.operator.size for problem in problems)
    sources = {o.name for o in problems[0].application.operators if o.kind == "source"}
    placed = sum(i.operator in sources for plan in plans for i in plan.placement)
    return Count(name=name, expected=expected, counted=placed)


def _turns(fogs: int, settings: Settings) -> int:
    if settings.smoke:
        return len(DEVICES_PER_FOG)
    most = 40 if settings.quick else 200
    return max(min(most, 40_000 // fogs), 2 * len(DEVICES_PER_FOG))


def _problems(fogs: int, *, turns: int) -> list[tw.Problem]:
    scale = fogs / 10
    network = fog_cloud(fogs, seed=0, cloud_mips=35_900.0 * scale, cloud_memory_bytes=12e9 * scale)
    limits = Limits(
        response_time_s=LIMITS.response_time_s,
        uplink_bps=LIMITS.uplink_bps * scale,
        uplink_least_bps=LIMITS.uplink_least_bps * scale,
    )
    application = taxi_demand(limits=limits)
    return [
        tw.Problem(
            application=application,
            network=network,
            rates=device_rates(
                fogs,
                DEVICES_PER_FOG[turn % len(DEVICES_PER_FOG)] * fogs,
                np.random.default_rng(turn),
                share=0.45,
            ),
        )
        for turn in range(turns)
    ]


def _decide(name: str, problems: list[tw.Problem]) -> tuple[list[Plan], list[float]]:
    strategy = find_strategy(name)
    for problem in problems[: len(DEVICES_PER_FOG)]:  # Compiles what has to be compiled.
        strategy(problem, strategy(problem).placement)
    plans, times, running = [], [], None
    for problem in problems:
        plan, elapsed = timed(lambda problem=problem, running=running: strategy(problem, running))
        running = plan.placement
        plans.append(plan)
        times.append(elapsed)
    return plans, times


def _rows(name: str, fogs: int, plans: list[Plan], times: list[float]) -> list[Row]:
    at = {"strategy": name, "fogs": fogs}
    target = SMALL_TARGET_S if fogs == SMALL else None
    if fogs == LARGE:
        target = LARGE_TARGETS_S.get(name)
    feasible = sum(plan.feasible for plan in plans)
    rows = [
        Row(
            measure=CALL,
            value=median(times),
            unit="s",
            target=target,
            at=at,
            note=f"median of {len(times)}; {feasible} feasible",
        ),
        Row(measure=SEARCH, value=median(plan.seconds for plan in plans), unit="s", at=at),
    ]
    gaps = [plan.gap for plan in plans if plan.gap is not None]
    if name == "tsoo-optimal" and gaps:
        rows.append(
            Row(
                measure="largest proven gap",
                value=max(gaps),
                target=GAP_TARGET if fogs == LARGE else None,
                at=at,
                note=f"of {len(gaps)} plans with a gap",
            )
        )
    return rows


def _measure_binding(fogs: int, settings: Settings) -> list[Row]:
    """The same where fog memory is dear and the limit of the uplink has to be fought for."""
    problems = _binding_problems(fogs)
    rows = []
    for name in ("tsoo-both-ways", "tsoo-optimal"):
        settings.tell(f"{name} on {fogs:,} fogs, where the limit binds")
        strategy = find_strategy(name)
        strategy(problems[0])
        answers = [timed(partial(strategy, problem)) for problem in problems]
        at = {"strategy": name, "fogs": fogs}
        feasible = sum(plan.feasible for plan, _ in answers)
        rows.append(
            Row(
                measure="a decision where the limit of the uplink binds",
                value=median(seconds for _, seconds in answers),
                unit="s",
                target=LARGE_TARGETS_S[name] if fogs == LARGE else None,
                at=at,
                note=f"median of {len(answers)}; {feasible} feasible",
            )
        )
        gaps = [plan.gap for plan, _ in answers if plan.gap is not None]
        if gaps:
            rows.append(
                Row(
                    measure="largest proven gap where the limit binds",
                    value=max(gaps),
                    target=GAP_TARGET if fogs == LARGE else None,
                    at=at,
                )
            )
    return rows


def _binding_problems(fogs: int) -> list[tw.Problem]:
    """Limits between what the cheapest cuts send and the least that can be sent."""
    scale = fogs / 2
    network = fog_cloud(fogs, seed=0, cloud_mips=35_900.0 * scale, cloud_memory_bytes=12e9 * scale)
    figures = TaxiFigures(selectivity=(0.6, 1.1), cost=(20.0, 60.0), share=0.45, mi_per_mb=0.02)
    rates = device_rates(fogs, 800 * fogs, np.random.default_rng(1), share=0.45)

    def pose(uplink_bps: float) -> tw.Problem:
        limits = Limits(response_time_s=LIMITS.response_time_s, uplink_bps=uplink_bps)
        application = taxi_demand(figures=figures, limits=limits)
        return tw.Problem(application=application, network=network, rates=rates)

    most, least = (
        find_strategy(name)(pose(1e18)).estimate.uplink_bps
        for name in ("ru-min-cut", "data-min-cut")
    )
    return [pose(least + share * (most - least)) for share in (0.75, 0.5, 0.25)]


def _exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    slope, _ = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope)


def plot(result: Result, path: Path) -> None:
    """Draw time over fogs, one line for each strategy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    for name in STRATEGIES:
        points = [
            (row.at["fogs"], row.value)
            for row in result.rows
            if row.measure == CALL and row.at["strategy"] == name
        ]
        axes.loglog(*zip(*points, strict=True), marker="o", markersize=4, label=name)
    axes.set_xlabel("fogs")
    axes.set_ylabel("seconds for a decision")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path, dpi=130)


REGISTER.add(
    Benchmark(
        name="scheduling_scale",
        question="How long does a decision between fog and cloud take, and how does that grow?",
        run=run,
        plot=plot,
    )
)
