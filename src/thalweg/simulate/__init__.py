"""A plan executed event by event: every event through every queue and every link.

>>> from thalweg.simulate import Poisson, SpeedChange
>>> SpeedChange(at_s=20.0, node="fog-1/0", speed=0.0).loses
False
"""

import sys
from types import ModuleType
from typing import Any

from thalweg.model.changes import PlanChange, RateChange, SpeedChange
from thalweg.simulate.arrivals import OnOff, Periodic, Poisson, Trace
from thalweg.simulate.control import Control
from thalweg.simulate.physics import Physics, placement_physics, scheduling_physics
from thalweg.simulate.run import Experiment, prepare, simulate
from thalweg.simulate.service import Deterministic, Empirical, Exponential
from thalweg.simulate.simulation import Simulation

__all__ = [
    "Control",
    "Deterministic",
    "Empirical",
    "Experiment",
    "Exponential",
    "OnOff",
    "Periodic",
    "Physics",
    "PlanChange",
    "Poisson",
    "RateChange",
    "Simulation",
    "SpeedChange",
    "Trace",
    "placement_physics",
    "prepare",
    "scheduling_physics",
    "simulate",
]


class _Room(ModuleType):
    """`thalweg.simulate` is where simulations are at home, and what runs one."""

    def __call__(self, *arguments: Any, **options: Any) -> Simulation:
        return simulate(*arguments, **options)


sys.modules[__name__].__class__ = _Room
