"""Objects as a setting of a sweep, which is text: packed by the driver, unpacked by workers."""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from functools import lru_cache
from typing import Any
from zlib import compress, decompress


def pack(value: object) -> str:
    """Return the value as text.

    >>> unpack(pack({"runs": 2}))
    {'runs': 2}
    """
    return b64encode(compress(pickle.dumps(value), level=1)).decode()


@lru_cache(maxsize=1)
def unpack(text: str) -> Any:
    """Return the packed value; the last one is remembered, since all points of a task share it."""
    packed = decompress(b64decode(text))
    # Packed by this very driver, so it is as trusted as the driver.
    return pickle.loads(packed)  # noqa: S301  # nosec B301
