"""The rows of all runs, averaged per number of devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.experiments.tsoo.setting import LEVELS

FARES, DEMAND = "taxi-fares", "taxi-demand"
"""App-1 and App-2 of the paper."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Columns of the table, as arrays."""

    columns: dict[str, npt.NDArray[np.generic]]

    @classmethod
    def of(cls, table: pa.Table) -> Results:
        """The results in a table that the sweep made."""
        columns = {
            name: np.asarray(table[name].to_numpy(zero_copy_only=False))
            for name in table.column_names
        }
        columns["changes"] = columns["started"] + columns["stopped"]
        return cls(columns)

    def pick(self, **wanted: object) -> Results:
        """The rows with these values."""
        keep = np.ones(len(self), dtype=bool)
        for name, value in wanted.items():
            keep &= self.columns[name] == value
        return Results({name: column[keep] for name, column in self.columns.items()})

    def __len__(self) -> int:
        return int(next(iter(self.columns.values())).size)

    def values(self, name: str) -> Floats:
        """A column as numbers; null is NaN."""
        return self.columns[name].astype(float)

    def by_level(self, name: str) -> Floats:
        """The mean of a column for M1…M11."""
        values, level = self.values(name), self.columns["level"].astype(np.int64) - 1
        total = np.bincount(level, weights=values, minlength=LEVELS)
        count = np.bincount(level, minlength=LEVELS)
        mean: Floats = np.divide(total, count, out=np.full(LEVELS, np.nan), where=count > 0)
        return mean

    @property
    def strategies(self) -> list[str]:
        """Their names, in the order in which they ran."""
        return list(dict.fromkeys(self.columns["strategy"].tolist()))
