"""Numbered rides for `spark.site_pipelines:rides`, and which of them have come out."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from thalweg.spark.feed.gateway import Gateway
from thalweg.spark.log import Log


def send_numbers(gateway: Gateway, first: int, count: int) -> None:
    """So many rides with the numbers from `first`, all at noon."""
    numbers = range(first, first + count)
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    columns = {
        "n": pa.array(numbers, pa.int64()),
        "zone": pa.array([n % 3 for n in numbers], pa.int32()),
        "at": pa.array([at] * count, pa.timestamp("us", "UTC")),
        "fare": pa.array([60] * count, pa.int64()),
    }
    gateway.send(pa.table(columns))


def listed(folder: Path) -> list[int]:
    """The numbers of the rides that have come out, in order."""
    table = Log(folder / "log").read("sinks/list")
    return sorted(table["n"].to_pylist()) if table.num_rows else []
