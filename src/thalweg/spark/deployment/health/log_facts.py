"""What is in the logs of a run: are all segments whole, and do the fences fit the journal?

Read by `read_log`, judged by `judge_log`, which is a pure function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from thalweg.model.names import is_name
from thalweg.spark.deployment.hand_over import SiteState
from thalweg.spark.deployment.health.finding import GOOD, PROBLEM, Finding
from thalweg.spark.deployment.health.guarded_files import read_json
from thalweg.spark.log import Log
from thalweg.spark.log.disk import LogError, names_in
from thalweg.spark.log.epoch import CLOSED, OPEN, list_batches, numbers_in
from thalweg.spark.log.fingerprint import HASH_KIND, hash_rows
from thalweg.spark.log.names import EDGES, SOURCES, EpochPlace
from thalweg.spark.log.segment import Segment, read_batches, read_segment

_MOST_FAULTS = 100
_WORD = 0xFFFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceFacts:
    """The gate of an epoch: after which batch it is fenced, if it is."""

    site: str
    epoch: int
    last_batch: int | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """One log: how much is in it, what is wrong with it, its gaps and fences."""

    root: Path
    segments: int = 0
    rows: int = 0
    bytes: int = 0
    born_faults: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with segments of rows that were born at a site, by their paths."""
    derived_faults: Mapping[str, str] = field(default_factory=dict)
    """The same of all others, which can be made again."""
    gaps: Mapping[str, str] = field(default_factory=dict)
    """Batches that are missing where there can be no gap, by stream and site."""
    fences: tuple[FenceFacts, ...] = ()
    deep: bool = False


def read_log(root: Path, *, deep: bool = False) -> LogFacts:
    """Look at every segment of a log; with `deep`, hash all rows again."""
    born: dict[str, str] = {}
    derived: dict[str, str] = {}
    gaps: dict[str, str] = {}
    segments = rows = size = 0
    for place in _places(root):
        kept = born if place.kind == SOURCES else derived
        batches = list_batches(place, -1)
        if place.kind == SOURCES and (missing := _missing(batches)):
            gaps[f"{place.stream} of {place.site}"] = missing
        for batch in batches:
            segments += 1
            try:
                segment = read_segment(place, batch)
                fault = "is gone" if segment is None else _fault_of(segment, deep=deep)
            except (LogError, ValueError, TypeError, AttributeError, OverflowError) as error:
                segment, fault = None, f"cannot be read: {error}"
            if fault and len(kept) < _MOST_FAULTS:
                kept[str(place.segment(batch))] = fault
            if segment is not None and not fault:
                rows, size = rows + segment.rows, size + segment.file_bytes
    return LogFacts(
        root=root,
        segments=segments,
        rows=rows,
        bytes=size,
        born_faults=born,
        derived_faults=derived,
        gaps=gaps,
        fences=tuple(_fences(root)),
        deep=deep,
    )


def judge_log(
    facts: LogFacts, sites: Mapping[str, SiteState], folder: Path, read: Mapping[str, object]
) -> Iterator[Finding]:
    """What is to be said of a log; `read` is how far the cloud has read, by site and epoch."""
    rebuild = f"`thalweg doctor {folder} --rebuild --yes` makes it again from the rows born"
    restore = "restore it from a copy: rows that were born are nowhere else"
    where = _short(facts.root, folder)
    for path, fault in facts.born_faults.items():
        place = _short(Path(path), folder)
        yield Finding(level=PROBLEM, where=place, what=fault, remedy=restore)
    for path, fault in facts.derived_faults.items():
        place = _short(Path(path), folder)
        yield Finding(level=PROBLEM, where=place, what=fault, remedy=rebuild)
    for stream, missing in facts.gaps.items():
        what = f"{missing} of {stream} missing: rows that came in are lost"
        yield Finding(level=PROBLEM, where=where, what=what, remedy=restore)
    yield from _judge_fences(facts, sites, where, rebuild, read)
    if not (facts.born_faults or facts.derived_faults or facts.gaps):
        how = "rows hashed again" if facts.deep else "sizes compared"
        what = f"{facts.segments:,} segments with {facts.rows:,} rows are whole ({how})"
        yield Finding(level=GOOD, where=where, what=what)


def _judge_fences(
    facts: LogFacts,
    sites: Mapping[str, SiteState],
    where: str,
    rebuild: str,
    read: Mapping[str, object],
) -> Iterator[Finding]:
    for fence in facts.fences:
        name = f"the fence of epoch {fence.epoch} of {fence.site}"
        if fence.fault:
            what = f"{name} {fence.fault}"
            yield Finding(level=PROBLEM, where=where, what=what, remedy=rebuild)
            continue
        site = sites.get(fence.site)
        if fence.last_batch is None:
            continue
        if site is not None and site.epoch == fence.epoch and site.phase == "running":
            what = f"{name} is there, though the journal says that the epoch runs"
            yield Finding(level=PROBLEM, where=where, what=what, remedy=rebuild)
        epochs = read.get(fence.site)
        taken = epochs.get(str(fence.epoch), -1) if isinstance(epochs, dict) else -1
        if isinstance(taken, int) and taken > fence.last_batch:
            what = f"{name} is after batch {fence.last_batch}, but batch {taken} was read"
            yield Finding(level=PROBLEM, where=where, what=what, remedy=rebuild)


def _places(root: Path) -> Iterator[EpochPlace]:
    log = Log(root)
    for kind in sorted(filter(is_name, names_in(root))):
        if (root / kind).is_symlink():
            continue
        for stream in log.streams(kind):
            yield from log.places(stream)


def _missing(batches: list[int]) -> str:
    """Which batches are missing, counted from 0; nothing where all are there."""
    # By the gaps alone: a number may be anything, and all up to it would be too many.
    gaps = [(a + 1, b - 1) for a, b in pairwise([-1, *batches]) if b > a + 1]
    if not gaps:
        return ""
    first, last = gaps[0][0], gaps[-1][1]
    return f"batch {first} is" if first == last else f"batches {first} to {last} are partly"


def _fault_of(segment: Segment, *, deep: bool) -> str:
    for part in segment.parts:
        # A manifest may name whatever it likes: only files beside it are looked at.
        if not isinstance(part.file, str) or not is_name(part.file):
            return f"its manifest names {str(part.file)[:80]!r}, which is no file beside it"
        file = segment.folder / part.file
        if file.is_symlink() or not file.is_file():
            return f"{part.file} is missing"
        size = file.stat().st_size
        if size != part.file_bytes:
            return f"{part.file} has {size} bytes, its manifest says {part.file_bytes}"
        if deep and (fault := _fault_of_rows(segment, file, part.rows, part.hash_sum)):
            return fault
    return ""


def _fault_of_rows(segment: Segment, file: Path, rows: int, hash_sum: int) -> str:
    found = total = 0
    try:
        for batch in read_batches(file):
            found += batch.num_rows
            if segment.hash_kind == HASH_KIND:
                total += hash_rows(batch)
    except Exception as error:
        # Whatever a reader says to bytes that are no rows, they are none.
        return f"{file.name} cannot be read: {error}"
    if found != rows:
        return f"{file.name} has {found} rows, its manifest says {rows}"
    if segment.hash_kind == HASH_KIND and total & _WORD != hash_sum:
        return f"{file.name} has other rows than were published"
    return ""


def _fences(root: Path) -> Iterator[FenceFacts]:
    gates = root / EDGES / ".gates"
    for site in sorted(filter(is_name, names_in(gates))):
        for epoch in numbers_in(gates / site):
            gate = gates / site / str(epoch)
            file = gate / "fence" / "fence.json"
            if not file.exists():
                fault = ""
                if (gate / CLOSED).is_dir() and (gate / OPEN).is_dir():
                    fault = "is missing, and its gate is open and closed at once"
                yield FenceFacts(site=site, epoch=epoch, fault=fault)
                continue
            try:
                last = read_json(file)["last_batch"]
                if not isinstance(last, int):
                    raise TypeError
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                yield FenceFacts(site=site, epoch=epoch, fault="cannot be read")
                continue
            is_open = (gate / OPEN).is_dir()
            fault = "is there, but its gate is open" if is_open else ""
            yield FenceFacts(site=site, epoch=epoch, last_batch=last, fault=fault)


def _short(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
