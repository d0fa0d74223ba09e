"""Is a run well? What is wrong with it, what to do, and the repairs that are safe."""

from thalweg.spark.deployment.health.examine import examine, examine_machine, glance
from thalweg.spark.deployment.health.finding import LEVELS, Finding, Health
from thalweg.spark.deployment.health.repair import rebuild, repair

__all__ = [
    "LEVELS",
    "Finding",
    "Health",
    "examine",
    "examine_machine",
    "glance",
    "rebuild",
    "repair",
]
