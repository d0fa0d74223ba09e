"""What changes over time: rates per source and site, positions per user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.errors import Defects
from thalweg.model.figures import freeze, require_figures
from thalweg.model.graph import Floats
from thalweg.model.names import require_name

ALL_SITES = "*"
"""In place of a site: evenly in all sites where the source is born."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Tracks:
    """Where users are: one row for each user and moment, ordered by user, then by time."""

    user: npt.NDArray[np.int64]
    time_s: Floats
    x_m: Floats
    y_m: Floats

    def __post_init__(self) -> None:
        defects = Defects()
        for name in ("time_s", "x_m", "y_m"):
            values = getattr(self, name)
            defects.require(
                values.shape == self.user.shape and bool(np.isfinite(values).all()),
                name,
                values.shape,
                f"{self.user.size} finite numbers",
            )
        defects.raise_if_any()
        same_user = np.diff(self.user) == 0
        ordered = bool((np.diff(self.user) >= 0).all())
        rising = bool((np.diff(self.time_s)[same_user] > 0).all())
        defects.require(
            ordered and rising, "time_s", "rows out of order", "rows by user, then rising time"
        )
        defects.raise_if_any()
        freeze(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class Workload:
    """Rates that hold from each moment to the next; the last one holds on.

    The rate of a source in `ALL_SITES` is born evenly in all its sites, on top of what is said
    about single ones.

    >>> load = Workload.of({0.0: {("rides", "fog-1"): 100.0}, 60.0: {("rides", "fog-1"): 250.0}})
    >>> load.rates_at(59.9), load.rates_at(60.0)
    ({('rides', 'fog-1'): 100.0}, {('rides', 'fog-1'): 250.0})
    """

    time_s: Floats
    births: tuple[tuple[str, str], ...]
    """(source, site) of each column of `rate`."""
    rate: Floats
    """Events/s, one row for each moment."""
    tracks: Tracks | None = None
    name: str = "workload"

    def __post_init__(self) -> None:
        object.__setattr__(self, "births", tuple(self.births))
        defects = Defects()
        require_name(defects, "name", self.name)
        rising = self.time_s.size > 0 and bool((np.diff(self.time_s) > 0).all())
        defects.require(
            rising and bool(np.isfinite(self.time_s).all()),
            "time_s",
            "moments out of order" if self.time_s.size else "no moment",
            "at least one moment, rising",
        )
        require_figures(defects, "rate", self.rate, (self.time_s.size, len(self.births)))
        defects.require(bool(np.isfinite(self.rate).all()), "rate", "∞", "finite numbers")
        defects.require(
            len(set(self.births)) == len(self.births), "births", "a pair twice", "each pair once"
        )
        for position, (source, site) in enumerate(self.births):
            require_name(defects, f"births[{position}]", source)
            if site != ALL_SITES:
                require_name(defects, f"births[{position}]", site)
        defects.raise_if_any()
        freeze(self)

    @classmethod
    def of(
        cls, steps: Mapping[float, Mapping[tuple[str, str], float]], *, name: str = "workload"
    ) -> Workload:
        """The workload with these rates from these moments on; a pair left out has rate 0."""
        births = tuple(dict.fromkeys(pair for rates in steps.values() for pair in rates))
        column = {pair: position for position, pair in enumerate(births)}
        moments = sorted(steps)
        rate = np.zeros((len(moments), len(births)))
        for row, moment in enumerate(moments):
            for pair, figure in steps[moment].items():
                rate[row, column[pair]] = figure
        return cls(time_s=np.array(moments, dtype=float), births=births, rate=rate, name=name)

    def rates_at(self, time_s: float) -> dict[tuple[str, str], float]:
        """The rates at a moment; before the first one, the first one's."""
        row = max(int(np.searchsorted(self.time_s, time_s, side="right")) - 1, 0)
        return dict(zip(self.births, self.rate[row].tolist(), strict=True))

    def __len__(self) -> int:
        return int(self.time_s.size)

    def __iter__(self) -> Iterator[tuple[float, dict[tuple[str, str], float]]]:
        """Each moment with its rates."""
        moments: Sequence[float] = self.time_s.tolist()
        for moment in moments:
            yield moment, self.rates_at(moment)
