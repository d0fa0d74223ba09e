"""Puts rows into time windows, and decides which of a row's windows count here.

A window of an operator is computed in one place, from all of its rows. When the operator moves to
another place, the windows that are open then are divided between the two by their ends. Rows that
concern both carry which of their windows count, in two columns that no operator sees: those that
end after `AFTER`, and not after `UPTO`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from thalweg.model import TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WINDOW = "window"
AFTER, UPTO = "_after", "_upto"
BOUNDS = {AFTER: "timestamp", UPTO: "timestamp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Where rows get into windows: an operator's windows, and the senders of the rows."""

    senders: tuple[str, ...]
    window: TimeWindow


def time_windows(time: str, window: TimeWindow) -> Column:
    """The time windows that a row belongs to, one row for each."""
    from pyspark.sql import functions as sql

    length, slide = (f"{round(s * 1e6)} microseconds" for s in (window.length, window.slide))
    return sql.window(time, length, slide)


def open_windows(
    frame: DataFrame, time: str, window: TimeWindow, *, after_ms: int | None = None
) -> DataFrame:
    """Every row once for each of its windows that counts, with the column `window`.

    With `after_ms`, only windows that end later than that (milliseconds since 1970) count at all.
    """
    from pyspark.sql import functions as sql

    if WINDOW in frame.columns:
        return frame
    # Spark Connect forgets the watermark of a column that withColumn adds.
    windowed = frame.select("*", time_windows(time, window).alias(WINDOW))
    end = sql.col(f"{WINDOW}.end")
    if after_ms is not None:
        windowed = windowed.where(end > sql.timestamp_millis(sql.lit(after_ms)))
    if AFTER in frame.columns:
        after, upto = sql.col(AFTER), sql.col(UPTO)
        windowed = windowed.where(
            (after.isNull() | (end > after)) & (upto.isNull() | (end <= upto))
        )
    return windowed.drop(*BOUNDS)


def with_bounds(
    frame: DataFrame, *, after_ms: int | None = None, upto_ms: int | None = None
) -> DataFrame:
    """The rows with the windows that count, in milliseconds since 1970."""
    from pyspark.sql import functions as sql

    for name, value in ((AFTER, after_ms), (UPTO, upto_ms)):
        bound = sql.lit(None) if value is None else sql.timestamp_millis(sql.lit(value))
        frame = frame.withColumn(name, bound.cast("timestamp"))
    return frame


def first_start_us(after_ms: int, window: TimeWindow) -> int:
    """When the first window begins [us since 1970] that ends later than this.

    No row before it is in a window that ends later.

    >>> first_start_us(20_000, TimeWindow("10 s", "5 s"))
    15000000
    >>> first_start_us(21_000, TimeWindow("10 s"))
    20000000
    """
    slide_us, length_us = round(window.slide * 1e6), round(window.length * 1e6)
    return ((after_ms * 1000 - length_us) // slide_us + 1) * slide_us


def first_whole_end(newest_ms: int, window: TimeWindow) -> int:
    """The last end [ms] of the windows that begin before anything after the newest event could.

    Windows begin at multiples of the slide. Those that begin after the newest event have none of
    the rows so far; every window that ends later than this is one of them.

    >>> first_whole_end(12_000, TimeWindow("10 s", "5 s"))
    20000
    >>> first_whole_end(12_000, TimeWindow("10 s"))
    20000
    """
    slide_us, length_us = round(window.slide * 1e6), round(window.length * 1e6)
    next_start_us = (newest_ms * 1000 // slide_us + 1) * slide_us
    # Newest is cut to the millisecond: an event just after it may be in the next window.
    if next_start_us <= newest_ms * 1000 + 999:
        next_start_us += slide_us
    end_us = next_start_us + length_us - slide_us
    return end_us // 1000
