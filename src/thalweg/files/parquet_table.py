"""Reads and writes one Parquet file of a network folder, trusting nothing that it says."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import Defect, Defects, InvalidInput, nearest
from thalweg.files.tables import Array, Column, Table, Values, check_values

# A name has at most 64 characters; everything else is at most 8 bytes.
_MOST_BYTES_PER_VALUE = 128
_SMALL_FILE_BYTES = 1024 * 1024
_ROWS_PER_GROUP = 16 * 1024 * 1024

_ERRORS = (OSError, ValueError, TypeError, OverflowError, MemoryError, pa.ArrowException)


def read_table(folder: Path, table: Table, rows: int, site_count: int) -> dict[str, Values]:
    """The columns of a table that must have so many rows; raises `InvalidInput` otherwise."""
    path = folder / table.file
    try:
        _require_regular(path)
        with pq.ParquetFile(path) as file:
            metadata = file.metadata
            columns = _require_columns(file.schema_arrow, table)
            _require_size(metadata, rows, len(columns))
        # Texts stay in their dictionary: a short file must not unfold into a long list of copies.
        texts = [column.name for column in columns if column.is_text]
        with pq.ParquetFile(
            path, metadata=metadata, read_dictionary=texts, page_checksum_verification=True
        ) as file:
            arrow = file.read(columns=[column.name for column in columns])
        if arrow.num_rows != rows:
            _refuse(f"{arrow.num_rows} rows", f"{rows} rows, as network.json says")
        values = {column.name: _values(arrow.column(column.name), column) for column in columns}
        defects = Defects()
        check_values(defects, columns, values, site_count)
        defects.raise_if_any()
        return values
    except InvalidInput as error:
        raise error.in_file(str(path)) from None
    except _ERRORS as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        defect = Defect(file=str(path), path="", value=reason, rule="a Parquet file that is whole")
        raise InvalidInput([defect]) from None


def write_table(folder: Path, table: Table, values: Mapping[str, Values]) -> None:
    """Write the columns that there are values for."""
    columns = [column for column in (*table.columns, *table.optional) if column.name in values]
    arrow = pa.Table.from_arrays(
        [_arrow(values[column.name], column) for column in columns],
        names=[column.name for column in columns],
    )
    # Dictionaries make constant columns small; uncompressed, the rest is read fastest.
    pq.write_table(
        arrow,
        folder / table.file,
        compression="none",
        row_group_size=_ROWS_PER_GROUP,
        store_schema=False,
        write_page_checksum=True,
    )


def _require_regular(path: Path) -> None:
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        _refuse(None, "an existing file")
    if not regular:
        _refuse("a folder, pipe or device", "a regular file")


def _require_columns(schema: Any, table: Table) -> list[Column]:
    """The columns that the file has, where they are the ones it must have."""
    defects = Defects()
    wanted = {column.name: column for column in (*table.columns, *table.optional)}
    optional = any(column.name in schema.names for column in table.optional)
    expected = [*table.columns, *(table.optional if optional else ())]
    for column in expected:
        if schema.names.count(column.name) != 1:
            found = "no such column" if column.name not in schema.names else "the column twice"
            defects.add(column.name, found, f"a column of type {column.type_name}")
            continue
        found_type = str(schema.field(column.name).type)
        rule = f"the type {column.type_name}"
        defects.require(found_type == column.type_name, column.name, found_type, rule)
    for name in schema.names[:1000]:
        if name not in wanted:
            defects.add(str(name)[:64], "a column", "a known column", nearest(str(name), wanted))
    defects.raise_if_any()
    return expected


def _require_size(metadata: Any, rows: int, columns: int) -> None:
    """What the footer says about size, before anything is unpacked."""
    if metadata.num_rows != rows:
        _refuse(f"{metadata.num_rows} rows", f"{rows} rows, as network.json says")
    most = _SMALL_FILE_BYTES + rows * columns * _MOST_BYTES_PER_VALUE
    size = sum(abs(metadata.row_group(k).total_byte_size) for k in range(metadata.num_row_groups))
    if size > most:
        _refuse(f"{size} bytes", f"at most {most} bytes for {rows} rows")


# Buffers are handed over as they are: `pa.array` and `to_numpy` would load pandas, which takes
# longer than reading a large network.


def _values(chunks: Any, column: Column) -> Values:
    if column.is_text:
        return _texts(chunks, column)
    if chunks.null_count and not column.may_be_null:
        _refuse("an empty value", "a value in every row", path=column.name)
    parts = [_numbers(chunk, column) for chunk in chunks.chunks]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, _type(column)), *parts])


def _numbers(chunk: Any, column: Column) -> Array:
    is_given, numbers = chunk.buffers()
    kind = np.dtype(_type(column))
    if numbers is None:
        return np.empty(0, kind)
    found: Array = np.frombuffer(numbers, kind, len(chunk), chunk.offset * kind.itemsize)
    if not chunk.null_count:
        if column.may_be_null and np.isnan(found).any():
            _refuse("NaN", "a number, or an empty value", path=column.name)
        return found
    bits = np.unpackbits(np.frombuffer(is_given, np.uint8), bitorder="little")
    given = bits[chunk.offset : chunk.offset + len(chunk)].astype(bool)
    if np.isnan(found[given]).any():
        _refuse("NaN", "a number, or an empty value", path=column.name)
    return np.where(given, found, np.nan)


def _texts(chunks: Any, column: Column) -> list[str]:
    found: list[str] = []
    for chunk in chunks.chunks:
        if chunk.null_count or chunk.dictionary.null_count:
            _refuse("an empty value", "a value in every row", path=column.name)
        words, places = chunk.dictionary.to_pylist(), chunk.indices
        if len(chunk):
            at = np.frombuffer(places.buffers()[1], np.int32, len(chunk), places.offset * 4)
            if at.min() < 0 or at.max() >= len(words):
                _refuse("a text outside its dictionary", "a file that is whole", path=column.name)
            found += [words[k] for k in at.tolist()]
    return found


def _arrow(values: Values, column: Column) -> Any:
    if isinstance(values, list):
        # Names and tiers are ASCII, so a character is a byte.
        ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer("".join(values).encode("ascii"))]
        return pa.Array.from_buffers(pa.string(), len(values), buffers)
    # Shared and repeated figures have no memory of their own in the order that Arrow needs.
    plain = np.ascontiguousarray(values, dtype=_type(column))
    is_given = None
    if column.may_be_null:
        is_given = pa.py_buffer(np.packbits(~np.isnan(plain), bitorder="little"))
    kind = pa.float64() if column.sort == "figure" else pa.int32()
    return pa.Array.from_buffers(kind, len(plain), [is_given, pa.py_buffer(plain)])


def _type(column: Column) -> type[np.generic]:
    return np.float64 if column.sort == "figure" else np.int32


def _refuse(value: object, rule: str, path: str = "") -> NoReturn:
    raise InvalidInput([Defect(path=path, value=value, rule=rule)])
