"""The door for untrusted text: a YAML or JSON file becomes plain data, or a list of its defects.

Nothing here knows what a file should say; it only makes sure that reading it is harmless: bounded
in time and memory, UTF-8, without control characters, and with one meaning only.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, NoReturn

from thalweg.errors import Defect, InvalidInput, nearest
from thalweg.files.json_reader import read_json
from thalweg.files.yaml_reader import read_yaml

LARGEST_FILE_BYTES = 8 * 1024 * 1024

Format = Literal["yaml", "json"]

_FORMATS: dict[str, Format] = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_ENCODINGS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
)
_CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
_BINARY_HINT = "save the file as UTF-8 text; this looks like UTF-16 or a binary file"
_MOST_NEIGHBOURS = 2000
_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """The plain data of one file, and the line on which each part of it stands.

    `line_of(path)` is the line of the value at a path such as `operators[3].window.length`, or of
    its nearest known ancestor.
    """

    file: str
    data: object
    line_of: Callable[[str], int | None] = field(repr=False, compare=False)


def read_document(path: str | os.PathLike[str]) -> Document:
    """Read a `.yaml`, `.yml` or `.json` file.

    Raises:
        InvalidInput: with every rule that the file breaks, whatever the file is.
    """
    name = os.fspath(path)
    file = _printable(name)
    suffix = Path(name).suffix.lower()
    if suffix not in _FORMATS:
        _refuse(
            file,
            suffix or None,
            "a file name that ends in .yaml, .yml or .json",
            "the ending says how the file is read",
        )
    return parse_document(_read_bytes(name, file), file=file, format=_FORMATS[suffix])


def parse_document(text: str | bytes, *, file: str, format: Format) -> Document:  # noqa: A002
    """Read text that is in memory; `file` is its name in messages.

    >>> document = parse_document("sites:\\n- {name: fog}", file="city.yaml", format="yaml")
    >>> document.data, document.line_of("sites[0].name")
    ({'sites': [{'name': 'fog'}]}, 2)

    Raises:
        InvalidInput: with every rule that the text breaks, whatever the text is.
    """
    try:
        source = text if isinstance(text, bytes) else text.encode("utf-8")
    except UnicodeEncodeError as error:
        value = f"U+{ord(error.object[error.start]):04X} at character {error.start}"
        _refuse(file, value, "text of whole characters", "half of a surrogate pair is none")
    if len(source) > LARGEST_FILE_BYTES:
        _refuse_size(file, len(source))
    source = source.removeprefix(_BYTE_ORDER_MARK)
    decoded = _decode(source, file)
    _refuse_control_characters(decoded, file)
    try:
        if format == "json":
            data, outline = read_json(decoded, file)
        else:
            data, outline = read_yaml(decoded, source, file)
    except (RecursionError, MemoryError) as error:
        _refuse(file, type(error).__name__, "a file that fits into memory")
    return Document(file, data, outline.line_of)


def _read_bytes(name: str, file: str) -> bytes:
    """The contents of a regular file; a pipe or device is never opened, so nothing can block."""
    try:
        _require_regular(Path(name).stat(), file)
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            # Once more on the open file: by now the name may mean another one.
            _require_regular(os.fstat(handle), file)
            return _read_capped(handle, file)
        finally:
            os.close(handle)
    except FileNotFoundError:
        _refuse(file, None, "an existing file", _neighbour_hint(name))
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        _refuse(file, why, "a file that can be read")


def _read_capped(handle: int, file: str) -> bytes:
    # The size in the directory is no promise: the file may grow, and /proc says 0 for everything.
    contents = bytearray()
    while chunk := os.read(handle, _CHUNK_BYTES):
        contents += chunk
        if len(contents) > LARGEST_FILE_BYTES:
            _refuse_size(file, len(contents))
    return bytes(contents)


def _require_regular(status: os.stat_result, file: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        _refuse(file, "a folder", "a file")
    if not stat.S_ISREG(status.st_mode):
        _refuse(file, "a pipe, socket or device", "a regular file")
    if status.st_size > LARGEST_FILE_BYTES:
        _refuse_size(file, status.st_size)


def _neighbour_hint(name: str) -> str:
    """The name in the same folder that is closest, leaving out those a terminal might obey."""
    folder = Path(name).parent
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for entry in islice(entries, _MOST_NEIGHBOURS)
                if Path(entry.name).suffix.lower() in _FORMATS and entry.name.isprintable()
            )
    except (OSError, ValueError):
        return f'there is no folder "{_printable(str(folder))}"'
    return nearest(Path(name).name, names)


def _decode(source: bytes, file: str) -> str:
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{source[error.start]:02x} at offset {error.start}"
        line = source.count(b"\n", 0, error.start) + 1
        other = next((name for mark, name in _OTHER_ENCODINGS if source.startswith(mark)), "")
        hint = f"it looks like {other}; save it as UTF-8" if other else "save the file as UTF-8"
        if not other and b"\0" in source:
            hint = _BINARY_HINT
        _refuse(file, found, "UTF-8 text", hint, line=line)


def _refuse_control_characters(text: str, file: str) -> None:
    found = _CONTROL_CHARACTERS.search(text)
    if found is None:
        return
    line = text.count("\n", 0, found.start()) + 1
    column = found.start() - text.rfind("\n", 0, found.start())
    value = f"U+{ord(found[0]):04X} in column {column}"
    hint = "remove it"
    if "\0" in text:
        hint = _BINARY_HINT
    _refuse(file, value, "text without control characters", hint, line=line)


def _refuse_size(file: str, size_bytes: int) -> NoReturn:
    _refuse(
        file,
        f"{size_bytes} bytes",
        f"a file of at most {LARGEST_FILE_BYTES} bytes",
        "keep large networks in a Parquet folder",
    )


def _refuse(
    file: str, value: object, rule: str, hint: str = "", line: int | None = None
) -> NoReturn:
    raise InvalidInput(
        [Defect(file=file, path="", value=value, rule=rule, hint=hint, line=line)]
    ) from None


def _printable(name: str) -> str:
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in name)
