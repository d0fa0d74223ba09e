"""What a deployment does, measured: rates, bytes, lag, latency; kept and exported."""

from thalweg.spark.monitor.monitor import (
    Monitor,
    Totals,
    read_monitor,
)

__all__ = [
    "Monitor",
    "Totals",
    "read_monitor",
]
