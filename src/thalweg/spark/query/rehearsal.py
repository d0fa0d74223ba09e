"""Runs a query for show: what Spark has compiled and loaded for it serves the next one like it.

The first rows of a query with state cost seconds that later ones do not: classes are loaded, code
is compiled, stores are opened. A rehearsal has that behind it before a cut moves. It works on some
of the site's own last rows, linked into a log of its own; nobody reads what it publishes. Its
folder is removed when it ends, and what is left of one that was killed when the next one begins.
"""

from __future__ import annotations

import os
import shutil
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.spark.log import Log
from thalweg.spark.log.epoch import list_batches
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.names import SOURCES
from thalweg.spark.log.segment import read_segment
from thalweg.spark.query.clock import SOURCE_CLOCK
from thalweg.spark.query.queries import start_query
from thalweg.spark.query.running import RunningQuery
from thalweg.spark.query.spec import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READY_BATCHES = 2
_MOST_SEGMENTS = 100
_MOST_ROWS = 5_000
_POLL_S = 0.2
# Without a batch for so long, there is none to come.
_IDLE_S = 0.6
_WORK_S = 30.0


def rehearse(
    session: SparkSession, spec: QuerySpec, rows_from: Path | None = None, patience_s: float = 0.0
) -> int:
    """Run this query on some of the last rows in a log; gives how many rows it worked on.

    It has a folder of its own, in which its log and its checkpoint are. For the first rows it waits
    at most so long; without any it only gets ready.
    """
    folder = spec.checkpoint.parent
    shutil.rmtree(folder, ignore_errors=True)
    found_log(spec.log)
    try:
        query = start_query(session, spec, held=True)
        try:
            # The first batch opens what state needs, the second one looks for what has ended.
            query.get_ready(_READY_BATCHES)
            given = 0 if rows_from is None else _await_rows(spec, rows_from, patience_s)
            if given and query.release(spec):
                _await_idleness(query)
            return query.rows_taken
        finally:
            query.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _await_rows(spec: QuerySpec, rows_from: Path, patience_s: float) -> int:
    deadline = time.monotonic() + patience_s
    while not (rows := link_last_rows(Log(rows_from), spec.log, spec.site)):
        if time.monotonic() >= deadline:
            return 0
        time.sleep(_POLL_S)
    return rows


def _await_idleness(query: RunningQuery) -> None:
    begin_s = busy_s = time.monotonic()
    while query.active and (now_s := time.monotonic()) < begin_s + _WORK_S:
        if not query.is_idle:
            busy_s = now_s
        elif now_s - busy_s > _IDLE_S:
            return
        time.sleep(_POLL_S)


def link_last_rows(source: Log, target: Path, site: str) -> int:
    """Show the last rows that were born at a site in another log, too; gives how many.

    Of each source as many as are enough for a batch, and at least one segment.
    """
    rows = 0
    for stream in source.streams(SOURCES):
        if stream == SOURCE_CLOCK:
            continue
        taken = 0
        for place in reversed(source.places(stream, site)):
            for batch in islice(reversed(list_batches(place, -1)), _MOST_SEGMENTS):
                if taken >= _MOST_ROWS:
                    break
                segment = read_segment(place, batch)
                if segment is not None:
                    folder = target / segment.folder.relative_to(source.root)
                    shutil.copytree(segment.folder, folder, copy_function=_link, dirs_exist_ok=True)
                    taken += segment.rows
        rows += taken
    return rows


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except OSError:
        # On another disk, or one that knows no links.
        shutil.copyfile(source, target)
