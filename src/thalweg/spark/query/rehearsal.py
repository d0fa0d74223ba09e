"""Runs a query for show: what Spark has compiled and loaded for it serves the next one like it.

The first rows of a query with state cost seconds that later ones do not: classes are loaded, code
is compiled, stores are opened. A rehearsal has that behind it before a cut moves. It works on the
site's own last rows, linked into a log of its own; nobody reads what it publishes, and in the end
all of it is gone.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.spark.log import Log
from thalweg.spark.log.names import SOURCES
from thalweg.spark.query.queries import start_query
from thalweg.spark.query.running import RunningQuery
from thalweg.spark.query.spec import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_SEGMENTS = 100
_POLL_S = 0.2
# One batch with the rows, one in which windows end, one to be sure.
_BATCHES = 3
_WORK_S = 30.0


def rehearse(
    session: SparkSession, spec: QuerySpec, rows_from: Path | None = None, patience_s: float = 0.0
) -> int:
    """Run this query on copies of the last rows in a log; gives how many rows that were.

    It has a folder of its own, in which its log and its checkpoint are. For the first rows it waits
    at most so long; without any it only gets ready.
    """
    try:
        query = start_query(session, spec, held=True)
        try:
            query.get_ready()
            rows = 0 if rows_from is None else _await_rows(spec, rows_from, patience_s)
            if rows and query.release(spec):
                _await_batches(query)
            return rows
        finally:
            query.stop()
    finally:
        shutil.rmtree(spec.checkpoint.parent, ignore_errors=True)


def _await_rows(spec: QuerySpec, rows_from: Path, patience_s: float) -> int:
    deadline = time.monotonic() + patience_s
    while not (rows := link_last_rows(Log(rows_from), spec.log, spec.site)):
        if time.monotonic() >= deadline:
            return 0
        time.sleep(_POLL_S)
    return rows


def _await_batches(query: RunningQuery) -> None:
    deadline = time.monotonic() + _WORK_S
    begun = query.status().batch
    while query.active and query.status().batch < begun + _BATCHES:
        if time.monotonic() > deadline:
            return
        time.sleep(_POLL_S)


def link_last_rows(source: Log, target: Path, site: str) -> int:
    """Show the last rows that were born at a site in another log, too; gives how many."""
    rows = 0
    for stream in source.streams(SOURCES):
        for segment in list(source.segments(stream, site))[-_MOST_SEGMENTS:]:
            place = target / segment.folder.relative_to(source.root)
            shutil.copytree(segment.folder, place, copy_function=_link, dirs_exist_ok=True)
            rows += segment.rows
    return rows


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except OSError:
        # On another disk, or one that knows no links.
        shutil.copyfile(source, target)
