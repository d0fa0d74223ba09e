"""What one batch of one query did, as plain data that travels as JSON.

A record is a mapping with these keys:

- `site`, `epoch`, `role` (of the query, or `gateway` where rows are born), `batch`: which batch;
- `at_s`: when it was finished [Unix time]; `batch_s`: how long it took;
- `rows`, `rows_in`: rows that each operator put out and read, by its name;
- `stream_rows`, `bytes`: what was published in each stream of the log (bytes of data, before
  compression: what the event sizes of the model mean); `link_bytes`: what that takes on a link,
  compressed and packed;
- `output_bytes`: data that each operator put out, where it is known though it is not published;
- `cpu_s`: CPU of the batch's tasks and of their Python workers; None where it is not known;
- `input_rows`: rows that the query read;
- `watermark_s`: the event time up to which everything was seen; `lag_s`: how far that is behind the
  newest row; None where it is not known;
- `event_spans`: stream → the earliest and the latest event time in what was published.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from thalweg.errors import Defects
from thalweg.spark.log.names import SOURCES
from thalweg.spark.log.segment import Segment
from thalweg.spark.monitor.counting import RowCounts
from thalweg.spark.query.clock import DAWN_MS
from thalweg.spark.query.spec import QuerySpec

Record = dict[str, Any]
GATEWAY = "gateway"
_MAPPINGS = ("rows", "rows_in", "stream_rows", "bytes", "link_bytes", "output_bytes")
_TIMES = ("watermark_s", "lag_s", "cpu_s")


class Published(NamedTuple):
    """What a batch put into one stream; event times [Unix time] where they are known."""

    rows: int
    data_bytes: int
    link_bytes: int
    earliest_s: float | None = None
    latest_s: float | None = None


def record_of(
    progress: Mapping[str, Any],
    spec: QuerySpec,
    published: Mapping[str, Published],
    *,
    counts: RowCounts | None = None,
    newest_s: float | None = None,
    cpu_s: float | None = None,
) -> Record:
    """The record of the batch that Spark reports in this progress (the JSON of it, parsed).

    `published` says what the batch put into each stream. `counts` has the rows of operators; of a
    query that is not watched there are none. `newest_s` is the newest event time among the rows
    that have arrived, read or not.
    """
    watermark_s = _watermark_s(progress)
    known = newest_s is not None and watermark_s is not None
    return {
        "site": spec.site,
        "epoch": spec.epoch,
        "role": spec.role,
        "batch": int(progress["batchId"]),
        "at_s": _parse_s(str(progress["timestamp"])) + progress.get("batchDuration", 0) / 1000,
        "batch_s": progress.get("batchDuration", 0) / 1000,
        "rows": dict(counts.rows) if counts else {},
        "rows_in": dict(counts.rows_in) if counts else {},
        "stream_rows": {stream: put.rows for stream, put in published.items()},
        "bytes": {stream: put.data_bytes for stream, put in published.items()},
        "link_bytes": {stream: put.link_bytes for stream, put in published.items()},
        "output_bytes": dict(counts.output_bytes) if counts else {},
        "cpu_s": cpu_s,
        "input_rows": counts.input_rows if counts else int(progress.get("numInputRows") or 0),
        "lag_s": max(0.0, float(newest_s or 0.0) - float(watermark_s or 0.0)) if known else None,
        "watermark_s": watermark_s,
        "event_spans": {
            stream: (put.earliest_s, put.latest_s)
            for stream, put in published.items()
            if put.earliest_s is not None and put.latest_s is not None
        },
    }


def published_in(segment: Segment) -> Published:
    """What a segment holds, for `record_of`."""
    times = (segment.earliest_us, segment.latest_us)
    earliest_s, latest_s = (None if us is None else us / 1e6 for us in times)
    known = earliest_s is not None and latest_s is not None
    return Published(
        rows=segment.rows,
        data_bytes=segment.data_bytes,
        link_bytes=segment.file_bytes,
        earliest_s=earliest_s if known else None,
        latest_s=latest_s if known else None,
    )


def arrival_of(segment: Segment, at_s: float) -> Record:
    """The record of rows that a gateway has put into the log by this time.

    With these, the rates of sources are those at which rows arrive, even where a site is too slow
    to read them.
    """
    source = segment.stream.removeprefix(f"{SOURCES}/")
    return {
        "site": segment.site,
        "epoch": segment.epoch,
        "role": GATEWAY,
        "batch": segment.batch,
        "at_s": at_s,
        "batch_s": 0.0,
        "rows": {source: segment.rows},
        "bytes": {segment.stream: segment.data_bytes},
        "link_bytes": {segment.stream: segment.file_bytes},
    }


def complete_record(record: Mapping[str, Any]) -> Record:
    """The record with every key, those that were left out empty.

    Raises:
        InvalidInput: where it does not say which batch it is of, or a number is none.
    """
    defects = Defects()
    whole: Record = {"role": "", "batch_s": 0.0, "input_rows": 0, "lag_s": None, "cpu_s": None}
    whole |= {"watermark_s": None, "event_spans": {}, **{name: {} for name in _MAPPINGS}}
    whole |= {name: value for name, value in record.items() if value is not None}
    for name in ("site", "role"):
        value = whole.get(name)
        defects.require(isinstance(value, str) and bool(value), name, value, "a name")
    for name in ("epoch", "batch", "input_rows"):
        value = whole.get(name)
        defects.require(_is_count(value), name, value, "a whole number >= 0")
    at_s, batch_s = whole.get("at_s"), whole["batch_s"]
    defects.require(_is_number(at_s), "at_s", at_s, "a finite number of seconds")
    good = _is_number(batch_s) and batch_s >= 0
    defects.require(good, "batch_s", batch_s, "a number of seconds >= 0")
    for name in _TIMES:
        good = whole[name] is None or _is_number(whole[name])
        defects.require(good, name, whole[name], "a finite number of seconds, or nothing")
    for name in _MAPPINGS:
        given = whole[name]
        if not isinstance(given, Mapping):
            defects.add(name, given, "a mapping from names to whole numbers")
            continue
        for key, value in given.items():
            defects.require(_is_count(value), f"{name}[{key}]", value, "a whole number >= 0")
        whole[name] = {str(key): value for key, value in given.items()}
    defects.raise_if_any()
    return whole


def _watermark_s(progress: Mapping[str, Any]) -> float | None:
    """How far event time has come; Spark and our clocks say 1970 before they have seen any."""
    text = (progress.get("eventTime") or {}).get("watermark")
    at_s = _parse_s(str(text)) if text else 0.0
    return at_s if at_s > DAWN_MS / 1000 else None


def _parse_s(text: str) -> float:
    """A time as Spark writes it, in seconds since 1970.

    >>> _parse_s("2026-01-01T00:00:41.990Z")
    1767225641.99
    """
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _is_number(value: object) -> bool:
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    return good and math.isfinite(float(str(value)))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
