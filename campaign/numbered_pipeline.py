"""The application of the campaign for Spark; see `campaign.numbered`."""

from __future__ import annotations

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import LongType

from campaign.numbered import DELAY_S, LENGTH_S, SLIDE_S, check_value
from thalweg.model import TimeWindow
from thalweg.spark.pipeline import Pipeline
from thalweg.spark.pipeline.mergeable import count, sum_of

WINDOW = TimeWindow(f"{LENGTH_S} s", f"{SLIDE_S} s")

numbered = Pipeline("numbered")
_events = numbered.source(
    "events",
    schema="number long, zone int, at timestamp, value long",
    key="zone",
    determines_key="number",
    time="at",
    delay=f"{DELAY_S} s",
    rate=200.0,
    event_size=28.0,
)


@sql.pandas_udf(LongType())
def _check(number: pd.Series, value: pd.Series) -> pd.Series:
    """In a Python worker, so that there is one to kill."""
    return pd.Series([check_value(*pair) for pair in zip(number, value, strict=True)])


@numbered.operator(_events, kind="row-wise", must="number IS NOT NULL", cpu_per_event=1000.0)
def checked(events: DataFrame) -> DataFrame:
    """Adds what a Python function makes of each event."""
    parity = sql.pmod("number", sql.lit(2)).cast("int")
    return events.select("*", _check("number", "value").alias("checked"), parity.alias("parity"))


@numbered.operator(checked, kind="row-wise", cpu_per_event=1000.0)
def listed(checked: DataFrame) -> DataFrame:
    """Every event, to be found again."""
    return checked.select("number", "at", "checked")


@numbered.operator(checked, kind="partitioned", by="zone", window=WINDOW, cpu_per_event=1000.0)
def summed(checked: DataFrame) -> DataFrame:
    """Events and their values by zone and window."""
    return checked.groupBy("window", "zone").agg(
        sql.count(sql.lit(1)).alias("events"), sql.sum("value").alias("total")
    )


totals = numbered.aggregate(
    "totalled",
    checked,
    by="parity",
    window=WINDOW,
    columns={"events": count(), "total": sum_of("value")},
)

numbered.sink("list", listed)
numbered.sink("sums", summed)
numbered.sink("totals", totals)
