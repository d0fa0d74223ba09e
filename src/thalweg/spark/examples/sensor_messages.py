"""What the dataflows on sensor messages have in common: their source, parsing, a Bloom filter."""

from __future__ import annotations

from zlib import crc32

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from thalweg.model import Limits, TimeWindow
from thalweg.scenarios.readings import SCHEMA, SENSORS, UNITS, sensor_name
from thalweg.spark.pipeline import Pipeline, Step

WINDOW = TimeWindow("10 s")
DELAY = "2 s"
RATE = 1000.0
MESSAGE_BYTES = 320.0
LIMITS = Limits(response_time_s=2.0, uplink_bps=5e6)
BLOOM_BITS, BLOOM_HASHES = 4096, 3
SENML = "e array<struct<n string, u string, v string, sv string>>, bt long"
MUST = ("senml LIKE '{%}'", "time IS NOT NULL", "sensor IS NOT NULL")


def known_sensors() -> list[str]:
    """The sensors that are registered: nine of ten."""
    return [sensor_name(number) for number in range(SENSORS) if number % 10 != 9]


def new_pipeline(name: str) -> tuple[Pipeline, Step]:
    """A pipeline that reads messages, and its source."""
    pipeline = Pipeline(name, limits=LIMITS)
    source = pipeline.source(
        "messages",
        schema=SCHEMA,
        key="sensor",
        determines_key="message",
        time="time",
        delay=DELAY,
        rate=RATE,
        event_size=MESSAGE_BYTES,
    )
    return pipeline, source


def parse(messages: DataFrame) -> DataFrame:
    """One row for each reading of a message; a missing value is null."""
    events = sql.explode(sql.from_json("senml", SENML)["e"])
    rows = messages.select("message", "sensor", "time", events.alias("event"))
    rows = rows.where(sql.col("event.n").isin(*UNITS))
    value = sql.col("event.v").try_cast("double")
    return rows.select(
        "message", "sensor", "time", sql.col("event.n").alias("field"), value.alias("value")
    )


def bloom_filter(readings: DataFrame) -> DataFrame:
    """Readings of sensors that are registered, or that a Bloom filter takes for one of them."""
    words = sql.expr(f"array({', '.join(f'{word}L' for word in _bloom_words(known_sensors()))})")
    found = sql.lit(True)
    for salt in range(BLOOM_HASHES):
        text = sql.concat(sql.col("sensor"), sql.lit(f"#{salt}"))
        bit = sql.crc32(text.cast("binary")) % BLOOM_BITS
        word = sql.element_at(words, sql.floor(bit / 32).cast("int") + 1)
        # A shift by a column is not among the functions; a power of two is exact.
        mask = sql.pow(sql.lit(2.0), bit % 32).cast("long")
        found = found & (word.bitwiseAND(mask) != 0)
    return readings.where(found)


def _bloom_words(names: list[str]) -> list[int]:
    """The filter's bits, 32 in each word."""
    words = [0] * (BLOOM_BITS // 32)
    for name in names:
        for salt in range(BLOOM_HASHES):
            bit = crc32(f"{name}#{salt}".encode()) % BLOOM_BITS
            words[bit // 32] |= 1 << (bit % 32)
    return words


def in_order(frame: DataFrame) -> DataFrame:
    """The readings of each window, sensor and field as one list, in the order of their times."""
    readings = sql.array_sort(sql.collect_list(sql.struct("time", "message", "value")))
    return frame.groupBy("window", "sensor", "field").agg(readings.alias("readings"))
