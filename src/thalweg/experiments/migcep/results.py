"""The rows of all points: what one approach costs in parts of what another one does."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from thalweg.experiments.migcep.run import MIGCEP
from thalweg.experiments.migcep.setting import TREES
from thalweg.experiments.rows import Floats, Rows


@dataclass(frozen=True, slots=True, eq=False)
class Results(Rows):
    """Columns of the table, as arrays; every approach has its rows in the order of the points."""

    def of_figure(self, figure: str, **wanted: object) -> Results:
        """The rows of a figure."""
        return self.pick(figure=figure, **wanted)

    def levels(self, column: str) -> list[float]:
        """The different values of a parameter, ascending."""
        return [float(value) for value in np.unique(self.values(column))]

    def by(self, column: str, values: Floats) -> Floats:
        """The mean of values beside the rows for each value of a parameter, ascending."""
        levels, which = np.unique(self.values(column), return_inverse=True)
        total = np.bincount(which, weights=values, minlength=levels.size)
        mean: Floats = total / np.bincount(which, minlength=levels.size)
        return mean

    def mean(self, name: str, column: str, of: str = "bdp_bytes") -> Floats:
        """The mean of a figure of an approach for each value of a parameter."""
        here = self.pick(strategy=name)
        return here.by(column, here.values(of))

    def ratios(self, name: str, base: str) -> Floats:
        """What an approach costs in parts of another one, point by point."""
        mine, other = self.pick(strategy=name), self.pick(strategy=base)
        found: Floats = mine.values("bdp_bytes") / other.values("bdp_bytes")
        return found

    def ratio_by(self, column: str, name: str, base: str) -> Floats:
        """The same for each value of a parameter, on average."""
        return self.pick(strategy=name).by(column, self.ratios(name, base))


def panels(results: Results) -> list[tuple[str, Results]]:
    """The four panels 9a–d with their titles."""
    pairs = product(TREES, results.levels("event_bytes"))
    return [
        (f"{tree}, {size:g} B", results.pick(tree=tree, event_bytes=size)) for tree, size in pairs
    ]


def short_name(name: str) -> str:
    """Knowledge and policy alone, where the name has them."""
    return name.removeprefix(f"{MIGCEP}/")


def percent(share: float) -> str:
    """A share as text.

    >>> percent(0.27)
    '27.0 %'
    """
    return f"{100 * share:.1f} %"
