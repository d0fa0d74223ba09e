"""Reads chosen columns of a table of vehicles or roads: Parquet, or CSV as SUMO writes it."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.files.parquet_footer import count_values
from thalweg.files.workload_arrow import (
    _ERRORS,
    _MAGIC,
    _WORDS,
    _codes,
    _is_number,
    _is_text,
    _numbers,
    _plain,
)
from thalweg.files.workload_csv import (
    MOST_ROWS_TOLD,
    number_hint,
    read_contents,
    read_number,
    refuse_file,
    show_file,
)
from thalweg.files.workload_table import LARGEST_PARQUET_BYTES, is_csv, is_table
from thalweg.model.graph import Floats

MOST_ROWS = 20_000_000
# Names of vehicles and roads are short; an element of a list counts as a value of its own.
_MOST_BYTES_PER_VALUE = 256
_SMALL_FILE_BYTES = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOUNS = {"number": "numbers", "text": "texts", "list": "lists of numbers"}

Sort = Literal["number", "text", "list"]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Field:
    """A column by the names that it may have; the first one is ours."""

    names: tuple[str, ...]
    sort: Sort = "number"
    optional: bool = False


@dataclass(frozen=True, eq=False)
class Columns:
    """The fields that a table has, by our name; `called` says how the file calls them."""

    rows: int
    called: dict[str, str]
    numbers: dict[str, Floats] = field(default_factory=dict)
    """NaN where a cell is empty."""
    texts: dict[str, tuple[Whole, list[str]]] = field(default_factory=dict)
    """Positions in the list of the different texts; "" where a cell is empty."""
    lists: dict[str, tuple[Whole, Floats]] = field(default_factory=dict)
    """Row k has the values ends[k]…ends[k + 1] − 1."""


def read_columns(path: str | os.PathLike[str], fields: Sequence[Field]) -> Columns:
    """The fields of a `.parquet` or `.csv` table; other columns are passed over.

    Cells of a CSV file stand between commas, or between semicolons as SUMO's tools write them.

    Raises:
        InvalidInput: with every column that is missing or of another sort, and bad cells by line.
    """
    file = show_file(os.fspath(path))
    if not is_table(path):
        rule, hint = "a file name that ends in .csv or .parquet", "the ending says how it is read"
        refuse_file(file, Path(os.fspath(path)).suffix or None, rule, hint)
    contents = read_contents(path, LARGEST_PARQUET_BYTES, "cut the trace into shorter ones")
    try:
        return _read_csv(contents, fields) if is_csv(path) else _read_parquet(contents, fields)
    except InvalidInput as error:
        raise error.in_file(file) from None
    except _ERRORS as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        refuse_file(file, reason, f"a {'CSV' if is_csv(path) else 'Parquet'} file that is whole")


def natural_order(names: Sequence[str]) -> list[int]:
    """The positions of the names in the order in which people count: v2 comes before v10.

    >>> natural_order(["v10", "v2", "a"])
    [2, 1, 0]
    """
    return sorted(range(len(names)), key=lambda k: (_natural_key(names[k]), names[k]))


def _natural_key(name: str) -> list[tuple[int, int, str]]:
    parts: list[tuple[int, int, str]] = []
    text = ""
    for letter in [*name, ""]:
        if text and (letter.isdecimal() != text[0].isdecimal() or not letter):
            # Never a number of thousands of digits: those are compared as texts.
            small = text[0].isdecimal() and len(text) <= 18
            parts.append((0, int(text), "") if small else (1, 0, text))
            text = ""
        text += letter
    return parts


def _choose(header: Sequence[str], fields: Sequence[Field]) -> dict[str, str]:
    """The column of each field; defects for those that are missing or there twice."""
    defects = Defects()
    called: dict[str, str] = {}
    for wanted in fields:
        found = [name for name in header if name in wanted.names]
        noun = _NOUNS[wanted.sort]
        if len(found) > 1:
            rule = f"one column with the {noun} of {wanted.names[0]}"
            defects.add(wanted.names[0], ", ".join(found[:5]), rule, "leave out all but one")
        elif found:
            called[wanted.names[0]] = found[0]
        elif not wanted.optional:
            rule = f"a column of {noun} called {' or '.join(wanted.names)}"
            defects.add(wanted.names[0], None, rule, _likely(wanted, fields, header))
    defects.raise_if_any()
    return called


def _likely(wanted: Field, fields: Sequence[Field], header: Sequence[str]) -> str:
    """The column of the file that may have been meant: one whose nearest name is of this field."""
    field_of = {name: known for known in fields for name in known.names}
    for column in [str(name) for name in header if name not in field_of][:100]:
        # Whoever writes "vehicel" did not mean "vehicle_y".
        close = get_close_matches(column[:200], field_of, n=1, cutoff=0.6)
        if close and field_of[close[0]] is wanted:
            return f'did you mean "{column}"?'
    return "the file has " + ", ".join(str(name)[:40] for name in header[:12])


def _read_parquet(contents: bytes, fields: Sequence[Field]) -> Columns:
    if not (contents.startswith(_MAGIC) and contents.endswith(_MAGIC)):
        raise InvalidInput([Defect(path="", value="other contents", rule="a Parquet file")])
    with pq.ParquetFile(pa.BufferReader(contents)) as parquet:
        metadata, schema = parquet.metadata, parquet.schema_arrow
    _require_size(metadata, count_values(BytesIO(contents)))
    called = _choose(schema.names, fields)
    _require_sorts(schema, fields, called)
    texts = [called[f.names[0]] for f in fields if f.sort == "text" and f.names[0] in called]
    # Texts stay in their dictionary: a short file must not unfold into a long list of copies.
    with pq.ParquetFile(
        pa.BufferReader(contents),
        metadata=metadata,
        read_dictionary=[name for name in texts if not _is_number(schema.field(name).type)],
        page_checksum_verification=True,
    ) as parquet:
        table = parquet.read(columns=list(dict.fromkeys(called.values())))
    if table.num_rows != metadata.num_rows:
        rule = f"{metadata.num_rows} rows, as its footer says"
        raise InvalidInput([Defect(path="", value=f"{table.num_rows} rows", rule=rule)])
    return _columns(table, fields, called)


def _require_size(metadata: Any, values: int) -> None:
    """What the footer says about size, before anything is unpacked."""
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    size = sum(abs(group.total_byte_size) for group in groups)
    defects = Defects()
    rows = metadata.num_rows
    defects.require(0 <= rows <= MOST_ROWS, "", f"{rows} rows", f"at most {MOST_ROWS} rows")
    most = 16 * MOST_ROWS
    defects.require(values <= most, "", f"{values} values", f"at most {most} values")
    most = _SMALL_FILE_BYTES + values * _MOST_BYTES_PER_VALUE
    defects.require(size <= most, "", f"{size} bytes", f"at most {most} bytes")
    defects.raise_if_any()


def _require_sorts(schema: Any, fields: Sequence[Field], called: dict[str, str]) -> None:
    defects = Defects()
    for wanted in fields:
        if (name := called.get(wanted.names[0])) is None:
            continue
        kind = schema.field(name).type
        good = _is_number(kind)
        if wanted.sort == "text":
            # Whole numbers name vehicles as well as texts do.
            good = _is_text(kind) or pa.types.is_integer(kind)
        elif wanted.sort == "list":
            good = pa.types.is_list(kind) and _is_number(kind.value_type)
        rule = f"a column of {_NOUNS[wanted.sort]}"
        defects.require(good, name, f"the type {kind}"[:80], rule)
    defects.raise_if_any()


def _columns(table: Any, fields: Sequence[Field], called: dict[str, str]) -> Columns:
    found = Columns(table.num_rows, called)
    for wanted in fields:
        name = wanted.names[0]
        if name not in called:
            continue
        column = table.column(called[name])
        if wanted.sort == "number":
            found.numbers[name] = _numbers(column)
        elif wanted.sort == "text":
            is_whole = pa.types.is_integer(column.type)
            found.texts[name] = _codes(pc.cast(column, pa.string()) if is_whole else column)
        else:
            found.lists[name] = _lists(column)
    return found


def _lists(chunks: Any) -> tuple[Whole, Floats]:
    lengths = pc.fill_null(pc.cast(pc.list_value_length(chunks), pa.int64()), 0)
    sizes = [_plain(chunk, np.dtype(np.int64)) for chunk in lengths.chunks]
    ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]))
    return ends, _numbers(pc.list_flatten(chunks))


def _read_csv(contents: bytes, fields: Sequence[Field]) -> Columns:
    source = contents.removeprefix(_BYTE_ORDER_MARK)
    if not source.strip():
        rule = "the names of the columns, and rows below"
        raise InvalidInput([Defect(path="", value=None, rule=rule, hint="the file is empty")])
    _require_text(source)
    first = source.lstrip(b"\r\n").splitlines()[0][:100_000].decode("utf-8", errors="replace")
    delimiter = ";" if first.count(";") > first.count(",") else ","
    header = next(csv.reader([first], delimiter=delimiter))
    fields = [wanted for wanted in fields if wanted.sort != "list" or not wanted.optional]
    called = _choose(header, fields)
    sorts = {called[f.names[0]]: f.sort for f in fields if f.names[0] in called}
    try:
        table = _parse_csv(source, delimiter, sorts)
    except pa.ArrowInvalid as error:
        _tell_bad_numbers(source, delimiter, sorts)
        reason = str(error).splitlines()[0][:200]
        rule = f'rows of cells between "{delimiter}"'
        raise InvalidInput([Defect(path="", value=reason, rule=rule)]) from None
    if table.num_rows > MOST_ROWS:
        rule = f"at most {MOST_ROWS} rows"
        raise InvalidInput([Defect(path="", value=f"{table.num_rows} rows", rule=rule)])
    return _columns(table, fields, called)


def _require_text(source: bytes) -> None:
    """Raise `InvalidInput` for other bytes; Arrow would complain of some of them by itself."""
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as error:
        value = f"byte 0x{source[error.start]:02x} at offset {error.start}"
        line = source.count(b"\n", 0, error.start) + 1
        hint = "save the file as UTF-8"
        defect = Defect(path="", line=line, value=value, rule="UTF-8 text", hint=hint)
        raise InvalidInput([defect]) from None


def _parse_csv(source: bytes, delimiter: str, sorts: dict[str, Sort]) -> Any:
    defects: list[Defect] = []
    bad = 0

    def refuse(row: Any) -> str:
        nonlocal bad
        bad += 1
        if bad <= MOST_ROWS_TOLD:
            rule = f"{row.expected_columns} cells, as in the header"
            value = f"{row.actual_columns} cells"
            defects.append(Defect(path="", line=row.number, value=value, rule=rule))
        return "skip"

    table = pa_csv.read_csv(
        pa.BufferReader(source),
        # In one block: dictionaries of many would have to be joined.
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=len(source) + 1),
        parse_options=pa_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=False, invalid_row_handler=refuse
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types={n: pa.float64() if s == "number" else _WORDS for n, s in sorts.items()},
            include_columns=list(sorts),
            null_values=[""],
            strings_can_be_null=False,
        ),
    )
    if bad > MOST_ROWS_TOLD:
        value = f"{bad} bad rows, the first {MOST_ROWS_TOLD} of them above"
        defects.append(Defect(path="", value=value, rule="a table without bad rows"))
    if bad:
        raise InvalidInput(defects)
    return table


def _tell_bad_numbers(source: bytes, delimiter: str, sorts: dict[str, Sort]) -> None:
    """Read all cells as texts, and raise those that should be numbers and are none, by line."""
    try:
        table = _parse_csv(source, delimiter, dict.fromkeys(sorts, "text"))
    except pa.ArrowInvalid:
        return
    lines = [line for line, text in enumerate(source.splitlines(), 1) if text]
    found: list[Defect] = []
    for name in (name for name, sort in sorts.items() if sort == "number"):
        at, words = _codes(table.column(name))
        is_bad = np.array([bool(w.strip()) and read_number(w) is None for w in words], dtype=bool)
        rows = np.flatnonzero(is_bad[at])
        for row in rows[:MOST_ROWS_TOLD].tolist():
            cell = words[at[row]]
            line = lines[row + 1] if row + 1 < len(lines) else None
            hint = number_hint(cell)
            found.append(Defect(path=name, line=line, value=cell, rule="a number", hint=hint))
        if rows.size > MOST_ROWS_TOLD:
            value = f"{rows.size} bad cells, the first {MOST_ROWS_TOLD} of them above"
            found.append(Defect(path=name, value=value, rule="numbers only"))
    if found:
        raise InvalidInput(found)
