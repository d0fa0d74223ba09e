"""Whether the disks of a deployment can be written: what is away or full comes back, mostly.

A run that finds its disk gone has lost nothing: what was committed is there, and what was not is
done again. So it waits, and says what for, instead of spending its restarts on it.
"""

from __future__ import annotations

import errno
import os
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from thalweg.errors import InvalidInput
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log.disk import LogError, explained
from thalweg.spark.log.founding import require_log
from thalweg.spark.log.outage import is_of_disk

_ROOM_BYTES = 4 * 2**20
"""What has to fit: some batches of every query, and what Spark keeps of them."""
_PROBE, _PROBE_S = ".room-", 60.0


def find_outage(spec: DeploymentSpec) -> str | None:
    """What keeps the disks of a deployment from being written; None: nothing does."""
    return find_outage_at((spec.log, *map(spec.log_of, spec.fogs)), spec.folder)


def find_outage_at(logs: Iterable[Path], folder: Path) -> str | None:
    """What keeps logs, which are there, and a folder from being written; None: nothing does."""
    try:
        for root in dict.fromkeys(logs):
            require_log(root)
            _require_room(root)
        _require_room(folder)
    except LogError as error:
        return str(error)
    return None


def _remove_old_probes(folder: Path) -> None:
    """Remove what somebody has left who was killed while it looked for room."""
    for old in folder.glob(f"{_PROBE}*"):
        with suppress(FileNotFoundError):
            if time.time() - old.stat().st_mtime > _PROBE_S:
                old.unlink()


def _require_room(folder: Path) -> None:
    """Raise `LogError` unless something can be written there and brought to the disk."""
    probe = folder / f"{_PROBE}{uuid4().hex}"
    with explained("write to the disk", folder):
        _remove_old_probes(folder)
        try:
            with probe.open("xb", buffering=0) as file:
                written = file.write(b"\0" * _ROOM_BYTES)
                if written < _ROOM_BYTES:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)


@dataclass(slots=True, kw_only=True)
class Blips:
    """Errors of a disk that is well again when somebody looks: a few within a time may pass."""

    most: int = 10
    within_s: float = 60.0
    _times: deque[float] = field(default_factory=deque)

    def let_pass(self, error: BaseException | None, now_s: float) -> bool:
        """Whether an error is one of a disk, and not one too many; counts it.

        `now_s` is of a clock that only goes forward.
        """
        while self._times and now_s - self._times[0] >= self.within_s:
            self._times.popleft()
        if error is None or not _is_of_disk(error) or len(self._times) >= self.most:
            return False
        self._times.append(now_s)
        return True


def _is_of_disk(error: BaseException) -> bool:
    """The same, of what a site refuses because its log is away."""
    if isinstance(error, InvalidInput):
        return any(defect.path == "log" for defect in error.defects)
    return is_of_disk(error)
