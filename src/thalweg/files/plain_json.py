"""JSON that Thalweg itself keeps beside results, read again from whoever has it now."""

from __future__ import annotations

import json
import re
from typing import Any

# No figure of ours has as many digits, and a whole number of them is none for any float.
_ENDLESS = re.compile(rb"[0-9]{300}")


def parse_plain_json(text: bytes) -> Any:
    """The data in a text, which can be told again as JSON: finite numbers, whole characters.

    >>> parse_plain_json(b'{"at_s": 1.5}')
    {'at_s': 1.5}

    Raises:
        ValueError: for all that is no such text.
    """
    if _ENDLESS.search(text):
        raise ValueError("a number of too many digits")
    try:
        data = json.loads(text)
        # Python reads NaN, 1e400 and half of a surrogate pair, and no browser does.
        json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return data
