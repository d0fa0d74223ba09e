from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.site_session import MANY_PLANS
from thalweg.model import TimeWindow
from thalweg.spark.monitor.counting import Counting
from thalweg.spark.monitor.observation import (
    broken_counts,
    inbox_counts,
    output_counts,
    watch,
    watch_broken,
    watch_inbox,
)
from thalweg.spark.pipeline import Pipeline
from thalweg.spark.pipeline.dataflow import Terms
from thalweg.spark.pipeline.row_keeping import keeps_rows
from thalweg.spark.query.publisher import put_together

pytest.importorskip("pyspark")
from pyspark.sql import functions as sql

pytestmark = pytest.mark.jvm

SCHEMA = "n long, zone int, at timestamp, fare long"
COLUMNS = pa.schema(
    [
        ("n", pa.int64()),
        ("zone", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("fare", pa.int64()),
    ]
)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

taxi = Pipeline("taxi")
_rides = taxi.source("rides", schema=SCHEMA, key="zone", time="at")


@taxi.operator(_rides, kind="row-wise", must="zone IS NOT NULL")
def clean(rides: Any) -> Any:
    return rides.where("fare > 10")


@taxi.operator(clean, kind="row-wise", must="fare < 95")
def with_tip(clean: Any) -> Any:
    return clean.withColumn("tip", sql.col("fare") / 10)


@taxi.operator(with_tip, kind="row-wise")
def dear(with_tip: Any) -> Any:
    return with_tip.where("fare >= 50")


@taxi.operator(clean, kind="partitioned", by="zone", window=TimeWindow("10 s", "5 s"))
def fares(clean: Any) -> Any:
    return clean.groupBy("window", "zone").agg(sql.sum("fare").alias("fare"))


@taxi.operator(clean, kind="partitioned", by="zone", window=TimeWindow("10 s", "5 s"))
def rides_by_zone(clean: Any) -> Any:
    return clean.groupBy("window", "zone").agg(sql.count("n").alias("rides"))


@taxi.operator(fares, rides_by_zone, kind="partitioned", by="zone")
def mean_fare(fares: Any, rides_by_zone: Any) -> Any:
    joined = fares.join(rides_by_zone, ["window", "zone"])
    return joined.select("window", "zone", (sql.col("fare") / sql.col("rides")).alias("fare"))


taxi.sink("list", dear)
taxi.sink("board", mean_fare)


@pytest.fixture(scope="module")
def session(shared_session: Callable[..., Any]) -> Any:
    return shared_session(MANY_PLANS)


def make_rows(batch: int, count: int) -> list[dict[str, Any]]:
    """Rides of half a minute; a few have no zone."""
    return [
        {
            "n": 1000 * batch + i,
            "zone": None if i % 17 == 0 else i % 3,
            "at": NOON + timedelta(seconds=30 * batch + 0.1 * i),
            "fare": (7 * i) % 100,
        }
        for i in range(count)
    ]


def put_rows(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    draft = folder.with_name(f"{folder.name}-{name}")
    pq.write_table(pa.Table.from_pylist(rows, schema=COLUMNS), draft)
    draft.rename(folder / f"{name}.parquet")


def is_clean(row: dict[str, Any]) -> bool:
    return row["zone"] is not None and row["fare"] > 10


def windows_of(rows: list[dict[str, Any]]) -> set[tuple[datetime, int]]:
    """Begin and zone of the windows that these rows are in."""
    found = set()
    for row in rows:
        for start in range(-10, 600, 5):
            begin = NOON + timedelta(seconds=start)
            if begin <= row["at"] < begin + timedelta(seconds=10):
                found.add((begin, row["zone"]))
    return found


def test_every_operator_is_counted_once_with_branches_state_an_inbox_and_a_join(
    session: Any, tmp_path: Path
) -> None:
    born, sent = tmp_path / "born", tmp_path / "sent"
    born.mkdir()
    sent.mkdir()
    edge = ("clean", "with-tip")
    frames = {"rides": session.readStream.schema(SCHEMA).parquet(str(born))}
    inbox = {edge: watch_inbox(*edge, session.readStream.schema(SCHEMA).parquet(str(sent)))}
    steps = [step for step in taxi.steps if step.role != "source"]
    counting = Counting(
        senders={step.name: [sender.name for sender in step.inputs] for step in steps},
        sources={"rides": "sources/rides"},
        published=("list", "board"),
        keepers=taxi.row_keepers(session),
    )
    assert counting.observed == {"clean", "dear", "fares", "rides-by-zone", "mean-fare"}

    def watch_some(operator: str, frame: Any) -> Any:
        return watch(operator, frame) if operator in counting.observed else frame

    terms = Terms(watch=watch_some, watch_broken=watch_broken)
    built = taxi.run(frames, inbox=inbox, terms=terms)
    outlets = {name: built[name] for name in ("list", "board", "dead-letters")}
    published: Counter[str] = Counter()

    def publish(batch: Any, number: int) -> None:
        published.update(batch.toArrow().column("/").to_pylist())

    batches = [make_rows(0, 100), make_rows(1, 150), make_rows(2, 50)]
    query = (
        put_together(outlets)
        .writeStream.foreachBatch(publish)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        arrived = []
        for number, rows in enumerate(batches):
            # Rows of another site, cleaned there, come with the second batch only.
            others = [row for row in make_rows(3, 40) if is_clean(row)] if number == 1 else []
            arrived += others
            if others:
                put_rows(sent, str(number), others)
            put_rows(born, str(number), rows)
            query.processAllAvailable()
        progress = [json.loads(each.json) for each in query.recentProgress]
    finally:
        query.stop()
    out: Counter[str] = Counter()
    read: Counter[str] = Counter()
    for each in progress:
        # What a query is given, and what it publishes, is known without Spark.
        counts = counting.count(each, {}, {})
        out.update(counts.rows)
        read.update(counts.rows_in)
    rows = [row for batch in batches for row in batch]
    cleaned = [row for row in rows if is_clean(row)]
    # The last row's time is the watermark: windows that end later are still open.
    newest = max(row["at"] for row in rows if is_clean(row))
    closed = [w for w in windows_of(cleaned) if w[0] + timedelta(seconds=10) <= newest]
    tipped = [row for row in [*cleaned, *arrived] if row["fare"] < 95]
    all_dear = sum(row["fare"] >= 50 for row in tipped)
    assert out["clean"] == len(cleaned)
    assert read["with-tip"] == len(cleaned) + len(arrived)
    assert out["with-tip"] == read["dear"] == len(tipped) < read["with-tip"]
    assert out["dear"] == read["list"] == published["list"] == all_dear
    assert read["fares"] == read["rides-by-zone"] == len(cleaned)
    assert out["fares"] == out["rides-by-zone"] == len(closed)
    assert read["mean-fare"] == 2 * len(closed) > 0
    assert out["mean-fare"] == read["board"] == published["board"]
    assert sum(sum(inbox_counts(each).values()) for each in progress) == len(arrived) > 0
    # Spark's own count has every row several times: that is why it is not used.
    assert sum(each["numInputRows"] for each in progress) > len(rows) + len(arrived)


def test_what_others_observe_is_left_alone() -> None:
    progress = {
        "observedMetrics": {
            "mine+yours": {"rows": 3},
            "thalweg/rows/a": {"rows": 4},
            "thalweg/inbox/a+b": {"rows": 1},
            "thalweg/broken/a+b": {"rows": 2},
            "thalweg/broken/none": {"rows": 9},
        }
    }
    assert output_counts(progress) == {"a": 4}
    assert inbox_counts(progress) == {("a", "b"): 1}
    assert broken_counts(progress) == {("a", "b"): 2}


def test_without_observations_there_are_no_counts() -> None:
    assert output_counts({}) == broken_counts({"observedMetrics": None}) == {}


@pytest.mark.parametrize(
    ("make", "kept"),
    [
        (lambda rows: rows.select("n", (sql.col("fare") * 2).alias("twice")), True),
        (lambda rows: rows.withColumn("cents", sql.col("fare") * 100).drop("n"), True),
        (lambda rows: rows.alias("r").select("r.n"), True),
        (lambda rows: rows, True),
        (lambda rows: rows.where("fare > 3"), False),
        (lambda rows: rows.select(sql.explode(sql.array("n", "fare")).alias("either")), False),
        (lambda rows: rows.union(rows), False),
        (lambda rows: rows.join(rows.select("zone"), "zone"), False),
        (lambda rows: rows.distinct(), False),
        (lambda rows: rows.limit(3), False),
        (lambda rows: rows.groupBy("zone").count(), False),
    ],
)
def test_operators_that_keep_their_rows_are_known_by_their_plan(
    session: Any, make: Any, kept: bool
) -> None:
    rows = session.createDataFrame([], SCHEMA)
    assert keeps_rows(make(rows)) == kept
    assert keeps_rows(make(rows.where("n > 1").where("zone > 2")), 2) == kept
    assert not keeps_rows(make(rows.where("n > 1")))
