"""What Spark tells of a query's batches, as plain data.

pyspark makes objects of all that Spark remembers, field by field, each with calls to the JVM; of
two batches in a hundred that are new, that costs more than the batches. Where the JVM is at hand,
only what is new is asked for, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Progress = dict[str, Any]


def last_progress(query: StreamingQuery) -> Progress:
    """What is told of the last batch; empty before the first."""
    java = getattr(query, "_jsq", None)
    if java is not None:
        progress = java.lastProgress()
        return json.loads(progress.json()) if progress is not None else {}
    last = query.lastProgress
    return json.loads(last.json) if last is not None else {}


def progress_after(query: StreamingQuery, batch: int) -> list[Progress]:
    """What is told of the batches after this one, in their order, as far as Spark remembers."""
    java = getattr(query, "_jsq", None)
    newest_first = (
        (json.loads(each.json) for each in reversed(query.recentProgress))
        if java is None
        else _newest_first(java)
    )
    found = []
    for progress in newest_first:
        if int(progress["batchId"]) <= batch:
            break
        found.append(progress)
    return found[::-1]


def _newest_first(java: Any) -> Iterator[Progress]:
    told = java.recentProgress()
    for place in range(len(told) - 1, -1, -1):
        yield json.loads(told[place].json())
