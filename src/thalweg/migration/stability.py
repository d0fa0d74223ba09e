"""What keeps plans from changing without need.

Sections 4.1 (stability) and 5.2 of Ottenwälder et al. 2013, MigCEP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.errors import Defects
from thalweg.model.graph import Floats, Index


def hold(held: Floats, measured: Floats, threshold: float) -> Floats:
    """The figures to plan with: a measurement replaces one only if it is off by a share of it.

    >>> hold(np.array([10.0, 10.0]), np.array([11.0, 13.0]), 0.2).tolist()
    [10.0, 13.0]
    """
    return np.where(np.abs(measured - held) > threshold * np.abs(held), measured, held)


def cannot_be_better(before: Floats, now: Floats, hosts: Index) -> bool:
    """Whether a plan that stays where it is is still the cheapest, however costs have changed.

    `before` and `now` are what each step costs at each broker. If no cost of a step has changed
    by more than half of what the next best broker was dearer then, nobody has overtaken. The
    bound is safe only for a plan without moves: another one could save a move, so for a plan that
    moves the answer is no.

    >>> before = np.array([[1.0, 5.0], [1.0, 5.0]])
    >>> stays = np.zeros(2, dtype=np.int32)
    >>> cannot_be_better(before, before + [[1.9, -1.9], [0.0, 0.0]], stays)
    True
    >>> cannot_be_better(before, before + [[2.1, -2.1], [0.0, 0.0]], stays)
    False
    """
    host = int(hosts[0])
    if (hosts != host).any():
        return False
    if before.shape[1] == 1:
        return True
    open_before, open_now = np.isfinite(before), np.isfinite(now)
    if (open_before != open_now).any() or not open_now[:, host].all():
        return False
    others = np.delete(before, host, axis=1).min(axis=1)
    dearer = others - before[:, host]
    with np.errstate(invalid="ignore"):
        change = np.where(open_now, np.abs(now - before), 0.0).max(axis=1)
    return bool((change <= dearer / 2.0).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """How many steps ahead to plan: more while predictions hold, fewer when they fail.

    >>> horizon = Horizon(least=10, most=100)
    >>> horizon.steps, horizon.failed().steps, horizon.failed().held().steps
    (100, 50, 100)
    """

    least: int
    most: int
    steps: int = 0

    def __post_init__(self) -> None:
        defects = Defects()
        defects.require(
            1 <= self.least <= self.most,
            "least, most",
            (self.least, self.most),
            "1 <= least <= most",
        )
        defects.raise_if_any()
        if not self.steps:
            object.__setattr__(self, "steps", self.most)

    def held(self) -> Horizon:
        """After a plan whose predictions came true."""
        return Horizon(least=self.least, most=self.most, steps=min(self.most, 2 * self.steps))

    def failed(self) -> Horizon:
        """After a plan whose predictions did not."""
        return Horizon(least=self.least, most=self.most, steps=max(self.least, self.steps // 2))


def leave_factor(stayed_s: float, decay_s: float) -> float:
    """How much of its price leaving a broker is taken to cost after a time there.

    So that an operator that plans only a few steps ahead leaves some day. Falls from 1 to 0 over
    `decay_s`; ∞: never.

    >>> leave_factor(0, 60), leave_factor(30, 60), leave_factor(90, 60), leave_factor(90, np.inf)
    (1.0, 0.5, 0.0, 1.0)
    """
    return max(1.0 - stayed_s / decay_s, 0.0)
