"""Counts with Spark how vehicles go from leaf to leaf, and how long they stay."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.errors import Defects, nearest
from thalweg.files.transitions_table import save_transitions
from thalweg.migration.brokers import Brokers
from thalweg.migration.connections import MARGIN_M
from thalweg.migration.leaves import LeafIndex
from thalweg.migration.predictors.learned import Transitions
from thalweg.model.graph import Floats
from thalweg.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FAR = -2
"""In place of a leaf: a position that nobody owns, or that is none."""
_COLUMNS = {
    "t": ("t", "time_s", "timestep_time"),
    "vehicle": ("vehicle", "user", "vehicle_id"),
    "x": ("x", "x_m", "vehicle_x"),
    "y": ("y", "y_m", "vehicle_y"),
}
_WITH_LEAF = "trace int, vehicle string, t double, leaf int"
MOST_SPEED_MS = 100.0
MOST_GAP = 1.5
"""Times the usual step of a trace."""
_MOST_SHOWN = 5


def count_transitions(
    paths: Sequence[Path],
    brokers: Brokers,
    *,
    master: str | None = None,
    into: Path | None = None,
    step_s: float = 1.0,
    vehicles: Collection[str] | None = None,
) -> Transitions:
    """Count the stays of these vehicles (all, unless given) in traces: Parquet files or folders.

    Each path is a trace of its own, with columns for time, vehicle, x and y, called as
    `load_tracks` knows them. The same figures, to the bit, as `Transitions.of` gives for the
    connections at moments `step_s` apart. Saved to the file `into`, if there is one.

    Raises:
        InvalidInput: with every path that is missing a column or has bad times, moments told
            twice, jumps or gaps, and positions farther outside of all areas than `MARGIN_M`.
    """
    defects = Defects()
    good = math.isfinite(step_s) and step_s > 0
    defects.require(good, "step_s", step_s, "a finite number > 0")
    defects.require(len(paths) > 0, "paths", list(map(str, paths)), "at least one trace")
    for path in paths:
        defects.require(Path(path).exists(), str(path), None, "an existing file or folder")
        other = Path(path).is_file() and Path(path).suffix != ".parquet"
        hint = "load_tracks and save_tracks make one of a .csv"
        defects.require(
            not other, str(path), Path(path).suffix, "a .parquet file, or a folder", hint
        )
    defects.raise_if_any()
    with open_session(master, "thalweg transitions") as session:
        rows = _read(session, paths)
        spans = _spans(rows, paths)
        if vehicles is not None:
            rows = rows.where(rows["vehicle"].isin(sorted(set(vehicles))))
        counted = _count(_with_leaf(rows, brokers), spans, step_s).toArrow().to_pylist()
    found = _transitions(counted, brokers, step_s)
    if into is not None:
        save_transitions(found, into)
    return found


def _read(session: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """The rows of all traces with a vehicle, under our names, each with the number of its trace."""
    from pyspark.sql import functions as F  # noqa: N812

    defects = Defects()
    traces: list[DataFrame] = []
    for number, path in enumerate(paths):
        frame = session.read.parquet(str(path))
        called = {}
        for name, names in _COLUMNS.items():
            found = [column for column in frame.columns if column in names]
            rule = f"one column called {' or '.join(names)}"
            hint = nearest(name, frame.columns)
            shown = ", ".join(found) or None
            defects.require(len(found) == 1, f"{path}: {name}", shown, rule, hint)
            called[name] = found[0] if found else ""
        if all(called.values()):
            figures = [F.col(f"`{called[name]}`").cast("double").alias(name) for name in "txy"]
            vehicle = F.col(f"`{called['vehicle']}`").cast("string").alias("vehicle")
            traces.append(frame.select(F.lit(number).alias("trace"), vehicle, *figures))
    defects.raise_if_any()
    # SUMO writes a row without a vehicle for a moment at which no one drives.
    return reduce(lambda a, b: a.unionAll(b), traces).where("vehicle is not null")


def _spans(rows: DataFrame, paths: Sequence[Path]) -> list[tuple[float, float]]:
    """The first and the last moment of each trace; refuses what `load_tracks` refuses."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    in_time = Window.partitionBy("trace", "vehicle").orderBy("t")
    away_m = F.hypot(F.col("x") - F.lag("x").over(in_time), F.col("y") - F.lag("y").over(in_time))
    after_s = F.col("t") - F.lag("t").over(in_time)
    steps = rows.withColumn("after_s", after_s).withColumn("away_m", away_m)
    usual = {
        row["trace"]: row["usual"]
        for row in steps.groupBy("trace").agg(F.median("after_s").alias("usual")).collect()
    }
    least_gap_s = _by_trace(
        [MOST_GAP * (usual.get(number) or math.inf) for number in range(len(paths))]
    )
    wrong = {
        "t: rows without a finite time >= 0": ~_is_finite("t") | (F.col("t") < 0),
        "x, y: rows without a finite position": ~_is_finite("x") | ~_is_finite("y"),
        "t: moments of a vehicle told twice": F.col("after_s") == 0,
        f"x, y: jumps of more than {MOST_SPEED_MS:g} m/s": (
            F.col("away_m") > MOST_SPEED_MS * F.col("after_s")
        ),
        f"t: gaps of more than {MOST_GAP:g} steps": F.col("after_s") > least_gap_s,
    }
    figures = [F.count_if(which).alias(f"n{k}") for k, which in enumerate(wrong.values())]
    first = [
        F.min(F.when(w, F.col("vehicle"))).alias(f"v{k}") for k, w in enumerate(wrong.values())
    ]
    span = [F.min("t").alias("start"), F.max("t").alias("end")]
    told = {
        row["trace"]: row for row in steps.groupBy("trace").agg(*span, *figures, *first).collect()
    }
    defects = Defects()
    for number, path in enumerate(paths):
        if number not in told:
            defects.add(str(path), "no row with a vehicle", "at least one position of a vehicle")
            continue
        for k, rule in enumerate(wrong):
            count, vehicle = told[number][f"n{k}"], told[number][f"v{k}"]
            column, what = rule.split(": ")
            shown = f"{count} {what}, the first of {vehicle}"
            hint = 'load_tracks names them; fill gaps with gaps="fill" and save_tracks'
            defects.require(not count, f"{path}: {column}", shown, "none", hint)
    defects.raise_if_any()
    return [(told[k]["start"], told[k]["end"]) for k in range(len(paths))]


def _is_finite(name: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    column = F.col(name)
    return column.isNotNull() & ~F.isnan(column) & (F.abs(column) < math.inf)


def _with_leaf(rows: DataFrame, brokers: Brokers) -> DataFrame:
    """Instead of each position its leaf, as a place in `brokers.leaves`, or `FAR`."""
    areas_m: Floats = brokers.area_m[brokers.leaves]

    def connect(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = LeafIndex(areas_m)
        for batch in batches:
            yield connect_batch(batch, index)

    # Typed as pandas only.
    frame: Any = rows
    connected: DataFrame = frame.mapInArrow(connect, _WITH_LEAF)
    return connected


def connect_batch(batch: pa.RecordBatch, index: LeafIndex) -> pa.RecordBatch:
    """Rows with their leaves; `FAR` where a position is too far from all of them, or none."""
    import numpy as np

    x, y = (batch.column(name).to_numpy(zero_copy_only=False) for name in "xy")
    place = index.find(x, y)
    outside = np.flatnonzero((place < 0) & np.isfinite(x) & np.isfinite(y))
    near, away_m = index.nearest(x[outside], y[outside])
    place[place < 0] = FAR
    place[outside] = np.where(away_m > MARGIN_M, FAR, near)
    columns = [batch.column(name) for name in ("trace", "vehicle", "t")]
    names = ["trace", "vehicle", "t", "leaf"]
    return pa.RecordBatch.from_arrays([*columns, pa.array(place, pa.int32())], names=names)


def _count(rows: DataFrame, spans: Sequence[tuple[float, float]], step_s: float) -> DataFrame:
    """Stays by (previous, leaf, next, whether the trace ended first): count, ticks and squares.

    A row holds from the first tick at or after its time up to that of the next row; the last one
    for a tick, unless that is half a step or more after it. Exactly what `Connections` sample.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    in_time = Window.partitionBy("trace", "vehicle").orderBy("t")
    whole = in_time.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    start = _by_trace([start for start, _ in spans])
    ticks = [int((end - start) / step_s + 1e-9) + 1 for start, end in spans]
    tick = F.ceil((F.col("t") - start - 1e-9) / step_s)
    lasts = start + F.col("tick") * step_s + 1e-9 < F.col("t") + 0.5 * step_s
    stays = F.coalesce(F.lead("tick").over(in_time), F.col("tick") + lasts.cast("long"))
    sampled = (
        rows.withColumn("tick", tick)
        .withColumn("until", F.least(stays, _by_trace(ticks)))
        .where("tick < until")
    )
    arrives = F.coalesce(F.col("leaf") != F.lag("leaf").over(in_time), F.lit(True))
    arrivals = (
        sampled.withColumn("arrives", arrives)
        .withColumn("gone", F.max("until").over(whole))
        .where("arrives")
    )
    took = F.coalesce(F.lead("tick").over(in_time), F.col("gone")) - F.col("tick")
    found = arrivals.select(
        F.lag("leaf").over(in_time).alias("previous"),
        "leaf",
        F.lead("leaf").over(in_time).alias("next"),
        took.alias("took"),
        (F.lead("leaf").over(in_time).isNull() & (F.col("gone") == _by_trace(ticks))).alias("open"),
    )
    return found.groupBy("previous", "leaf", "next", "open").agg(
        F.count("*").alias("count"),
        F.sum("took").alias("ticks"),
        F.sum(F.col("took") * F.col("took")).alias("squares"),
    )


def _by_trace(values: Sequence[float]) -> Column:
    """The value of the trace that a row is from."""
    from pyspark.sql import functions as F  # noqa: N812

    if len(values) == 1:
        return F.lit(values[0])
    return F.element_at(F.array(*map(F.lit, values)), F.col("trace") + 1)


def _transitions(counted: Sequence[dict[str, Any]], brokers: Brokers, step_s: float) -> Transitions:
    far = sum(row["count"] for row in counted if row["leaf"] == FAR)
    defects = Defects()
    rule = f"positions within {MARGIN_M:g} m of the brokers' areas"
    hint = "cut the trace, or give the brokers a larger area"
    defects.require(far == 0, "paths", f"{far} times somebody leaves them", rule, hint)
    defects.raise_if_any()

    def name(place: int | None) -> str:
        return "" if place is None else brokers.names[brokers.leaves[place]]

    return Transitions.of_sums(
        {
            (name(row["previous"]), name(row["leaf"]), name(row["next"])): (
                row["count"],
                row["ticks"],
                row["squares"],
            )
            for row in counted
            if not row["open"]
        },
        step_s,
    )
