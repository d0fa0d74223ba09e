"""Tables that somebody kept, read for a page: not too large, and of the columns that are needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from thalweg.errors import Defect, InvalidInput
from thalweg.files.own_file import require_own
from thalweg.files.parquet_footer import count_values

Sort = Literal["number", "figure", "moment", "text", "truth", "moments", "cuts"]

MOST_ROWS = 1_000_000
# What a table says that it unpacks to, and what its texts take where each is written out.
MOST_BYTES = 256 * 2**20
_MOST_TEXT_BYTES = 64 * 2**20
_NOUNS: dict[Sort, str] = {
    "number": "numbers",
    "figure": "a number",
    "moment": "a finite number",
    "text": "texts",
    "truth": "true or false",
    "moments": "a list of finite numbers",
    "cuts": "operators by site",
}


def open_stored(folder: Path, file: Path) -> pq.ParquetFile:
    """A table of a stored folder, with texts as they are packed.

    Raises:
        ValueError: where it is no regular file of the folder, or unpacks to too much.
        pa.ArrowException, OSError: where it is no table.
    """
    require_own(folder, file)
    with pq.ParquetFile(file) as opened:
        metadata, schema = opened.metadata, opened.schema
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    size = sum(abs(group.total_byte_size) for group in groups)
    with file.open("rb") as raw:
        values = count_values(raw)
    if size > MOST_BYTES or values * 8 > MOST_BYTES:
        raise ValueError("more than fits on a page")
    # A short text that is repeated often would unfold into gigabytes.
    leaves = [schema.column(k) for k in range(len(schema))]
    packed = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    return pq.ParquetFile(file, metadata=metadata, read_dictionary=packed)


def require_small(columns: list[Any]) -> None:
    """Raise `ValueError` where the texts of these arrays, written out, would take too much."""
    if sum(_text_bytes(column) for column in columns) > _MOST_TEXT_BYTES:
        raise ValueError("texts that are too long for a page")


def _text_bytes(array: Any) -> int:
    """At most so many bytes are in the texts of an array."""
    kind = array.type
    if isinstance(array, pa.ChunkedArray):
        return sum(_text_bytes(chunk) for chunk in array.chunks)
    if pa.types.is_dictionary(kind):
        longest = pc.max(pc.binary_length(array.dictionary)).as_py() or 0
        return len(array) * int(longest)
    if pa.types.is_map(kind):
        return _text_bytes(array.keys) + _text_bytes(array.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _text_bytes(array.values)
    if pa.types.is_struct(kind):
        return sum(_text_bytes(array.field(k)) for k in range(kind.num_fields))
    return int(array.nbytes)


def read_stored(folder: Path, file: Path, columns: Mapping[str, Sort], rule: str) -> pa.Table:
    """These columns of a table, each of its sort.

    A `number` and a text may be missing, a `figure` is always there, and a `moment` is finite.

    Raises:
        InvalidInput: where it is not such a table.
    """
    try:
        with open_stored(folder, file) as opened:
            if opened.metadata.num_rows > MOST_ROWS:
                raise ValueError(f"{opened.metadata.num_rows} rows")
            schema = opened.schema_arrow
            wrong = [n for n in columns if schema.names.count(n) != 1]
            if wrong:
                raise ValueError(f"no column {wrong[0]}, or two of them")
            table = opened.read(columns=list(columns))
            require_small(table.columns)
        for name, sort in columns.items():
            _require_sort(name, table.column(name), sort)
        table.validate(full=True)
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0][:200]
        defect = Defect(file=str(file), path="", value=reason, rule=rule)
        raise InvalidInput([defect]) from None
    return table


def _require_sort(name: str, column: Any, sort: Sort) -> None:
    good = _is_sort(column.type, sort)
    if good and sort not in ("number", "text"):
        good = not column.null_count
    if good and sort in ("moment", "moments"):
        good = _is_finite(column if sort == "moment" else pc.list_flatten(column))
    if not good:
        raise ValueError(f"{name} without {_NOUNS[sort]} in every row")


def _is_finite(numbers: Any) -> bool:
    values = pc.cast(numbers, pa.float64(), safe=False).to_numpy()
    return not numbers.null_count and bool(np.isfinite(values).all())


def _is_sort(kind: Any, sort: Sort) -> bool:
    if sort == "text":
        return bool(_is_text(kind))
    if sort == "truth":
        return bool(pa.types.is_boolean(kind))
    if sort == "moments":
        return bool(pa.types.is_list(kind)) and _is_number(kind.value_type)
    if sort == "cuts":
        is_map = pa.types.is_map(kind) and pa.types.is_list(kind.item_type)
        return is_map and _is_text(kind.key_type) and _is_text(kind.item_type.value_type)
    return _is_number(kind)


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
