"""Reads YAML text of unknown origin: plain data only, with the number rules of YAML 1.2."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

import yaml

from thalweg.files.outline import (
    LONGEST_INTEGER_DIGITS,
    LONGEST_KEY,
    LONGEST_TEXT,
    Outline,
    Walk,
    excerpt,
)

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_DIRECTIVES = 16

_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_NOT_FINITE = re.compile(r"[-+]?\.?(?:nan|inf|infinity)", re.IGNORECASE)
_NUMBER_STARTS = frozenset("+-.0123456789")
_NOT_FINITE_STARTS = frozenset("+-.nNiI")
_LINE_BREAKS = "\n\r\u2028\u2029"

_SYNTAX_HINTS = (
    ("mapping values are not allowed", 'check the indentation; quote a text that contains ": "'),
    ("could not find expected ':'", 'write each field as "name: value"'),
    ("unexpected end of stream", "close the quotes"),
    ("expected ',' or ']'", "separate items with commas and close the list with ]"),
    ("expected ',' or '}'", "separate fields with commas and close the mapping with }"),
    ("expected <block end>", "give the entries of one block the same indentation"),
    ("expected key", "give the entries of one block the same indentation"),
    ("expected '-' indicator", "give the entries of one block the same indentation"),
    ("cannot start any token", "quote a text that starts with a special character"),
    ("undefined tag handle", "remove the tag"),
    ("unexpected ':'", "write a space after the colon"),
    ("hexdecimal number", "after \\x, \\u or \\U write digits, or use single quotes"),
    ("unknown escape character", "write \\\\ for a backslash, or use single quotes"),
)


class UnclearScalar(ValueError):
    """An unquoted scalar that may be refused as a number and as a text."""

    def __init__(self, rule: str) -> None:
        self.rule = rule
        super().__init__(rule)


def resolve_plain(text: str) -> bool | int | float | str | None:
    """What an unquoted scalar means: YAML 1.2 core, less what people write by mistake.

    Octal, hexadecimal, sexagesimal, dates and `yes`/`no`/`on`/`off` are texts.

    >>> [resolve_plain(text) for text in ("~", "true", "-12", "1e3", "no", "0x1F", "12:30", "5 ms")]
    [None, True, -12, 1000.0, 'no', '0x1F', '12:30', '5 ms']
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in _NOT_FINITE_STARTS and _NOT_FINITE.fullmatch(text):
        raise UnclearScalar("a finite number")
    if text[0] not in _NUMBER_STARTS or not _NUMBER.fullmatch(text):
        return text
    if _LEADING_ZERO.match(text):
        raise UnclearScalar("a number without leading zeros")
    digits = text.lstrip("+-")
    if digits.isdigit():
        if len(digits) > LONGEST_INTEGER_DIGITS:
            raise UnclearScalar(f"a whole number of at most {LONGEST_INTEGER_DIGITS} digits")
        return int(text)
    number = float(text)
    if math.isinf(number):
        raise UnclearScalar("a finite number")
    return number


def read_yaml(text: str, source: bytes, file: str) -> tuple[object, Outline]:
    """The data of a YAML text (also given as UTF-8 bytes) and the line of each value in it.

    >>> source = "rate:\\n- 5\\n- 7.5"
    >>> data, outline = read_yaml(source, source.encode(), "app.yaml")
    >>> data, outline.line_of("rate[1]")
    ({'rate': [5, 7.5]}, 3)
    """
    walk = Walk(file)
    # The parser compares each %TAG with all before it, so many of them take quadratic time.
    directives = text.startswith("%") + sum(text.count(f"{br}%") for br in _LINE_BREAKS)
    if directives > _MOST_DIRECTIVES:
        rule = f"at most {_MOST_DIRECTIVES} lines that start with %"
        walk.stop(f"{directives} lines", rule, "remove the directives", line=None)
    builder = _Builder(walk)
    try:
        for event in yaml.parse(source, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        _stop_at_syntax_error(error, text, walk)
    except (yaml.YAMLError, ValueError) as error:
        # Without a mark: the pure-Python parser on an escape that is no character.
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        walk.stop(None, f"valid YAML: {what[:80]}", line=None, path="")
    if not builder.has_content:
        walk.stop(None, "a YAML document; the file is empty", line=1)
    walk.raise_if_any()
    return builder.data, walk.outline


class _Builder:
    """Builds data from parser events with a stack of its own, so that depth costs no recursion."""

    def __init__(self, walk: Walk) -> None:
        self.data: object = None
        self.has_content = False
        self._walk = walk
        self._open: list[list[object] | dict[str, object]] = []
        self._has_document = False
        self._steps: dict[type[yaml.Event], Callable[[Any, int], None]] = {
            yaml.ScalarEvent: self._take_scalar,
            yaml.SequenceStartEvent: self._enter_list,
            yaml.MappingStartEvent: self._enter_mapping,
            yaml.SequenceEndEvent: self._leave,
            yaml.MappingEndEvent: self._leave,
            yaml.AliasEvent: self._take_alias,
            yaml.DocumentStartEvent: self._start_document,
        }

    def take(self, event: Any) -> None:
        """Add what the parser saw next."""
        step = self._steps.get(type(event))
        if step is not None:
            step(event, event.start_mark.line + 1)

    def _start_document(self, _: yaml.DocumentStartEvent, line: int) -> None:
        if self._has_document:
            hint = "remove the line --- or split the file"
            self._walk.stop("a second document", "one document per file", hint, line=line, path="")
        self._has_document = True

    def _take_scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        walk, text = self._walk, event.value
        self.has_content = True
        if walk.needs_key:
            self._take_key(event, line)
            return
        if event.anchor is not None or event.tag is not None:
            self._refuse_extras(event, line)
        value: object = text
        if event.style == '"' or len(text) > LONGEST_TEXT:
            walk.check_text(text, line)
        elif not event.style:
            # Only the top can be empty by being absent: "a:" means that a is null.
            self.has_content = bool(text) or bool(self._open)
            try:
                value = resolve_plain(text)
            except UnclearScalar as unclear:
                walk.refuse(text, unclear.rule, "put a text in quotes", line=line)
        self._place(value)
        walk.take_value(line)

    def _take_key(self, event: yaml.ScalarEvent, line: int) -> None:
        walk, text = self._walk, event.value
        is_text = True
        if not event.style:
            try:
                is_text = isinstance(resolve_plain(text[: LONGEST_KEY + 1]), str)
            except UnclearScalar:
                is_text = False
        walk.take_key(text if text or event.style else "null", line)
        if event.anchor is not None or event.tag is not None:
            self._refuse_extras(event, line)
        if not is_text:
            walk.refuse(text, "a text as key", "put the key in quotes", line=line)
        elif text == "<<" and not event.style:
            walk.refuse(text, "no merge keys", "write the fields out", line=line)

    def _take_alias(self, event: yaml.AliasEvent, line: int) -> None:
        alias = f"*{event.anchor}"
        needs_key = self._walk.needs_key
        if needs_key:
            self._walk.take_key(alias, line)
        self._walk.refuse(alias, "no aliases", "write the value out", line=line)
        if not needs_key:
            self._place(None)
            self._walk.take_value(line)

    def _enter_list(self, event: yaml.SequenceStartEvent, line: int) -> None:
        self._enter(event, line, [])

    def _enter_mapping(self, event: yaml.MappingStartEvent, line: int) -> None:
        self._enter(event, line, {})

    def _enter(
        self, event: yaml.CollectionStartEvent, line: int, made: list[object] | dict[str, object]
    ) -> None:
        self.has_content = True
        if event.anchor is not None or event.tag is not None:
            self._refuse_extras(event, line)
        if not self._walk.needs_key:
            self._place(made)
        self._walk.enter(line, mapping=isinstance(made, dict))
        self._open.append(made)

    def _leave(self, _: yaml.Event, __: int) -> None:
        self._open.pop()
        self._walk.leave()

    def _place(self, value: object) -> None:
        if not self._open:
            self.data = value
            return
        here = self._open[-1]
        if isinstance(here, list):
            here.append(value)
        else:
            here[self._walk.key or ""] = value

    def _refuse_extras(self, event: yaml.NodeEvent, line: int) -> None:
        if event.anchor is not None:
            hint = "remove it, and write the value out where it is used"
            self._walk.refuse(f"&{event.anchor}", "no anchors", hint, line=line)
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._walk.refuse(_tag_as_written(tag), "no tags", "remove it", line=line)


def _tag_as_written(tag: str) -> str:
    prefix = "tag:yaml.org,2002:"
    return f"!!{tag.removeprefix(prefix)}" if tag.startswith(prefix) else tag


def _stop_at_syntax_error(error: yaml.MarkedYAMLError, text: str, walk: Walk) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or "it cannot be parsed"
    line, column, shown, hint = None, "", None, ""
    if mark is not None:
        line, column, shown = (
            mark.line + 1,
            f" (column {mark.column + 1})",
            excerpt(text, mark.index),
        )
        hint = _syntax_hint(problem, text, mark.index)
        began = error.context_mark
        if error.context and began is not None and began.line != mark.line:
            problem = f"{problem} {error.context} from line {began.line + 1}"
    walk.stop(shown, f"valid YAML: {problem}{column}", hint, line=line, path="")


def _syntax_hint(problem: str, text: str, index: int) -> str:
    start = text.rfind("\n", 0, index) + 1
    if "\t" in text[start : index + 1] and not text[start:index].strip():
        return "indent with spaces, not tabs"
    return next((hint for part, hint in _SYNTAX_HINTS if part in problem), "")
