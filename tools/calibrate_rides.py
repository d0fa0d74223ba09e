"""Measures the figures that `thalweg.scenarios.rides.generate_rides` is made from.

    python -m tools.calibrate_rides FILE

reads yellow-taxi trips (the Commission's own Parquet files, or a sample of them with the same
columns) and writes src/thalweg/scenarios/rides.json.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import ndtri
from scipy.stats import rankdata

from thalweg.errors import InvalidInput
from thalweg.scenarios.rides import FIGURES_FILE, ZONES
from thalweg.scenarios.trip_files import read_trips

TARGET = Path(__file__).parents[1] / "src/thalweg/scenarios" / FIGURES_FILE
STEPS = 101
# Beyond these a record is a slip of the meter: a day at the kerb, a fare of a house.
LONGEST_S, LONGEST_MILES, DEAREST = 4 * 3600.0, 100.0, 500.0
# A zone with fewer rides says little about its streets.
FEWEST_RIDES = 100


def measure(trips: pa.Table) -> dict[str, Any]:
    """The figures of trips with the columns of `read_trips`."""
    start, end = (
        trips[name].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 1e6
        for name in ("pickup_time", "drop_off_time")
    )
    zone, drop_off, miles, fare, tip = (
        trips[name].to_numpy().astype(float)
        for name in ("zone", "drop_off_zone", "miles", "fare", "tip")
    )
    seconds = end - start
    odd = _oddities(miles, fare, seconds)
    good = ~np.any(odd, axis=0)
    miles, fare, tip, seconds = miles[good], fare[good], tip[good], seconds[good]
    tipped = tip > 0
    share = np.minimum((tip / fare)[tipped], 1.0)
    return {
        "zones": _shares(zone, ZONES),
        "drop_off_zones": _shares(drop_off, ZONES),
        "hours": _hour_shares(start),
        "miles": _quantiles(miles, 3),
        "seconds": _quantiles(seconds, 0),
        "dollars": _quantiles(fare, 2),
        "tip": _quantiles(share, 4),
        "tipped": round(float(tipped.mean()), 4),
        "correlation": _correlation(
            np.array([miles[tipped], seconds[tipped], fare[tipped], share])
        ),
        "zone_mph": _zone_speeds(zone[good], miles, seconds),
        "odd": [round(float(share.mean()), 5) for share in odd],
    }


def _oddities(miles: Any, fare: Any, seconds: Any) -> list[Any]:
    """Which records have no distance; else no fare; else an impossible duration."""
    no_miles = (miles <= 0) | (miles > LONGEST_MILES)
    no_fare = ~no_miles & ((fare <= 0) | (fare > DEAREST))
    no_time = ~no_miles & ~no_fare & ((seconds < 60) | (seconds > LONGEST_S))
    return [no_miles, no_fare, no_time]


def _shares(zone: Any, count: int) -> list[float]:
    rides = np.bincount(zone.astype(int), minlength=count + 1)[1 : count + 1]
    return np.round(rides / rides.sum(), 6).tolist()


def _hour_shares(start: Any) -> list[float]:
    # The epoch was a Thursday, the fourth day of the week that begins on Monday.
    hour = ((start // 3600).astype(int) + 3 * 24) % 168
    return np.round(np.bincount(hour, minlength=168) / hour.size, 6).tolist()


def _quantiles(values: Any, digits: int) -> list[float]:
    found = np.quantile(values, np.linspace(0.0, 1.0, STEPS))
    return np.round(found, digits).tolist()


def _correlation(columns: Any) -> list[list[float]]:
    scores = ndtri((rankdata(columns, axis=1) - 0.5) / columns.shape[1])
    return np.round(np.corrcoef(scores), 4).tolist()


def _zone_speeds(zone: Any, miles: Any, seconds: Any) -> list[float]:
    at = zone.astype(int)
    rides, way, time = (
        np.bincount(at, weights, minlength=ZONES + 1)[1 : ZONES + 1]
        for weights in (None, miles, seconds)
    )
    overall = miles.sum() / seconds.sum()
    known = rides >= FEWEST_RIDES
    speed = np.where(known, way / np.maximum(time, 1.0), overall)
    return np.round(speed * 3600, 2).tolist()


def write(figures: dict[str, Any]) -> str:
    """The figures as JSON, a figure on each line."""
    lines = ",\n".join(f'  "{name}": {json.dumps(value)}' for name, value in figures.items())
    return "{\n" + lines + "\n}\n"


def main(words: list[str]) -> int:
    """Measure the file that is named, and write what was found."""
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        figures = measure(read_trips(words[0]))
    except InvalidInput as error:
        print(error, file=sys.stderr)
        return 2
    TARGET.write_text(write(figures), encoding="utf-8")
    print(f"wrote {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
