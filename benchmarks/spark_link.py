"""How fast do rows go over a directory link, against Spark's own files?

Writing is a streaming query from Parquet files into the log or into Spark's file sink; reading is a
streaming query from there to nowhere. Both have the same rows in the same batches, one after the
other in the same session. A megabyte is a million bytes of rows in memory, however few they are on
the disk.

Shipping is what the sender of a site does that has a log of its own: every segment, from one log to
another on the same disk, without Spark.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import median_seconds
from benchmarks.runner import REGISTER, Benchmark, Result, Row, Settings
from thalweg.spark.link import LinkSpec
from thalweg.spark.link.directory import DirectoryLink
from thalweg.spark.link.sender import LinkSender
from thalweg.spark.log.disk import Disk
from thalweg.spark.log.reader import Log, LogWriter
from thalweg.spark.log.segment import read_batches, write_part
from thalweg.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TARGET = 100.0
FILES_PER_BATCH = 2
SHIPPED_SEGMENTS = 10
STREAM = "edges/clean+rank"
KINDS = {"JSON": "to_json(struct(*)) AS value", "typed": "*"}
RIDES = (
    "id AS ride",
    "CAST(id % 260 AS int) AS zone",
    "timestamp_millis(1700000000000 + id * 10) AS pickup_time",
    "timestamp_millis(1700000600000 + id * 10) AS dropoff_time",
    "round(2 + 50 * rand(1), 2) AS fare",
    "round(10 * rand(2), 2) AS distance",
    "CAST(id % 6 AS int) AS passengers",
    "concat('vendor-', id % 3) AS vendor",
    "md5(CAST(id AS string)) AS medallion",
)
CONFIG = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A file of the source stays one task, and one file of the sink.
    "spark.sql.files.maxPartitionBytes": "1g",
}
LOG_TASKS = "into the log, by the tasks"
LOG_DRIVER = "into the log, by the driver"
LOG_DURABLE = "into the log, by the tasks, synced"
FILE_SINK = "into Spark's file sink"
NOWHERE = "into nothing"
FROM_LOG, FROM_FILES = "from the log", "from Spark's file source"

Sink = Callable[["DataFrame", int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured; the first batches of a query do not count."""

    batches: int
    warm_up: int
    rows: int
    rounds: int


FULL = Size(batches=4, warm_up=1, rows=400_000, rounds=3)
QUICK = Size(batches=3, warm_up=1, rows=100_000, rounds=1)


def run(settings: Settings) -> Result:
    """Write and read with everything, in turns."""
    size = QUICK if settings.quick else FULL
    rows: list[Row] = []
    with _work_folder() as folder, open_session("local[*]", "spark-link", config=CONFIG) as spark:
        for kind, columns in KINDS.items():
            settings.tell(f"preparing {kind} rows")
            course = Course(spark=spark, folder=folder / kind, size=size)
            course.prepare(columns)
            rates: dict[str, Rates] = {}
            for turn in range(size.rounds):
                settings.tell(f"{kind} rows, round {turn + 1} of {size.rounds}")
                for way, found in course.measure(turn).items():
                    rates[way] = rates.get(way, Rates()) + found
            rows += _tell_rates(kind, rates)
            rows += _tell_link_alone(kind, rates)
            rows += _tell_shipping(kind, course.table(), folder / f"{kind}-shipped")
            rows += _tell_formats(kind, course.table(), folder)
        rows += _tell_small_batches(folder)
    notes = [
        f"batches of {size.rows:,} rows; the median over {size.batches - size.warm_up} batches of "
        f"each of {size.rounds} queries, without the first {size.warm_up} of a query",
        "JSON rows have one column of text, typed rows nine columns; writing includes reading the "
        f"rows from Parquet, which is all there is to '{NOWHERE}'; 'alone' is without that",
        "a CPU second is one of all processes of Spark; first batches and the start count there",
        "only what is synced survives a power cut; Spark's file sink is not",
    ]
    return Result(rows=rows, notes=notes)


@dataclass(frozen=True, slots=True)
class Rates:
    """Megabytes per second of each batch, and per CPU second of each query."""

    wall: tuple[float, ...] = ()
    cpu: tuple[float, ...] = ()

    def __add__(self, other: Rates) -> Rates:
        return Rates(self.wall + other.wall, self.cpu + other.cpu)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One kind of rows, and every way to write and to read them."""

    spark: SparkSession
    folder: Path
    size: Size

    @property
    def _source(self) -> Path:
        return self.folder / "source"

    def prepare(self, columns: str) -> None:
        """Write the rows of each batch into a Parquet file."""
        for batch in range(self.size.batches):
            first = batch * self.size.rows
            ids = self.spark.range(first, first + self.size.rows, numPartitions=FILES_PER_BATCH)
            frame = ids.selectExpr(*RIDES).selectExpr(columns)
            frame.write.mode("append").parquet(str(self._source))

    def table(self) -> pa.Table:
        """The rows of one file."""
        return pq.read_table(min(self._source.glob("*.parquet")))

    def measure(self, turn: int) -> dict[str, Rates]:
        """One query for each way."""
        work = self.folder / f"round-{turn}"
        logs = {way: work / way.replace(" ", "-") for way in (LOG_TASKS, LOG_DRIVER, LOG_DURABLE)}
        files = work / "files"
        spent = {
            NOWHERE: self._write(work / "c0", form="noop"),
            LOG_TASKS: self._write(work / "c1", sink=_by_tasks(logs[LOG_TASKS])),
            FILE_SINK: self._write(work / "c2", form="parquet", into=files),
            LOG_DRIVER: self._write(work / "c3", sink=_by_driver(logs[LOG_DRIVER])),
            LOG_DURABLE: self._write(work / "c4", sink=_by_tasks(logs[LOG_DURABLE], durable=True)),
            FROM_LOG: self._read(work / "c5", self._log_stream(logs[LOG_TASKS])),
            FROM_FILES: self._read(work / "c6", self._file_stream(files)),
        }
        segments = list(Log(logs[LOG_TASKS]).segments(STREAM))
        megabytes = median(segment.data_bytes for segment in segments) / 1e6
        shutil.rmtree(work)
        whole = megabytes * self.size.batches
        return {
            way: Rates(tuple(megabytes / s for s in seconds), (whole / cpu_s,))
            for way, (seconds, cpu_s) in spent.items()
        }

    def _file_stream(self, path: Path) -> DataFrame:
        schema = self.spark.read.parquet(str(self._source)).schema
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES_PER_BATCH)
        return reader.parquet(str(path))

    def _log_stream(self, path: Path) -> DataFrame:
        from thalweg.spark.log.source import read_log

        return read_log(self.spark, path, STREAM, rows_per_batch=self.size.rows)

    def _write(
        self,
        checkpoint: Path,
        *,
        form: str = "",
        into: Path | None = None,
        sink: Sink | None = None,
    ) -> tuple[list[float], float]:
        writer = self._file_stream(self._source).writeStream
        writer = writer.foreachBatch(sink) if sink is not None else writer.format(form)
        if into is not None:
            writer = writer.option("path", str(into))
        return self._run(writer, checkpoint)

    def _read(self, checkpoint: Path, frame: DataFrame) -> tuple[list[float], float]:
        return self._run(frame.writeStream.format("noop"), checkpoint)

    def _run(self, writer: Any, checkpoint: Path) -> tuple[list[float], float]:
        """The seconds of each batch but the first, and the CPU seconds of the query."""
        before = _cpu_s()
        writer = writer.option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        cpu_s = _cpu_s() - before
        progress = [json.loads(each.json) for each in query.recentProgress]
        rows = [each["numInputRows"] for each in progress if each["numInputRows"]]
        if rows != [self.size.rows] * self.size.batches:
            raise RuntimeError(f"a query read other batches than it should: {rows}")
        seconds = [
            each["durationMs"]["triggerExecution"] / 1000
            for each in progress
            if each["numInputRows"]
        ]
        return seconds[self.size.warm_up :], cpu_s


def _cpu_s() -> float:
    """What the CPU has worked on this process, Spark and its workers."""
    total = 0.0
    this = psutil.Process()
    for process in (this, *this.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def _by_tasks(root: Path, *, durable: bool = False) -> Sink:
    from thalweg.spark.log.sink import publish_batch

    writer = LogWriter(root, STREAM, "fog-1", 0, durable=durable)
    return lambda frame, batch: publish_batch(frame, batch, writer)


def _by_driver(root: Path) -> Sink:
    writer = LogWriter(root, STREAM, "fog-1", 0, durable=False)
    return lambda frame, batch: writer.publish(batch, frame.toArrow())


def _tell_rates(kind: str, rates: dict[str, Rates]) -> Iterator[Row]:
    for way, found in rates.items():
        verb = "read" if way in (FROM_LOG, FROM_FILES) else "write"
        yield Row(
            measure=f"{verb} {way}",
            value=median(found.wall),
            unit="MB/s",
            target=_target(kind) if way == FROM_LOG else None,
            at_least=True,
            at={"rows": kind},
            note=f"{min(found.wall):.0f} to {max(found.wall):.0f}; "
            f"{median(found.cpu):.0f} MB per CPU second",
        )


def _tell_link_alone(kind: str, rates: dict[str, Rates]) -> Iterator[Row]:
    """How fast rows are written that need not be read from Parquet first."""
    for way in (LOG_TASKS, LOG_DURABLE, LOG_DRIVER, FILE_SINK):
        wall = _without(rates[way].wall, rates[NOWHERE].wall)
        cpu = _without(rates[way].cpu, rates[NOWHERE].cpu)
        yield Row(
            measure=f"write {way}, alone",
            value=wall,
            unit="MB/s",
            target=_target(kind) if way == LOG_TASKS else None,
            at_least=True,
            at={"rows": kind},
            note="" if cpu is None else f"{cpu:.0f} MB per CPU second",
        )


def _without(rates: Sequence[float], other: Sequence[float]) -> float | None:
    """The rate that is left when the time of another is taken off."""
    left = 1 / median(rates) - 1 / median(other)
    return 1 / left if left > 0 else None


def _target(kind: str) -> float | None:
    """The target is for bytes, so it is for the rows that have many."""
    return TARGET if kind == "JSON" else None


def _tell_shipping(kind: str, table: pa.Table, folder: Path) -> Iterator[Row]:
    """From the log of a site to that of the cloud."""
    writer = LogWriter(folder / "site", STREAM, "fog-1", 0, durable=False)
    segments = [writer.publish(batch, table) for batch in range(SHIPPED_SEGMENTS)]
    megabytes = sum(segment.data_bytes for segment in segments) / 1e6
    for name, durable in (("", False), (", synced", True)):
        cloud = folder / f"cloud-{durable}"
        link = DirectoryLink(LinkSpec(address=f"directory://{cloud}"), durable=durable)
        start = time.perf_counter()
        with LinkSender(link, folder / "site", "fog-1", poll_s=0.0) as sender:
            sender.flush(0, SHIPPED_SEGMENTS - 1)
            seconds = time.perf_counter() - start
        if Log(cloud).end(STREAM) != Log(folder / "site").end(STREAM):
            raise RuntimeError("not all that was sent has arrived")
        yield Row(
            measure=f"ship from log to log{name}",
            value=megabytes / seconds,
            unit="MB/s",
            target=_target(kind) if not durable else None,
            at_least=True,
            at={"rows": kind},
            note=f"{SHIPPED_SEGMENTS} segments",
        )


def _tell_formats(kind: str, table: pa.Table, folder: Path) -> list[Row]:
    """The file formats alone, without Spark."""
    batches = table.to_batches(10_000)
    megabytes = table.nbytes / 1e6
    ways: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
        f"Arrow, {compression}": (_arrow_writer(batches, compression), _count_arrow)
        for compression in ("lz4", "zstd", "none")
    }
    ways["Parquet, snappy"] = (lambda path: pq.write_table(table, path), _count_parquet)
    rows = []
    path = folder / "format"
    for name, (write, read) in ways.items():
        for verb, call in (("write", write), ("read", read)):
            seconds = median_seconds(partial(call, path), repeats=3)
            rows.append(
                Row(
                    measure=f"{verb} a file: {name}",
                    value=megabytes / seconds,
                    unit="MB/s",
                    at={"rows": kind},
                    note=f"{path.stat().st_size / table.nbytes:.0%} of the bytes",
                )
            )
    return rows


def _arrow_writer(batches: Sequence[pa.RecordBatch], compression: str) -> Callable[[Path], object]:
    def write(path: Path) -> object:
        path.unlink(missing_ok=True)
        disk = Disk(durable=False)
        return write_part(disk, path.parent, path.name, batches, compression=compression)

    return write


def _count_arrow(path: Path) -> int:
    return sum(batch.num_rows for batch in read_batches(path))


def _count_parquet(path: Path) -> int:
    return sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches(10_000))


def _tell_small_batches(folder: Path) -> Iterator[Row]:
    """What a batch costs however few its rows are."""
    table = pa.table({"ride": list(range(100))})
    for name, durable in (("", False), (", synced", True)):
        writer = LogWriter(folder / f"small-{durable}", STREAM, "fog-1", 0, durable=durable)
        seconds = []
        for batch in range(50):
            start = time.perf_counter()
            writer.publish(batch, table)
            seconds.append(time.perf_counter() - start)
        yield Row(measure=f"publish 100 rows{name}", value=median(seconds[5:]), unit="s")


@contextmanager
def _work_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="thalweg-link-") as folder:
        yield Path(folder)


REGISTER.add(
    Benchmark(
        name="spark_link",
        question="How fast do rows go over a directory link, against Spark's own files?",
        run=run,
    )
)
