"""Whether the disks of a deployment can be written: what is away or full comes back, mostly.

A run that finds its disk gone has lost nothing: what was committed is there, and what was not is
done again. So it waits, and says what for, instead of spending its restarts on it.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from uuid import uuid4

from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log.disk import LogError, explained
from thalweg.spark.log.founding import require_log

_ROOM_BYTES = 4 * 2**20
"""What has to fit: some batches of every query, and what Spark keeps of them."""


def find_outage(spec: DeploymentSpec) -> str | None:
    """What keeps the disks of a deployment from being written; None: nothing does."""
    try:
        for root in dict.fromkeys((spec.log, *map(spec.log_of, spec.fogs))):
            require_log(root)
            _require_room(root)
        _require_room(spec.folder)
    except LogError as error:
        return str(error)
    return None


def _require_room(folder: Path) -> None:
    """Raise `LogError` unless something can be written there and brought to the disk."""
    probe = folder / f".room-{uuid4().hex}"
    with explained("write to the disk", folder):
        try:
            with probe.open("xb", buffering=0) as file:
                written = file.write(b"\0" * _ROOM_BYTES)
                if written < _ROOM_BYTES:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)
