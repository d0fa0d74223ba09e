"""A pipeline that runs on its sites: plan, deploy, watch, adapt, go on after a crash."""

from thalweg.spark.deployment.handle import (
    Deployment,
    OpenRuntime,
    RunningFeed,
    StartFeed,
)
from thalweg.spark.deployment.health import Finding, Health, examine, rebuild, repair

__all__ = [
    "Deployment",
    "Finding",
    "Health",
    "OpenRuntime",
    "RunningFeed",
    "StartFeed",
    "examine",
    "rebuild",
    "repair",
]
