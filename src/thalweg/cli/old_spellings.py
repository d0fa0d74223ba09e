"""Words that older versions took, and what stands for them now: rewritten before parsing."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

LAST_VERSION = "0.3"
"""The version that no longer takes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldSpelling:
    """An old option of a command, and what replaces it.

    - `rename`: another option takes its value.
    - `flag`: the words in `new` stand for it; it has no value.
    - `drop`: nothing is needed any more; it has no value.
    - `position`: its value becomes the last argument.
    - `list`: the values of all its occurrences become one, with commas, after `new`.
    """

    old: str
    new: str
    kind: Literal["rename", "flag", "drop", "position", "list"] = "rename"

    @property
    def warning(self) -> str:
        """What a user reads who writes the old option."""
        if self.kind == "drop":
            return f"warning: leave out {self.old}; the old spelling ends with {LAST_VERSION}"
        new = f"{self.new} …" if self.kind == "rename" else self.new
        if self.kind == "list":
            new = f"{self.new}…"
        return f"warning: {new} instead of {self.old}; the old spelling ends with {LAST_VERSION}"


def _rename(old: str, new: str) -> OldSpelling:
    return OldSpelling(old=old, new=new)


def _flag(old: str, new: str) -> OldSpelling:
    return OldSpelling(old=old, new=new, kind="flag")


def _drop(old: str) -> OldSpelling:
    return OldSpelling(old=old, new="", kind="drop")


def _position(old: str, new: str) -> OldSpelling:
    return OldSpelling(old=old, new=new, kind="position")


_TRACE_LENGTH = _rename("--seconds", "--for")
_REPRODUCE = (_rename("--into", "--output"), _rename("--master", "--on"))

OLD_SPELLINGS: Mapping[str, tuple[OldSpelling, ...]] = {
    "compare": (_rename("--strategies", "--strategy"),),
    "demo": (_rename("--seconds", "--for"), _position("--folder", "FOLDER")),
    "mobility handover": (_position("--folder", "FOLDER"),),
    "mobility learn": (_rename("--into", "--output"), _rename("--master", "--on")),
    "mobility plan": (_TRACE_LENGTH, _rename("--save", "--output")),
    "mobility predict": (_TRACE_LENGTH, _rename("--every", "--interval")),
    "mobility run": (
        _TRACE_LENGTH,
        _rename("--into", "--output"),
        _rename("--page", "--plot"),
    ),
    "mobility trace": (_TRACE_LENGTH, _rename("--into", "--output")),
    "profile": (
        _rename("--write", "--output"),
        _rename("--repeat", "--repetitions"),
        _position("--from", "FOLDER"),
        _rename("--master", "--on"),
    ),
    "reproduce aels": _REPRODUCE,
    "reproduce migcep": (*_REPRODUCE, _rename("--repetitions", "--seeds")),
    "reproduce tsoo": _REPRODUCE,
    "run": (
        _position("--folder", "FOLDER"),
        _flag("--keep", "--no-adapt"),
        _flag("--no-forecast", "--forecast none"),
        _drop("--forecast"),
    ),
    "schedule": (
        _drop("--trigger"),
        _rename("--usage-most", "--max-usage"),
        _rename("--patience", "--consecutive"),
        _rename("--rest", "--cooldown"),
        _rename("--ahead", "--horizon"),
        _rename("--out", "--output"),
    ),
    "simulate": (
        _rename("--seconds", "--for"),
        _rename("--beside", "--also"),
        _rename("--adapt", "--strategy"),
        OldSpelling(old="--rate-factor", new="--vary rates=", kind="list"),
        _flag("--spark", "--on local[*]"),
        _rename("--master", "--on"),
        _rename("--out", "--output"),
    ),
}
"""By command, the options that it no longer has."""

# With a kind of forecast it is an option of today.
_FORECASTS = frozenset(("none", "last", "seasonal", "smoothing"))


def rewrite(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words in today's spelling, and a warning for each old one that was among them.

    >>> rewrite(["profile", "etl", "--from", "run", "--write=app.yaml"])[0]
    ['profile', 'etl', '--output=app.yaml', 'run']
    """
    length = next((n for n in (2, 1) if " ".join(words[:n]) in OLD_SPELLINGS), 0)
    known = {each.old: each for each in OLD_SPELLINGS.get(" ".join(words[:length]), ())}
    rewriting, rest = _Rewriting(), deque(words[length:])
    while rest and rest[0] != "--":
        word = rest.popleft()
        old = known.get(word.partition("=")[0])
        if old is None:
            rewriting.options.append(word)
        else:
            rewriting.replace(word, old, rest)
    options = [*rewriting.options, *rewriting.listed()]
    return [*words[:length], *options, *rest, *rewriting.last], rewriting.warnings


class _Rewriting:
    """What has been read so far, in today's spelling."""

    def __init__(self) -> None:
        self.options: list[str] = []
        self.last: list[str] = []
        self.warnings: list[str] = []
        self._lists: dict[str, list[str]] = {}

    def replace(self, word: str, old: OldSpelling, rest: deque[str]) -> None:
        """Replace an old option, and its value where it has one."""
        _, equals, value = word.partition("=")
        is_flag = old.kind in ("flag", "drop")
        has_kind = old.old == "--forecast" and bool(rest) and rest[0] in _FORECASTS
        lacks_value = not is_flag and not equals and not rest
        if (is_flag and equals) or has_kind or lacks_value:
            # Today's spelling, or none: whoever parses the words says so.
            self.options.append(word)
            return
        if old.warning not in self.warnings:
            self.warnings.append(old.warning)
        if old.kind == "flag":
            self.options += old.new.split()
        elif old.kind == "rename":
            self.options += [f"{old.new}={value}"] if equals else [old.new, rest.popleft()]
        elif not is_flag:
            given = value if equals else rest.popleft()
            if old.kind == "position":
                self.last.append(given)
            else:
                self._lists.setdefault(old.new, []).append(given)

    def listed(self) -> list[str]:
        """The options whose values were given one by one."""
        words = []
        for new, values in self._lists.items():
            option, _, name = new.partition(" ")
            words += [option, f"{name}{','.join(values)}"]
        return words
