"""RIoTBench's PRED: seven operators that classify, predict, and judge the prediction."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from thalweg.scenarios.readings import UNITS
from thalweg.spark.examples.sensor_messages import MUST, SENML, WINDOW, new_pipeline
from thalweg.spark.pipeline.mergeable import mean_of

pred, _messages = new_pipeline("pred")


@pred.operator(
    _messages,
    name="parse",
    kind="row-wise",
    must=MUST,
    selectivity=0.9,
    compression=0.234,
    cpu_per_event=40000.0,
    memory=4e6,
)
def parse_wide(messages: DataFrame) -> DataFrame:
    """One row for each message, one column for each reading; messages with gaps are left out."""
    events = sql.from_json("senml", SENML)["e"]
    rows = messages.select("message", "sensor", "time", events.alias("e"))
    found = [
        sql.expr(f"try_cast(try_element_at(filter(e, x -> x.n = '{field}'), 1).v AS DOUBLE)").alias(
            field
        )
        for field in UNITS
    ]
    return rows.select("message", "sensor", "time", *found).dropna()


@pred.operator(
    parse_wide, kind="row-wise", compression=0.56, cpu_per_event=3000.0, memory=1e6, state=4000.0
)
def decision_tree(parse: DataFrame) -> DataFrame:
    """The air's class, 0 (good) to 3 (bad), by a tree that was learned before."""
    grade = sql.expr(
        "CASE WHEN airquality_raw < 20 THEN CASE WHEN dust < 900 THEN 0D ELSE 1D END"
        " WHEN dust < 2000 THEN CASE WHEN humidity < 70 THEN 1D ELSE 2D END"
        " ELSE CASE WHEN temperature < 25 THEN 2D ELSE 3D END END"
    )
    result = sql.lit("class").alias("result")
    return parse.select("message", "sensor", result, grade.alias("value"))


@pred.operator(
    parse_wide, kind="row-wise", compression=0.6, cpu_per_event=3000.0, memory=1e6, state=4000.0
)
def regression(parse: DataFrame) -> DataFrame:
    """What the air's quality should be, by a line that was learned before."""
    predicted = sql.expr("18D + 0.1D * temperature + 0.05D * humidity + 0.002D * dust")
    return parse.select("message", "sensor", "time", "airquality_raw", predicted.alias("predicted"))


block_average = pred.aggregate(
    "block-average",
    parse_wide,
    window=WINDOW,
    columns={"average": mean_of("airquality_raw")},
    selectivity=0.00033,
    compression=0.56,
    cpu_per_event=5000.0,
    memory=4e6,
    merge_figures={
        "selectivity": 0.333,
        "compression": 0.6,
        "cpu_per_event": 5000.0,
        "memory": 4e6,
        "window": WINDOW,
    },
)


@pred.operator(
    regression,
    block_average,
    kind="global",
    window=WINDOW,
    compression=0.85,
    cpu_per_event=12000.0,
    memory=16e6,
)
def error_estimate(regression: DataFrame, block_average: DataFrame) -> DataFrame:
    """How far the prediction was off, as a share of the window's average."""
    off = sql.abs(sql.col("airquality_raw") - sql.col("predicted")) / sql.col("average")
    # Spark keeps the time of a stream by one column, so the window takes the time's place.
    rows = regression.drop("time")
    joined = rows.join(block_average, "window")
    result = sql.lit("error").alias("result")
    return joined.select("message", "sensor", result, off.alias("value"))


@pred.operator(
    error_estimate, decision_tree, name="publish", kind="row-wise", cpu_per_event=1500.0, memory=1e6
)
def publish_predictions(error_estimate: DataFrame, decision_tree: DataFrame) -> DataFrame:
    """Classes and errors in one stream."""
    return error_estimate.unionByName(decision_tree)


pred.sink("alerts", publish_predictions)
