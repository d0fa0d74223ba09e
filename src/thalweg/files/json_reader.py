"""Reads JSON text of unknown origin: `json` builds the data, a scan before it keeps the rules."""

from __future__ import annotations

import json
import math
import re
from json.decoder import scanstring  # type: ignore[attr-defined]

from thalweg.files.outline import (
    LONGEST_INTEGER_DIGITS,
    LONGEST_TEXT,
    Outline,
    Walk,
    excerpt,
)

_TOKEN = re.compile(r'[\[\]{}"]|[^\s,:"\[\]{}]+')
_INTEGER = re.compile(r"-?[0-9]+")
_DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def read_json(text: str, file: str) -> tuple[object, Outline]:
    """The data of a JSON text and the line of each value in it.

    >>> data, outline = read_json('{"rate":\\n [5, 7.5]}', "app.json")
    >>> data, outline.line_of("rate[1]")
    ({'rate': [5, 7.5]}, 2)
    """
    walk = Walk(file)
    if not text.strip():
        walk.stop(None, "a JSON document; the file is empty", line=1)
    _scan(text, walk)
    try:
        data: object = json.loads(text, parse_int=_integer, parse_constant=lambda _: None)
    except json.JSONDecodeError as error:
        # A fresh walk: what the scan found in text that is no JSON may be wrong.
        Walk(file).stop(
            excerpt(text, error.pos),
            f"valid JSON: {error.msg[0].lower()}{error.msg[1:]} (column {error.colno})",
            _syntax_hint(text, error),
            line=error.lineno,
        )
    walk.raise_if_any()
    return data, walk.outline


def _scan(text: str, walk: Walk) -> None:
    """Walk through the tokens, refusing what is valid JSON but breaks a rule of ours.

    Commas and colons are skipped: `json` sees to the grammar afterwards. So the scan may be wrong
    about a text that is no JSON, but it never counts fewer levels or values than `json` would.
    """
    position, counted, line = 0, 0, 1
    while token := _TOKEN.search(text, position):
        start, position = token.span()
        line += text.count("\n", counted, start)
        counted = start
        word = token[0]
        if word == '"':
            try:
                string, position = scanstring(text, position, True)
            except json.JSONDecodeError:
                return
            if walk.needs_key:
                walk.take_key(string, line)
            else:
                walk.check_text(string, line)
                walk.take_value(line)
        elif word in "[{":
            walk.enter(line, mapping=word == "{")
        elif word in "]}":
            if not walk.is_inside:
                return
            walk.leave()
        else:
            _check_word(word, walk, line)
            walk.take_value(line)


def _check_word(word: str, walk: Walk, line: int) -> None:
    if len(word) > LONGEST_TEXT:
        walk.check_text(word, line)
    elif word in _NOT_FINITE:
        walk.refuse(word, "a finite number", line=line)
    elif _INTEGER.fullmatch(word):
        if len(word.lstrip("-")) > LONGEST_INTEGER_DIGITS:
            rule = f"a whole number of at most {LONGEST_INTEGER_DIGITS} digits"
            walk.refuse(word, rule, line=line)
    elif _DECIMAL.fullmatch(word) and math.isinf(float(word)):
        walk.refuse(word, "a finite number", line=line)


def _integer(digits: str) -> int:
    # Longer ones are refused by the scan; int() would raise on them, or take quadratic time.
    return int(digits) if len(digits) <= LONGEST_INTEGER_DIGITS + 1 else 0


def _syntax_hint(text: str, error: json.JSONDecodeError) -> str:
    rest = text[error.pos : error.pos + 10]
    before = text[max(0, error.pos - 200) : error.pos].rstrip()
    has_comma = rest.startswith(("]", "}")) and before.endswith(",")
    if has_comma or "trailing comma" in error.msg:
        return "remove the comma before the closing bracket"
    if rest.startswith("'"):
        return "put texts and keys in double quotes"
    if rest.startswith(("//", "/*", "#")):
        return "JSON has no comments; remove it, or write YAML"
    if rest.startswith(("True", "False", "None")):
        return "write true, false or null"
    if error.pos == 0:
        return "JSON begins with {; if this is YAML, let its name end in .yaml"
    if "Extra data" in error.msg:
        return "one file holds one JSON value"
    if "Unterminated string" in error.msg:
        return "close the quotes"
    if "Invalid control character" in error.msg:
        return "write \\n for a line break and \\t for a tab"
    return ""
