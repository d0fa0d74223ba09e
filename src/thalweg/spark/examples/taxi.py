"""Two applications on taxi rides, as PySpark functions.

`taxi_fares` (9 operators): in which zones traffic is slow and fares are good. `taxi_demand` (11):
in which zones taxis are wanted, and to which they are on their way. Both have the graphs of
`thalweg.scenarios.taxi`; a drop-off can be in another site's zone, so those are counted in two
halves. Money is in cents and ways are in metres, as whole numbers: their sums are exact in any
order, and a split run gives the rows of the run in one place to the last digit.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from thalweg.model import Limits, TimeWindow
from thalweg.scenarios.rides import SCHEMA, ZONES, ride_figures
from thalweg.spark.pipeline import Pipeline
from thalweg.spark.pipeline.mergeable import count, mean_of

WINDOW = TimeWindow("10 s", "5 s")
DELAY = "2 s"
RATE = 3000.0
RIDE_BYTES = 46.6
LIMITS = Limits(response_time_s=2.0, uplink_bps=300e3)
BOARD_ZONES = 10
MPS_PER_MPH = 0.44704

# A meter's line: drop-off zone, seconds, miles, fare and tip in dollars.
_LINE = (
    "record RLIKE '^[0-9]{1,3},-?[0-9]{1,7},"
    "-?[0-9]{1,6}[.][0-9]{2},-?[0-9]{1,6}[.][0-9]{2},-?[0-9]{1,6}[.][0-9]{2}$'"
)
_MUST = (_LINE, f"zone BETWEEN 1 AND {ZONES}", "pickup_time IS NOT NULL")


def parse(rides: DataFrame) -> DataFrame:
    """The meter's line as numbers."""
    part = sql.split("record", ",")
    return rides.select(
        "ride",
        "zone",
        "pickup_time",
        part[0].cast("int").alias("drop_off_zone"),
        part[1].cast("long").alias("duration_s"),
        sql.round(part[2].cast("double") * 1609.344).cast("long").alias("distance_m"),
        sql.round(part[3].cast("double") * 100).cast("long").alias("fare_cents"),
        sql.round(part[4].cast("double") * 100).cast("long").alias("tip_cents"),
    )


def clean(parse: DataFrame) -> DataFrame:
    """Rides that can have been: a fare, a way, and a minute to four hours."""
    return parse.where("fare_cents > 0 AND distance_m > 0 AND duration_s BETWEEN 60 AND 14400")


def _top_zones(frame: DataFrame, score: str, *columns: str) -> DataFrame:
    """The zones of the highest scores in each window; of equal ones, the lower zone first."""
    order = sql.struct((-sql.col(score)).alias("order"), "zone", score, *columns)
    best = sql.slice(sql.array_sort(sql.collect_list(order)), 1, BOARD_ZONES)
    ranked = frame.groupBy("window").agg(best.alias("best"))
    ranked = ranked.select("window", sql.posexplode("best").alias("place", "row"))
    shown = (sql.col(f"row.{name}").alias(name) for name in ("zone", score, *columns))
    return ranked.select("window", (sql.col("place") + 1).alias("rank"), *shown)


# taxi-fares

taxi_fares = Pipeline("taxi-fares", limits=LIMITS)
_rides = taxi_fares.source(
    "rides",
    schema=SCHEMA,
    key="zone",
    determines_key="ride",
    time="pickup_time",
    delay=DELAY,
    rate=RATE,
    event_size=RIDE_BYTES,
)
_parse = taxi_fares.operator(
    _rides, kind="row-wise", must=_MUST, compression=1.2, cpu_per_event=9000.0, memory=2e6
)(parse)
_clean = taxi_fares.operator(
    _parse, kind="row-wise", selectivity=0.98, cpu_per_event=1500.0, memory=1e6
)(clean)


@taxi_fares.operator(
    _clean, kind="row-wise", compression=1.15, cpu_per_event=2500.0, memory=2e6, state=2120.0
)
def enrich_zone(clean: DataFrame) -> DataFrame:
    """Adds how fast one usually gets on from the zone where the ride began."""
    speeds = ", ".join(f"{mph * MPS_PER_MPH!r}D" for mph in ride_figures().zone_mph.tolist())
    return clean.withColumn("usual_mps", sql.expr(f"try_element_at(array({speeds}), zone)"))


@taxi_fares.operator(
    enrich_zone,
    kind="partitioned",
    by="zone",
    window=WINDOW,
    selectivity=0.0142,
    compression=0.69,
    cpu_per_event=6000.0,
    memory=8e6,
)
def speed_by_zone(enrich_zone: DataFrame) -> DataFrame:
    """Way and time of all rides from a zone, in each window."""
    return enrich_zone.groupBy("window", "zone").agg(
        sql.sum("distance_m").alias("distance_m"),
        sql.sum("duration_s").alias("duration_s"),
        sql.max("usual_mps").alias("usual_mps"),
    )


@taxi_fares.operator(
    speed_by_zone, kind="row-wise", compression=0.64, cpu_per_event=1500.0, memory=1e6
)
def congestion(speed_by_zone: DataFrame) -> DataFrame:
    """How many times longer than usual a way takes."""
    slowness = sql.col("usual_mps") * sql.col("duration_s") / sql.col("distance_m")
    return speed_by_zone.select("window", "zone", slowness.alias("congestion"))


@taxi_fares.operator(
    enrich_zone,
    kind="partitioned",
    by="zone",
    window=WINDOW,
    selectivity=0.0142,
    compression=0.69,
    cpu_per_event=6000.0,
    memory=8e6,
)
def fares_by_zone(enrich_zone: DataFrame) -> DataFrame:
    """What the rides from a zone brought in, in each window."""
    return enrich_zone.groupBy("window", "zone").agg(
        sql.count(sql.lit(1)).alias("rides"),
        sql.sum("fare_cents").alias("fare_cents"),
        sql.sum("tip_cents").alias("tip_cents"),
    )


@taxi_fares.operator(
    fares_by_zone, kind="row-wise", compression=0.9, cpu_per_event=1500.0, memory=1e6
)
def tip_ratio(fares_by_zone: DataFrame) -> DataFrame:
    """The mean fare, and the tips for each dollar of it."""
    return fares_by_zone.select(
        "window",
        "zone",
        (sql.col("fare_cents") / sql.col("rides")).alias("fare_cents"),
        (sql.col("tip_cents") / sql.col("fare_cents")).alias("tip_ratio"),
    )


@taxi_fares.operator(
    congestion,
    tip_ratio,
    kind="partitioned",
    by="zone",
    window=WINDOW,
    selectivity=0.5,
    compression=1.4,
    cpu_per_event=12000.0,
    memory=8e6,
)
def join(congestion: DataFrame, tip_ratio: DataFrame) -> DataFrame:
    """Traffic and fares of each zone side by side."""
    return congestion.join(tip_ratio, ["window", "zone"])


@taxi_fares.operator(
    join,
    kind="global",
    window=WINDOW,
    selectivity=0.05,
    compression=1.2,
    cpu_per_event=8000.0,
    memory=4e6,
)
def rank_zones(join: DataFrame) -> DataFrame:
    """The zones where a taxi earns most for the time it takes."""
    earned = sql.col("fare_cents") * (1 + sql.col("tip_ratio")) / sql.col("congestion")
    return _top_zones(join.withColumn("earned", earned), "earned", "congestion", "tip_ratio")


taxi_fares.sink("fare-board", rank_zones)


# taxi-demand

taxi_demand = Pipeline("taxi-demand", limits=LIMITS)
_rides = taxi_demand.source(
    "rides",
    schema=SCHEMA,
    key="zone",
    determines_key="ride",
    time="pickup_time",
    delay=DELAY,
    rate=RATE,
    event_size=RIDE_BYTES,
)
_parse = taxi_demand.operator(
    _rides, kind="row-wise", must=_MUST, compression=1.2, cpu_per_event=9000.0, memory=2e6
)(parse)
_clean = taxi_demand.operator(
    _parse, kind="row-wise", selectivity=0.98, cpu_per_event=1500.0, memory=1e6
)(clean)


@taxi_demand.operator(_clean, kind="row-wise", compression=0.214, cpu_per_event=1000.0, memory=1e6)
def pickup_zone(clean: DataFrame) -> DataFrame:
    """Where and when taxis were taken."""
    return clean.select("zone", "pickup_time")


@taxi_demand.operator(
    pickup_zone,
    kind="partitioned",
    by="zone",
    window=WINDOW,
    selectivity=0.0142,
    compression=3.0,
    cpu_per_event=6000.0,
    memory=8e6,
)
def pickups_by_zone(pickup_zone: DataFrame) -> DataFrame:
    """Pick-ups of each window, and those of its second half."""
    half = sql.expr(f"INTERVAL '{WINDOW.length / 2:g}' SECOND")
    late = sql.col("pickup_time") >= sql.col("window.start") + half
    rows = pickup_zone.withColumn("late", late.cast("long"))
    return rows.groupBy("window", "zone").agg(
        sql.count(sql.lit(1)).alias("pickups"), sql.sum("late").alias("late_pickups")
    )


@taxi_demand.operator(
    pickups_by_zone, kind="row-wise", compression=1.0, cpu_per_event=1500.0, memory=1e6
)
def demand_trend(pickups_by_zone: DataFrame) -> DataFrame:
    """Whether demand grows: the share of the pick-ups that came in the second half."""
    trend = sql.col("late_pickups") / sql.col("pickups")
    return pickups_by_zone.select("window", "zone", "pickups", trend.alias("trend"))


drop_offs_by_zone = taxi_demand.aggregate(
    "drop-offs-by-zone",
    _clean,
    by="drop_off_zone",
    window=WINDOW,
    columns={"drop_offs": count(), "away_s": mean_of("duration_s")},
    selectivity=0.044,
    compression=0.79,
    cpu_per_event=6000.0,
    memory=8e6,
    merge_figures={
        "selectivity": 0.373,
        "compression": 0.82,
        "cpu_per_event": 6000.0,
        "memory": 8e6,
        "window": WINDOW,
    },
)


@taxi_demand.operator(
    drop_offs_by_zone, kind="row-wise", compression=1.0, cpu_per_event=1500.0, memory=1e6
)
def free_taxis(drop_offs_by_zone: DataFrame) -> DataFrame:
    """How many taxis will be free in a zone, and in how many seconds."""
    zone = sql.col("drop_off_zone").alias("zone")
    return drop_offs_by_zone.select("window", zone, "drop_offs", "away_s")


@taxi_demand.operator(
    demand_trend,
    free_taxis,
    name="join",
    kind="partitioned",
    by="zone",
    window=WINDOW,
    selectivity=0.5,
    compression=1.5,
    cpu_per_event=12000.0,
    memory=8e6,
)
def join_demand(demand_trend: DataFrame, free_taxis: DataFrame) -> DataFrame:
    """Demand and supply of each zone side by side."""
    return demand_trend.join(free_taxis, ["window", "zone"])


@taxi_demand.operator(
    join_demand, kind="row-wise", compression=0.69, cpu_per_event=1500.0, memory=1e6
)
def imbalance(join: DataFrame) -> DataFrame:
    """How many taxis will be missing, the more so where demand grows."""
    missing = sql.col("pickups") * (sql.lit(0.5) + sql.col("trend")) - sql.col("drop_offs")
    return join.select("window", "zone", missing.alias("missing"), "away_s")


@taxi_demand.operator(
    imbalance,
    name="rank-zones",
    kind="global",
    window=WINDOW,
    selectivity=0.05,
    cpu_per_event=8000.0,
    memory=4e6,
)
def rank_demand(imbalance: DataFrame) -> DataFrame:
    """The zones to which a free taxi should go."""
    return _top_zones(imbalance, "missing", "away_s")


taxi_demand.sink("dispatch-board", rank_demand)
