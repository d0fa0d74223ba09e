"""Writes plain data as YAML that people like to read: what is short stands on one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from thalweg.files.yaml_reader import UnclearScalar, resolve_plain

_WIDTH = 100
_PLAIN = re.compile(r"(?:[A-Za-z_/]|-?[0-9][0-9.e+-]* )[A-Za-z0-9_./µ %+()=-]*(?<! )")
# Texts to us, but something else to readers of YAML 1.1.
_WORDS = frozenset(("yes", "no", "on", "off", "y", "n", "nan", "inf"))


def write_yaml(data: dict[str, Any]) -> str:
    """The data as YAML: lists and mappings within a line where they fit, else one entry a line.

    >>> print(write_yaml({"thalweg": 1, "streams": [{"source": "a", "target": "7"}]}), end="")
    thalweg: 1
    streams:
      - {source: a, target: "7"}
    """
    return "".join(f"{line}\n" for line in _mapping(data, "", top=True))


def _mapping(data: dict[str, Any], indent: str, *, top: bool = False) -> Iterator[str]:
    for key, value in data.items():
        name = f"{indent}{_flow(key)}:"
        if isinstance(value, dict) and value and not _fits(value, name):
            yield name
            yield from _mapping(value, f"{indent}  ")
        elif _has_items(value) and (top or not _fits(value, name)):
            yield name
            yield from _items(value, f"{indent}  ")
        else:
            yield f"{name} {_flow(value)}"


def _items(values: list[Any], indent: str) -> Iterator[str]:
    for value in values:
        if not isinstance(value, dict) or not value or _fits(value, f"{indent}-"):
            yield f"{indent}- {_flow(value)}"
            continue
        lines = _mapping(value, f"{indent}  ")
        yield f"{indent}- {next(lines).lstrip()}"
        yield from lines


def _has_items(value: object) -> bool:
    """Whether a list has entries of their own; the row of a matrix stays on one line."""
    return isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)


def _fits(value: object, before: str) -> bool:
    return len(before) + 1 + len(_flow(value)) <= _WIDTH


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        return value if _is_plain(value) else _quoted(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    text = repr(float(value))
    # Without a point, 1e-05 is a text to readers of YAML 1.1.
    return text if "." in text else text.replace("e", ".0e")


def _is_plain(text: str) -> bool:
    """Whether this reader, and most likely any other, takes the bare text for a text."""
    if not _PLAIN.fullmatch(text) or text.lower() in _WORDS:
        return False
    try:
        return resolve_plain(text) == text
    except UnclearScalar:
        return False


def _quoted(text: str) -> str:
    escaped = "".join(_escape(character) for character in text)
    return f'"{escaped}"'


def _escape(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
