"""How much is wanted over time, before anybody says of what and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from thalweg.errors import Defects
from thalweg.model.figures import freeze, require_figures
from thalweg.model.graph import Floats
from thalweg.model.workload import Workload


@dataclass(frozen=True, eq=False, kw_only=True)
class DemandCurve:
    """One figure that holds from each moment to the next, such as rides per half hour.

    >>> curve = DemandCurve(time_s=np.array([0.0, 1800.0]), value=np.array([900.0, 1200.0]))
    >>> len(curve)
    2
    """

    time_s: Floats
    value: Floats
    start: datetime | None = None
    """The date and time at second 0, where they are known."""

    def __post_init__(self) -> None:
        for name in ("time_s", "value"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))
        defects = Defects()
        time_s = self.time_s
        rising = time_s.ndim == 1 and time_s.size > 0 and bool((np.diff(time_s) > 0).all())
        defects.require(
            rising and bool(np.isfinite(time_s).all()),
            "time_s",
            "moments out of order" if time_s.size else "no moment",
            "at least one moment, rising",
        )
        require_figures(defects, "value", self.value, time_s.shape, finite=True)
        defects.raise_if_any()
        freeze(self)

    def __len__(self) -> int:
        return int(self.time_s.size)


def spread_curve(
    curve: DemandCurve,
    births: Mapping[tuple[str, str], float],
    *,
    scale: float = 1.0,
    name: str = "workload",
) -> Workload:
    """The workload in which (source, site) pairs share value · `scale` events/s at each moment.

    Shares are relative to their sum: {("rides", "f0"): 2, ("rides", "f1"): 1} gives two thirds to
    f0. A curve that counts rides per half hour has the scale 1 / 1800 where a ride is an event.

    >>> curve = DemandCurve(time_s=np.array([0.0, 1800.0]), value=np.array([900.0, 1800.0]))
    >>> load = spread_curve(curve, {("rides", "f0"): 2, ("rides", "f1"): 1}, scale=1 / 100)
    >>> load.rates_at(1800.0)
    {('rides', 'f0'): 12.0, ('rides', 'f1'): 6.0}
    """
    defects = Defects()
    defects.require(bool(births), "births", dict(births), "at least one (source, site) pair")
    shares = np.array([float(share) for share in births.values()])
    good = bool(np.isfinite(shares).all() and (shares >= 0).all())
    defects.require(good, "births", shares.tolist(), "finite shares >= 0")
    total = float(shares.sum()) if good else 1.0
    defects.require(total > 0 or not births, "births", shares.tolist(), "a share above 0")
    finite = 0 <= scale < np.inf
    defects.require(finite, "scale", scale, "a finite number >= 0")
    defects.raise_if_any()
    rate = curve.value[:, None] * scale * (shares / total)
    return Workload(time_s=curve.time_s, births=tuple(births), rate=rate, name=name)
