"""Turns the bytes of a table into columns with pyarrow, trusting nothing that they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from thalweg.errors import Defect, Defects, InvalidInput, nearest
from thalweg.files.workload_writer import COLUMNS
from thalweg.model.graph import Floats

MOST_ROWS = 5_000_000

# A name has at most 64 characters; everything else is at most 8 bytes.
_MOST_BYTES_PER_VALUE = 128
_SMALL_FILE_BYTES = 1024 * 1024
_TEXTS = ("source", "site")
_MAGIC = b"PAR1"
_WORDS = pa.dictionary(pa.int32(), pa.string())
_ERRORS = (OSError, ValueError, TypeError, OverflowError, MemoryError, pa.ArrowException)


@dataclass(frozen=True, eq=False)
class Rows:
    """The columns of a table; texts as positions in the list of the different ones."""

    time_s: Floats
    rate: Floats
    source: npt.NDArray[np.int64]
    sources: Sequence[str]
    site: npt.NDArray[np.int64]
    sites: Sequence[str]


def read_csv(contents: bytes) -> Rows:
    """The columns of a CSV file whose header is right; raises `ValueError` for bad numbers."""
    table = pa_csv.read_csv(
        pa.BufferReader(contents),
        # In one block: dictionaries of many would have to be joined.
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=len(contents) + 1),
        parse_options=pa_csv.ParseOptions(newlines_in_values=False),
        convert_options=pa_csv.ConvertOptions(
            column_types={n: _WORDS if n in _TEXTS else pa.float64() for n in COLUMNS},
            null_values=[],
            strings_can_be_null=False,
        ),
    )
    return _rows(table)


def read_parquet(contents: bytes, file: str) -> Rows:
    """The columns of a Parquet file; raises `InvalidInput` where it is not such a table."""
    try:
        if not (contents.startswith(_MAGIC) and contents.endswith(_MAGIC)):
            _refuse("other contents", "a Parquet file that is whole")
        with pq.ParquetFile(pa.BufferReader(contents)) as parquet:
            metadata = parquet.metadata
            _require_columns(parquet.schema_arrow)
            _require_size(metadata)
        # Texts stay in their dictionary: a short file must not unfold into a long list of copies.
        with pq.ParquetFile(
            pa.BufferReader(contents),
            metadata=metadata,
            read_dictionary=list(_TEXTS),
            page_checksum_verification=True,
        ) as parquet:
            table = parquet.read(columns=list(COLUMNS))
        if table.num_rows != metadata.num_rows:
            _refuse(f"{table.num_rows} rows", f"{metadata.num_rows} rows, as its footer says")
        return _rows(table)
    except InvalidInput as error:
        raise error.in_file(file) from None
    except _ERRORS as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        defect = Defect(file=file, path="", value=reason, rule="a Parquet file that is whole")
        raise InvalidInput([defect]) from None


def _require_columns(schema: Any) -> None:
    defects = Defects()
    for name in COLUMNS:
        noun = "texts" if name in _TEXTS else "numbers"
        if schema.names.count(name) != 1:
            found = "no such column" if name not in schema.names else "the column twice"
            defects.add(name, found, f"a column of {noun}")
            continue
        kind = schema.field(name).type
        is_good = _is_text(kind) if name in _TEXTS else _is_number(kind)
        defects.require(is_good, name, f"the type {kind}"[:80], f"a column of {noun}")
    for name in schema.names[:1000]:
        if name not in COLUMNS:
            defects.add(str(name)[:64], "a column", "a known column", nearest(str(name), COLUMNS))
    defects.raise_if_any()


def _require_size(metadata: Any) -> None:
    """What the footer says about size, before anything is unpacked."""
    rows = metadata.num_rows
    if not 0 <= rows <= MOST_ROWS:
        _refuse(f"{rows} rows", f"at most {MOST_ROWS} rows")
    most = _SMALL_FILE_BYTES + rows * len(COLUMNS) * _MOST_BYTES_PER_VALUE
    size = sum(abs(metadata.row_group(k).total_byte_size) for k in range(metadata.num_row_groups))
    if size > most:
        _refuse(f"{size} bytes", f"at most {most} bytes for {rows} rows")


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _rows(table: Any) -> Rows:
    source, sources = _codes(table.column("source"))
    site, sites = _codes(table.column("site"))
    time_s, rate = _numbers(table.column("time_s")), _numbers(table.column("rate"))
    return Rows(time_s, rate, source, sources, site, sites)


# Scalars and `to_numpy` would load pandas, which takes longer than reading a large table.


def _numbers(chunks: Any) -> Floats:
    """The figures of a column; NaN where there is none."""
    whole = _filled(pc.cast(chunks, pa.float64(), safe=False), float("nan"))
    parts = [_plain(chunk, np.dtype(np.float64)) for chunk in whole.chunks]
    return np.concatenate([np.empty(0), *parts])


def _codes(chunks: Any) -> tuple[npt.NDArray[np.int64], list[str]]:
    """A column of texts as positions in the list of the different ones; "" where there is none."""
    if not pa.types.is_dictionary(chunks.type):
        chunks = pc.dictionary_encode(chunks)
    words: dict[str, int] = {}
    parts = [np.empty(0, np.int64)]
    for chunk in chunks.chunks:
        texts = [word or "" for word in chunk.dictionary.to_pylist()] + [""]
        at = _filled(pc.cast(chunk.indices, pa.int64()), len(texts) - 1)
        place = np.array([words.setdefault(text, len(words)) for text in texts], dtype=np.int64)
        found = _plain(at, np.dtype(np.int64))
        if found.size and (found.min() < 0 or found.max() >= len(texts)):
            _refuse("a text outside its dictionary", "a file that is whole")
        parts.append(place[found])
    return np.concatenate(parts), list(words)


def _filled(values: Any, stand_in: float) -> Any:
    return pc.fill_null(values, stand_in) if values.null_count else values


def _plain(array: Any, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    numbers = array.buffers()[1]
    if numbers is None or not len(array):
        return np.empty(0, kind)
    return np.frombuffer(numbers, kind, len(array), array.offset * kind.itemsize)


def _refuse(value: object, rule: str) -> NoReturn:
    raise InvalidInput([Defect(path="", value=value, rule=rule)])
