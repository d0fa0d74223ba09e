"""Which rows of its sources a site has set aside, as its log says.

A dead letter tells what a row was, but not which: the JSON of two rows may be the same. So a batch
publishes, together with its letters, where in the log the rows lie that it was done without. Who
computes anything of the same rows once more leaves out exactly those.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.spark.log import Log
from thalweg.spark.log.names import EDGES
from thalweg.spark.log.segment import Segment

# Of this kind, as letters are: what a fence excludes of an epoch, it excludes of both.
LEFT_OUT = "set-aside"
LEFT_OUT_STREAM = f"{EDGES}/{LEFT_OUT}"
PLACE_FIELDS = tuple(pa.field(name, pa.int64()) for name in ("epoch", "batch", "place"))
"""The segment of the source's stream, and the number of the row in it, from 0."""

RowPlace = tuple[int, int, int]
"""What `PLACE_FIELDS` say of one row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The rows that one site has set aside: by source and segment, their numbers in it."""

    places: Mapping[tuple[str, int, int], Collection[int]]

    def drop_from(self, source: str, segment: Segment, rows: pa.Table) -> pa.Table:
        """The rows of a segment of the source's stream, without those that were set aside."""
        gone = self.places.get((source, segment.epoch, segment.batch))
        if not gone:
            return rows
        return rows.filter(pa.array([place not in gone for place in range(rows.num_rows)]))


def read_left_out(log: Log, site: str) -> LeftOut:
    """What a site has set aside so far.

    Raises:
        LogError: where the log cannot be read.
    """
    places: dict[tuple[str, int, int], set[int]] = {}
    for row in log.read(LEFT_OUT_STREAM, site).to_pylist():
        places.setdefault((row["source"], row["epoch"], row["batch"]), set()).add(row["place"])
    return LeftOut(places=places)


def add_places(letters: pa.Table, places: Sequence[RowPlace | None]) -> pa.Table:
    """Letters, each with where in the log its row is, as far as that is known."""
    for number, column in enumerate(PLACE_FIELDS):
        known = [None if place is None else place[number] for place in places]
        letters = letters.append_column(column, pa.array(known, column.type))
    return letters


def places_of(set_aside: pa.Table) -> pa.Table:
    """What is published of rows that were set aside: their source, and where they are there."""
    known = set_aside.filter(pc.is_valid(set_aside["place"]))
    names = [column.name for column in PLACE_FIELDS]
    return known.select(["input", *names]).rename_columns(["source", *names])
