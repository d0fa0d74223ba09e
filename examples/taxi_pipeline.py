"""A small taxi application as PySpark functions: where do taxis earn most, every five seconds?

The examples on Spark run it by the name `taxi_pipeline:taxi`, on fogs with thin uplinks. The
figures of the operators (how many rows they let through, what they cost) are for the plan; `thalweg
profile taxi_pipeline:taxi` measures them.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from thalweg.model import Limits, Network, TimeWindow
from thalweg.scenarios import fog_cloud
from thalweg.scenarios.rides import SCHEMA
from thalweg.spark.pipeline import Pipeline

WINDOW = TimeWindow("5 s")

taxi = Pipeline("small-taxi", limits=Limits(response_time_s=2.0, uplink_bps=300e3))
rides = taxi.source(
    "rides", schema=SCHEMA, key="zone", time="pickup_time", delay="1 s", rate=600, event_size=47
)


@taxi.operator(rides, kind="row-wise", must="zone IS NOT NULL", cpu_per_event=9000, memory=2e6)
def parse(rides: DataFrame) -> DataFrame:
    """The meter's line (drop-off zone, seconds, miles, fare, tip) as numbers."""
    part = sql.split("record", ",")
    return rides.select(
        "zone",
        "pickup_time",
        part[1].try_cast("long").alias("duration_s"),
        sql.round(part[3].try_cast("double") * 100).cast("long").alias("fare_cents"),
    )


@taxi.operator(parse, kind="row-wise", selectivity=0.98, cpu_per_event=1500, memory=1e6)
def clean(parse: DataFrame) -> DataFrame:
    """Rides that can have been."""
    return parse.where("fare_cents > 0 AND duration_s BETWEEN 60 AND 14400")


@taxi.operator(
    clean,
    kind="partitioned",  # A zone belongs to one site, so its rides can be counted there.
    by="zone",
    window=WINDOW,
    selectivity=0.03,
    cpu_per_event=6000,
    memory=8e6,
)
def fares(clean: DataFrame) -> DataFrame:
    """What the rides from a zone bring in, in each window."""
    return clean.groupBy("window", "zone").agg(
        sql.count(sql.lit(1)).alias("rides"),
        sql.sum("fare_cents").alias("fare_cents"),
        sql.sum("duration_s").alias("duration_s"),
    )


@taxi.operator(
    fares, kind="global", window=WINDOW, selectivity=0.05, cpu_per_event=8000, memory=4e6
)
def best_zones(fares: DataFrame) -> DataFrame:
    """The ten zones that pay best by the hour; it needs all zones, so it runs in the cloud."""
    order = sql.struct((-sql.col("fare_cents") / sql.col("duration_s")).alias("o"), "zone", "rides")
    best = sql.slice(sql.array_sort(sql.collect_list(order)), 1, 10)
    ranked = fares.groupBy("window").agg(best.alias("best"))
    rows = ranked.select("window", sql.posexplode("best").alias("place", "row"))
    cents_per_hour = sql.round(-36 * sql.col("row.o"), 2)
    return rows.select(
        "window",
        (sql.col("place") + 1).alias("rank"),
        "row.zone",
        "row.rides",
        cents_per_hour.alias("dollars_per_hour"),
    )


taxi.sink("board", best_zones)


def city(fogs: int) -> Network:
    """So many fogs with thin uplinks, `fog-0` and on, and a cloud."""
    return fog_cloud(fogs, seed=1, fog_mips=(800.0, 1200.0), fog_bandwidth_bps=(5e5, 5e5))
