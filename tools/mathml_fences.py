r"""Turns LaTeX in the documentation into MathML while it is built: no script, no font, no network.

A fence of the language `math` is a formula of its own; its number in a paper, `\tag{7}`, stands at
the right. `#!math x` in backticks is a formula within a line. What cannot be translated stops the
build: a page that shows half a formula is worse than none.
"""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert
from pymdownx.inlinehilite import InlineHiliteException
from pymdownx.superfences import SuperFencesException

_TAG = re.compile(r"\\tag\{([^{}]*)\}\s*$")
# What the translator leaves as it is when it does not know it: commands, and marks of columns.
_LEFT_OVER = re.compile(r">([^<]*\\[^<]*|&)<")

# Fonts that know where indices go. Where none of them is there, the browser takes another one, and
# indices stand a little high.
_FONTS = (
    "'Latin Modern Math','STIX Two Math','Cambria Math','STIX Math','DejaVu Math TeX Gyre',math"
)


def to_mathml(latex: str, *, display: str) -> str:
    """A formula as a MathML element; raises `ValueError` for what has no translation."""
    try:
        found = convert(latex, display=display)
    except Exception as error:
        raise ValueError(f"{latex!r} is no formula: {type(error).__name__} {error}") from error
    if left := _LEFT_OVER.search(found):
        raise ValueError(f"{latex!r}: {left[1]!r} has no translation")
    return str(found).replace("<math ", f'<math style="font-family:{_FONTS}" ', 1)


def show_block(source: str, language: str, css_class: str, options: Any, md: Any, **_: Any) -> str:
    """A fence as a formula of its own; wide ones scroll, so that a narrow page stays narrow."""
    del language, options, md
    tag = _TAG.search(source)
    latex = _TAG.sub("", source).strip()
    try:
        formula = to_mathml(latex, display="block")
    except ValueError as error:
        raise SuperFencesException(str(error)) from error
    number = f'<span style="padding-left:1em">({tag[1]})</span>' if tag else ""
    return (
        f'<div class="{css_class}" style="display:flex;align-items:center;margin:1em 0">'
        f'<div style="flex:1;overflow-x:auto;overflow-y:hidden">{formula}</div>{number}</div>'
    )


def show_inline(source: str, language: str, css_class: str, md: Any) -> str:
    """A formula within a line."""
    del language, css_class, md
    try:
        return to_mathml(source, display="inline")
    except ValueError as error:
        raise InlineHiliteException(str(error)) from error
