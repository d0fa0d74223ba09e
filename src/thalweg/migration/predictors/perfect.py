"""Knows the whole trace: what no predictor can beat."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from thalweg.migration.connections import Connections
from thalweg.migration.fan import NOWHERE, Fan


class Perfect:
    """What really happens. A vehicle is nowhere before and after its trip and the trace."""

    name: ClassVar[str] = "perfect"

    def __init__(self, connections: Connections) -> None:
        self._leaf = connections.leaf

    def predict(self, vehicle: int, tick: int, steps: int, stride: int = 1) -> Fan:
        """The leaves at `tick`, `tick + stride`, … for so many steps."""
        known = self._leaf[vehicle, tick : tick + (steps - 1) * stride + 1 : stride]
        hosts = np.full((1, steps), NOWHERE, dtype=np.int32)
        hosts[0, : known.size] = known
        return Fan(weight=np.ones(1), hosts=hosts)
