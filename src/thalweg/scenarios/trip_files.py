"""Reads the trip records of New York's taxis, as the Taxi & Limousine Commission publishes them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.errors import Defect, Defects, InvalidInput, nearest

if TYPE_CHECKING:
    import pyarrow as pa

# Each with the names that it has in the Commission's files, and in files made from them.
_TRIP_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "pickup_time": ("tpep_pickup_datetime", "lpep_pickup_datetime", "pickup_datetime"),
    "drop_off_time": ("tpep_dropoff_datetime", "lpep_dropoff_datetime", "dropoff_datetime"),
    "zone": ("PULocationID", "pickup_location_id"),
    "drop_off_zone": ("DOLocationID", "dropoff_location_id"),
    "miles": ("trip_distance",),
    "fare": ("fare_amount",),
    "tip": ("tip_amount",),
}
# More than the Commission's largest month has.
_MOST_ROWS = 30_000_000
_MOST_BYTES = 4 * 2**30
# Arrow's own errors are of these kinds.
_BROKEN = (OSError, ValueError, TypeError, LookupError, RuntimeError, MemoryError)


def read_trips(path: str | os.PathLike[str]) -> pa.Table:
    """The columns of a trip file that rides are made of; rows that lack one of them are left out.

    Raises:
        InvalidInput: if the file cannot be read or lacks columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = str(path)
    try:
        _require_regular(Path(path))
        metadata = pq.read_metadata(path)
        _require_size(metadata)
        schema = metadata.schema.to_arrow_schema()
    except _BROKEN as error:
        raise _unreadable(file, error) from None
    defects = Defects()
    chosen: dict[str, str] = {}
    for name, known in _TRIP_COLUMNS.items():
        found = next((column for column in known if schema.names.count(column) == 1), None)
        if found is None:
            rule = f"one column {' or '.join(known)}"
            defects.add(known[0], "no such column", rule, nearest(known[0], schema.names))
        else:
            chosen[name] = found
            is_time = pa.types.is_timestamp(schema.field(found).type)
            rule = "a column of times" if name.endswith("time") else "a column of numbers"
            good = is_time if name.endswith("time") else _is_numeric(schema.field(found).type)
            defects.require(good, found, str(schema.field(found).type), rule)
    try:
        defects.raise_if_any()
    except InvalidInput as error:
        raise error.in_file(file) from None
    try:
        table = pq.read_table(path, columns=list(chosen.values()))
        return table.rename_columns(list(chosen)).drop_null()
    except _BROKEN as error:
        raise _unreadable(file, error) from None


def _require_regular(path: Path) -> None:
    """Raise `ValueError` for what could block when it is opened."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("a folder, pipe or device")


def _require_size(metadata: Any) -> None:
    """Raise `ValueError` for more rows than any month has, before they are unpacked."""
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    size = sum(abs(group.total_byte_size) for group in groups)
    if not 0 <= metadata.num_rows <= _MOST_ROWS or size > _MOST_BYTES:
        raise ValueError(f"{metadata.num_rows} rows of {size} bytes")


def _unreadable(file: str, error: Exception) -> InvalidInput:
    rule = "a readable Parquet file of trips"
    reason = (getattr(error, "strerror", None) or str(error)).partition("\n")[0][:200]
    value = Path(file).name
    return InvalidInput([Defect(file=file, path="", value=value, rule=rule, hint=reason)])


def _is_numeric(sort: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(sort) or pa.types.is_floating(sort) or pa.types.is_decimal(sort)
    )
