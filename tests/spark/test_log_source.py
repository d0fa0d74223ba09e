from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from thalweg.errors import InvalidInput
from thalweg.spark.log.reader import Log, LogWriter, Offset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.jvm

RIDES, CLEAN = "sources/rides", "edges/clean+rank"
SCHEMA = "number long, zone int, fare double"

OnBatch = Callable[["DataFrame", int], None]


@pytest.fixture(scope="module")
def spark(shared_session: Callable[..., SparkSession]) -> SparkSession:
    return shared_session({"spark.sql.session.timeZone": "Europe/Paris"})


def rides(*numbers: int) -> pa.Table:
    schema = pa.schema([("number", pa.int64()), ("zone", pa.int32()), ("fare", pa.float64())])
    rows = [{"number": n, "zone": n % 7, "fare": n / 4} for n in numbers]
    return pa.Table.from_pylist(rows, schema)


def publish_rides(
    root: Path, batch: int, *numbers: int, site: str = "fog-1", epoch: int = 0
) -> None:
    LogWriter(root, RIDES, site, epoch, durable=False).publish(batch, rides(*numbers))


def read(spark: SparkSession, root: Path, stream: str = RIDES, **options: Any) -> DataFrame:
    from thalweg.spark.log.source import read_log

    return read_log(spark, root, stream, **{"schema": SCHEMA, **options})


def start(frame: DataFrame, checkpoint: Path, on_batch: OnBatch, **trigger: Any) -> Any:
    writer = frame.writeStream.foreachBatch(on_batch).option("checkpointLocation", str(checkpoint))
    return writer.trigger(**(trigger or {"availableNow": True})).start()


def run(frame: DataFrame, checkpoint: Path, on_batch: OnBatch) -> None:
    query = start(frame, checkpoint, on_batch)
    query.awaitTermination()


class Collector:
    """Keeps what a query gives, by batch: a batch that is repeated counts once."""

    def __init__(self) -> None:
        self.batches: dict[int, list[int]] = {}

    def __call__(self, frame: DataFrame, batch: int) -> None:
        self.batches[batch] = sorted(row.number for row in frame.collect())

    @property
    def numbers(self) -> list[int]:
        return [number for batch in sorted(self.batches) for number in self.batches[batch]]


def numbers_in(root: Path, stream: str) -> list[int]:
    table = Log(root).read(stream)
    return sorted(table["number"].to_pylist()) if table.num_columns else []


# Reading


def test_a_table_has_the_rows_of_all_sites_and_epochs_or_of_one_site(
    spark: SparkSession, tmp_path: Path
) -> None:
    publish_rides(tmp_path, 0, 1, 2)
    publish_rides(tmp_path, 0, 3, epoch=1)
    publish_rides(tmp_path, 5, 4, 5, site="fog-2")

    def table(**options: Any) -> list[tuple[Any, ...]]:
        frame = read(spark, tmp_path, streaming=False, **options)
        return sorted(map(tuple, frame.collect()))

    assert table() == [(n, n % 7, n / 4) for n in range(1, 6)]
    assert [row[0] for row in table(site="fog-1")] == [1, 2, 3]
    assert [row[0] for row in table(start={"fog-1": {"0": 0}})] == [3, 4, 5]
    # Without a schema, what is in the log tells it; a part of the columns is a schema, too.
    assert read(spark, tmp_path, streaming=False, schema=None).dtypes == [
        ("number", "bigint"),
        ("zone", "int"),
        ("fare", "double"),
    ]
    assert table(schema="fare double, number long", site="fog-2") == [(1.0, 4), (1.25, 5)]
    assert table(site="fog-9") == []


def test_a_stream_comes_in_batches_of_limited_size_and_each_row_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, seen = tmp_path / "log", Collector()
    for batch in range(6):
        publish_rides(log, batch, *range(batch * 10, batch * 10 + 10))
    frame = read(spark, log, rows_per_batch=25)
    run(frame, tmp_path / "checkpoint", seen)
    assert [len(numbers) for numbers in seen.batches.values()] == [20, 20, 20]
    assert seen.numbers == list(range(60))
    # The same query again has nothing to do; then only what is new.
    run(frame, tmp_path / "checkpoint", seen)
    assert len(seen.batches) == 3
    publish_rides(log, 6, 60)
    publish_rides(log, 0, 61, epoch=1)
    run(frame, tmp_path / "checkpoint", seen)
    assert seen.numbers == list(range(62))


def test_a_new_query_starts_after_a_given_offset(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for batch in range(4):
        publish_rides(log, batch, batch)
        publish_rides(log, batch, batch + 100, site="fog-2")
    offset: Offset = {"fog-1": {"0": 1}, "fog-2": {"0": 2}}
    seen = Collector()
    run(read(spark, log, start=offset), tmp_path / "1", seen)
    assert seen.numbers == [2, 3, 103]
    alone = Collector()
    run(read(spark, log, start=offset, site="fog-1"), tmp_path / "2", alone)
    assert alone.numbers == [2, 3]


def test_offsets_in_the_checkpoint_are_those_of_the_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    publish_rides(log, 3, 1, site="fog-2")
    publish_rides(log, 0, 2, site="fog-1", epoch=10)
    publish_rides(log, 0, 3, site="fog-1", epoch=9)
    run(read(spark, log), tmp_path / "checkpoint", Collector())
    lines = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()
    assert json.loads(lines[-1]) == Log(log).end(RIDES)
    assert lines[-1].replace(" ", "") == '{"fog-1":{"9":0,"10":0},"fog-2":{"0":3}}'


def test_what_is_published_while_a_query_runs_is_read_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, seen = tmp_path / "log", Collector()
    total = 120
    writers = {
        (site, epoch): LogWriter(log, RIDES, site, epoch, durable=False)
        for site in ("fog-1", "fog-2")
        for epoch in (0, 1)
    }

    def write() -> None:
        for number in range(total):
            site, epoch = f"fog-{number % 2 + 1}", int(number >= total // 2)
            writers[site, epoch].publish(number, rides(number))

    query = start(
        read(spark, log, rows_per_batch=20), tmp_path / "c", seen, processingTime="0 seconds"
    )
    thread = threading.Thread(target=write)
    try:
        thread.start()
        deadline = time.monotonic() + 120
        while len(seen.numbers) < total and query.isActive and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        thread.join()
        query.processAllAvailable()
        query.stop()
    assert Counter(seen.numbers) == Counter(range(total))
    assert len(seen.batches) > 1


def test_rows_beyond_a_fence_are_not_read_whenever_they_appear(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, seen = tmp_path / "log", Collector()
    for batch in range(3):
        publish_rides(log, batch, batch)
    Log(log).fence("fog-1", 0, 1, kind="sources")
    frame = read(spark, log)
    run(frame, tmp_path / "checkpoint", seen)
    # A segment that somebody gets into the epoch past its gate.
    publish_rides(tmp_path / "other", 3, 77)
    (tmp_path / "other" / RIDES / "fog-1/0/0/3").rename(log / RIDES / "fog-1/0/0/3")
    publish_rides(log, 0, 10, epoch=1)
    run(frame, tmp_path / "checkpoint", seen)
    assert seen.numbers == [0, 1, 10]
    assert sorted(r.number for r in read(spark, log, streaming=False).collect()) == [0, 1, 10]


# Publishing


def copy_rides(spark: SparkSession, log: Path, checkpoint: Path, mishap: OnBatch) -> None:
    """A site: reads rides in small batches, keeps the even ones, and publishes them."""
    from thalweg.spark.log.sink import publish_batch

    writer = LogWriter(log, CLEAN, "fog-1", 3, durable=False)

    def on_batch(frame: DataFrame, batch: int) -> None:
        publish_batch(frame, batch, writer)
        mishap(frame, batch)

    run(read(spark, log, rows_per_batch=10).where("number % 2 = 0"), checkpoint, on_batch)


def test_each_row_is_published_once_though_the_query_dies_between_publishing_and_committing(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    log = tmp_path / "log"
    for batch in range(8):
        publish_rides(log, batch, *range(batch * 10, batch * 10 + 10))
    deaths: list[int] = []

    def die_once(_: DataFrame, batch: int) -> None:
        if batch in (0, 3, 7) and batch not in deaths:
            deaths.append(batch)
            raise RuntimeError("killed after publishing")

    for _ in range(3):
        with pytest.raises(StreamingQueryException, match="killed after publishing"):
            copy_rides(spark, log, tmp_path / "checkpoint", die_once)
    copy_rides(spark, log, tmp_path / "checkpoint", die_once)
    assert deaths == [0, 3, 7]
    assert numbers_in(log, CLEAN) == list(range(0, 80, 2))
    assert [segment.batch for segment in Log(log).segments(CLEAN)] == list(range(8))


def test_a_query_whose_epoch_is_fenced_ends_and_publishes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    log = tmp_path / "log"
    for batch in range(4):
        publish_rides(log, batch, *range(batch * 10, batch * 10 + 10))

    def fence(_: DataFrame, batch: int) -> None:
        if batch == 1:
            Log(log).fence("fog-1", 3)

    with pytest.raises(StreamingQueryException, match="epoch 3 has been fenced"):
        copy_rides(spark, log, tmp_path / "checkpoint", fence)
    assert numbers_in(log, CLEAN) == list(range(0, 20, 2))


def test_a_frame_is_published_with_its_counters_whatever_its_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    from thalweg.spark.log.sink import publish_batch

    frame = spark.range(1000, numPartitions=3).selectExpr(
        "id AS number", "timestamp_millis(1700000000000 + id) AS when", "id / 3 AS `odd.name`"
    )
    writer = LogWriter(tmp_path, CLEAN, "fog-1", 0, time="when")
    segment = publish_batch(frame, 0, writer)
    assert (segment.rows, len(segment.files)) == (1000, 3)
    assert segment.earliest_us == 1_700_000_000_000_000
    assert segment.latest_us == 1_700_000_000_999_000
    assert numbers_in(tmp_path, CLEAN) == list(range(1000))
    # Done again, with other partitions and in another order: the same.
    again = frame.repartition(2).orderBy("number", ascending=False)
    assert publish_batch(again, 0, writer) == segment
    assert numbers_in(tmp_path, CLEAN) == list(range(1000))
    assert publish_batch(frame.where("false"), 1, writer).files == []


def test_a_frame_that_gives_other_rows_when_done_again_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.sql import functions as sql

    from thalweg.spark.log.reader import ReplayDiffers
    from thalweg.spark.log.sink import publish_batch

    writer = LogWriter(tmp_path, CLEAN, "fog-1", 0, durable=False)
    frame = spark.range(10).selectExpr("id AS number", "map(id, array(id / 7)) AS shares")
    publish_batch(frame, 0, writer)
    spark_change = {
        "number": sql.expr("number + if(number = 4, 1, 0)"),
        "shares": sql.expr("if(number = 4, map(number, array(0.5D)), shares)"),
    }
    with pytest.raises(ReplayDiffers, match="other rows: 10, now 9"):
        publish_batch(frame.where("number > 0"), 0, writer)
    for change in ("number", "shares"):
        other = frame.withColumn(change, spark_change[change])
        with pytest.raises(ReplayDiffers, match="other fingerprint"):
            publish_batch(other, 0, writer)
    publish_batch(frame.where("true"), 0, writer)


def test_columns_of_all_types_come_back_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.testing import assertDataFrameEqual

    from thalweg.spark.log.sink import publish_batch

    frame = spark.sql(
        """
        SELECT 1 AS number, true AS known, 2Y AS tiny, 1.5F AS single, -0.0D AS zero,
          12.34BD AS price, 'é' AS text, X'00FF' AS raw, DATE'2026-03-29' AS day,
          TIMESTAMP'2026-03-29 02:30:00 Europe/Paris' AS moment,
          TIMESTAMP_NTZ'2026-03-29 02:30:00' AS wall, INTERVAL '1 02:03:04' DAY TO SECOND AS pause,
          array(1, NULL) AS list, map('a', 1.5D) AS map, struct(1 AS a, array('x') AS b) AS nested
        UNION ALL
        SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
          NULL
        """
    )
    publish_batch(frame, 0, LogWriter(tmp_path, CLEAN, "fog-1", 0))
    for schema in (frame.schema, None):
        back = read(spark, tmp_path, CLEAN, schema=schema, streaming=False)
        assert [kind for _, kind in back.dtypes] == [kind for _, kind in frame.dtypes]
        assertDataFrameEqual(back, frame)


def test_state_survives_a_replayed_batch(spark: SparkSession, tmp_path: Path) -> None:
    """A frame with state is computed in full, also where its batch was published before."""
    from pyspark.errors import StreamingQueryException

    from thalweg.spark.log.sink import publish_batch

    log = tmp_path / "log"
    for batch in range(4):
        publish_rides(log, batch, *range(batch * 10, batch * 10 + 10))
    writer = LogWriter(log, CLEAN, "fog-1", 0, durable=False)
    deaths: list[int] = []

    def on_batch(frame: DataFrame, batch: int) -> None:
        publish_batch(frame, batch, writer)
        if batch == 1 and not deaths:
            deaths.append(batch)
            raise RuntimeError("killed after publishing")

    counts = read(spark, log, rows_per_batch=10).groupBy("zone").count()

    def go_on() -> None:
        query = counts.writeStream.foreachBatch(on_batch).outputMode("update")
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match="killed after publishing"):
        go_on()
    go_on()
    last = {row["zone"]: row["count"] for row in Log(log).read(CLEAN).to_pylist()}
    assert last == Counter(number % 7 for number in range(40))


# Refusals


def test_all_defects_of_a_call_are_told_at_once(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(spark, "", "x", site="..", rows_per_batch=0)  # type: ignore[arg-type]
    paths = [defect.path for defect in caught.value.defects]
    assert paths == ["path", "stream", "site", "rowsPerBatch"]
    with pytest.raises(InvalidInput, match="start: got"):
        read(spark, tmp_path, start={"fog-1": 3})


def test_rows_of_another_schema_are_named(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    publish_rides(tmp_path, 0, 1)
    with pytest.raises(PySparkException, match=r"rows.arrow: its columns are not those"):
        read(spark, tmp_path, schema="colour string", streaming=False).collect()
    with pytest.raises(PySparkException, match="no row of sources/other is in the log"):
        read(spark, tmp_path, "sources/other", schema=None, streaming=False)


def test_a_frame_without_the_column_of_the_event_time_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    from thalweg.spark.log.sink import publish_batch

    writer = LogWriter(tmp_path, CLEAN, "fog-1", 0, time="when")
    with pytest.raises(InvalidInput) as caught:
        publish_batch(spark.range(1), -1, writer)
    assert [defect.path for defect in caught.value.defects] == ["batch", "frame"]
