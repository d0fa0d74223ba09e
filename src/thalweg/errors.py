"""The errors Thalweg raises on purpose, and how it collects every problem before raising one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypeVar

_SHOWN_VALUE_LENGTH = 80

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One thing that is wrong with an input: where, what was found, what is needed, what to do.

    >>> print(Defect(file="city.yaml", path="links[3].latency", value="-1 ms",
    ...              rule="a duration >= 0", hint='write "0 ms" for co-located sites'))
    city.yaml: links[3].latency: got "-1 ms", need a duration >= 0. Hint: write "0 ms" for co-located sites.
    """  # noqa: E501

    path: str
    value: object
    rule: str
    hint: str = ""
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        where = ": ".join(part for part in (place, self.path) if part)
        message = f"got {show_value(self.value)}, need {self.rule}"
        text = f"{where}: {message}" if where else message
        if self.hint:
            stop = "" if self.hint.endswith(("?", ".", "!")) else "."
            text = f"{text}. Hint: {self.hint}{stop}"
        return printable(text)


class ThalwegError(Exception):
    """The root of every error that Thalweg raises on purpose."""


class NotInTime(ThalwegError):
    """Something was not done in the time that it was given, and may be: it can be asked again."""


class InvalidInput(ThalwegError):
    """An input breaks at least one rule; `defects` lists every rule that it breaks."""

    def __init__(self, defects: Iterable[Defect]) -> None:
        self.defects = tuple(defects)
        super().__init__(self.defects)

    def __str__(self) -> str:
        return "\n".join(str(defect) for defect in self.defects)

    def in_file(
        self, file: str, line_of: Callable[[str], int | None] | None = None
    ) -> InvalidInput:
        """The same problems, each with the file (and line, where known) that it comes from."""
        return InvalidInput(
            replace(d, file=d.file or file, line=d.line or (line_of(d.path) if line_of else None))
            for d in self.defects
        )


class MissingExtra(ThalwegError):
    """A feature needs an optional package that is not installed."""


class StrategyError(ThalwegError):
    """A strategy broke the promise every strategy makes (docs: writing a strategy)."""


class Defects:
    """Collects defects, so that a user sees all of them at once.

    >>> found = Defects()
    >>> found.require(-1 >= 0, "rate", -1, "a number >= 0")
    >>> found.raise_if_any()
    Traceback (most recent call last):
    thalweg.errors.InvalidInput: rate: got -1, need a number >= 0
    """

    def __init__(self) -> None:
        self._found: list[Defect] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, path: str, value: object, rule: str, hint: str = "") -> None:
        """Remember one defect."""
        self._found.append(Defect(path=path, value=value, rule=rule, hint=hint))

    def require(self, condition: bool, path: str, value: object, rule: str, hint: str = "") -> None:
        """Remember a defect unless the condition holds."""
        if not condition:
            self.add(path, value, rule, hint)

    def absorb(self, error: InvalidInput, prefix: str = "") -> None:
        """Remember the defects of an error raised by a part, with the part's path in front."""
        if prefix:
            self._found.extend(replace(d, path=join_path(prefix, d.path)) for d in error.defects)
        else:
            self._found.extend(error.defects)

    def attempt(self, prefix: str, make: Callable[[], Made]) -> Made | None:
        """What `make` returns; or None and its defects remembered, with the prefix in front."""
        try:
            return make()
        except InvalidInput as error:
            self.absorb(error, prefix)
            return None

    def raise_if_any(self) -> None:
        """Raise everything that was remembered."""
        if self._found:
            raise InvalidInput(self._found)


def join_path(prefix: str, path: str) -> str:
    """Two parts of a path into a document, joined.

    >>> join_path("links[3]", "latency"), join_path("links", "[3]"), join_path("", "a")
    ('links[3].latency', 'links[3]', 'a')
    """
    if not prefix or not path:
        return prefix or path
    return f"{prefix}{path}" if path.startswith("[") else f"{prefix}.{path}"


def show_value(value: object) -> str:
    """A value as a person wrote it, cut to a readable length and free of control characters."""
    if isinstance(value, str):
        text = json.dumps(value[: _SHOWN_VALUE_LENGTH + 1], ensure_ascii=False)
        text = printable(text)
    elif value is None:
        return "nothing"
    elif isinstance(value, bool):
        return "true" if value else "false"
    elif isinstance(value, dict):
        return f"a mapping with {_count(value, 'field')}"
    elif isinstance(value, (list, tuple)):
        return _show_list(value)
    elif isinstance(value, int) and abs(value) >= 10**_SHOWN_VALUE_LENGTH:
        return f"a whole number of more than {_SHOWN_VALUE_LENGTH} digits"
    else:
        text = repr(value)
    if len(text) > _SHOWN_VALUE_LENGTH:
        return text[: _SHOWN_VALUE_LENGTH - 1] + ('…"' if isinstance(value, str) else "…")
    return text


def printable(text: str) -> str:
    """The text on one line, with nothing in it that a terminal could obey."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _show_list(values: Sequence[object]) -> str:
    """A short list of single values in full; of any other, how long it is."""
    simple = all(value is None or isinstance(value, (str, bool, int, float)) for value in values)
    if values and len(values) <= 8 and simple:
        text = f"[{', '.join(map(show_value, values))}]"
        if len(text) <= _SHOWN_VALUE_LENGTH:
            return text
    return f"a list of {_count(values, 'item')}"


def _count(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the known word closest to `name`, or all of them where few are known.

    >>> nearest("selectivty", ["selectivity", "rate"])
    'did you mean "selectivity"?'
    """
    words = [str(word) for word in known]
    likely = words if len(words) <= 500 else [w for w in words if abs(len(w) - len(name)) <= 2]
    # Comparing takes time; beyond some hundreds of names a hint is a matter of luck.
    close = get_close_matches(name[:200], likely[:500], n=1, cutoff=0.6)
    if close:
        return f'did you mean "{close[0]}"?'
    if 0 < len(words) <= 12:
        return "known: " + ", ".join(words)
    return ""
