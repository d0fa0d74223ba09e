"""Counts rows in the middle of a running query, with `DataFrame.observe`.

Where two operators read one output, Spark computes what is above it for each of them, and reports
an observation that occurs twice only once: every number is the count of one pass, whatever the
number of branches. That is why rows are counted here and not taken from Spark's `numInputRows`,
which counts a row once for every branch that it is read for.

An observation has its price: Spark cannot fuse what is before it with what comes after. So only
what does not follow from other counts is observed; see `thalweg.spark.monitor.counting`. Of rows
that hold texts or collections, their lengths are added up as well; of all others the types of the
columns say how large they are. What crosses a link is measured to the byte where it is published:
the manifest of each segment of the log has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Edge = tuple[str, str]
_PUT_OUT = "thalweg/rows/"
_SENT = "thalweg/inbox/"
_BROKEN = "thalweg/broken/"
_BETWEEN = "+"


def watch(operator: str, frame: DataFrame, more_bytes: Column | None = None) -> DataFrame:
    """The same rows; how many the operator puts out is counted in every batch.

    `more_bytes`, where it is given, is added up over them.
    """
    return _count(f"{_PUT_OUT}{operator}", frame, more_bytes)


def watch_inbox(sender: str, reader: str, frame: DataFrame) -> DataFrame:
    """The same rows; how many of an edge's rows come from elsewhere is counted."""
    return _count(f"{_SENT}{sender}{_BETWEEN}{reader}", frame)


def watch_broken(sender: str, reader: str, frame: DataFrame) -> DataFrame:
    """The same rows; how many of an edge's rows the reader refuses is counted."""
    return _count(f"{_BROKEN}{sender}{_BETWEEN}{reader}", frame)


def _count(name: str, frame: DataFrame, more_bytes: Column | None = None) -> DataFrame:
    from pyspark.sql import functions as sql

    counts = [sql.count(sql.lit(1)).alias("rows")]
    if more_bytes is not None:
        counts.append(sql.sum(more_bytes).alias("bytes"))
    return frame.observe(name, *counts)


def output_counts(progress: Mapping[str, Any]) -> dict[str, int]:
    """Rows that each operator put out that was watched, in the batch of this progress.

    >>> output_counts({"observedMetrics": {"thalweg/rows/clean": {"rows": 7}}})
    {'clean': 7}
    """
    return dict(_find(progress, _PUT_OUT))


def output_bytes(progress: Mapping[str, Any]) -> dict[str, int]:
    """What was added up over the rows of each operator that was watched for it.

    >>> output_bytes({"observedMetrics": {"thalweg/rows/clean": {"rows": 7, "bytes": 70}}})
    {'clean': 70}
    """
    return {
        str(name).removeprefix(_PUT_OUT): int(values.get("bytes") or 0)
        for name, values in (progress.get("observedMetrics") or {}).items()
        if str(name).startswith(_PUT_OUT) and "bytes" in values
    }


def inbox_counts(progress: Mapping[str, Any]) -> dict[Edge, int]:
    """Rows along each edge that came from elsewhere."""
    return dict(_find_edges(progress, _SENT))


def broken_counts(progress: Mapping[str, Any]) -> dict[Edge, int]:
    """Rows along each edge that its reader has refused."""
    return dict(_find_edges(progress, _BROKEN))


def _find_edges(progress: Mapping[str, Any], kind: str) -> Iterator[tuple[Edge, int]]:
    for name, rows in _find(progress, kind):
        sender, between, reader = name.partition(_BETWEEN)
        if between:
            yield (sender, reader), rows


def _find(progress: Mapping[str, Any], kind: str) -> Iterator[tuple[str, int]]:
    """The counts of one kind; whatever else is observed in the query is left alone."""
    for name, values in (progress.get("observedMetrics") or {}).items():
        if str(name).startswith(kind):
            yield str(name).removeprefix(kind), int(values.get("rows") or 0)
