"""Reads the trip records of New York's taxis, as the Taxi & Limousine Commission publishes them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

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


def read_trips(path: str | os.PathLike[str]) -> pa.Table:
    """The columns of a trip file that rides are made of; rows that lack one of them are left out.

    Raises:
        InvalidInput: if the file cannot be read or lacks columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = str(path)
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowInvalid) as error:
        rule = "a readable Parquet file of trips"
        reason = str(error).splitlines()[0]
        raise InvalidInput(
            [Defect(file=file, path="", value=Path(path).name, rule=rule, hint=reason)]
        ) from error
    defects = Defects()
    chosen: dict[str, str] = {}
    for name, known in _TRIP_COLUMNS.items():
        found = next((column for column in known if column in schema.names), None)
        if found is None:
            rule = f"a column {' or '.join(known)}"
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
    return (
        pq.read_table(path, columns=list(chosen.values())).rename_columns(list(chosen)).drop_null()
    )


def _is_numeric(sort: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(sort) or pa.types.is_floating(sort) or pa.types.is_decimal(sort)
    )
