"""Applications as PySpark functions: what a pipeline is, and how its frames are built."""

from thalweg.spark.pipeline.pipeline import (
    DEAD_LETTERS,
    Pipeline,
    Step,
    load_pipeline,
)

__all__ = [
    "DEAD_LETTERS",
    "Pipeline",
    "Step",
    "load_pipeline",
]
