"""What a run has on this machine now: processes, files in its folder, files in the temp folder."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from campaign.load.analysis import Belongings

_PROC = Path("/proc")
# Fields of /proc/PID/stat after the name, which may hold spaces: state is the first.
_STATE, _PARENT, _BORN, _RESIDENT = 0, 1, 19, 21
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_HEAP_LOOKS, _HEAP_LOOK_S = 5, 4.0
_JCMD_TIMEOUT_S = 60.0
COORDINATOR = "coordinator"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFigures:
    """One process of a run: whose it is, and what it uses."""

    role: str
    """`coordinator`, or a site with `python`, `jvm` or `worker`."""
    pid: int
    resident_bytes: int
    threads: int
    open_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFigures:
    """The files of one kind."""

    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    parent: int
    born: int
    resident_bytes: int
    command: str


class ProcessCensus:
    """Counts this process and all below it; it knows again whom it has seen once."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, str]] = {}

    def take(self, sites: Mapping[str, int]) -> tuple[ProcessFigures, ...]:
        """The processes that are there now, by role and number; `sites` has those of the sites."""
        table, found = _read_table(), []
        names = {pid: site for site, pid in sites.items()}
        for pid, site in _family(table, os.getpid(), names):
            entry = table[pid]
            role = COORDINATOR if pid == os.getpid() else _role(entry, pid in names, site)
            self._seen[pid] = (entry.born, role)
            with suppress(OSError):
                found.append(
                    ProcessFigures(
                        role=role,
                        pid=pid,
                        resident_bytes=entry.resident_bytes,
                        threads=len(os.listdir(_PROC / str(pid) / "task")),  # noqa: PTH208
                        open_files=len(os.listdir(_PROC / str(pid) / "fd")),  # noqa: PTH208
                    )
                )
        return tuple(sorted(found, key=lambda each: (each.role, each.pid)))

    def still_there(self) -> frozenset[str]:
        """Whom it has ever seen and who has not ended, this process aside."""
        table = _read_table()
        return frozenset(
            f"{role} ({pid})"
            for pid, (born, role) in self._seen.items()
            if pid != os.getpid() and pid in table and table[pid].born == born
        )


def _role(entry: _Entry, is_site: bool, site: str) -> str:
    if is_site:
        return f"{site} python"
    return f"{site or 'other'} {'jvm' if entry.command == 'java' else 'worker'}"


def _family(
    table: Mapping[int, _Entry], root: int, names: Mapping[int, str]
) -> Iterator[tuple[int, str]]:
    """A process and all below it, each with the site that it belongs to, if it does."""
    below: dict[int, list[int]] = {}
    for pid, entry in table.items():
        below.setdefault(entry.parent, []).append(pid)
    waiting = [(root, "")]
    while waiting:
        pid, site = waiting.pop()
        site = names.get(pid, site)
        yield pid, site
        waiting += [(child, site) for child in below.get(pid, [])]


def _read_table() -> dict[int, _Entry]:
    table = {}
    for name in os.listdir(_PROC):  # noqa: PTH208 - it is asked for every few seconds
        # It may end while we look; one that has ended and waits for its parent does not count.
        with suppress(OSError, IndexError, ValueError):
            text = (_PROC / name / "stat").read_text(encoding="utf-8", errors="replace")
            head, _, rest = text.rpartition(")")
            fields = rest.split()
            if fields[_STATE] != "Z":
                table[int(name)] = _Entry(
                    parent=int(fields[_PARENT]),
                    born=int(fields[_BORN]),
                    resident_bytes=int(fields[_RESIDENT]) * _PAGE_BYTES,
                    command=head.partition("(")[2],
                )
    return table


def least_live_heaps(
    jvms: Mapping[str, int], java: Path, wait: Callable[[float], None]
) -> dict[str, int]:
    """The least that is reachable in each JVM in some looks; who does not tell is left out.

    What a batch under way holds comes on top of that, so one look says little.
    """
    least: dict[str, int] = {}
    for look in range(_HEAP_LOOKS):
        wait(_HEAP_LOOK_S if look else 0.0)
        for role, pid in sorted(jvms.items()):
            heap = live_heap_bytes(pid, java)
            if heap is not None:
                least[role] = min(heap, least.get(role, heap))
    return least


def live_heap_bytes(pid: int, java: Path) -> int | None:
    """What is reachable in the heap of a JVM, after a full collection; None: it does not tell."""
    command = [str(java / "bin" / "jcmd"), str(pid), "GC.class_histogram"]
    try:
        told = subprocess.run(  # nosec B603  # Java's own jcmd
            command, capture_output=True, text=True, timeout=_JCMD_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read_histogram(told.stdout)


def read_histogram(text: str) -> int | None:
    """The bytes in the last line of a histogram of classes.

    >>> read_histogram("...\\nTotal        420       13370\\n")
    13370
    """
    for line in reversed(text.splitlines()):
        fields = line.split()
        if len(fields) == 3 and fields[0] == "Total" and fields[2].isdecimal():
            return int(fields[2])
    return None


def take_folder(folder: Path) -> dict[str, FolderFigures]:
    """The files of a run by kind; of its log only drafts: segments are many, and never fewer."""
    files, sizes = Counter[str](), Counter[str]()
    for directory, inner, names in os.walk(folder):
        below = Path(directory).relative_to(folder).parts
        if below and below[0] in ("log", "logs"):
            _keep_drafts(below, inner, names)
        for name in names:
            kind = kind_of((*below, name))
            files[kind] += 1
            # It may be gone by now.
            with suppress(OSError):
                sizes[kind] += (Path(directory) / name).stat().st_size
    return {
        kind: FolderFigures(files=files[kind], size_bytes=sizes[kind]) for kind in sorted(files)
    }


def _keep_drafts(below: tuple[str, ...], inner: list[str], names: list[str]) -> None:
    """Leave out of a folder of a log what is published in it; whatever has a dot is not."""
    depth = len(below) - (2 if below[0] == "logs" else 1)
    if any(part.startswith(".") for part in below):
        names[:] = [name for name in names if name != "fence.json"]
        return
    if depth >= 1:
        inner[:] = [name for name in inner if name.startswith(".")]
    names[:] = [name for name in names if name.startswith(".") and name != ".log"]


def kind_of(parts: tuple[str, ...]) -> str:
    """What a file of a run is for, by its path.

    >>> kind_of(("checkpoints", "fog-0@0.intake", "sources:rides", "lots", "7.json"))
    'lots'
    >>> kind_of(("checkpoints", "fog-0@0", "sources", "1", "9.compact"))
    'checkpoints: sources'
    """
    head = parts[0]
    if head in ("log", "logs"):
        return "drafts of the log"
    if head == "checkpoints" and len(parts) > 2:
        endings = {".intake": "lots", ".taken": "taken"}
        part = f"checkpoints: {parts[2]}" if len(parts) > 3 else head
        return endings.get(Path(parts[1]).suffix, part)
    if len(parts) == 1 and head.startswith("timeline"):
        return "timeline"
    if len(parts) == 1:
        return "decisions" if head.startswith("decisions") else "other files"
    return head


def count_temp_files() -> int:
    """How many files are in the temp folder of this process, and so of all that it starts."""
    return sum(len(names) for _, _, names in os.walk(tempfile.gettempdir()))


def take_belongings(census: ProcessCensus) -> Belongings:
    """What this process has now; threads are those of Python, libraries keep theirs for good."""
    open_files = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(OSError):
            # The number of a pipe or socket is another one each time.
            open_files.append((_PROC / "self" / "fd" / name).readlink().name.partition(":[")[0])
    temp = Path(tempfile.gettempdir())
    return Belongings(
        processes=census.still_there(),
        threads=tuple(thread.name for thread in threading.enumerate()),
        open_files=tuple(open_files),
        temp_files=frozenset(str(path.relative_to(temp)) for path in temp.rglob("*")),
    )
