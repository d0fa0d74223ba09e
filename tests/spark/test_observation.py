from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.test_examples import CONFIG
from thalweg.model import TimeWindow
from thalweg.spark.monitor.observation import (
    counts_of,
    edge_counts,
    inbox_counts,
    inputs_of,
    watch,
    watch_inbox,
)
from thalweg.spark.pipeline import Pipeline
from thalweg.spark.pipeline.dataflow import Terms
from thalweg.spark.query.publisher import put_together
from thalweg.spark.session import open_session

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


@taxi.operator(clean, kind="row-wise")
def dear(clean: Any) -> Any:
    return clean.where("fare >= 50")


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
def session() -> Iterator[Any]:
    with open_session("local[1]", config=CONFIG) as session:
        yield session


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


def test_every_edge_is_counted_once_with_branches_state_an_inbox_and_a_join(
    session: Any, tmp_path: Path
) -> None:
    born, sent = tmp_path / "born", tmp_path / "sent"
    born.mkdir()
    sent.mkdir()
    edge = ("clean", "dear")
    frames = {"rides": session.readStream.schema(SCHEMA).parquet(str(born))}
    inbox = {edge: watch_inbox(*edge, session.readStream.schema(SCHEMA).parquet(str(sent)))}
    built = taxi.run(frames, inbox=inbox, terms=Terms(watch=watch))
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
    total: Counter[tuple[str, str]] = Counter()
    out: Counter[str] = Counter()
    read: Counter[str] = Counter()
    for each in progress:
        total.update(edge_counts(each))
        out.update(counts_of(each))
        read.update(inputs_of(each))
    rows = [row for batch in batches for row in batch]
    cleaned = [row for row in rows if is_clean(row)]
    # The last row's time is the watermark: windows that end later are still open.
    newest = max(row["at"] for row in rows if is_clean(row))
    closed = [w for w in windows_of(cleaned) if w[0] + timedelta(seconds=10) <= newest]
    all_dear = sum(row["fare"] >= 50 for row in [*cleaned, *arrived])
    assert total == {
        ("rides", "clean"): len(rows),
        ("clean", "dear"): len(cleaned) + len(arrived),
        ("clean", "fares"): len(cleaned),
        ("clean", "rides-by-zone"): len(cleaned),
        ("fares", "mean-fare"): len(closed),
        ("rides-by-zone", "mean-fare"): len(closed),
        ("dear", "list"): all_dear,
        ("mean-fare", "board"): published["board"],
    }
    assert sum(sum(inbox_counts(each).values()) for each in progress) == len(arrived) > 0
    assert out["clean"] == len(cleaned)
    assert out["rides"] == read["clean"] == len(rows)
    assert read["mean-fare"] == 2 * len(closed) > 0
    assert read["list"] == published["list"] == all_dear
    # Spark's own count has every row several times: that is why it is not used.
    assert sum(each["numInputRows"] for each in progress) > len(rows) + len(arrived)


def test_what_others_observe_is_left_alone() -> None:
    progress = {
        "observedMetrics": {
            "mine+yours": {"rows": 3},
            "thalweg/edge/a+b": {"rows": 4},
            "thalweg/inbox/a+b": {"rows": 1},
            "thalweg/edge/none": {"rows": 9},
        }
    }
    assert edge_counts(progress) == {("a", "b"): 4}
    assert inbox_counts(progress) == {("a", "b"): 1}
    assert counts_of(progress) == {"a": 3}
    assert inputs_of(progress) == {"b": 4}


def test_without_observations_there_are_no_counts() -> None:
    assert counts_of({}) == edge_counts({"observedMetrics": None}) == {}
