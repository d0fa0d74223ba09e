"""Thalweg decides where stream operators run, proves what that costs, and keeps it right.

>>> import thalweg as tw
>>> app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
>>> plan = tw.plan(app, net, strategy="cloud-only")
>>> plan.feasible, tw.check(plan, app, net)
(True, [])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thalweg.check import check
from thalweg.errors import Defect, InvalidInput, ThalwegError
from thalweg.planning import plan
from thalweg.strategy import strategies, strategy

if TYPE_CHECKING:
    from thalweg import scenarios
    from thalweg.files.load import (
        load_application,
        load_changes,
        load_network,
        load_plan,
        load_workload,
    )
    from thalweg.files.save import save
    from thalweg.files.schema import json_schema
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
    from thalweg.simulate.run import simulate
    from thalweg.study.comparison import compare
    from thalweg.study.run import study

__version__ = "0.2.0"

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
    "compare",
    "json_schema",
    "load_application",
    "load_changes",
    "load_network",
    "load_plan",
    "load_workload",
    "plan",
    "save",
    "scenarios",
    "simulate",
    "strategies",
    "strategy",
    "study",
]

# `import thalweg` loads neither NumPy nor a parser: each comes with the first name that needs it.
_ON_DEMAND = {
    "compare": "thalweg.study.comparison",
    "json_schema": "thalweg.files.schema",
    "load_application": "thalweg.files.load",
    "load_changes": "thalweg.files.load",
    "load_network": "thalweg.files.load",
    "load_plan": "thalweg.files.load",
    "load_workload": "thalweg.files.load",
    "save": "thalweg.files.save",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'thalweg' has no attribute {name!r}")
    if name in ("scenarios", "simulate", "study"):  # The last two can be called.
        return import_module(f"thalweg.{name}")
    return getattr(import_module(_ON_DEMAND.get(name, "thalweg.model")), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
