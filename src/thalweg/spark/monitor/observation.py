"""Counts rows in the middle of a running query, with `DataFrame.observe`.

Where two operators read one output, Spark computes what is above it for each of them, and reports
an observation that occurs twice only once: every number is the count of one pass, whatever the
number of branches. That is why rows are counted here and not taken from Spark's `numInputRows`,
which counts a row once for every branch that it is read for.

An observation has its price: Spark cannot fuse what is before it with what comes after. So only
what does not follow from other counts is observed; see `thalweg.spark.monitor.counting`. And only
rows are counted, which needs no column; a size would need them all. What crosses a link is measured
to the byte where it is published: the manifest of each segment of the log has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Edge = tuple[str, str]
_PUT_OUT = "thalweg/rows/"
_SENT = "thalweg/inbox/"
_BROKEN = "thalweg/broken/"
_BETWEEN = "+"


def watch(operator: str, frame: DataFrame) -> DataFrame:
    """The same rows; how many the operator puts out is counted in every batch."""
    return _count(f"{_PUT_OUT}{operator}", frame)


def watch_inbox(sender: str, reader: str, frame: DataFrame) -> DataFrame:
    """The same rows; how many of an edge's rows come from elsewhere is counted."""
    return _count(f"{_SENT}{sender}{_BETWEEN}{reader}", frame)


def watch_broken(sender: str, reader: str, frame: DataFrame) -> DataFrame:
    """The same rows; how many of an edge's rows the reader refuses is counted."""
    return _count(f"{_BROKEN}{sender}{_BETWEEN}{reader}", frame)


def _count(name: str, frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sql

    return frame.observe(name, sql.count(sql.lit(1)).alias("rows"))


def output_counts(progress: Mapping[str, Any]) -> dict[str, int]:
    """Rows that each operator put out that was watched, in the batch of this progress.

    >>> output_counts({"observedMetrics": {"thalweg/rows/clean": {"rows": 7}}})
    {'clean': 7}
    """
    return dict(_find(progress, _PUT_OUT))


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
