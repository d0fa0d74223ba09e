"""The application of the campaign: numbered events, so that each can be followed to every sink.

Events go through a Python function, one by one, into a list; into sums by zone and window, which
may be made at the sites; and into sums of all zones, which are made in two halves. What has to come
out is computed here once more, in plain Python, without Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from thalweg.history import Expectation

PIPELINE = "campaign.numbered_pipeline:numbered"
SOURCE = "events"
ZONES = 8
LENGTH_S, SLIDE_S = 4, 2
DELAY_S = 1
BEGIN = datetime(2026, 1, 5, 12, tzinfo=UTC)

_TIME = pa.timestamp("us", "UTC")
_WINDOW = pa.struct([("start", _TIME), ("end", _TIME)])
EVENTS = pa.schema(
    [("number", pa.int64()), ("zone", pa.int32()), ("at", _TIME), ("value", pa.int64())]
)
LIST = pa.schema([("number", pa.int64()), ("at", _TIME), ("checked", pa.int64())])
SUMS = pa.schema(
    [("window", _WINDOW), ("zone", pa.int32()), ("events", pa.int64()), ("total", pa.int64())]
)
TOTALS = pa.schema(
    [("window", _WINDOW), ("parity", pa.int32()), ("events", pa.int64()), ("total", pa.int64())]
)


def make_events(first: int, count: int, begin_s: float, seconds: float) -> pa.Table:
    """Events with the numbers from `first`, spread evenly over a span of event time."""
    numbers = range(first, first + count)
    step_us = round(seconds * 1e6) / max(count, 1)
    began = BEGIN + timedelta(seconds=begin_s)
    return pa.table(
        {
            "number": list(numbers),
            # Zones of one parity are of one site; numbers go to all of them in turn.
            "zone": [number * 7 % ZONES for number in numbers],
            "at": [began + timedelta(microseconds=round(k * step_us)) for k in range(count)],
            "value": [number * 7919 % 1009 for number in numbers],
        },
        schema=EVENTS,
    )


def check_value(number: int, value: int) -> int:
    """What the Python function of the pipeline makes of an event."""
    return (number * 31 + value * 17) % 65_521


def expect(events: pa.Table) -> dict[str, Expectation]:
    """What every sink has to get of these events."""
    rows = events.to_pylist()
    listed = [
        {
            "number": row["number"],
            "at": row["at"],
            "checked": check_value(row["number"], row["value"]),
        }
        for row in rows
    ]
    by_zone, by_parity = _sum_up(rows, "zone"), _sum_up(rows, "parity")
    return {
        "list": _expect(listed, LIST, ("number",), "at"),
        "sums": _expect(by_zone, SUMS, ("window", "zone"), "window"),
        "totals": _expect(by_parity, TOTALS, ("window", "parity"), "window"),
    }


def _expect(
    rows: list[dict[str, Any]], schema: pa.Schema, key: tuple[str, ...], due: str
) -> Expectation:
    return Expectation(rows=pa.Table.from_pylist(rows, schema=schema), key=key, due=due)


def _sum_up(rows: Sequence[dict[str, Any]], by: str) -> list[dict[str, Any]]:
    found: dict[tuple[datetime, int], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        group = row["zone"] if by == "zone" else row["number"] % 2
        for start in _window_starts(row["at"]):
            sums = found[start, group]
            sums[0] += 1
            sums[1] += row["value"]
    length = timedelta(seconds=LENGTH_S)
    return [
        {
            "window": {"start": start, "end": start + length},
            by: group,
            "events": count,
            "total": total,
        }
        for (start, group), (count, total) in sorted(found.items())
    ]


def _window_starts(at: datetime) -> list[datetime]:
    """Where the windows begin that an event is in."""
    passed_s = int((at - BEGIN).total_seconds() // SLIDE_S) * SLIDE_S
    first = BEGIN + timedelta(seconds=passed_s)
    return [first - timedelta(seconds=k) for k in range(0, LENGTH_S, SLIDE_S)]
