"""All runs of a simulation, put together: means, how sure they are, and tables of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.simulate.figures import Row, RunFigures

_KEYS = {
    "operators": ("name", "application"),
    "links": ("name",),
    "nodes": ("name",),
    "paths": ("name", "application"),
    "applications": ("name",),
    "comparison": ("application", "name"),
}
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulation:
    """What came out. Beside a mean over the runs is `…_ci`, half of its confidence interval."""

    applications: tuple[str, ...]
    network: str
    strategies: tuple[str, ...]
    seconds: float
    warm_up_s: float
    seed: int
    runs: Sequence[RunFigures]
    physics: tuple[dict[str, Any], ...] = ()
    wall_s: float = field(default=0.0, compare=False)

    @property
    def replications(self) -> int:
        """How many runs there were."""
        return len(self.runs)

    def rows(self, table: str) -> list[Row]:
        """One of the tables: operators, links, nodes, paths, applications, comparison."""
        return average([getattr(run, table) for run in self.runs], _KEYS[table])

    @property
    def totals(self) -> Row:
        """Events born, ended, filtered, queued and lost, over all runs."""
        names = self.runs[0].totals
        return {name: sum(run.totals[name] for run in self.runs) for name in names}

    @property
    def conserved(self) -> bool:
        """Whether every event that was born or made is accounted for, in every run."""
        return all(_is_conserved(run.totals) for run in self.runs)

    @property
    def unstable(self) -> list[Row]:
        """Queues to which more work comes than they can do: which, by how much, how long they got.

        The worst first.
        """
        found = [
            {
                "name": row["name"],
                "load": row["load"],
                "queue_end": row["queue_end"],
                "growth_per_s": row["queue_end"] / (self.stopped_s or self.seconds),
            }
            for table in ("operators", "links")
            for row in self.rows(table)
            if row["load"] >= 1.0 and row["queue_end"] > 0
        ]
        return sorted(found, key=lambda row: (-row["load"], row["name"]))

    @property
    def stopped_s(self) -> float | None:
        """When the first run ended early since too many events waited; None where none did."""
        early = [run.stopped_s for run in self.runs if run.stopped_s is not None]
        return min(early) if early else None

    @property
    def latency_s(self) -> float:
        """The mean latency of all events at all sinks."""
        rows = self.rows("applications")
        count = sum(row["events"] for row in rows)
        if not count:
            return math.nan
        return float(sum(row["latency_s"] * row["events"] for row in rows if row["events"]) / count)

    def measured(self, name: str, application: str | None = None) -> float:
        """A measured figure that has an estimate, such as `aggregate_latency_s`."""
        for row in self.rows("comparison"):
            if row["name"] == name and application in (None, row["application"]):
                return float(row["measured"])
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON; what is no number is written as a word."""
        found: dict[str, Any] = _plain(
            {
                "thalweg": 1,
                "applications": list(self.applications),
                "network": self.network,
                "strategies": list(self.strategies),
                "seconds": self.seconds,
                "warm_up_s": self.warm_up_s,
                "seed": self.seed,
                "replications": self.replications,
                "physics": list(self.physics),
                "stopped_s": self.stopped_s,
                "conserved": self.conserved,
                "totals": self.totals,
                "unstable": self.unstable,
                **{table: self.rows(table) for table in _KEYS if table != "applications"},
                "latency": self.rows("applications"),
                "segments": self.runs[0].segments,
                "moves": self.runs[0].moves,
                "decisions": self.runs[0].decisions,
                "wall_s": self.wall_s,
            }
        )
        return found


def average(tables: Sequence[list[Row]], keys: tuple[str, ...]) -> list[Row]:
    """Rows of the same name over all runs, in the order in which they first come.

    Numbers become their mean over the runs that have one; from two runs on there is also half of
    the 95 % confidence interval of that mean, by Student's t.
    """
    grouped: dict[tuple[Any, ...], list[Row]] = {}
    for rows in tables:
        for row in rows:
            grouped.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [_average_rows(rows, keys, several=len(tables) > 1) for rows in grouped.values()]


def _average_rows(rows: list[Row], keys: tuple[str, ...], *, several: bool) -> Row:
    found: Row = {}
    for name, first in rows[0].items():
        if name in keys or isinstance(first, str):
            found[name] = first
            continue
        values = np.array([row[name] for row in rows], dtype=float)
        good = values[~np.isnan(values)]
        mean = float(good.mean()) if good.size else math.nan
        found[name] = int(first) if isinstance(first, int) and not several else mean
        if several and name not in ("estimated", "estimated_s", "ways", "operators"):
            found[f"{name}_ci"] = half_interval(good)
    return found


def half_interval(values: np.ndarray[Any, Any], confidence: float = CONFIDENCE) -> float:
    """Half of the confidence interval of the mean of independent values, by Student's t.

    >>> round(half_interval(np.array([1.0, 2.0, 3.0])), 4)
    2.4841
    """
    from scipy.stats import t

    if values.size < 2 or not np.isfinite(values).all():
        return math.nan
    spread = float(values.std(ddof=1)) / math.sqrt(values.size)
    return float(t.ppf(0.5 + confidence / 2, values.size - 1)) * spread


def _is_conserved(totals: Row) -> bool:
    there = totals["ended"] + totals["filtered"] + totals["queued"] + totals["under_way"]
    return bool(totals["born"] + totals["made"] == there + totals["lost"])


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
