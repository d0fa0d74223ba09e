"""What the operators of a pipeline do and cost, measured with Spark."""

from thalweg.spark.profile.measure import (
    TOLERANCE,
    Difference,
    Figure,
    Profile,
    profile,
)

__all__ = [
    "TOLERANCE",
    "Difference",
    "Figure",
    "Profile",
    "profile",
]
