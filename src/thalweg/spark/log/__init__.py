"""The log: rows in segments, published once, read by offsets, fenced by epochs."""

from thalweg.spark.log.reader import (
    Fence,
    Log,
    batch_in,
)

__all__ = [
    "Fence",
    "Log",
    "batch_in",
]
