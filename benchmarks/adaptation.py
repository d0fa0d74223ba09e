"""Does looking ahead spare users violations, and what does it cost?

A taxi application follows the measured demand of New York's taxis through the weeks, on fogs whose
memory is mostly in use by others, so that what is cheapest at night does not fit at rush hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measure import timed
from benchmarks.runner import REGISTER, Benchmark, Count, Result, Row, Settings
from thalweg.adapt import (
    ExponentialSmoothing,
    Forecaster,
    LastValue,
    Replay,
    SeasonalNaive,
    Trigger,
    forecast_error,
    replay,
)
from thalweg.files.workload_curve import read_demand_curve
from thalweg.model import Network
from thalweg.model.demand_curve import DemandCurve, spread_curve
from thalweg.model.workload import Workload
from thalweg.scenarios import fog_cloud, taxi_fares
from thalweg.scenarios.demand_curve import taxi_demand_curve
from thalweg.scenarios.device_rates import DEVICE_BYTES_PER_S, EVENT_BYTES

NEW_YORK = Path("nab") / "nyc_taxi_30min_2014-07_2015-01.csv"
STRATEGY = "atsoo-both-ways"
WEEK, DAY = 336, 48
"""In steps of half an hour."""
WARM_UP, COUNTED = 2 * WEEK, 4 * WEEK
WARM_UP_QUICK, COUNTED_QUICK = WEEK + DAY, 4 * DAY
SMOKE_WEEK, SMOKE_DAY = 48, 12
"""Seasons as short as this stand in for those of the names: forecasters learn a whole one."""
FOGS = 10
FREE_MEMORY = 0.02
"""Of a fog's memory; the rest is in use."""
PEAK_DEVICES = 20_000
"""At the highest demand: about the most that some deployment can still serve."""
USAGE_MOST = 0.02
"""RUmax: about the mean usage, so that it is crossed every morning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to adapt."""

    name: str
    trigger: Trigger | None
    forecaster: Forecaster | None = None


def ways(*, quick: bool, week: int = WEEK, day: int = DAY) -> list[Way]:
    """All that are compared, the reactive one first; if it has to be quick, four of them."""
    trigger = Trigger(usage_most=USAGE_MOST)
    seasonal, winters = SeasonalNaive(week), ExponentialSmoothing(period_steps=week)
    daily = ExponentialSmoothing(period_steps=day)
    telling = [
        Way(name="reactive", trigger=trigger),
        Way(name="every step", trigger=None),
        Way(name="seasonal-naive, a week", trigger=trigger, forecaster=seasonal),
        Way(name="Holt–Winters, a week", trigger=trigger, forecaster=winters),
    ]
    if quick:
        return telling
    return [
        *telling,
        Way(name="Holt–Winters, a day", trigger=trigger, forecaster=daily),
        Way(name="last value", trigger=trigger, forecaster=LastValue()),
        Way(name="reactive, no RUmax", trigger=Trigger()),
        Way(name="seasonal-naive, no RUmax", trigger=Trigger(), forecaster=seasonal),
    ]


def run(settings: Settings) -> Result:
    """Replay the same weeks in each way."""
    first, counted = settings.pick(
        full=(WARM_UP, COUNTED),
        quick=(WARM_UP_QUICK, COUNTED_QUICK),
        smoke=(SMOKE_WEEK + SMOKE_DAY, SMOKE_DAY),
    )
    curve, origin = _curve(settings, first + counted)
    load, network = make_load(curve), make_network()
    rows: list[Row] = []
    details: list[Mapping[str, object]] = []
    counts: list[Count] = []
    felt_reactive = 0
    week, day = (SMOKE_WEEK, SMOKE_DAY) if settings.smoke else (WEEK, DAY)
    for way in ways(quick=settings.quick, week=week, day=day):
        settings.tell(way.name)
        found, seconds = timed(lambda way=way: _replay(way, load, network))  # type: ignore[misc]
        figures = count(found, first)
        name = f"steps replayed, {way.name}"
        counts.append(Count(name=name, expected=first + counted, counted=len(found.steps)))
        if way.name == "reactive":
            felt_reactive = figures["steps that began with a violation"]
        figures["violations avoided against reactive"] = (
            felt_reactive - figures["steps that began with a violation"]
        )
        at = {"way": way.name}
        rows += [Row(measure=name, value=value, at=at) for name, value in figures.items()]
        rows.append(Row(measure="mean usage", value=_mean_usage(found, first), at=at))
        if way.forecaster is not None and way.trigger is not None:
            error = forecast_error(way.forecaster, load.rate, 1, first_origin=first)
            percent = 100.0 * float(error.mape[0])
            rows.append(Row(measure="MAPE, half an hour ahead", value=percent, unit="%", at=at))
        rows.append(Row(measure="time to replay", value=seconds, unit="s", at=at))
        details.append({"way": way.name, **figures, "seconds": seconds})
    notes = [
        origin,
        f"{first / DAY:g} days to warm up, then {counted / DAY:g} counted, by half hours; "
        f"{STRATEGY}, {FOGS} fogs with {FREE_MEMORY:.0%} of their memory free, "
        f"{PEAK_DEVICES:,} devices at the highest demand, RUmax {USAGE_MOST:g}",
        "free memory, peak and RUmax were chosen so that there is something to adapt: with all "
        "memory free one deployment is best at all rates it can serve; one setting, no average",
        "a step counts as violated if what runs as it begins breaks a constraint at its rates",
    ]
    return Result(rows=rows, notes=notes, details=details, counts=counts)


def _replay(way: Way, load: Workload, network: Network) -> Replay:
    return replay(
        taxi_fares(), network, load, STRATEGY, trigger=way.trigger, forecaster=way.forecaster
    )


def count(found: Replay, first: int) -> dict[str, int]:
    """What happened from this step on."""
    steps = found.steps[first:]
    return {
        "steps that began with a violation": sum(step.violated for step in steps),
        "steps still in violation after the decision": sum(bool(s.after.broken) for s in steps),
        "adaptations": sum(step.adapted for step in steps),
        "adaptations that changed something": sum(s.started + s.stopped > 0 for s in steps),
        "operators started and stopped": sum(s.started + s.stopped for s in steps),
    }


def _mean_usage(found: Replay, first: int) -> float:
    return float(np.mean([step.after.usage for step in found.steps[first:]]))


def make_network() -> Network:
    """Fogs with little memory left around a cloud that is free."""
    network = fog_cloud(FOGS)
    free = np.append(np.full(FOGS, FREE_MEMORY), 1.0)
    return network.with_available(node_memory_available_bytes=network.node_memory_bytes * free)


def make_load(curve: DemandCurve) -> Workload:
    """The curve, scaled to the peak and shared out unevenly over the fogs."""
    shares = np.random.default_rng(0).uniform(0.5, 1.5, FOGS)
    births = {("rides", f"fog-{k}"): share for k, share in enumerate(shares.tolist())}
    peak = PEAK_DEVICES * DEVICE_BYTES_PER_S / EVENT_BYTES
    return spread_curve(curve, births, scale=peak / float(curve.value.max()))


def _curve(settings: Settings, steps: int) -> tuple[DemandCurve, str]:
    """The first steps of the demand, and where it comes from."""
    file = settings.data / NEW_YORK
    if file.is_file():
        whole = read_demand_curve(file)
        origin = f"measured: {NEW_YORK.name}, passengers of New York's taxis"
    else:
        whole = taxi_demand_curve(-(-steps // DAY), seed=0, anomalies=True)
        origin = f"SYNTHETIC: {NEW_YORK} is not at hand, so a generated demand curve stands in"
    return DemandCurve(time_s=whole.time_s[:steps], value=whole.value[:steps]), origin


def plot(result: Result, path: Path) -> None:
    """Draw violations and moves of each way."""
    from matplotlib.figure import Figure

    names = [str(detail["way"]) for detail in result.details]
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    for panel, measure in zip(
        figure.subplots(1, 2, sharey=True),
        ("steps that began with a violation", "operators started and stopped"),
        strict=True,
    ):
        values = [float(str(detail[measure])) for detail in result.details]
        bars = panel.barh(names, values, color="#0072B2")
        panel.bar_label(bars, padding=3)
        panel.set_xlabel(measure)
        panel.margins(x=0.15)
    panel.invert_yaxis()
    figure.savefig(path, dpi=150)


REGISTER.add(
    Benchmark(
        name="adaptation",
        question="Does looking ahead spare users violations, and what does it cost?",
        run=run,
        plot=plot,
    )
)
