"""Messages of environment sensors in SenML, like those of RIoTBench's city stream.

Each message carries five readings of one sensor. Their distributions are plain ones, of the same
order as the sample of the city stream that comes with RIoTBench; one reading in fifty is missing,
and one message in two hundred is broken off.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from thalweg.errors import Defects
from thalweg.scenarios.parameters import require_amounts, require_count, require_seed
from thalweg.scenarios.randomness import random_stream

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "message long, sensor string, time timestamp, senml string"
"""The columns of a message, as Spark writes them."""
UNITS = {
    "temperature": "far",
    "humidity": "per",
    "light": "per",
    "dust": "per",
    "airquality_raw": "per",
}
SENSORS = 60
MISSING = 1 / 50
BROKEN = 1 / 200
_START = datetime(2015, 2, 1, tzinfo=UTC)


def sensor_name(number: int) -> str:
    """The name of a sensor.

    >>> sensor_name(7)
    'sensor-0007'
    """
    return f"sensor-{number:04}"


def generate_messages(
    count: int,
    seed: int = 0,
    *,
    start: datetime = _START,
    seconds: float = 60.0,
    sensors: int = SENSORS,
    first: int = 0,
) -> pa.Table:
    """So many messages within so many seconds from `start` on, in the order of their times.

    >>> generate_messages(10, seed=1).column_names
    ['message', 'sensor', 'time', 'senml']
    """
    import pyarrow as pa

    defects = Defects()
    require_count(defects, "count", count, 0, 10**9)
    require_count(defects, "first", first, 0, 2**62)
    require_count(defects, "sensors", sensors, 1, 9999)
    require_amounts(defects, most=3.2e9, seconds=seconds)
    require_seed(defects, seed)
    defects.raise_if_any()
    rng = random_stream(seed, "messages", "time")
    begin = start if start.tzinfo else start.replace(tzinfo=UTC)
    epoch_ms = np.sort(rng.integers(0, max(1, round(seconds * 1000)), count))
    epoch_ms = epoch_ms + round(begin.timestamp() * 1000)
    rng = random_stream(seed, "messages", "sensor")
    names = [sensor_name(number) for number in rng.integers(0, sensors, count).tolist()]
    rng = random_stream(seed, "messages", "values")
    values = np.column_stack(
        [
            rng.normal(20.0, 10.0, count),
            rng.normal(49.0, 16.0, count).clip(0.0, 100.0),
            np.where(rng.random(count) < 0.5, 0.0, rng.lognormal(6.5, 1.2, count)),
            rng.lognormal(6.7, 0.9, count),
            rng.lognormal(3.2, 0.5, count),
        ]
    )
    missing = rng.random(values.shape) < MISSING
    broken = rng.random(count) < BROKEN
    lines = [
        _line(name, time, row, gaps)[: 20 if cut else None]
        for name, time, row, gaps, cut in zip(
            names,
            epoch_ms.tolist(),
            values.tolist(),
            missing.tolist(),
            broken.tolist(),
            strict=True,
        )
    ]
    return pa.table(
        {
            "message": pa.array(np.arange(first, first + count), pa.int64()),
            "sensor": pa.array(names, pa.string()),
            "time": pa.array(epoch_ms * 1000, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            "senml": pa.array(lines, pa.string()),
        }
    )


def _line(sensor: str, epoch_ms: int, values: list[float], missing: list[bool]) -> str:
    events: list[dict[str, str]] = [{"u": "string", "n": "source", "sv": sensor}]
    for (name, unit), value, gap in zip(UNITS.items(), values, missing, strict=True):
        reading = {"u": unit, "n": name}
        events.append(reading if gap else {"v": f"{value:.2f}", **reading})
    return json.dumps({"e": events, "bt": epoch_ms}, separators=(",", ":"))
