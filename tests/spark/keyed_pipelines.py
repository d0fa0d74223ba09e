"""Keyed operators for the tests of their moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from thalweg.spark.keyed.operator import keyed

LAST_RIDE = 1_000_000_000
"""The ride with which a vehicle goes home: its state ends."""


@keyed(
    by="vehicle",
    rows="ride long, vehicle long",
    state="rides long, note string",
    output="ride long, vehicle long, nth long",
)
def tally(rows: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Numbers the rides of each vehicle: a lost, a repeated or a forgotten row shows at once."""
    counts = dict(
        zip(state.column("vehicle").to_pylist(), state.column("rides").to_pylist(), strict=True)
    )
    output = []
    for row in rows.to_pylist():
        vehicle = row["vehicle"]
        counts[vehicle] = counts.get(vehicle, 0) + 1
        output.append({**row, "nth": counts[vehicle]})
        if row["ride"] >= LAST_RIDE:
            del counts[vehicle]
    kept = [{"vehicle": v, "rides": n, "note": f"ride {n}"} for v, n in counts.items()]
    return (
        pa.Table.from_pylist(output, schema=tally.output),
        pa.Table.from_pylist(kept, schema=tally.state),
    )


def tally_at_once(rides: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """What `tally` has to put out for rides (number, vehicle), one after the other."""
    counts: Counter[int] = Counter()
    output = []
    for ride, vehicle in rides:
        counts[vehicle] += 1
        output.append((ride, vehicle, counts[vehicle]))
        if ride >= LAST_RIDE:
            del counts[vehicle]
    return output
