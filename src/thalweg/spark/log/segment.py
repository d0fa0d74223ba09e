"""A segment of the log: the rows that one batch put into one stream, and what is known of them.

Rows are Arrow IPC files, not Parquet: what is small and read once needs to be written fast more
than it needs to be small on the disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.spark.log.disk import Disk, LogError, explained, read_small
from thalweg.spark.log.names import EpochPlace

MANIFEST = "manifest.json"
COMPRESSIONS = ("lz4", "zstd", "none")
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One file of rows, and what is known of them without opening it.

    `data_bytes` is their size in memory, whatever the compression; `hash_sum` the sum of the
    hashes of the rows, which does not depend on their order.
    """

    file: str
    rows: int
    file_bytes: int
    data_bytes: int
    hash_sum: int
    earliest_us: int | None = None
    latest_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The rows of one batch, by their key: stream, site, epoch and batch.

    Event times are microseconds since 1970, UTC; None where there are no rows, or where the writer
    was not told which column has the time.
    """

    stream: str
    site: str
    epoch: int
    batch: int
    folder: Path
    hash_kind: str
    columns: Mapping[str, str]
    parts: tuple[Part, ...] = field(repr=False)

    @property
    def rows(self) -> int:
        """How many rows."""
        return sum(part.rows for part in self.parts)

    @property
    def file_bytes(self) -> int:
        """What went over the link."""
        return sum(part.file_bytes for part in self.parts)

    @property
    def data_bytes(self) -> int:
        """The size of the rows in memory, whatever the compression."""
        return sum(part.data_bytes for part in self.parts)

    @property
    def earliest_us(self) -> int | None:
        """The earliest event time."""
        return min((p.earliest_us for p in self.parts if p.earliest_us is not None), default=None)

    @property
    def latest_us(self) -> int | None:
        """The latest event time."""
        return max((p.latest_us for p in self.parts if p.latest_us is not None), default=None)

    @property
    def fingerprint(self) -> str:
        """A text that is the same for the same rows in any order."""
        total = sum(part.hash_sum for part in self.parts) & 0xFFFF_FFFF_FFFF_FFFF
        return f"{self.hash_kind}:{total:016x}"

    @property
    def files(self) -> list[Path]:
        """The files of rows, in order."""
        return [self.folder / part.file for part in self.parts]

    def __str__(self) -> str:
        return f"batch {self.batch} of {self.stream} from {self.site}, epoch {self.epoch}"


def describe(
    place: EpochPlace,
    batch: int,
    parts: Sequence[Part],
    *,
    columns: Mapping[str, str],
    hash_kind: str,
) -> Segment:
    """The segment that these parts make, in the order of their names."""
    return Segment(
        stream=place.stream,
        site=place.site,
        epoch=place.epoch,
        batch=batch,
        folder=place.segment(batch),
        hash_kind=hash_kind,
        columns=dict(columns),
        parts=tuple(sorted((part for part in parts if part.rows), key=lambda part: part.file)),
    )


def describe_columns(schema: pa.Schema) -> dict[str, str]:
    """The type of each column by its name; whether it may be null is no part of that."""
    return {field.name: str(field.type).replace(" not null", "") for field in schema}


def write_manifest(disk: Disk, folder: Path, segment: Segment) -> None:
    """Put what is known of a segment beside its rows."""
    known = {
        "version": _VERSION,
        "hash": segment.hash_kind,
        "columns": dict(segment.columns),
        "parts": [asdict(part) for part in segment.parts],
    }
    with disk.create(folder / MANIFEST) as file:
        file.write(json.dumps(known).encode())
        disk.sync_file(file)


def read_segment(place: EpochPlace, batch: int) -> Segment | None:
    """The segment of a batch; None where none was published.

    Raises:
        LogError: where there is one that cannot be read.
    """
    path = place.segment(batch) / MANIFEST
    try:
        with explained("read the log", path):
            known: Any = json.loads(read_small(path))
        parts = [Part(**part) for part in known["parts"]]
        return describe(place, batch, parts, columns=known["columns"], hash_kind=known["hash"])
    except LogError as error:
        if isinstance(error.__cause__, FileNotFoundError) and not path.parent.exists():
            return None
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"cannot read the log: {path} is no manifest: {error}") from error


def write_part(
    disk: Disk,
    folder: Path,
    file: str,
    batches: Iterable[pa.RecordBatch],
    *,
    compression: str,
    time: str | None = None,
    hash_of: Callable[[pa.RecordBatch], int] = lambda _: 0,
) -> Part | None:
    """Write record batches into one file; None, and no file, where there are none.

    `hash_of` a batch is the sum of the hashes of its rows.
    """
    remaining: Iterator[pa.RecordBatch] = iter(batches)
    first = next(remaining, None)
    if first is None:
        return None
    options = pa.ipc.IpcWriteOptions(
        compression=None if compression == "none" else compression, use_threads=False
    )
    rows = data_bytes = hash_sum = 0
    times: list[int] = []
    with explained("write to the log", folder / file), disk.create(folder / file) as output:
        with pa.ipc.new_file(output, first.schema, options=options) as writer:
            for batch in chain([first], remaining):
                writer.write_batch(batch)
                rows += batch.num_rows
                data_bytes += batch.nbytes
                hash_sum += hash_of(batch)
                times += [] if time is None else _range_us(batch.column(time))
        disk.sync_file(output)
        file_bytes = output.tell()
    return Part(
        file=file,
        rows=rows,
        file_bytes=file_bytes,
        data_bytes=data_bytes,
        hash_sum=hash_sum & 0xFFFF_FFFF_FFFF_FFFF,
        earliest_us=min(times, default=None),
        latest_us=max(times, default=None),
    )


def _range_us(times: pa.Array) -> list[int]:
    """The earliest and the latest of these times; nothing where all are null."""
    span = pc.min_max(times)
    ends = (span["min"], span["max"])
    return [int(_to_us(end)) for end in ends if end.is_valid]


def _to_us(value: pa.Scalar) -> int:
    """A time in microseconds; of numbers, the number itself."""
    if pa.types.is_temporal(value.type):
        zone = value.type.tz if pa.types.is_timestamp(value.type) else None
        value = pc.cast(value, pa.timestamp("us", zone), safe=False)
        return int(value.value)
    return int(value.as_py())


def read_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """The record batches of a file of rows.

    Raises:
        LogError: where it cannot be read.
    """
    with explained("read the log", path):
        try:
            # Mapped: what is not compressed goes to the reader without another copy.
            with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
                for number in range(file.num_record_batches):
                    yield file.get_batch(number)
        except pa.ArrowInvalid as error:
            raise LogError(f"cannot read the log: {path} has no rows in it: {error}") from error
