"""A pipeline for the tests of bad rows: its operators fail on some values, each in its own way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import functions as sql

from thalweg.model import TimeWindow
from thalweg.spark.pipeline import Pipeline

UNLUCKY, NOT_FOUND = 13, 404

readings = Pipeline("readings")
_readings = readings.source("readings", schema="n long, sensor int, text string", key="sensor")


@readings.operator(_readings, kind="row-wise", must="sensor IS NOT NULL")
def parse(readings: Any) -> Any:
    return readings.select("n", "sensor", sql.expr("CAST(text AS INT)").alias("value"))


@readings.operator(parse, kind="row-wise")
def weigh(parse: Any) -> Any:
    def weight(value: int) -> int:
        if value == UNLUCKY:
            raise ValueError(f"{value} has no weight")
        if value == NOT_FOUND:
            Path("/there/is/no/such/file").read_bytes()
        return 2 * value

    # Spark cannot tell the kind of function from annotations that are text.
    weigh_value = sql.udf(weight, "int", useArrow=False)
    return parse.select("n", weigh_value("value").alias("weight"))


readings.sink("list", weigh)

# Rows that one of two operators fails on.
branches = Pipeline("branches")
_numbers = branches.source("readings", schema="n long, sensor int, text string", key="sensor")


@branches.operator(_numbers, kind="row-wise")
def double(readings: Any) -> Any:
    return readings.select("n", sql.expr("2 * CAST(text AS INT)").alias("double"))


@branches.operator(_numbers, kind="row-wise")
def invert(readings: Any) -> Any:
    return readings.select("n", sql.expr("8 / CAST(text AS INT)").alias("inverse"))


branches.sink("doubles", double)
branches.sink("inverses", invert)

# Windows of rows that some operators refuse, and others fail on: each operator on its own values.
totals = Pipeline("totals")
_timed = totals.source(
    "readings", schema="n long, sensor int, text string, at timestamp", key="sensor", time="at"
)


@totals.operator(_timed, kind="row-wise")
def read_value(readings: Any) -> Any:
    return readings.select("n", "sensor", sql.expr("CAST(text AS INT)").alias("value"), "at")


@totals.operator(
    read_value,
    kind="partitioned",
    by="sensor",
    must="value <> 7",
    window=TimeWindow("10 s", "5 s"),
)
def total(read_value: Any) -> Any:
    share = sql.expr(f"1000 DIV (value - {UNLUCKY})")
    return read_value.groupBy("window", "sensor").agg(
        sql.count("n").alias("readings"), sql.sum(share).alias("share")
    )


@totals.operator(read_value, kind="row-wise")
def part(read_value: Any) -> Any:
    return read_value.select("n", "at", sql.expr("8 DIV value").alias("part"))


totals.sink("board", total)
totals.sink("parts", part)
