"""The rows that all runs of an evaluation gave, as arrays that can be picked from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The columns of a table, by name.

    >>> rows = Rows.of(pa.table({"strategy": ["a", "b", "a"], "cost": [1, 2, None]}))
    >>> rows.strategies, rows.pick(strategy="a").values("cost").tolist()
    (['a', 'b'], [1.0, nan])
    """

    columns: dict[str, npt.NDArray[np.generic]]

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """The rows of a table that a sweep made."""
        return cls(
            {
                name: np.asarray(table[name].to_numpy(zero_copy_only=False))
                for name in table.column_names
            }
        )

    def pick(self, **wanted: object) -> Self:
        """The rows with these values."""
        keep = np.ones(len(self), dtype=bool)
        for name, value in wanted.items():
            keep &= self.columns[name] == value
        return type(self)({name: column[keep] for name, column in self.columns.items()})

    def __len__(self) -> int:
        return int(next(iter(self.columns.values())).size)

    def values(self, name: str) -> Floats:
        """A column as numbers; null is NaN."""
        return self.columns[name].astype(float)

    @property
    def strategies(self) -> list[str]:
        """Their names, in the order in which they ran."""
        return list(dict.fromkeys(self.columns["strategy"].tolist()))
