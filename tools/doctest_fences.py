"""Shows the examples in docstrings as code: the reference would take `>>>` for quotations."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?m)(^[ \t]*>>> .*\n(?:^[ \t]*\S.*\n?)*)")


class DoctestFences(griffe.Extension):
    """Puts a fence around every example of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            text = obj.docstring.value + "\n"
            obj.docstring.value = _EXAMPLE.sub(r"\n```python\n\1```\n", text)
