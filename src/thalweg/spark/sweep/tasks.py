"""What a worker does in a sweep: run some points, and answer with rows and with failures.

This module is all of Thalweg that a worker loads before the swept function itself.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import pyarrow as pa

Run: TypeAlias = Callable[[dict[str, Any]], Iterable[Mapping[str, object]] | pa.Table]
KeyedPoint: TypeAlias = tuple[str, dict[str, object]]

_DETAILS = b"thalweg.sweep"
_SHOWN_FRAMES = 5
_LONGEST_MESSAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """Why a point has no rows: the exception's type, its message, and where it was raised."""

    error: str
    message: str
    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of some points.

    The table has the rows of the finished points, one point after the other; `finished` says how
    many rows each has, by its key; `failed` holds the keys of the others.
    """

    table: pa.Table
    finished: dict[str, int]
    failed: dict[str, Mishap]
    seconds: float = 0.0

    def to_table(self) -> pa.Table:
        """The rows, with everything else in the metadata of the table."""
        details = {
            "finished": self.finished,
            "failed": {key: asdict(mishap) for key, mishap in self.failed.items()},
            "seconds": self.seconds,
        }
        return self.table.replace_schema_metadata({_DETAILS: json.dumps(details)})

    @classmethod
    def from_table(cls, table: pa.Table) -> Answer:
        """The answer that `to_table` made this of; KeyError or ValueError where none is in it."""
        details = json.loads((table.schema.metadata or {})[_DETAILS])
        answer = cls(
            table=table.replace_schema_metadata(None),
            finished={str(key): int(rows) for key, rows in details["finished"].items()},
            failed={key: Mishap(**mishap) for key, mishap in details["failed"].items()},
            seconds=details["seconds"],
        )
        if sum(answer.finished.values()) != table.num_rows:
            raise ValueError("the points have other numbers of rows than the table")
        return answer

    def to_bytes(self) -> bytes:
        """The answer as an Arrow stream."""
        sink = pa.BufferOutputStream()
        table = self.to_table()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    @classmethod
    def from_bytes(cls, stream: bytes) -> Answer:
        """The answer that `to_bytes` made this of."""
        with pa.ipc.open_stream(stream) as reader:
            return cls.from_table(reader.read_all())


def join_answers(answers: Sequence[Answer], columns: pa.Schema) -> Answer:
    """One answer that says what these say."""
    return Answer(
        table=pa.concat_tables([columns.empty_table(), *(answer.table for answer in answers)]),
        finished={key: rows for answer in answers for key, rows in answer.finished.items()},
        failed={key: mishap for answer in answers for key, mishap in answer.failed.items()},
        seconds=sum(answer.seconds for answer in answers),
    )


def run_points(
    run: Run, settings: Mapping[str, object], columns: pa.Schema, points: Iterable[KeyedPoint]
) -> Answer:
    """Run the points one after the other; one that fails does not keep the others from running."""
    start = time.perf_counter()
    tables, finished, failed = [], dict[str, int](), dict[str, Mishap]()
    for key, point in points:
        try:
            # A copy: what the function does to its arguments is nobody else's business.
            rows = to_rows(run(deepcopy({**settings, **point})), columns)
        except (Exception, SystemExit) as error:
            failed[key] = _describe(error)
        else:
            tables.append(rows)
            finished[key] = rows.num_rows
    return Answer(
        table=pa.concat_tables([columns.empty_table(), *tables]),
        finished=finished,
        failed=failed,
        seconds=time.perf_counter() - start,
    )


def to_rows(answer: object, columns: pa.Schema) -> pa.Table:
    """What the swept function returned, as a table with exactly these columns."""
    if isinstance(answer, pa.Table):
        _require_names(answer.column_names, columns)
        rows = answer.select(columns.names).cast(columns)
    else:
        if not isinstance(answer, Iterable) or isinstance(answer, (str, bytes, Mapping)):
            kind = type(answer).__name__
            raise TypeError(f"returned {kind}, need a list of mappings or a pyarrow table")
        mappings = list(answer)
        for mapping in mappings:
            if not isinstance(mapping, Mapping):
                raise TypeError(f"returned a row that is {type(mapping).__name__}, need a mapping")
            _require_names(list(mapping), columns)
        rows = pa.Table.from_pylist(mappings, schema=columns)
    for field in columns:
        if not field.nullable and rows.column(field.name).null_count:
            raise ValueError(f"returned nothing for {field.name}, which must not be null")
    return rows


def _require_names(names: Sequence[str], columns: pa.Schema) -> None:
    if sorted(map(str, names)) != sorted(columns.names):
        missing = [name for name in columns.names if name not in names]
        unknown = [str(name) for name in names if name not in columns.names]
        parts = [
            f"without {', '.join(missing)}" if missing else "",
            f"with {', '.join(unknown)}" if unknown else "",
        ]
        which = " and ".join(part for part in parts if part) or "with a column twice"
        raise ValueError(f"returned rows {which}; need the columns {', '.join(columns.names)}")


def _describe(error: BaseException) -> Mishap:
    try:
        message = str(error)
    except Exception:  # an exception whose text cannot be made is a failure like any other
        message = ""
    try:
        frames = traceback.extract_tb(error.__traceback__)[1:][-_SHOWN_FRAMES:]
        where = "".join(traceback.format_list(frames))
    except Exception:
        where = ""
    name = type(error).__qualname__
    return Mishap(error=name, message=message[:_LONGEST_MESSAGE], traceback=where)
