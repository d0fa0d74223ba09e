"""A demand curve like that of New York's taxis, made from figures that were measured on it.

The figures stand in `demand_curve.json` and come from the half-hourly counts of taxi passengers
from July 2014 to January 2015 in the Numenta Anomaly Benchmark. `python -m tools.calibrate_demand
FILE` measures them anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from thalweg.errors import Defects
from thalweg.model.demand_curve import DemandCurve
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats
from thalweg.scenarios.parameters import require_count, require_seed
from thalweg.scenarios.randomness import random_stream

FIGURES_FILE = "demand_curve.json"
SLOTS_PER_DAY = 48
SLOT_S = 86_400.0 / SLOTS_PER_DAY

# By then nothing is left of where the noise began.
_WARM_UP = 500


@dataclass(frozen=True, eq=False, kw_only=True)
class DemandFigures:
    """What was measured on a demand curve of half hours.

    - `profile`: the mean of each half hour of the week, Monday first; shape (7, 48).
    - `spread`: standard deviation of value / profile, by half hour of the day; shape (48,).
    - `correlation`: of that deviation with itself one and two half hours before.
    - `odd_days`: share of days that are far off, such as holidays and blizzards; what they have of
      the usual demand is in `odd_factors`.
    """

    profile: Floats
    spread: Floats
    correlation: tuple[float, float]
    odd_days: float
    odd_factors: Floats

    def __post_init__(self) -> None:
        freeze(self)


@cache
def demand_figures() -> DemandFigures:
    """The figures that were measured on New York's taxis."""
    text = files("thalweg.scenarios").joinpath(FIGURES_FILE).read_text(encoding="utf-8")
    data = json.loads(text)
    first, second = data["correlation"]
    return DemandFigures(
        profile=np.array(data["profile"], dtype=float),
        spread=np.array(data["spread"], dtype=float),
        correlation=(first, second),
        odd_days=data["odd_days"],
        odd_factors=np.array(data["odd_factors"], dtype=float),
    )


def taxi_demand_curve(days: int, seed: int = 0, *, anomalies: bool = False) -> DemandCurve:
    """Passengers per half hour for so many days, from a Monday at 0:00 on.

    Every half hour of the week has its measured mean, times 1 + noise of the measured spread and
    autocorrelation; never below 0. With `anomalies`, as many days as measured are multiplied by a
    measured factor. More days begin with the same ones.

    The noise is forgotten within a day. Real demand is not: a busy day often follows another,
    so forecasts that look a day or a week back are to be judged on measured curves.

    >>> curve = taxi_demand_curve(7, seed=1)
    >>> len(curve), float(curve.time_s[1])
    (336, 1800.0)
    """
    defects = Defects()
    require_count(defects, "days", days, 1, 36_500)
    require_seed(defects, seed)
    defects.raise_if_any()
    figures = demand_figures()
    slots = np.arange(days * SLOTS_PER_DAY)
    profile = figures.profile.reshape(-1)[slots % figures.profile.size]
    noise = _noise(random_stream(seed, "taxi-demand", "noise"), slots.size, figures.correlation)
    value = profile * np.maximum(1.0 + figures.spread[slots % SLOTS_PER_DAY] * noise, 0.0)
    if anomalies:
        rng = random_stream(seed, "taxi-demand", "anomalies")
        # One draw of two for each day, so that more days begin with the same ones.
        chance, which = rng.random((days, 2)).T
        factor = figures.odd_factors[(which * figures.odd_factors.size).astype(int)]
        value = value * np.repeat(np.where(chance < figures.odd_days, factor, 1.0), SLOTS_PER_DAY)
    return DemandCurve(time_s=np.asarray(slots * SLOT_S, dtype=float), value=value)


def _noise(rng: np.random.Generator, size: int, correlation: tuple[float, float]) -> Floats:
    """Normal noise of mean 0 and deviation 1 with these autocorrelations at lags 1 and 2."""
    first, second = correlation
    # The Yule-Walker equations of an autoregression of second order.
    a = first * (1 - second) / (1 - first**2)
    b = (second - first**2) / (1 - first**2)
    drawn = rng.standard_normal(_WARM_UP + size) * np.sqrt(1 - a * first - b * second)
    noise = [0.0, 0.0]
    for shock in drawn.tolist():
        noise.append(a * noise[-1] + b * noise[-2] + shock)
    return np.array(noise[-size:])
