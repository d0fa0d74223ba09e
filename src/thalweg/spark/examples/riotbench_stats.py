"""RIoTBench's STATS: seven operators, with three statistics of every sensor side by side."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from thalweg.spark.examples.sensor_messages import (
    MUST,
    WINDOW,
    bloom_filter,
    in_order,
    new_pipeline,
    parse,
)

stats, _messages = new_pipeline("stats")
_parse = stats.operator(
    _messages,
    kind="row-wise",
    must=MUST,
    selectivity=5.0,
    compression=0.17,
    cpu_per_event=40000.0,
    memory=4e6,
)(parse)
_bloom = stats.operator(
    _parse, kind="row-wise", selectivity=0.9, cpu_per_event=4000.0, memory=2e6, state=1024.0
)(bloom_filter)

_GAIN = "(s.error + 0.125D) / (s.error + 0.445D)"


def _known(frame: DataFrame) -> DataFrame:
    return frame.where("value IS NOT NULL")


@stats.operator(
    _bloom,
    kind="partitioned",
    by=("sensor", "field"),
    window=WINDOW,
    compression=1.31,
    cpu_per_event=12000.0,
    memory=8e6,
)
def kalman(bloom_filter: DataFrame) -> DataFrame:
    """Every reading smoothed by those before it in its window."""
    ahead = f"s.estimate + {_GAIN} * (r.value - s.estimate)"
    path = sql.expr(
        "aggregate(readings, named_struct('estimate', readings[0].value, 'error', 30D,"
        " 'path', CAST(array() AS ARRAY<DOUBLE>)),"
        f" (s, r) -> named_struct('estimate', {ahead},"
        f" 'error', (1D - {_GAIN}) * (s.error + 0.125D),"
        f" 'path', array_append(s.path, {ahead})), s -> s.path)"
    )
    listed = in_order(_known(bloom_filter)).withColumn("path", path)
    rows = listed.select(
        "window", "sensor", "field", sql.explode(sql.arrays_zip("readings", "path")).alias("r")
    )
    return rows.select(
        "window",
        "sensor",
        "field",
        "r.readings.time",
        "r.readings.message",
        sql.col("r.path").alias("value"),
    )


@stats.operator(
    kalman,
    kind="partitioned",
    by=("sensor", "field"),
    window=WINDOW,
    selectivity=0.0061,
    compression=0.9,
    cpu_per_event=9000.0,
    memory=8e6,
)
def linear_regression(kalman: DataFrame) -> DataFrame:
    """The slope of the straight line through the readings of a window, per second."""
    readings = sql.array_sort(sql.collect_list(sql.struct("time", "message", "value")))
    listed = kalman.groupBy("window", "sensor", "field").agg(readings.alias("readings"))
    # Seconds from the window's start, so that squares stay small.
    sums = sql.expr(
        "aggregate(transform(readings, r -> named_struct('y', r.value, 'x',"
        " (unix_micros(r.time) - unix_micros(window.start)) / 1e6D)),"
        " named_struct('n', 0D, 'x', 0D, 'y', 0D, 'xx', 0D, 'xy', 0D),"
        " (s, r) -> named_struct('n', s.n + 1D, 'x', s.x + r.x, 'y', s.y + r.y,"
        " 'xx', s.xx + r.x * r.x, 'xy', s.xy + r.x * r.y),"
        " s -> try_divide(s.n * s.xy - s.x * s.y, s.n * s.xx - s.x * s.x))"
    )
    return listed.select(*_statistic("slope", sums))


@stats.operator(
    _bloom,
    kind="partitioned",
    by=("sensor", "field"),
    window=WINDOW,
    selectivity=0.006,
    compression=1.19,
    cpu_per_event=7000.0,
    memory=8e6,
)
def second_order_moment(bloom_filter: DataFrame) -> DataFrame:
    """The mean square of the readings of a window."""
    mean = sql.expr("aggregate(readings, 0D, (s, r) -> s + r.value * r.value) / size(readings)")
    return in_order(_known(bloom_filter)).select(*_statistic("moment", mean))


@stats.operator(
    _bloom,
    kind="partitioned",
    by=("sensor", "field"),
    window=WINDOW,
    selectivity=0.006,
    compression=1.23,
    cpu_per_event=6000.0,
    memory=8e6,
)
def distinct_count(bloom_filter: DataFrame) -> DataFrame:
    """How many different values a window has."""
    rows = _known(bloom_filter).groupBy("window", "sensor", "field")
    counted = rows.agg(sql.size(sql.collect_set("value")).cast("double").alias("values"))
    return counted.select(*_statistic("distinct", sql.col("values")))


def _statistic(name: str, value: Column) -> list[Column]:
    named = (sql.col("window"), sql.col("sensor"), sql.col("field"))
    return [*named, sql.lit(name).alias("statistic"), value.alias("value")]


@stats.operator(
    linear_regression,
    second_order_moment,
    distinct_count,
    name="publish",
    kind="row-wise",
    cpu_per_event=1500.0,
    memory=1e6,
)
def publish_statistics(
    linear_regression: DataFrame, second_order_moment: DataFrame, distinct_count: DataFrame
) -> DataFrame:
    """All statistics in one stream."""
    return linear_regression.unionByName(second_order_moment).unionByName(distinct_count)


stats.sink("plot", publish_statistics)
