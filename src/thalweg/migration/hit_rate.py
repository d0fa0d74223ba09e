"""How often predictors are right about where vehicles will connect."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.errors import Defects
from thalweg.migration.compiled.predicting import judge
from thalweg.migration.connections import Connections
from thalweg.migration.fan import NOWHERE, Fan
from thalweg.migration.mobility import Predictor

STAYS = "stays"
"""The name of the baseline: every vehicle stays in its leaf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRate:
    """How a predictor did so many seconds ahead, over all moments with the vehicle on the map."""

    predictor: str
    ahead_s: float
    moments: int
    hits: float
    """Share of the moments whose leaf was the likeliest one; ties: the lowest number."""
    probability: float
    """The mean probability that the leaf was given."""
    moved: int
    """Moments at which the vehicle was in another leaf than before."""
    hits_moved: float
    """Share of hits among those; NaN where there are none."""


class _Stays:
    """Whoever is in a leaf stays there."""

    name = STAYS

    def __init__(self, connections: Connections) -> None:
        self._leaf = connections.leaf

    def predict(self, vehicle: int, tick: int, steps: int, stride: int = 1) -> Fan:  # noqa: ARG002
        """The leaf of now, for so many steps."""
        hosts = np.full((1, steps), self._leaf[vehicle, tick], dtype=np.int32)
        return Fan(weight=np.ones(1), hosts=hosts)


def hit_rates(
    predictors: Sequence[Predictor],
    connections: Connections,
    *,
    ahead_s: Sequence[float] = (5.0, 15.0, 30.0, 60.0),
    every_s: float = 10.0,
    vehicles: Collection[str] | None = None,
) -> list[HitRate]:
    """Ask each predictor for each vehicle at every moment, and first of all the one that `STAYS`.

    Rates come by predictor, as given, then by look-ahead. With `vehicles`, only those are asked
    for: leave those out that a predictor has learned from.
    """
    every, ahead = _ticks(connections, ahead_s, every_s, vehicles)
    wanted = None if vehicles is None else set(vehicles)
    rows = [k for k, name in enumerate(connections.names) if wanted is None or name in wanted]
    stride = int(np.gcd.reduce(ahead))
    step = ahead // stride
    found: list[HitRate] = []
    for asked in (_Stays(connections), *predictors):
        sums = np.zeros((len(ahead), 5))
        for vehicle in rows:
            leaf = connections.leaf[vehicle]
            for tick in range(0, connections.steps - int(ahead.min()), every):
                if leaf[tick] != NOWHERE:
                    fan = asked.predict(vehicle, tick, int(step[-1]) + 1, stride)
                    judge(fan.hosts, fan.weight, leaf, tick, ahead, step, sums)
        found.extend(
            _rate(asked.name, seconds, sums[k].tolist())
            for k, seconds in enumerate((ahead * connections.step_s).tolist())
        )
    return found


def _rate(name: str, ahead_s: float, sums: Sequence[float]) -> HitRate:
    moments, hits, probability, moved, hits_moved = sums
    return HitRate(
        predictor=name,
        ahead_s=ahead_s,
        moments=int(moments),
        hits=hits / moments if moments else np.nan,
        probability=probability / moments if moments else np.nan,
        moved=int(moved),
        hits_moved=hits_moved / moved if moved else np.nan,
    )


def _ticks(
    connections: Connections,
    ahead_s: Sequence[float],
    every_s: float,
    vehicles: Collection[str] | None,
) -> tuple[int, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """The times in ticks, look-aheads ascending."""
    defects = Defects()
    rule = f"a whole number of steps of {connections.step_s:g} s, at least one"
    defects.require(len(ahead_s) > 0, "ahead_s", list(ahead_s), "at least one look-ahead")
    for path, seconds in (("every_s", every_s), *(("ahead_s", value) for value in ahead_s)):
        ticks = seconds / connections.step_s
        good = bool(np.isfinite(ticks)) and round(ticks) >= 1 and abs(ticks - round(ticks)) < 1e-6
        defects.require(good, path, seconds, rule)
    for name in sorted(set(vehicles or ()) - set(connections.names))[:5]:
        defects.add("vehicles", name, "vehicles of the connections")
    defects.raise_if_any()
    ahead = np.unique(np.rint(np.array(ahead_s) / connections.step_s).astype(np.int64))
    return round(every_s / connections.step_s), ahead
