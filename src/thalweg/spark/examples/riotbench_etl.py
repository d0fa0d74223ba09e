"""RIoTBench's ETL: a chain of eight operators that clean, complete and annotate messages."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from thalweg.scenarios.readings import SENSORS, sensor_name
from thalweg.spark.examples.sensor_messages import (
    MUST,
    WINDOW,
    bloom_filter,
    in_order,
    new_pipeline,
    parse,
)

RANGES = {
    "temperature": (-12.5, 43.1),
    "humidity": (10.7, 95.2),
    "light": (0.0, 26282.0),
    "dust": (186.61, 5188.21),
    "airquality_raw": (12.0, 49.0),
}
PLACES = ("harbour", "market", "park", "school", "station")

etl, _messages = new_pipeline("etl")
_parse = etl.operator(
    _messages,
    kind="row-wise",
    must=MUST,
    selectivity=5.0,
    compression=0.17,
    cpu_per_event=40000.0,
    memory=4e6,
)(parse)


@etl.operator(_parse, kind="row-wise", selectivity=0.9, cpu_per_event=1500.0, memory=1e6)
def range_filter(parse: DataFrame) -> DataFrame:
    """Readings that can be true; missing ones are for interpolation."""
    good = sql.col("value").isNull()
    for field, (least, most) in RANGES.items():
        good = good | ((sql.col("field") == field) & sql.col("value").between(least, most))
    return parse.where(good)


_bloom = etl.operator(
    range_filter, kind="row-wise", selectivity=0.9, cpu_per_event=4000.0, memory=2e6, state=1024.0
)(bloom_filter)


@etl.operator(
    _bloom,
    kind="partitioned",
    by=("sensor", "field"),
    window=WINDOW,
    compression=1.31,
    cpu_per_event=9000.0,
    memory=8e6,
)
def interpolation(bloom_filter: DataFrame) -> DataFrame:
    """A missing value becomes the mean of the others of its window; without any, it is left out."""
    mean = sql.expr(
        "aggregate(readings, named_struct('sum', 0D, 'count', 0D),"
        " (s, r) -> if(r.value IS NULL, s, named_struct('sum', s.sum + r.value,"
        " 'count', s.count + 1D)), s -> try_divide(s.sum, s.count))"
    )
    rows = in_order(bloom_filter).select(
        "window", "sensor", "field", mean.alias("mean"), sql.explode("readings").alias("r")
    )
    value = sql.coalesce("r.value", "mean")
    return rows.select(
        "window", "sensor", "field", "r.time", "r.message", value.alias("value")
    ).where("value IS NOT NULL")


@etl.operator(
    interpolation,
    kind="partitioned",
    by=("sensor", "message"),
    window=WINDOW,
    selectivity=0.2,
    compression=2.19,
    cpu_per_event=9000.0,
    memory=8e6,
)
def join(interpolation: DataFrame) -> DataFrame:
    """The readings of a message together again."""
    return interpolation.groupBy("window", "sensor", "message").agg(
        sql.min("time").alias("time"),
        sql.array_sort(sql.collect_list(sql.struct("field", "value"))).alias("readings"),
    )


@etl.operator(
    join, kind="row-wise", compression=1.1, cpu_per_event=3000.0, memory=2e6, state=2000.0
)
def annotate(join: DataFrame) -> DataFrame:
    """Adds where the sensor is."""
    known = ", ".join(
        f"'{sensor_name(number)}', '{PLACES[number % len(PLACES)]}'" for number in range(SENSORS)
    )
    place = sql.expr(f"coalesce(try_element_at(map({known}), sensor), 'elsewhere')")
    return join.withColumn("place", place)


@etl.operator(annotate, kind="row-wise", compression=1.34, cpu_per_event=15000.0, memory=2e6)
def convert(annotate: DataFrame) -> DataFrame:
    """Writes the message as SenML again."""
    events = sql.expr("transform(readings, r -> named_struct('n', r.field, 'v', r.value))")
    body = sql.struct(events.alias("e"), sql.unix_millis("time").alias("bt"))
    return annotate.select("window", "message", "sensor", "place", sql.to_json(body).alias("senml"))


@etl.operator(convert, kind="row-wise", cpu_per_event=1500.0, memory=1e6)
def publish(convert: DataFrame) -> DataFrame:
    """The topic that each message goes to."""
    topic = sql.concat_ws("/", sql.lit("etl"), "place", "sensor")
    return convert.select("window", "message", topic.alias("topic"), "senml")


etl.sink("store", publish)
