"""Which errors say that a disk is away or full, which passes, and not that something is wrong."""

from __future__ import annotations

import errno

from thalweg.spark.log.disk import LogError
from thalweg.spark.log.founding import LogAway

_PASSING = frozenset(
    {
        errno.EDQUOT,
        errno.EHOSTDOWN,
        errno.EIO,
        errno.ENODEV,
        errno.ENOSPC,
        errno.ENOTCONN,
        errno.ENXIO,
        errno.EROFS,
        errno.ESTALE,
        errno.ETIMEDOUT,
    }
)
"""What a disk says that is away or full, and says no more when it is back or has room."""


def is_of_disk(error: BaseException) -> bool:
    """Whether an error is one that passes when a disk is back, or has room again."""
    if isinstance(error, LogError) and isinstance(error.__cause__, OSError):
        return is_of_disk(error.__cause__)
    return isinstance(error, LogAway) or (isinstance(error, OSError) and error.errno in _PASSING)
