"""The log as a data source of Spark, `thalweg-log`: as a stream or as a table.

Spark's own file source over Parquet reads in the JVM, without a Python process between the file
and the rows. It is not used here, however much quicker it may be: it knows files, not sites, epochs
and batches, so that it can neither begin at a given batch nor leave out what was published after a
fence, and reads what was fenced. Rows would be lost or count twice.

Importing this module imports pyspark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.model.names import require_name
from thalweg.spark.log.names import require_count, require_stream
from thalweg.spark.log.plan import Reading, order_offset, pack_files, parse_offset
from thalweg.spark.log.reader import Log, LogError, Offset
from thalweg.spark.log.segment import read_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT = "thalweg-log"
# So many bytes of files are read by one task; a task costs some milliseconds however few they are.
_TASK_BYTES = 16 * 2**20


def read_log(
    session: SparkSession,
    root: Path | str,
    stream: str,
    *,
    schema: StructType | str | None = None,
    site: str | None = None,
    start: Offset | None = None,
    rows_per_batch: int | None = None,
    streaming: bool = True,
    name: str | None = None,
) -> DataFrame:
    """A stream of the log as a streaming DataFrame, or what is in it now as a table.

    All sites and epochs of it, or one site only; after the offset `start` where one is given, which
    matters to a query without a checkpoint, and not to one that goes on from its own. A batch has
    at most `rows_per_batch` rows, unless a single segment has more. `name` is what Spark calls the
    source in the checkpoint (with `spark.sql.streaming.queryEvolution.enableSourceEvolution`).

    Without a schema, it is that of the first rows in the log.

    Raises:
        InvalidInput: with all that is wrong with the arguments.
    """
    options = {"path": str(root), "stream": stream}
    if site is not None:
        options["site"] = site
    if start is not None:
        options["start"] = json.dumps(parse_offset(start))
    if rows_per_batch is not None:
        options["rowsPerBatch"] = str(rows_per_batch)
    ReadOptions.parse(options)
    session.dataSource.register(LogSource)
    reader: Any = session.readStream if streaming else session.read
    reader = reader.format(FORMAT).options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    if name is not None and streaming:
        reader = reader.name(name)
    frame: DataFrame = reader.load()
    return frame


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What is read, and how much of it at once."""

    root: Path
    stream: str
    site: str | None
    start: dict[str, dict[str, int]]
    rows_per_batch: int | None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """The options as Spark hands them over: `path`, `stream`, `site`, `start`, `rowsPerBatch`.

        Raises:
            InvalidInput: with all that is wrong with them.
        """
        defects = Defects()
        path, stream, site = (options.get(name) for name in ("path", "stream", "site"))
        defects.require(bool(path), "path", path, "the folder of a log")
        require_stream(defects, "stream", stream)
        if site is not None:
            require_name(defects, "site", site)
        start = defects.attempt("", lambda: parse_offset(options.get("start", "{}")))
        limit = options.get("rowsPerBatch")
        rows = int(limit) if limit is not None and limit.isdecimal() else limit
        if rows is not None:
            require_count(defects, "rowsPerBatch", rows, 1)
        defects.raise_if_any()
        return cls(
            root=Path(str(path)),
            stream=str(stream),
            site=site,
            start=start or {},
            rows_per_batch=None if rows is None else int(rows),
        )

    def reading(self) -> Reading:
        """What these options mean in the log."""
        return Reading(log=Log(self.root), stream=self.stream, site=self.site)


class LogSource(DataSource):
    """What Spark makes readers of for the format `thalweg-log`."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return FORMAT

    def schema(self) -> StructType:
        """The schema of the first rows in the log."""
        from pyspark.sql.pandas.types import from_arrow_schema

        options = ReadOptions.parse(self.options)
        for segment in Log(options.root).segments(options.stream, options.site):
            for file in segment.files:
                for batch in read_batches(file):
                    return from_arrow_schema(batch.schema)
        rule = f"a schema, since no row of {options.stream} is in the log that could tell it"
        raise InvalidInput([Defect(path="schema", value=None, rule=rule)])

    def reader(self, schema: StructType) -> LogTableReader:
        """For a table."""
        return LogTableReader(ReadOptions.parse(self.options), schema)

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802
        """For a stream."""
        return LogStreamReader(ReadOptions.parse(self.options), schema)


class FilesPartition(InputPartition):
    """The files that one task reads."""

    def __init__(self, files: list[Path]) -> None:
        super().__init__([str(file) for file in files])


class LogTableReader(DataSourceReader):
    """Reads everything that counts after the start."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """The files, in lots."""
        reading = self._options.reading()
        end = reading.next_offset(self._options.start)
        return list(_to_partitions(reading, self._options.start, end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a lot."""
        # Spark asks for a partition without files where there are none at all.
        return _read_files(partition.value or [], self._schema)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads batch after batch; an offset is the last batch read, by site and epoch."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._reading: Reading | None = None
        self._upto: Offset | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint starts."""
        return self._options.start

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much a batch may have."""
        rows = self._options.rows_per_batch
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """From now on, read what is there now, and nothing that comes later."""
        self._upto = self._look().log.end(self._options.stream, self._options.site)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next batch ends; the start itself where there is nothing new."""
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return dict(self._look().next_offset(start, rows=rows, upto=self._upto))

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where the stream ends now, for those who watch the query."""
        return order_offset(self._look().log.end(self._options.stream, self._options.site))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The files of a batch, in lots."""
        return list(_to_partitions(self._look(), start, end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a lot."""
        return _read_files(partition.value, self._schema)

    def _look(self) -> Reading:
        """What is read; made when first asked, since tasks get a copy of this reader."""
        if self._reading is None:
            self._reading = self._options.reading()
        return self._reading


def _to_partitions(reading: Reading, start: Offset, end: Offset) -> Iterator[InputPartition]:
    for lot in pack_files(reading.between(start, end), _TASK_BYTES):
        yield FilesPartition(lot)


def _read_files(files: list[str], schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of these files with exactly the columns that Spark wants."""
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = to_arrow_schema(schema, timezone="UTC")
    for file in files:
        for batch in read_batches(Path(file)):
            try:
                yield batch if batch.schema.equals(wanted) else _fit(batch, wanted)
            except (pa.ArrowException, KeyError, ValueError) as error:
                raise LogError(
                    f"cannot read {file}: its columns are not those of the schema: {error}"
                ) from error


def _fit(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """The wanted columns of a batch, each as the wanted type; most stay what they are."""
    columns = []
    for field in wanted:
        column = batch.column(field.name)
        if column.type != field.type:
            column = column.cast(field.type)
        if column.null_count and not field.nullable:
            raise ValueError(f"{field.name} must not be null, and is")
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=wanted)
