"""What lies in the checkpoint of an epoch, and beside it, as plain values: read, not judged."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from thalweg.spark.deployment.health.checksums import fault_of
from thalweg.spark.deployment.health.guarded_files import read_json, read_lines
from thalweg.spark.deployment.health.listing import files_in, folders_in, number_in
from thalweg.spark.deployment.health.state_facts import Faults, StoreFacts, read_stores
from thalweg.spark.log.names import number_of
from thalweg.spark.query.kept import find_fault

CLOCK = "clock"
# Numbers come from files, which may say anything.
_MOST_OPERATORS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeFacts:
    """What was laid down for a query of one stream, or of its clock."""

    label: str
    folder: Path
    lots: Faults = field(default_factory=dict)
    """The files that say what is in each lot, or what each mark of the clock is."""
    rows: Faults = field(default_factory=dict)
    listed: int = -1
    """The last lot that Spark has seen; -1: none."""

    @property
    def last(self) -> int:
        """The last lot; -1: none."""
        return max(self.lots, default=-1)

    def lot_file(self, number: int) -> Path:
        """Where a lot is described."""
        kind = "marks" if self.label == CLOCK else "lots"
        return self.folder / kind / f"{number}.json"

    def rows_file(self, number: int) -> Path:
        """Where the rows of a lot are."""
        return self.folder / "rows" / f"{number}.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What Spark has written down of the files that one of its sources has seen."""

    folder: Path
    files: Mapping[str, str] = field(default_factory=dict)
    """By name, what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedFacts:
    """The rows of open windows that the epoch before has handed over, of one edge."""

    file: Path
    fault: str
    was_taken: bool
    """Whether Spark has seen them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFacts:
    """The checkpoint of one epoch, what lies beside it, and what the log has of the epoch."""

    path: Path
    published: int = -1
    """The last batch that the epoch has published in any stream; -1: none."""
    metadata: str | None = None
    """What is wrong with Spark's file of that name; None: there is none."""
    offsets: Faults = field(default_factory=dict)
    commits: Faults = field(default_factory=dict)
    taken: Faults = field(default_factory=dict)
    lots_of: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """The last lot of each intake by the end of a batch, where its record can be read."""
    shape: str | None = None
    """What is wrong with the file that says what the query is made of; None: there is none."""
    listed_upto: int = -1
    """The largest number of a list of files that the last offsets mention; -1: none."""
    intakes: tuple[IntakeFacts, ...] = ()
    stores: tuple[StoreFacts, ...] = ()
    sources: tuple[SourceFacts, ...] = ()
    carried: tuple[CarriedFacts, ...] = ()

    @property
    def begun(self) -> int:
        """The last batch that was begun; -1: none."""
        return max(self.offsets, default=-1)

    @property
    def finished(self) -> int:
        """The last batch that was finished; -1: none."""
        return max(self.commits, default=-1)

    @property
    def parts(self) -> tuple[Path, ...]:
        """All that belongs to the epoch but its lock."""
        names = (self.path.name + ending for ending in ("", ".intake", ".taken", ".shape"))
        return tuple(self.path.with_name(name) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What a batch wrote down when it began: lots that were taken, operators that had state."""

    fault: str = ""
    lots: Mapping[str, int] = field(default_factory=dict)
    stateful: frozenset[int] = frozenset()


def is_held(checkpoint: Path) -> bool:
    """Whether a running query has this checkpoint."""
    file = checkpoint.with_name(checkpoint.name + ".lock")
    try:
        # Nobody waits for the other end of a pipe.
        lock = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return False


def read_checkpoint(path: Path, published: int, carried: Sequence[Path] = ()) -> CheckpointFacts:
    """Read all that there is; whatever is in the files, this raises nothing but `OSError`.

    `carried` are the files of rows that were handed over to the epoch.
    """
    taken = path.with_name(path.name + ".taken")
    shape = path.with_name(path.name + ".shape")
    intake = path.with_name(path.name + ".intake")
    # Commits first: a query that runs meanwhile then has offsets and records for all of them.
    commits = _numbered(path / "commits")
    offsets = _numbered(path / "offsets")
    records = {number_in(file): _read_record(file) for file in files_in(taken, "")}
    stateful = {operator for record in records.values() for operator in record.stateful}
    listed = _listed_lots(path / "sources")
    last = max(offsets, default=-1)
    return CheckpointFacts(
        path=path,
        published=published,
        metadata=_json_fault(path / "metadata") if (path / "metadata").exists() else None,
        offsets=offsets,
        commits=commits,
        taken={number: record.fault for number, record in records.items()},
        lots_of={number: record.lots for number, record in records.items() if not record.fault},
        shape=_json_fault(shape) if shape.exists() else None,
        listed_upto=_listed_upto(path / "offsets" / str(last)),
        intakes=tuple(
            _read_intake(folder, listed.get(folder.name, -1)) for folder in folders_in(intake)
        ),
        stores=read_stores(path / "state", stateful),
        sources=tuple(
            SourceFacts(folder=folder, files={f.name: _log_fault(f) for f in _number_files(folder)})
            for folder in folders_in(path / "sources")
        ),
        carried=tuple(
            CarriedFacts(
                file=file,
                fault=_parquet_fault(file) if file.exists() else "is missing",
                was_taken=file.parent.parent.name in listed,
            )
            for file in carried
        ),
    )


def _read_intake(folder: Path, listed: int) -> IntakeFacts:
    kind = "marks" if folder.name == CLOCK else "lots"
    lots = {number_in(f): _json_fault(f) for f in files_in(folder / kind, ".json")}
    rows = {number_in(f): _parquet_fault(f) for f in files_in(folder / "rows", ".parquet")}
    return IntakeFacts(label=folder.name, folder=folder, lots=lots, rows=rows, listed=listed)


def _listed_lots(sources: Path) -> dict[str, int]:
    """The last lot that Spark has seen, by the name of the intake; files are not followed."""
    found: dict[str, int] = {}
    for folder in folders_in(sources):
        for file in _newest_lists(folder):
            for entry in _entries(file):
                path = Path(unquote(urlsplit(str(entry.get("path", ""))).path))
                lot = number_of(path.stem)
                if lot is not None and path.parent.name == "rows":
                    label = path.parent.parent.name
                    found[label] = max(lot, found.get(label, -1))
    return found


def _newest_lists(folder: Path) -> list[Path]:
    """The last list that has all entries up to it, and those after it: nothing else is needed."""
    files = _number_files(folder)
    whole = [place for place, file in enumerate(files) if file.suffix == ".compact"]
    return files[whole[-1] :] if whole else files


def _entries(file: Path) -> Iterator[dict[str, Any]]:
    """What the lines of one of Spark's logs say after the first; of one that is torn, some."""
    try:
        for line in islice(read_lines(file), 1, None):
            with suppress(ValueError, RecursionError):
                entry = json.loads(line)
                if isinstance(entry, dict):
                    yield entry
    except (OSError, ValueError):
        return


def _listed_upto(offsets: Path) -> int:
    numbers = [entry.get("logOffset") for entry in _entries(offsets)]
    return max((n for n in numbers if isinstance(n, int)), default=-1)


def _numbered(folder: Path) -> dict[int, str]:
    return {number_in(file): _log_fault(file) for file in files_in(folder, "")}


def _log_fault(file: Path) -> str:
    """What is wrong with a file of one of Spark's logs: a version, then lines of JSON."""
    if fault := fault_of(file):
        return fault
    try:
        lines = read_lines(file)
        version = next(lines)
        for line in lines:
            if line != b"-":
                json.loads(line)
    except (OSError, ValueError, RecursionError):
        return "is torn: it is cut off, or no JSON"
    return "" if version.startswith(b"v") else "is torn: it has no version"


def _number_files(folder: Path) -> list[Path]:
    """Lists of files that Spark's source has written, compacted or not, in order."""
    return sorted([*files_in(folder, ""), *files_in(folder, ".compact")], key=number_in)


def _json_fault(file: Path) -> str:
    return _read_whole(file)[1]


def _read_whole(file: Path) -> tuple[Any, str]:
    """What a file of JSON says, and what is wrong with it."""
    if fault := fault_of(file):
        return None, fault
    try:
        return read_json(file), ""
    except (OSError, ValueError, RecursionError):
        return None, "is torn: it is no JSON"


def _read_record(file: Path) -> _Record:
    found, fault = _read_whole(file)
    if fault:
        return _Record(fault=fault)
    lots = found.get("lots", found) if isinstance(found, dict) else None
    if not isinstance(lots, dict) or not all(isinstance(lot, int) for lot in lots.values()):
        return _Record(fault="says no lots")
    # Old records do not say whose state there was.
    told = found.get("state") if lots is not found else None
    numbers = told if isinstance(told, list) else []
    stateful = {n for n in numbers if isinstance(n, int) and 0 <= n < _MOST_OPERATORS}
    return _Record(lots=lots, stateful=frozenset(stateful))


def _parquet_fault(file: Path) -> str:
    return fault_of(file) or find_fault(file)
