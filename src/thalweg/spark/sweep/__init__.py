"""Sweeps: a table of parameters in, a table of results out, on Spark."""

from thalweg.spark.sweep.runner import (
    IN_PROCESS,
    SweepFailure,
    SweepResult,
    sweep,
)

__all__ = [
    "IN_PROCESS",
    "SweepFailure",
    "SweepResult",
    "sweep",
]
