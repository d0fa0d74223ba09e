"""The keyed operator of the campaign: numbers the events of each key, so that state shows."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from thalweg.history import Expectation
from thalweg.spark.keyed.operator import keyed

OPERATOR = "campaign.tally:tally"
KEYS = 97
EVENTS = pa.schema([("number", pa.int64()), ("key", pa.int64())])


@keyed(
    by="key",
    rows="number long, key long",
    state="seen long",
    output="number long, key long, nth long",
)
def tally(rows: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The how many-th event of its key each one is."""
    keys, seen = state.column("key").to_pylist(), state.column("seen").to_pylist()
    counts = dict(zip(keys, seen, strict=True))
    output = []
    for row in rows.to_pylist():
        counts[row["key"]] = counts.get(row["key"], 0) + 1
        output.append({**row, "nth": counts[row["key"]]})
    kept = [{"key": key, "seen": count} for key, count in counts.items()]
    return (
        pa.Table.from_pylist(output, schema=tally.output),
        pa.Table.from_pylist(kept, schema=tally.state),
    )


def make_keyed(first: int, count: int) -> pa.Table:
    """Events with the numbers from `first`, whose keys come in turn and out of order."""
    numbers = range(first, first + count)
    rows = {"number": list(numbers), "key": [number * 7919 % KEYS for number in numbers]}
    return pa.table(rows, schema=EVENTS)


def expect_tally(count: int) -> Expectation:
    """What has to come out of the events 0, 1, … count - 1."""
    seen: Counter[int] = Counter()
    rows = []
    for row in make_keyed(0, count).to_pylist():
        seen[row["key"]] += 1
        rows.append({**row, "nth": seen[row["key"]]})
    schema = pa.schema([*EVENTS, ("nth", pa.int64())])
    return Expectation(rows=pa.Table.from_pylist(rows, schema=schema), key=("number",))
