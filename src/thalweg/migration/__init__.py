"""Operators that move as their users move: what is known, what is planned, what it costs.

>>> from thalweg.migration import Brokers
>>> from thalweg.scenarios import broker_tree
>>> Brokers.of(broker_tree()).count
21
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thalweg.migration.approaches import drive_migcep
    from thalweg.migration.baselines import drive_greedy, drive_lookahead, drive_static
    from thalweg.migration.brokers import Brokers
    from thalweg.migration.city import City, draw_city
    from thalweg.migration.connections import Connections
    from thalweg.migration.drive import Drive, Effort
    from thalweg.migration.fan import Fan
    from thalweg.migration.hit_rate import hit_rates
    from thalweg.migration.mobility import KNOWLEDGE, Predictor, predictor
    from thalweg.migration.operators import MobileGraph
    from thalweg.migration.plan import MigrationPlan, plan_instance
    from thalweg.migration.policies import POLICIES, policy
    from thalweg.migration.predictors.learned import Transitions
    from thalweg.migration.settings import Settings
    from thalweg.migration.time_graph import Moves, TimeGraph, cheapest_path

# Each comes with the first use: compiled loops take a while to load.
_ON_DEMAND = {
    "KNOWLEDGE": "mobility",
    "POLICIES": "policies",
    "Brokers": "brokers",
    "City": "city",
    "Connections": "connections",
    "Drive": "drive",
    "Effort": "drive",
    "Fan": "fan",
    "MigrationPlan": "plan",
    "MobileGraph": "operators",
    "Moves": "time_graph",
    "Predictor": "mobility",
    "Settings": "settings",
    "TimeGraph": "time_graph",
    "Transitions": "predictors.learned",
    "cheapest_path": "time_graph",
    "draw_city": "city",
    "drive_greedy": "baselines",
    "drive_lookahead": "baselines",
    "drive_migcep": "approaches",
    "drive_static": "baselines",
    "hit_rates": "hit_rate",
    "plan_instance": "plan",
    "policy": "policies",
    "predictor": "mobility",
}

__all__ = [
    "KNOWLEDGE",
    "POLICIES",
    "Brokers",
    "City",
    "Connections",
    "Drive",
    "Effort",
    "Fan",
    "MigrationPlan",
    "MobileGraph",
    "Moves",
    "Predictor",
    "Settings",
    "TimeGraph",
    "Transitions",
    "cheapest_path",
    "draw_city",
    "drive_greedy",
    "drive_lookahead",
    "drive_migcep",
    "drive_static",
    "hit_rates",
    "plan_instance",
    "policy",
    "predictor",
]


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module 'thalweg.migration' has no attribute {name!r}")
    return getattr(import_module(f"thalweg.migration.{_ON_DEMAND[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
