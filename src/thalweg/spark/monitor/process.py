"""What the processes of this machine's sites use: a site with all that it has started."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
# Fields of /proc/PID/stat after the name, which may hold spaces: state is the first.
_PARENT, _USER, _SYSTEM, _RESIDENT = 1, 11, 12, 21


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessUsage:
    """A process and its descendants: CPU since they began, and memory that is resident now."""

    cpu_s: float
    memory_bytes: int


def read_usages(pids: Iterable[int]) -> dict[int, ProcessUsage]:
    """What each of these processes uses, with all below it; those that are not there are left out.

    >>> usage = read_usages([os.getpid()])[os.getpid()]
    >>> usage.cpu_s > 0, usage.memory_bytes > 1_000_000
    (True, True)
    """
    table = _read_table()
    below: dict[int, list[int]] = {}
    for pid, (parent, _, _) in table.items():
        below.setdefault(parent, []).append(pid)
    found = {}
    for pid in pids:
        if pid not in table:
            continue
        family, waiting = [], [pid]
        while waiting:
            member = waiting.pop()
            family.append(member)
            waiting += below.get(member, [])
        found[pid] = ProcessUsage(
            cpu_s=sum(table[member][1] for member in family),
            memory_bytes=sum(table[member][2] for member in family),
        )
    return found


def read_children_cpu_s(pid: int, name: str) -> float:
    """CPU seconds of all processes below this one whose program has a name that begins so."""
    table = _read_table()
    below: dict[int, list[int]] = {}
    for child, (parent, _, _) in table.items():
        below.setdefault(parent, []).append(child)
    total, waiting = 0.0, list(below.get(pid, ()))
    while waiting:
        child = waiting.pop()
        waiting += below.get(child, [])
        with suppress(OSError):
            program = (_PROC / str(child) / "comm").read_text(encoding="utf-8", errors="replace")
            total += table[child][1] if program.startswith(name) else 0.0
    return total


def _read_table() -> dict[int, tuple[int, float, int]]:
    """Parent, CPU seconds and resident bytes of every process; empty where there is no /proc."""
    table = {}
    if not _PROC.is_dir():
        return {}
    tick_s, page = 1.0 / os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for entry in (path.name for path in _PROC.iterdir()):
        if not entry.isdecimal():
            continue
        # It may end while we look.
        with suppress(OSError, IndexError, ValueError):
            text = (_PROC / entry / "stat").read_text(encoding="utf-8", errors="replace")
            fields = text.rpartition(")")[2].split()
            cpu_s = (int(fields[_USER]) + int(fields[_SYSTEM])) * tick_s
            table[int(entry)] = (int(fields[_PARENT]), cpu_s, int(fields[_RESIDENT]) * page)
    return table
