"""A pipeline that runs on its sites: plan, deploy, watch, adapt, go on after a crash."""

from thalweg.spark.deployment.handle import (
    Deployment,
    OpenRuntime,
    RunningFeed,
    StartFeed,
)

__all__ = [
    "Deployment",
    "OpenRuntime",
    "RunningFeed",
    "StartFeed",
]
