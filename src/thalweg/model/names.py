"""What a name may look like: safe in a path, a URL, a terminal and a Spark query name."""

from __future__ import annotations

import re

from thalweg.errors import Defects, show_value

LONGEST_NAME = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_STRANGE = re.compile(r"[^A-Za-z0-9_.-]")
_IN_PATHS = frozenset("/\\:~")
NAME_RULE = (
    "a name of letters, digits, '_', '-' or '.', at most 64, starting with a letter or digit"
)


def is_name(text: object) -> bool:
    """Whether the text can name an operator, a site, a node, an application or a network.

    >>> is_name("fog-1"), is_name("../etc/passwd"), is_name("a..b"), is_name("")
    (True, False, False, False)
    """
    return isinstance(text, str) and bool(_NAME.fullmatch(text)) and ".." not in text


def name_hint(text: object) -> str:
    """What keeps a text from being a name; nothing where it is one, or no text at all.

    >>> name_hint("../etc"), name_hint("my taxi"), name_hint("_x")
    ('a name is never a path', 'take out " "', 'it starts with "_"')
    """
    if not isinstance(text, str) or not text or is_name(text):
        return ""
    if len(text) > LONGEST_NAME:
        return f"it has {len(text)} characters"
    strange = list(dict.fromkeys(_STRANGE.findall(text)))
    if strange and set(strange) <= _IN_PATHS:
        return "a name is never a path"
    if strange:
        return f"take out {' and '.join(map(show_value, strange[:5]))}"
    return "two dots in a row belong to paths" if ".." in text else f'it starts with "{text[0]}"'


def require_name(defects: Defects, path: str, name: object) -> None:
    """Remember a defect unless `name` is a name."""
    defects.require(is_name(name), path, name, NAME_RULE, name_hint(name))


def require_unique(defects: Defects, path: str, names: list[str]) -> None:
    """Remember a defect for every name that stands in the list for the second time."""
    first: dict[str, int] = {}
    for position, name in enumerate(names):
        if name in first:
            defects.add(
                f"{path}[{position}].name",
                name,
                "a name of its own",
                f"{path}[{first[name]}] has it already",
            )
        first.setdefault(name, position)
