"""Thalweg decides where stream operators run, proves what that costs, and keeps it right.

>>> import thalweg as tw
>>> app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
>>> plan = tw.plan(app, net, strategy="cloud-only")
>>> plan.feasible, tw.check(plan, app, net)
(True, [])
"""

from thalweg import scenarios
from thalweg.check import check
from thalweg.errors import Defect, InvalidInput, ThalwegError
from thalweg.files import json_schema, load_application, load_network, load_plan, save
from thalweg.model import (
    Application,
    CountWindow,
    Network,
    Operator,
    Pin,
    Placement,
    Plan,
    Problem,
    Stream,
    TimeWindow,
    Workload,
)
from thalweg.planning import plan
from thalweg.strategy import strategies, strategy

__version__ = "0.1.0"

__all__ = [
    "Application",
    "CountWindow",
    "Defect",
    "InvalidInput",
    "Network",
    "Operator",
    "Pin",
    "Placement",
    "Plan",
    "Problem",
    "Stream",
    "ThalwegError",
    "TimeWindow",
    "Workload",
    "check",
    "json_schema",
    "load_application",
    "load_network",
    "load_plan",
    "plan",
    "save",
    "scenarios",
    "strategies",
    "strategy",
]
