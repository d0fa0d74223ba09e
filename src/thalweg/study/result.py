"""A study: a row for each point and strategy, and what all of them say together."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from thalweg.errors import Defects, MissingExtra, nearest
from thalweg.study.families import FAMILIES, Family
from thalweg.study.planned import Row
from thalweg.study.summary import compare_pairs, list_refusals, rank_strategies, summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from thalweg.study.tables import Table

_COMPARED = (
    "strategy", "aggregate_latency_s", "worst_latency_s", "uplink_bps", "response_time_s", "usage",
    "seconds", "candidates", "feasible", "violations", "gap",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Study:
    """What came out; prints as a table.

    `rows` has a row for each case, seed, value of the swept parameters and strategy. The figures of
    a strategy that cannot take a problem are None, and its row says why (`refusal`).
    """

    rows: Sequence[Row]
    strategies: tuple[str, ...]
    cases: tuple[str, ...]
    seeds: tuple[int | None, ...] = (None,)
    vary: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    family_name: str = "placement"
    baseline: str | None = None
    simulate_s: float | None = None

    @property
    def family(self) -> Family:
        """What the problems are of: what is minimised, and what is shown first."""
        return FAMILIES[self.family_name]

    @cached_property
    def summary(self) -> list[Row]:
        """The mean of each figure with its 95 % interval, for each case, value and strategy.

        Over the seeds at which the strategy's own plan is feasible; `feasible` of `planned` were.
        """
        return summarise(self.rows, tuple(self.vary))

    @cached_property
    def tests(self) -> list[Row]:
        """Paired tests of every strategy against the baseline; empty without at least two seeds."""
        if self.baseline is None or len(self.seeds) < 2:
            return []
        return compare_pairs(self.rows, tuple(self.vary), self.baseline)

    @cached_property
    def ranks(self) -> list[Row]:
        """Mean ranks by each figure, in each case and over all cases, with Friedman's test."""
        return rank_strategies(self.rows, tuple(self.vary), self.cases)

    @cached_property
    def refusals(self) -> dict[str, str]:
        """Strategy that cannot take a problem → why."""
        return list_refusals(self.rows, self.cases)

    @property
    def is_single(self) -> bool:
        """Whether it is of a single problem, as it is declared."""
        return len(self.cases) == 1 and not self.vary and self.seeds == (None,)

    @property
    def any_feasible(self) -> bool:
        """Whether any plan is feasible."""
        return any(row["feasible"] for row in self.rows)

    def best(self, case: str | None = None, **values: Any) -> tuple[str, ...]:
        """The strategies with the least of what the family minimises; several where they tie.

        Without a case the first one; swept parameters that are not given have their first value.

        Raises:
            InvalidInput: for a case or a value that the study does not have.
        """
        defects = Defects()
        known = case is None or case in self.cases
        defects.require(known, "case", case, "a case of the study", nearest(str(case), self.cases))
        for name, value in values.items():
            swept = self.vary.get(name)
            rule = "a swept parameter" if swept is None else f"one of {', '.join(map(str, swept))}"
            defects.require(swept is not None and value in swept, name, value, rule)
        defects.raise_if_any()
        wanted = {name: all_values[0] for name, all_values in self.vary.items()} | values
        wanted |= {"case": self.cases[0] if case is None else case, "figure": self.family.minimised}
        return tuple(
            row["strategy"]
            for row in self.summary
            if row["best"] and all(row[name] == value for name, value in wanted.items())
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON; ∞ is written "inf"."""
        document: dict[str, Any] = {
            "thalweg": 1,
            "family": self.family_name,
            "minimised": self.family.minimised,
            "baseline": self.baseline,
            "cases": list(self.cases),
            "seeds": list(self.seeds),
            "vary": {name: list(values) for name, values in self.vary.items()},
            "simulate_s": self.simulate_s,
            "rows": _plain(self.rows),
            "summary": _plain(self.summary),
            "tests": _plain(self.tests),
            "ranks": _plain(self.ranks),
            "refusals": self.refusals,
        }
        return {**document, **self._single_problem()} if self.is_single else document

    def _single_problem(self) -> dict[str, Any]:
        planned = [row for row in self.rows if row["feasible"] is not None]
        best = list(self.best())
        compared: list[Row] = _plain([{name: row[name] for name in _COMPARED} for row in planned])
        for row in compared:
            row["violations"] = row["violations"].split("; ") if row["violations"] else []
        return {
            "application": self.rows[0]["application"],
            "network": self.rows[0]["network"],
            "best": best[0] if best else None,
            "all_best": best,
            "strategies": compared,
        }

    def to_pandas(self, table: Literal["rows", "summary", "tests", "ranks"] = "rows") -> DataFrame:
        """One of the four tables as a data frame."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            hint = "Hint: pip install 'thalweg[pandas]'"
            raise MissingExtra(f"Study.to_pandas() needs pandas. {hint}") from error
        return DataFrame.from_records(list(getattr(self, table)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it into a file: the rows as .csv or .parquet, all of it as .json."""
        from thalweg.study.saving import save_study

        save_study(self, path)

    def draw(self) -> Figure:
        """The main figures, as wide as a page: over a swept parameter, or side by side."""
        from thalweg.study.drawing import draw_study

        return draw_study(self)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw it into a file; its ending says how (.pdf, .svg or .png)."""
        self.draw().savefig(path, dpi=300)

    def tables(self) -> list[Table]:
        """A table for each case, for people."""
        from thalweg.study.tables import make_tables

        return make_tables(self)

    def notes(self) -> list[str]:
        """What the tables leave out: how they are made, who cannot take the problem, and why."""
        from thalweg.study.tables import make_notes

        return make_notes(self)

    def __str__(self) -> str:
        return "\n".join([*(str(table) for table in self.tables()), *self.notes()])


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
