"""Aggregates in two halves: what each part of the rows gives, and how those are put together.

Counts, sums, smallest and largest values and means over time windows. Sums of floating-point
columns are taken in decimals of nine places, so that they are the same whatever order the rows
come in and however they are split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from thalweg.errors import Defects

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from thalweg.spark.pipeline.kinds import Function

_EXACT = "decimal(28,9)"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One column of an aggregate."""

    measure: Literal["count", "sum", "min", "max", "mean"]
    column: str | None = None

    def partial(self, name: str, frame: DataFrame) -> list[Column]:
        """What has to be known of a part of the rows."""
        from pyspark.sql import functions as sql

        if self.column is None:
            return [sql.count(sql.lit(1)).alias(name)]
        value = sql.col(self.column)
        if self.measure in ("min", "max"):
            return [getattr(sql, self.measure)(value).alias(name)]
        if frame.schema[self.column].dataType.typeName() in ("float", "double"):
            value = value.cast(_EXACT)
        if self.measure == "sum":
            return [sql.sum(value).alias(name)]
        return [sql.sum(value).alias(f"{name}_sum"), sql.count(value).alias(f"{name}_count")]

    def merge(self, name: str) -> Column:
        """The whole from what is known of the parts."""
        from pyspark.sql import functions as sql

        if self.measure in ("min", "max"):
            merged: Column = getattr(sql, self.measure)(name)
            return merged.alias(name)
        if self.measure != "mean":
            return sql.sum(name).alias(name)
        count = sql.nullif(sql.sum(f"{name}_count"), sql.lit(0))
        return (sql.sum(f"{name}_sum").cast("double") / count).alias(name)


def count() -> Aggregate:
    """How many rows there are."""
    return Aggregate("count")


def sum_of(column: str) -> Aggregate:
    """The sum of a column; of a floating-point one, as a decimal."""
    return Aggregate("sum", column)


def min_of(column: str) -> Aggregate:
    """The smallest value of a column."""
    return Aggregate("min", column)


def max_of(column: str) -> Aggregate:
    """The largest value of a column."""
    return Aggregate("max", column)


def mean_of(column: str) -> Aggregate:
    """The mean of a column, over the rows that have a value."""
    return Aggregate("mean", column)


def halves_of(by: tuple[str, ...], columns: Mapping[str, Aggregate]) -> tuple[Function, Function]:
    """The partial and the merging half of these aggregates, by window and by some columns."""

    def partial(frame: DataFrame) -> DataFrame:
        measures = [m for name, column in columns.items() for m in column.partial(name, frame)]
        return frame.groupBy("window", *by).agg(*measures)

    def merge(parts: DataFrame) -> DataFrame:
        measures = [column.merge(name) for name, column in columns.items()]
        return parts.groupBy("window", *by).agg(*measures)

    return partial, merge


def require_aggregates(defects: Defects, path: str, columns: Mapping[str, object]) -> None:
    """Remember a defect for every column that is no aggregate, or if there is none at all."""
    defects.require(bool(columns), path, None, "at least one aggregate", "such as rides=count()")
    for name, column in columns.items():
        if not isinstance(column, Aggregate):
            rule = "count(), sum_of(…), min_of(…), max_of(…) or mean_of(…)"
            defects.add(f"{path}.{name}", column, rule)
