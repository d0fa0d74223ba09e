"""Measures the figures that `thalweg.scenarios.taxi_demand_curve` is made from.

    python -m tools.calibrate_demand FILE

reads a demand curve of whole days in half hours (columns `timestamp` and `value`) and writes
src/thalweg/scenarios/demand_curve.json.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from thalweg.errors import InvalidInput
from thalweg.files.workload_curve import read_demand_curve
from thalweg.model import DemandCurve
from thalweg.scenarios.demand_curve import FIGURES_FILE, SLOT_S, SLOTS_PER_DAY

TARGET = Path(__file__).parents[1] / "src/thalweg/scenarios" / FIGURES_FILE
# So many robust standard deviations from the usual mean of a day, and the day is odd.
ODD_DEVIATIONS = 4.0


def measure(curve: DemandCurve) -> dict[str, Any]:
    """The figures of a curve; days that are far off count for `odd_days` and `odd_factors` only."""
    if curve.start is None or len(curve) % SLOTS_PER_DAY or (np.diff(curve.time_s) != SLOT_S).any():
        raise SystemExit("the curve must consist of whole days in half hours")
    by_day = curve.value.reshape(-1, SLOTS_PER_DAY)
    weekday = (curve.start.weekday() + np.arange(len(by_day))) % 7
    usual = np.array([np.median(by_day[weekday == day], axis=0) for day in range(7)])
    of_usual = (by_day / usual[weekday]).mean(axis=1)
    off = np.abs(of_usual - np.median(of_usual))
    # 1.4826 makes the median deviation a standard deviation, where the noise is normal.
    is_odd = off > ODD_DEVIATIONS * 1.4826 * np.median(off)
    profile = np.array([by_day[(weekday == day) & ~is_odd].mean(axis=0) for day in range(7)])
    deviation = by_day / profile[weekday] - 1
    spread = deviation[~is_odd].std(axis=0)
    scaled = np.where(is_odd[:, None], np.nan, deviation / spread).reshape(-1)
    return {
        "profile": np.round(profile).astype(int).tolist(),
        "spread": np.round(spread, 4).tolist(),
        "correlation": [round(_correlation(scaled, lag), 4) for lag in (1, 2)],
        "odd_days": round(float(is_odd.mean()), 4),
        "odd_factors": np.round(np.sort(of_usual[is_odd]), 3).tolist(),
    }


def _correlation(values: Any, lag: int) -> float:
    before, after = values[:-lag], values[lag:]
    known = ~np.isnan(before * after)
    return float(np.corrcoef(before[known], after[known])[0, 1])


def write(figures: dict[str, Any]) -> str:
    """The figures as JSON, a row of the profile on each line."""
    rows = ",\n    ".join(json.dumps(row) for row in figures["profile"])
    rest = (f'  "{name}": {json.dumps(figures[name])}' for name in figures if name != "profile")
    return "{\n" + f'  "profile": [\n    {rows}\n  ],\n' + ",\n".join(rest) + "\n}\n"


def main(words: list[str]) -> int:
    """Measure the file that is named, and write what was found."""
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        figures = measure(read_demand_curve(words[0]))
    except InvalidInput as error:
        print(error, file=sys.stderr)
        return 2
    TARGET.write_text(write(figures), encoding="utf-8")
    print(f"wrote {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
