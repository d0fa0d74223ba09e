"""How full the disk of a run is, and when it will be full: read, then judged by a pure function."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from thalweg.spark.deployment.health.finding import GOOD, PROBLEM, WARNING, Finding

_SPAN_S = 3600.0
_LEAST_SPAN_S = 60.0
_LITTLE_BYTES = 200 * 2**20
_SOON_S = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFacts:
    """The disk under a run: free and used bytes, and how much came in the last hour of the run."""

    free_bytes: int
    total_bytes: int
    used_bytes: int = 0
    grown_bytes: int = 0
    span_s: float = 0.0

    @property
    def full_in_s(self) -> float | None:
        """When it will be full if the run goes on as it did; None where that cannot be told."""
        if self.span_s < _LEAST_SPAN_S or self.grown_bytes <= 0:
            return None
        return self.free_bytes / (self.grown_bytes / self.span_s)


def read_disk(folder: Path) -> DiskFacts:
    """Look at the disk, and at every file of the run."""
    disk = shutil.disk_usage(folder)
    files = [(s.st_mtime, s.st_size) for s in _stats(folder)]
    newest_s = max((time_s for time_s, _ in files), default=0.0)
    oldest_s = min((time_s for time_s, _ in files), default=0.0)
    span_s = min(_SPAN_S, newest_s - oldest_s)
    return DiskFacts(
        free_bytes=disk.free,
        total_bytes=disk.total,
        used_bytes=sum(size for _, size in files),
        grown_bytes=sum(size for time_s, size in files if time_s > newest_s - span_s),
        span_s=span_s,
    )


def judge_disk(facts: DiskFacts) -> Iterator[Finding]:
    """What is to be said of the disk."""
    free, used = _show(facts.free_bytes), _show(facts.used_bytes)
    what = f"{free} free; the run has {used}"
    remedy = "free some space, or move the stopped run to a larger disk"
    full_in_s = facts.full_in_s
    if full_in_s is not None:
        what += f" and fills the disk in {_show_time(full_in_s)} if it goes on as it did"
    if facts.free_bytes < _LITTLE_BYTES:
        yield Finding(level=PROBLEM, where="disk", what=what, remedy=remedy)
    elif full_in_s is not None and full_in_s < _SOON_S:
        yield Finding(level=WARNING, where="disk", what=what, remedy=remedy)
    else:
        yield Finding(level=GOOD, where="disk", what=what)


def _stats(folder: Path) -> Iterator[os.stat_result]:
    """Every file below a folder, links not followed; those that go meanwhile are left out."""
    for above, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(Path(above, name))
            except OSError:
                continue


def _show(size: int) -> str:
    """Bytes for people.

    >>> _show(1_500_000_000)
    '1.5 GB'
    """
    for unit, bytes_each in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= bytes_each:
            return f"{size / bytes_each:.3g} {unit}"
    return f"{size} B"


def _show_time(seconds: float) -> str:
    for unit, length_s in (("days", 86400.0), ("hours", 3600.0)):
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{seconds / 60.0:.0f} min"
