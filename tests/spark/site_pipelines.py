"""A pipeline for the tests of queries: two branches, state in one of them, two sinks."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as sql

from thalweg.model import TimeWindow
from thalweg.spark.pipeline import Pipeline

WINDOW = TimeWindow("10 s", "10 s")

SCHEMA = "n long, zone int, at timestamp, fare long"

rides = Pipeline("rides")
_rides = rides.source("rides", schema=SCHEMA, key="zone", time="at", delay="1 h")


@rides.operator(_rides, kind="row-wise", must="zone IS NOT NULL")
def clean(rides: Any) -> Any:
    return rides.where("fare > 0")


@rides.operator(clean, kind="row-wise")
def dear(clean: Any) -> Any:
    return clean.where("fare >= 50").select("n", "at", (2 * sql.col("fare")).alias("double"))


@rides.operator(clean, kind="partitioned", by="zone", window=WINDOW)
def fares(clean: Any) -> Any:
    return clean.groupBy("window", "zone").agg(sql.sum("fare").alias("fare"))


@rides.operator(fares, kind="row-wise")
def high(fares: Any) -> Any:
    return fares.where("fare > 100")


rides.sink("list", dear)
rides.sink("board", high)
