"""The rows of all runs, averaged per number of devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from thalweg.experiments.rows import Floats, Rows
from thalweg.experiments.tsoo.setting import LEVELS

FARES, DEMAND = "taxi-fares", "taxi-demand"
"""App-1 and App-2 of the paper."""

__all__ = ["DEMAND", "FARES", "Floats", "Results"]


@dataclass(frozen=True, slots=True, eq=False)
class Results(Rows):
    """Columns of the table, as arrays."""

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """The results in a table that the sweep made."""
        columns = Rows.of(table).columns
        return cls({**columns, "changes": columns["started"] + columns["stopped"]})  # type: ignore[operator]

    def by_level(self, name: str) -> Floats:
        """The mean of a column for M1…M11."""
        values, level = self.values(name), self.columns["level"].astype(np.int64) - 1
        total = np.bincount(level, weights=values, minlength=LEVELS)
        count = np.bincount(level, minlength=LEVELS)
        mean: Floats = np.divide(total, count, out=np.full(LEVELS, np.nan), where=count > 0)
        return mean
