"""What both readers keep while they read: where each value stands, and what is wrong with it."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from typing import NoReturn

from thalweg.errors import Defect, InvalidInput

DEEPEST_NESTING = 32
# At this size the slowest file that breaks as many rules as it can is answered in about a second.
MOST_KEYS_AND_VALUES = 50_000
LONGEST_TEXT = 65_536
LONGEST_KEY = 256
LONGEST_INTEGER_DIGITS = 40
MOST_DEFECTS = 100

_KEPT_VALUE_LENGTH = 200
_PATH_CUTS = re.compile(r"(?<!\A)[.\[]|\Z")
_CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Outline:
    """The line of every value in a document, found by its path.

    Rows are in document order (a container before its contents), in three flat columns of
    together 16 bytes per value: the line, the row after the value's contents, and the key (None
    in a list). Dictionaries are made only for the containers that are asked for.
    """

    def __init__(self, lines: array[int], ends: array[int], keys: list[str | None]) -> None:
        self._lines = lines
        self._ends = ends
        self._keys = keys
        self._children: dict[int, dict[str, int]] = {}

    def line_of(self, path: str) -> int | None:
        """The line of the value at a path, or of its nearest known ancestor.

        A key is written as it is, also one with dots or brackets in it; where a path can be read
        in two ways, the shorter key wins.

        >>> lines, ends = array("I", [1, 2, 3, 4]), array("I", [4, 4, 3, 4])
        >>> outline = Outline(lines, ends, [None, "sites", None, None])
        >>> [outline.line_of(path) for path in ("", "sites", "sites[1]", "sites[1].name")]
        [1, 2, 4, 4]
        """
        if not self._lines:
            return None
        row, rest = 0, path
        while rest:
            children = self._children_of(row)
            for cut in _PATH_CUTS.finditer(rest):
                child = children.get(rest[: cut.start()])
                if child is not None:
                    row, rest = child, rest[cut.start() :].removeprefix(".")
                    break
            else:
                break
        return self._lines[row]

    def _children_of(self, row: int) -> dict[str, int]:
        """The rows directly inside a container, by key or `[position]`."""
        if row not in self._children:
            children: dict[str, int] = {}
            child = row + 1
            while child < self._ends[row]:
                key = self._keys[child]
                children[f"[{len(children)}]" if key is None else key] = child
                child = self._ends[child]
            self._children[row] = children
        return self._children[row]


@dataclass(slots=True)
class _Container:
    """A list or mapping that is being read, and the place inside it."""

    row: int
    key_lines: dict[str, int] | None
    is_key: bool = False
    position: int = 0
    key: str | None = None
    line: int = 0


class Walk:
    """Follows a reader through a document: keeps its place, and every rule that is broken there.

    The rules that hold for YAML and JSON alike live here: nesting, number of values, keys, texts.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._lines = array("I")
        self._ends = array("I")
        self._keys: list[str | None] = []
        self._key_count = 0
        self._here = _Container(-1, None)
        self._around: list[_Container] = []
        self._defects: list[Defect] = []
        self._left_out = 0

    @property
    def outline(self) -> Outline:
        """The lines of everything that was read."""
        return Outline(self._lines, self._ends, self._keys)

    @property
    def key(self) -> str | None:
        """The key that the next value belongs to; None in a list, at the top and before a key."""
        return self._here.key

    @property
    def needs_key(self) -> bool:
        """Whether the next thing to read is a key of a mapping."""
        return self._here.key is None and self._here.key_lines is not None

    @property
    def is_inside(self) -> bool:
        """Whether a list or mapping is open."""
        return bool(self._around)

    @property
    def path(self) -> str:
        """The path of the value that is being read."""
        parts: list[str] = []
        for here in [*self._around, self._here][1:]:
            if here.key_lines is None:
                parts.append(f"[{here.position}]")
            elif here.key is not None:
                parts.append(("." if parts else "") + _printable(here.key))
        return "".join(parts)

    def take_key(self, key: str, line: int) -> None:
        """Read a key; the next value belongs to it."""
        here = self._here
        here.key, here.line = key, line
        self._key_count += 1
        lines = here.key_lines if here.key_lines is not None else {}
        if key in lines:
            hint = f"it is first given in line {lines[key]}; remove or rename one"
            self.refuse(key, "each key only once", hint, line=line)
            return
        lines[key] = line
        if not (0 < len(key) <= LONGEST_KEY and key.isprintable()):
            rule = f"a key of 1 to {LONGEST_KEY} printable characters"
            self.refuse(key, rule, line=line)

    def take_value(self, line: int) -> None:
        """Read a value that is no list and no mapping."""
        self._add_row(line)
        self._here.position += 1
        self._here.key = None

    def enter(self, line: int, *, mapping: bool) -> None:
        """Read the beginning of a list or mapping; refuse one that is used as a key."""
        is_key = self.needs_key
        if is_key:
            self._here.key, self._here.line = "?", line
            shown = "a mapping" if mapping else "a list"
            self.refuse(shown, "a text as key", "give the entry a name", line=line)
        self._around.append(self._here)
        self._here = _Container(self._add_row(line), {} if mapping else None, is_key)
        if len(self._around) > DEEPEST_NESTING:
            self.stop(
                f"{len(self._around)} levels",
                f"lists and mappings nested at most {DEEPEST_NESTING} levels deep",
                line=line,
            )

    def leave(self) -> None:
        """Read the end of the innermost list or mapping."""
        left, self._here = self._here, self._around.pop()
        self._ends[left.row] = len(self._lines)
        if not left.is_key:
            self._here.position += 1
            self._here.key = None

    def check_text(self, text: str, line: int) -> None:
        """Refuse a text that is too long or that could command a terminal."""
        if len(text) > LONGEST_TEXT:
            self.refuse(text, f"a text of at most {LONGEST_TEXT} characters", line=line)
        elif found := _CONTROL_CHARACTERS.search(text):
            shown = f"U+{ord(found[0]):04X} in {text[:40]}"
            self.refuse(shown, "a text without control characters", "remove it", line=line)

    def refuse(self, value: object, rule: str, hint: str = "", *, line: int | None) -> None:
        """Remember that the value being read breaks a rule, and go on."""
        if len(self._defects) < MOST_DEFECTS:
            self._defects.append(self._defect(value, rule, hint, line, self.path))
        else:
            self._left_out += 1

    def stop(
        self, value: object, rule: str, hint: str = "", *, line: int | None, path: str | None = None
    ) -> NoReturn:
        """Refuse a document that cannot be read any further."""
        where = self.path if path is None else path
        self._defects.append(self._defect(value, rule, hint, line, where))
        raise self._error() from None

    def raise_if_any(self) -> None:
        """Raise everything that was refused."""
        if self._defects:
            raise self._error() from None

    def _error(self) -> InvalidInput:
        if not self._left_out:
            return InvalidInput(self._defects)
        more = f"and {self._left_out} more"
        hint = "mend these first, then check the file again"
        rest = self._defect(more, "a file without such problems", hint, None, "")
        return InvalidInput([*self._defects, rest])

    def _defect(self, value: object, rule: str, hint: str, line: int | None, path: str) -> Defect:
        if isinstance(value, str):
            value = value[:_KEPT_VALUE_LENGTH]
        return Defect(file=self._file, line=line, path=path, value=value, rule=rule, hint=hint)

    def _add_row(self, line: int) -> int:
        row = len(self._lines)
        if row + self._key_count >= MOST_KEYS_AND_VALUES:
            rule = f"at most {MOST_KEYS_AND_VALUES} keys and values in a file"
            hint = "keep large networks in a Parquet folder"
            self.stop(f"more than {MOST_KEYS_AND_VALUES}", rule, hint, line=line, path="")
        here = self._here
        self._lines.append(line if here.key is None else here.line)
        self._ends.append(row + 1)
        self._keys.append(here.key)
        return row


def _printable(key: str) -> str:
    cut = key if len(key) <= LONGEST_KEY else key[:LONGEST_KEY] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in cut)


def excerpt(text: str, index: int) -> str | None:
    """The part of a line around a character, short enough to show; None where it is blank.

    >>> excerpt("a: 1\\nb: c: 2\\n", 9)
    'b: c: 2'
    """
    index = min(index, len(text))
    start = max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1
    ends = [end for end in (text.find("\n", index), text.find("\r", index)) if end >= 0]
    end = min(ends, default=len(text))
    if end - start > 78:
        start = max(start, index - 40)
        end = min(end, start + 78)
    return text[start:end].strip() or None
