"""Taxi rides as they come out of New York's meters: generated, or read from the official files.

The generator is made from figures that were measured on yellow-taxi trips of 2018 to 2020 (NYC
Taxi & Limousine Commission, trip records) and stand in `rides.json`; `python -m
tools.calibrate_rides FILE` measures them anew. Generated rides have the measured shares of zones
and of the hours of the week, the measured distributions of distance, duration, fare and tip with
their rank correlations, each zone's usual speed, and the measured share of records that cannot be
right.

A ride is a row of `SCHEMA`: what a gateway needs to know (number, zone, time), and the rest as the
line of text that the meter sends: drop-off zone, seconds, miles, fare and tip in dollars.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.errors import Defects, nearest
from thalweg.model.figures import freeze
from thalweg.model.graph import Floats
from thalweg.scenarios.parameters import require_amounts, require_count, require_seed
from thalweg.scenarios.randomness import random_stream
from thalweg.scenarios.trip_files import read_trips

if TYPE_CHECKING:
    import pyarrow as pa

FIGURES_FILE = "rides.json"
SCHEMA = "ride long, zone int, pickup_time timestamp, record string"
"""The columns of a ride, as Spark writes them."""
ZONES = 265
MONDAY = datetime(2019, 6, 3, tzinfo=UTC)
_HOURS_PER_WEEK = 168


@dataclass(frozen=True, eq=False, kw_only=True)
class RideFigures:
    """What was measured on trips.

    - `zones`, `drop_off_zones`: share of the rides from and to each zone, 1 first.
    - `hours`: share of the rides in each hour of the week, Monday 0:00 first.
    - `miles`, `seconds`, `dollars`: quantiles at even steps from 0 to 1; `tip` those of tip / fare
      where there is a tip, which is in `tipped` of the rides.
    - `correlation`: of the normal scores of miles, seconds, dollars and tip / fare, over the rides
      with a tip.
    - `zone_mph`: the mean speed of the rides from each zone (that of all, where they are few).
    - `odd`: share of records without a distance, without a fare, or with an impossible duration.
    """

    zones: Floats
    drop_off_zones: Floats
    hours: Floats
    miles: Floats
    seconds: Floats
    dollars: Floats
    tip: Floats
    tipped: float
    correlation: Floats
    zone_mph: Floats
    odd: Floats

    def __post_init__(self) -> None:
        freeze(self)


@cache
def ride_figures() -> RideFigures:
    """The figures that were measured on New York's yellow taxis."""
    text = files("thalweg.scenarios").joinpath(FIGURES_FILE).read_text(encoding="utf-8")
    data = json.loads(text)
    arrays = {name: np.array(data[name], dtype=float) for name in data if name != "tipped"}
    return RideFigures(tipped=float(data["tipped"]), **arrays)


def generate_rides(
    count: int,
    seed: int = 0,
    *,
    start: datetime = MONDAY,
    seconds: float = 86_400.0,
    first: int = 0,
) -> pa.Table:
    """So many rides, in the order of their pick-up within so many seconds from `start` on.

    They are numbered from `first` on. Pick-ups follow the hours of the week; within an hour they
    are spread evenly at random. Times are New York's clock, written down as UTC.

    >>> rides = generate_rides(1000, seed=1)
    >>> rides.num_rows, rides.column_names
    (1000, ['ride', 'zone', 'pickup_time', 'record'])
    """
    defects = Defects()
    require_count(defects, "count", count, 0, 10**9)
    require_count(defects, "first", first, 0, 2**62)
    require_seed(defects, seed)
    require_amounts(defects, most=3.2e9, seconds=seconds)
    defects.require(isinstance(start, datetime), "start", start, "a date with a time")
    defects.raise_if_any()
    figures = ride_figures()
    begin = start if start.tzinfo else start.replace(tzinfo=UTC)
    after_s = _draw_times(random_stream(seed, "rides", "time"), count, begin, seconds, figures)
    rng = random_stream(seed, "rides", "zones")
    zone, drop_off_zone = (
        1 + rng.choice(ZONES, count, p=shares / shares.sum())
        for shares in (figures.zones, figures.drop_off_zones)
    )
    rng = random_stream(seed, "rides", "meter")
    miles, duration_s, dollars, tip = _draw_meter(rng, count, zone, figures)
    return _ride_table(
        first, begin.timestamp() + after_s, zone, drop_off_zone, duration_s, miles, dollars, tip
    )


def _draw_times(
    rng: np.random.Generator, count: int, begin: datetime, seconds: float, figures: RideFigures
) -> Floats:
    """Seconds after the beginning, sorted: hours by their shares, evenly within an hour."""
    into_week_s = begin.weekday() * 86_400 + begin.hour * 3600 + begin.minute * 60 + begin.second
    # The ends of the hours that the span touches, in seconds from its beginning.
    marks = np.arange(into_week_s // 3600, (into_week_s + seconds) // 3600 + 1)
    ends = np.append(marks[1:] * 3600.0 - into_week_s, seconds)
    starts = np.append(0.0, ends[:-1])
    weights = figures.hours[marks.astype(int) % _HOURS_PER_WEEK] * (ends - starts)
    hour = rng.choice(len(marks), count, p=weights / weights.sum())
    drawn: Floats = np.sort(starts[hour] + rng.random(count) * (ends - starts)[hour])
    return drawn


def _draw_meter(
    rng: np.random.Generator, count: int, zone: Any, figures: RideFigures
) -> tuple[Floats, Floats, Floats, Floats]:
    """Miles, seconds, fare and tip: normal scores of the measured correlation, then quantiles."""
    from scipy.special import ndtr

    root = np.linalg.cholesky(figures.correlation)
    scores = ndtr(rng.standard_normal((count, 4)) @ root.T)
    quantiles = (figures.miles, figures.seconds, figures.dollars, figures.tip)
    miles, duration_s, dollars, share = (
        np.interp(score, _steps(values), values)
        for score, values in zip(scores.T, quantiles, strict=True)
    )
    tip = np.where(rng.random(count) < figures.tipped, share * dollars, 0.0)
    # A ride from a slow zone takes longer; over all rides durations stay as measured.
    slowness = 1.0 / figures.zone_mph
    duration_s *= slowness[zone - 1] / np.average(slowness, weights=figures.zones)
    oddity = rng.random(count)
    without_miles, without_fare, without_time = np.cumsum(figures.odd)
    miles[oddity < without_miles] = 0.0
    dollars[(oddity >= without_miles) & (oddity < without_fare)] *= -1.0
    duration_s[(oddity >= without_fare) & (oddity < without_time)] = 0.0
    return miles, duration_s, dollars, tip


def _steps(quantiles: Floats) -> Floats:
    return np.linspace(0.0, 1.0, quantiles.size)


def read_rides(path: str | os.PathLike[str], *, most: int | None = None) -> pa.Table:
    """The rides of one of the Commission's monthly Parquet files, sorted by their pick-up.

    Rides picked up at the same time keep their order. With `most`, the first so many of them.

    Raises:
        InvalidInput: if the file cannot be read or lacks columns.
    """
    import pyarrow as pa

    trips = read_trips(path)
    epoch_us = trips["pickup_time"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    order = np.argsort(epoch_us, kind="stable")[:most]
    ends_us = trips["drop_off_time"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()

    def column(name: str) -> Any:
        return trips[name].to_numpy(zero_copy_only=False)[order]

    return _ride_table(
        0,
        epoch_us[order] / 1e6,
        column("zone"),
        column("drop_off_zone"),
        (ends_us - epoch_us)[order] / 1e6,
        *(column(name).astype(float) for name in ("miles", "fare", "tip")),
    )


def _ride_table(
    first: int,
    epoch_s: Floats,
    zone: Any,
    drop_off_zone: Any,
    duration_s: Floats,
    miles: Floats,
    fare: Floats,
    tip: Floats,
) -> pa.Table:
    """The rides as rows; the meter's line has whole seconds and two decimals, as meters do."""
    import pyarrow as pa

    columns = (drop_off_zone, np.rint(duration_s), miles, fare, tip)
    lines = [
        f"{to:.0f},{seconds:.0f},{distance:.2f},{dollars:.2f},{extra:.2f}"
        for to, seconds, distance, dollars, extra in zip(
            *(np.asarray(column).tolist() for column in columns), strict=True
        )
    ]
    times = np.rint(epoch_s * 1e6).astype("int64")
    return pa.table(
        {
            "ride": pa.array(np.arange(first, first + len(lines)), pa.int64()),
            "zone": pa.array(np.asarray(zone), pa.int32()),
            "pickup_time": pa.array(times, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            "record": pa.array(lines, pa.string()),
        }
    )


def split_by_key(rows: pa.Table, key: str, sites: Sequence[str]) -> dict[str, pa.Table]:
    """The rows of each site: equal keys are together, in the order in which they were.

    Keys go to the sites in turn, in the order of their values; so every site has some of the busy
    and some of the quiet ones.

    >>> parts = split_by_key(generate_rides(100), "zone", ["fog-1", "fog-2"])
    >>> sum(part.num_rows for part in parts.values())
    100
    """
    import pyarrow as pa

    defects = Defects()
    defects.require(bool(sites), "sites", list(sites), "at least one site")
    if key not in rows.column_names:
        defects.add("key", key, "a column of the rows", nearest(key, rows.column_names))
    defects.raise_if_any()
    values = np.asarray(rows[key].to_pylist())
    _, rank = np.unique(values, return_inverse=True)
    return {
        site: rows.filter(pa.array(rank % len(sites) == turn)) for turn, site in enumerate(sites)
    }
