"""Publishes batches of streaming queries in the log.

Each task hands its rows as Arrow batches to a Python process beside it, which writes one file;
then the driver publishes all of them in one step. Spark's own file sink knows neither epochs nor
fences. To collect the rows in the driver and publish them from there with `LogWriter.publish`
takes the driver's memory as well.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pyarrow as pa

from thalweg.errors import Defects
from thalweg.spark.log.disk import Disk
from thalweg.spark.log.names import require_count
from thalweg.spark.log.segment import Part, Segment, describe_columns, write_part

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from thalweg.spark.log.writer import LogWriter

HASH_KIND = "xxhash64"
_HASH = "thalweg_row_hash"
_TOLD = pa.schema([("part", pa.string()), ("columns", pa.string())])


def publish_batch(frame: DataFrame, batch: int, writer: LogWriter) -> Segment:
    """Publish the rows of a batch as `LogWriter.publish` does, written where they are computed.

    To be called from a function for `foreachBatch`. The frame is computed exactly once, also where
    the batch was published before: a query with state needs that, and so the rows can be compared.
    The tasks must see the folder of the log.

    Raises:
        InvalidInput: where the batch has no number >= 0, or the frame no column of the event time.
        ReplayDiffers: where the batch was published with other rows.
        Fenced: where the epoch has ended.
        LogError: where the disk is full or read-only, or a later batch is published already.
    """
    from pyspark.sql import functions as sql

    _check(frame, batch, writer)
    # Plain names on the way, since not every name can be handed to a Python process.
    plain = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    hashes = (_to_hashable(plain[field.name], field.dataType) for field in plain.schema.fields)
    hashed = plain.withColumn(_HASH, sql.xxhash64(*hashes))
    with writer.drafting(batch) as draft:
        write = partial(
            _write_rows,
            folder=str(draft),
            names=frame.columns,
            compression=writer.compression,
            time=writer.time,
            durable=writer.durable,
        )
        told = hashed.mapInArrow(write, "part string, columns string").collect()
        parts = [Part(**json.loads(row.part)) for row in told]
        columns = json.loads(told[0].columns) if told else {}
        return writer.commit(batch, draft, parts, columns=columns, hash_kind=HASH_KIND)


def _to_hashable(column: Column, kind: DataType) -> Column:
    """A column whose hash is the same for all replays; see `log_fingerprint` for the fractions."""
    from pyspark.sql import functions as sql

    if "map<" in kind.simpleString() or "variant" in kind.simpleString():
        return sql.to_json(sql.struct(column))
    return column.cast(_in_single_precision(kind))


def _in_single_precision(kind: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructField, StructType

    if isinstance(kind, DoubleType):
        return FloatType()
    if isinstance(kind, ArrayType):
        return ArrayType(_in_single_precision(kind.elementType), kind.containsNull)
    if isinstance(kind, StructType):
        return StructType(
            [StructField(f.name, _in_single_precision(f.dataType), f.nullable) for f in kind.fields]
        )
    return kind


def _write_rows(
    batches: Iterator[pa.RecordBatch],
    *,
    folder: str,
    names: list[str],
    compression: str,
    time: str | None,
    durable: bool,
) -> Iterator[pa.RecordBatch]:
    """Write the rows of one task into a file of its own, and tell of it; runs beside the task."""
    sums: list[int] = []
    columns: dict[str, str] = {}

    def rows_alone() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                hashes = batch.column(_HASH).to_numpy().view(np.uint64)
                sums.append(int(hashes.sum(dtype=np.uint64)))
                rows = batch.drop_columns([_HASH]).rename_columns(names)
                columns.update(describe_columns(rows.schema))
                yield rows

    part = write_part(
        Disk(durable=durable),
        Path(folder),
        # Of a task that is tried again, each attempt has a file; the one that succeeds counts.
        f"rows-{uuid4().hex}.arrow",
        rows_alone(),
        compression=compression,
        time=time,
    )
    if part:
        part = Part(**asdict(part) | {"hash_sum": sum(sums) & 0xFFFF_FFFF_FFFF_FFFF})
        told = {"part": [json.dumps(asdict(part))], "columns": [json.dumps(columns)]}
        yield pa.RecordBatch.from_pydict(told, schema=_TOLD)


def _check(frame: DataFrame, batch: int, writer: LogWriter) -> None:
    defects = Defects()
    require_count(defects, "batch", batch)
    if writer.time is not None and writer.time not in frame.columns:
        rule = "a frame with the column of the event time"
        defects.add("frame", frame.columns, rule, f"it has no {writer.time}")
    twice = [name for name, count in Counter(frame.columns).items() if count > 1]
    defects.require(not twice, "frame", twice, "columns of different names")
    defects.raise_if_any()
