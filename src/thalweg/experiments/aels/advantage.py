"""By how much the aggregate latency of one strategy is lower than another's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from thalweg.experiments.rows import Floats, Rows


class Columns(NamedTuple):
    """Where AL is, and the part of it that windows take."""

    latency: str
    windows: str


SIMULATED = Columns("simulated_latency_s", "simulated_window_s")
ESTIMATED = Columns("aggregate_latency_s", "window_latency_s")


@dataclass(frozen=True, slots=True)
class Advantage:
    """By how many percent AL is lower, over the runs in which both plans are feasible."""

    mean: float
    """Of the runs' own percentages."""
    placed: float
    """The same without the time that windows take to fill, which no placement changes."""
    of_means: float
    """Of the mean AL of all runs: a few runs with slow windows decide it."""
    runs: int

    def __str__(self) -> str:
        if not self.runs:
            return "no run in which both are feasible, other"
        return (
            f"{_percent(self.mean)} in the mean of {self.runs:,} runs (of the means "
            f"{_percent(self.of_means)}; without the windows' own time {_percent(self.placed)})"
        )


def measure_advantage(
    rows: Rows, better: str, worse: str, columns: Columns = SIMULATED
) -> Advantage:
    """By how much the AL of one strategy is lower than that of another."""
    a, b, windows = pair_runs(rows, better, worse, columns)
    if not a.size:
        return Advantage(np.nan, np.nan, np.nan, 0)
    # What is below a microsecond is rounding: all of the latency is that of windows.
    moved = b - windows[1] > 1e-6
    placed = 1 - (a - windows[0])[moved] / (b - windows[1])[moved]
    return Advantage(
        mean=100 * float((1 - a / b).mean()),
        placed=100 * float(placed.mean()) if placed.size else np.nan,
        of_means=100 * (1 - float(a.mean() / b.mean())),
        runs=int(a.size),
    )


def _percent(value: float) -> str:
    return f"{abs(value):.1f} % {'lower' if value >= 0 else 'higher'}"


def pair_runs(
    rows: Rows, one: str, other: str, columns: Columns
) -> tuple[Floats, Floats, tuple[Floats, Floats]]:
    """AL of both in the runs in which both are feasible, and what of it is the windows' own."""
    # Every strategy has its row for every run, in the same order.
    first, second = rows.pick(strategy=one), rows.pick(strategy=other)
    both = (first.values("feasible") > 0) & (second.values("feasible") > 0)
    a, b = first.values(columns.latency)[both], second.values(columns.latency)[both]
    windows = first.values(columns.windows)[both], second.values(columns.windows)[both]
    # In a minute no event may have come to an end: nothing to compare.
    seen = (a > 0) & (b > 0)
    return a[seen], b[seen], (windows[0][seen], windows[1][seen])
