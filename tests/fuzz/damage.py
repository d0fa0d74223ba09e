"""Ways to spoil files that are right; the same generator gives the same damage."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from property.spoiling import places_in, value_at

HTML = "<img src=x onerror=alert(1)>"
NAMES = (
    *("../../etc/passwd", "/etc/passwd", "C:\\x", "\\\\host\\share", "con", "nul.txt", ".", ".."),
    *("", " ", "~", "~root", "a/b", "-rf", "$HOME", "`id`", "%s", "{0}", HTML, "=1+1", "@cmd"),
    *("\u202eevil", "\u2066x", "\x1b[2J\x1b[31m", "\x1b]0;x\x07", "\x9b31m", "a\rb", "a\nb", "\0"),
    *("\ufeffx", "\ud800", "\u2028", "\uffff", "x" * 100_000, "é" * 300, "9" * 400, "nan", "inf"),
)
NUMBERS = (
    *(float("nan"), float("inf"), -float("inf"), -0.0, 0, -1, 1e308, -1e308, 5e-324, 10**400),
    *(-(10**400), 2**31, 2**63, 2**64, 1e15, 0.5),
)
PLAIN = (None, True, False, [], {}, [[]], {"": None}, [None], "text", 1, 1.5)
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\0", b"\x1b[2J", b"\xed\xa0\x80", b"\r\n")
_PIECES = (
    *(b"[" * 5_000, b"{" * 5_000, b'{"a":' * 2_000, b"- " * 2_000, b"9" * 5_000, b"1e400", b"NaN"),
    *(b"&a ", b"*a", b"!!python/object:os.system ", b"<<: ", b"---\n", b"\t", b'"', b",", b";"),
    *(b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0" * 64, b"x" * 200_000, b"", b"\n", b"-", b"Infinity"),
)


def pick(rng: np.random.Generator, choices: Any) -> Any:
    """One of the choices."""
    return choices[int(rng.integers(len(choices)))]


def damage_bytes(rng: np.random.Generator, contents: bytes) -> bytes:
    """Bytes flipped, cut out, repeated or put in; cut off; or in another encoding."""
    way = int(rng.integers(10))
    if way == 0:
        return contents[: int(rng.integers(len(contents) + 1))]
    if way == 1:
        return pick(rng, _MARKS) + contents
    if way == 2:
        return contents.decode("latin-1").encode(pick(rng, ("utf-16", "utf-32", "utf-16-be")))
    spoilt = bytearray(contents)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(spoilt) + 1))
        end = at + int(pick(rng, (0, 1, 1, 4, 30)))
        if way < 6 and at < len(spoilt):
            spoilt[at] ^= 1 << int(rng.integers(8))
        elif way == 6:
            spoilt[at:end] = spoilt[at:end] * 3
        else:
            spoilt[at:end] = pick(rng, (*_PIECES, *_MARKS))
    return bytes(spoilt)


def damage_tree(rng: np.random.Generator, data: Any) -> Any:
    """Plain data with one to four of its values or keys replaced, taken out or nested deeply."""
    data = copy.deepcopy(data)
    for _ in range(int(rng.integers(1, 5))):
        places = list(places_in(data)) if isinstance(data, (dict, list)) else []
        if not places:
            return data
        path = pick(rng, places)
        holder, key = value_at(data, path[:-1]), path[-1]
        way = int(rng.integers(7))
        if way < 3:
            holder[key] = copy.deepcopy(pick(rng, (NAMES, NUMBERS, PLAIN)[way]))
        elif way == 3:
            del holder[key]
        elif way == 4 and isinstance(holder, dict):
            holder[pick(rng, NAMES)] = holder.pop(key)
        elif way == 5:
            for _ in range(int(pick(rng, (1, 60, 150)))):
                holder[key] = [holder[key]]
        elif isinstance(holder, list):
            holder.extend(copy.deepcopy(holder[key]) for _ in range(3))
        else:
            holder[pick(rng, NAMES)] = copy.deepcopy(holder[key])
        # A part that is there twice must be damaged once.
        data = json.loads(json.dumps(data))
    return data


def damage_table(rng: np.random.Generator, table: pa.Table) -> pa.Table:
    """A table with a column renamed, doubled, dropped, of another type, or with other values."""
    at = int(rng.integers(table.num_columns))
    name = table.column_names[at]
    way = int(rng.integers(8))
    if way == 0:
        return table.drop_columns([name])
    if way == 1:
        names = list(table.column_names)
        names[at] = pick(rng, NAMES).encode("utf-8", "replace").decode()
        return table.rename_columns(names)
    if way == 2:
        return table.append_column(name, table.column(at))
    if way == 3:
        return table.slice(0, int(rng.integers(0, 2)))
    rows = table.num_rows
    values: list[Any] = table.column(at).to_pylist()
    others = pick(rng, (NAMES, NUMBERS, PLAIN))
    for row in range(rows) if way == 4 else rng.integers(0, max(rows, 1), 2).tolist():
        if rows:
            values[row] = pick(rng, others)
    return table.set_column(at, name, as_column(values, table.schema.field(at).type))


def as_column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """The values as they are in a column of this type, or else as numbers, or else as texts."""
    for wanted in (kind, None, pa.float64()):
        try:
            return pa.array(values, wanted)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
    return pa.array([str(value).encode("utf-8", "replace").decode() for value in values])


def damage_lines(rng: np.random.Generator, text: str, separator: str) -> str:
    """Lines with cells replaced, and lines cut out or repeated."""
    lines = text.split("\n")
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(lines)))
        way = int(rng.integers(5))
        if way == 0:
            del lines[at : at + int(rng.integers(1, 4))]
            lines = lines or [""]
        elif way == 1:
            lines[at:at] = [lines[at]] * 2
        else:
            cells = lines[at].split(separator)
            value = pick(rng, pick(rng, (NAMES, NUMBERS)))
            cells[int(rng.integers(len(cells)))] = str(value)
            lines[at] = separator.join(cells)
    return "\n".join(lines)


def damage_file(rng: np.random.Generator, file: Path) -> None:
    """Spoil a file in place: by what it means, or by its bytes alone."""
    contents = file.read_bytes()
    if rng.random() < 0.4:
        file.write_bytes(damage_bytes(rng, contents))
    elif file.suffix == ".json":
        file.write_text(json.dumps(damage_tree(rng, json.loads(contents))))
    elif file.suffix == ".jsonl":
        lines = contents.decode().splitlines()
        at = int(rng.integers(len(lines)))
        lines[at] = json.dumps(damage_tree(rng, json.loads(lines[at])))
        file.write_text("\n".join([*lines, ""]))
    elif file.suffix == ".parquet":
        spoilt_table = damage_table(rng, pq.read_table(file))
        try:
            pq.write_table(spoilt_table, file)
        except pa.ArrowException:  # There are tables that cannot be kept.
            file.write_bytes(damage_bytes(rng, contents))
    elif file.suffix in (".csv", ".yaml"):
        separator = "," if file.suffix == ".csv" else ": "
        spoilt = damage_lines(rng, contents.decode(), separator)
        file.write_bytes(spoilt.encode("utf-8", "surrogatepass"))
    else:
        file.write_bytes(damage_bytes(rng, contents))


def files_below(place: Path) -> list[Path]:
    """The file itself, or all files of a folder, in order."""
    return [place] if place.is_file() else sorted(f for f in place.rglob("*") if f.is_file())
