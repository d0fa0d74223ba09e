"""`fog-only`: as much on the fog as fits.

A baseline of section 6.1 of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators for
IoT Edge Analytics.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from thalweg.model.placement import Placement
from thalweg.model.plan import Plan
from thalweg.model.problem import Problem
from thalweg.scheduling.min_cut import cheapest
from thalweg.scheduling.schedule import Table, plan_cuts
from thalweg.strategy import strategy


@strategy("fog-only", "as many operators on the fog as fit")
def fog_only(problem: Problem, current: Placement | None = None) -> Plan:
    """The largest cut that fits, for every stream; ties: operator order. `current` is ignored."""
    del current
    started = perf_counter()
    table = Table.of(problem)
    in_cloud = table.cuts.sizes.max() - table.cuts.sizes
    cost = np.broadcast_to(in_cloud[:, None].astype(float), table.costs.fits.shape)
    why = "as many operators as fit"
    return plan_cuts(table, cheapest(table, cost), strategy="fog-only", why=why, started=started)
