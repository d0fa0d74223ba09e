"""What a name may look like: safe in a path, a URL, a terminal and a Spark query name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thalweg.errors import Defects

LONGEST_NAME = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
NAME_RULE = (
    "a name of letters, digits, '_', '-' or '.', at most 64, starting with a letter or digit"
)


def is_name(text: object) -> bool:
    """Whether the text can name an operator, a site, a node, an application or a network.

    >>> is_name("fog-1"), is_name("../etc/passwd"), is_name("a..b"), is_name("")
    (True, False, False, False)
    """
    return isinstance(text, str) and bool(_NAME.fullmatch(text)) and ".." not in text


def require_name(defects: Defects, path: str, name: object) -> None:
    """Remember a defect unless `name` is a name."""
    hint = "a name is never a path" if isinstance(name, str) and "/" in name else ""
    defects.require(is_name(name), path, name, NAME_RULE, hint)


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
