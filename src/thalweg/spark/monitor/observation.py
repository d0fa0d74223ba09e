"""Counts the rows that pass along every edge of a running query.

Each edge (sender → reader) is observed under a name of its own with `DataFrame.observe`. Where two
operators read one output, Spark computes what is above it for each of them, and reports an
observation that occurs twice only once: every number is the count of one pass, whatever the number
of branches. That is why rows are counted here and not taken from Spark's `numInputRows`, which
counts a row once for every branch that it is read for.

Only rows are counted. A row count needs no column, so Spark still reads just the columns that an
operator needs; a size would need them all. What crosses a link is measured to the byte where it is
published: the manifest of each segment of the log has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Edge = tuple[str, str]
_ARRIVING = "thalweg/edge/"
_SENT = "thalweg/inbox/"
_BETWEEN = "+"


def watch(sender: str, reader: str, frame: DataFrame) -> DataFrame:
    """The same rows; how many the reader gets along this edge is counted in every batch."""
    return _count(f"{_ARRIVING}{sender}{_BETWEEN}{reader}", frame)


def watch_inbox(sender: str, reader: str, frame: DataFrame) -> DataFrame:
    """The same rows; how many of an edge's rows other sites have sent is counted.

    What the sender itself put out here is the rest of what the reader gets.
    """
    return _count(f"{_SENT}{sender}{_BETWEEN}{reader}", frame)


def _count(name: str, frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sql

    return frame.observe(name, sql.count(sql.lit(1)).alias("rows"))


def edge_counts(progress: Mapping[str, Any]) -> dict[Edge, int]:
    """Rows along each edge that was watched, in the batch of this progress.

    >>> edge_counts({"observedMetrics": {"thalweg/edge/rides+clean": {"rows": 7}}})
    {('rides', 'clean'): 7}
    """
    return dict(_find(progress, _ARRIVING))


def inbox_counts(progress: Mapping[str, Any]) -> dict[Edge, int]:
    """Rows along each edge that other sites have sent."""
    return dict(_find(progress, _SENT))


def inputs_of(progress: Mapping[str, Any]) -> dict[str, int]:
    """Rows that each operator read: along all its edges together."""
    rows: dict[str, int] = {}
    for (_, reader), count in edge_counts(progress).items():
        rows[reader] = rows.get(reader, 0) + count
    return rows


def counts_of(progress: Mapping[str, Any]) -> dict[str, int]:
    """Rows that each operator put out here, as far as an operator here reads them.

    All edges out of an operator carry the same rows.

    >>> counts_of({"observedMetrics": {
    ...     "thalweg/edge/clean+fares": {"rows": 5}, "thalweg/edge/clean+dear": {"rows": 5},
    ...     "thalweg/edge/rides+clean": {"rows": 7}, "thalweg/inbox/clean+fares": {"rows": 0}}})
    {'clean': 5, 'rides': 7}
    """
    sent = inbox_counts(progress)
    rows: dict[str, int] = {}
    for edge, count in edge_counts(progress).items():
        # Never below nothing, should a batch have failed between the two counts.
        rows[edge[0]] = max(rows.get(edge[0], 0), count - sent.get(edge, 0))
    return rows


def _find(progress: Mapping[str, Any], kind: str) -> Iterator[tuple[Edge, int]]:
    """The counts of one kind; whatever else is observed in the query is left alone."""
    for name, values in (progress.get("observedMetrics") or {}).items():
        sender, between, reader = str(name).removeprefix(kind).partition(_BETWEEN)
        if str(name).startswith(kind) and between:
            yield (sender, reader), int(values.get("rows") or 0)
