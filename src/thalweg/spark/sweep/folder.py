"""The folder of a sweep: a manifest, one Parquet part per wave of points, and the whole result."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.spark.sweep.points import Points
from thalweg.spark.sweep.tasks import Answer

MANIFEST = "manifest.json"
RESULTS = "results.parquet"
FAILURES = "failures.json"
_PART = "part-*.parquet"
_DRAFT = ".draft-*"
_ANOTHER = "choose another folder, or restart=True to discard what is in this one"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFolder:
    """A folder that this process alone writes to, and the points finished in it.

    Every file is written beside its place and then moved there, so that it is there completely or
    not at all, even if the process is killed.
    """

    path: Path
    columns: pa.Schema
    _rows: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def finished(self) -> frozenset[str]:
        """The keys of the points that are finished."""
        return frozenset(self._rows)

    def add(self, answer: Answer) -> None:
        """Keep what is finished in this answer as one more part."""
        if not answer.finished:
            return
        kept = Answer(table=answer.table, finished=answer.finished, failed={})
        # Named by its points: a part that is written again takes the place of the first.
        name = sha256("".join(answer.finished).encode()).hexdigest()[:16]
        self._publish_table(f"part-{name}.parquet", kept.to_table())
        self._remember(kept)

    def table(self, points: Points) -> pa.Table:
        """The parameters and rows of the finished points, in the order of `points`."""
        found = [number for number, key in enumerate(points.keys) if key in self._rows]
        tables = [self._rows[points.keys[number]] for number in found]
        rows = pa.concat_tables([self.columns.empty_table(), *tables]).combine_chunks()
        repeated = np.repeat(np.array(found, dtype=np.int64), [each.num_rows for each in tables])
        result = points.table.take(pa.array(repeated)).combine_chunks()
        result = result.replace_schema_metadata(None)
        for column in self.columns:
            result = result.append_column(column, rows.column(column.name))
        return result

    def publish(self, table: pa.Table, failures: Sequence[Mapping[str, object]]) -> None:
        """Write the whole result and what failed, in place of what an earlier run wrote."""
        self._publish_table(RESULTS, table)
        _publish(self.path / FAILURES, (json.dumps(failures, indent=2) + "\n").encode())

    def _publish_table(self, name: str, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        _publish(self.path / name, sink.getvalue().to_pybytes())

    def _remember(self, answer: Answer) -> None:
        start = 0
        for key, rows in answer.finished.items():
            self._rows.setdefault(key, answer.table.slice(start, rows))
            start += rows

    def _read_parts(self) -> None:
        found = Defects()
        for part in sorted(self.path.glob(_PART)):
            try:
                # Not by path: the name of a folder such as `seed=1` would become a column.
                with pq.ParquetFile(part) as file:
                    answer = Answer.from_table(file.read())
                table = answer.table.cast(self.columns)
            except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
                hint = "remove the file, and its points run again"
                rule = f"a part of this sweep ({error})"
                found.add(str(part), "another content", rule, hint)
                continue
            self._remember(Answer(table=table, finished=answer.finished, failed={}))
        found.raise_if_any()


@contextmanager
def open_folder(
    path: Path, identity: Mapping[str, object], columns: pa.Schema, *, points: int, restart: bool
) -> Iterator[SweepFolder]:
    """The folder of the sweep with this identity, held for as long as the block runs.

    Raises:
        InvalidInput: where the folder is another sweep's, is in use, or cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        # The lock is on the folder itself and goes with the process, however that ends.
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        rule = f"a folder that can be written ({error.strerror})"
        raise InvalidInput([Defect(path="into", value=str(path), rule=rule)]) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            rule = "a folder that no other sweep is writing to at this time"
            raise InvalidInput([Defect(path="into", value=str(path), rule=rule)]) from error
        _discard(path, _DRAFT)
        if restart:
            _discard(path, _PART, RESULTS, FAILURES, MANIFEST)
        _require_same(path, identity)
        _publish(path / MANIFEST, _manifest(identity, points))
        folder = SweepFolder(path=path, columns=columns)
        folder._read_parts()
        yield folder
    finally:
        os.close(lock)


def _require_same(path: Path, identity: Mapping[str, object]) -> None:
    """Raise unless the folder is new or holds this very sweep."""
    manifest = path / MANIFEST
    if not manifest.exists():
        if any(path.glob(_PART)):
            rule = f"a folder with a {MANIFEST} beside its parts"
            raise InvalidInput([Defect(path="into", value=str(path), rule=rule, hint=_ANOTHER)])
        return
    try:
        before = json.loads(manifest.read_bytes())["sweep"]
        fields = {**before}
    except (OSError, ValueError, KeyError, TypeError) as error:
        rule = f"the manifest of a sweep ({type(error).__name__}: {error})"
        raise InvalidInput(
            [Defect(path=str(manifest), value="another content", rule=rule, hint=_ANOTHER)]
        ) from error
    found = Defects()
    for name, value in identity.items():
        if fields.get(name) != value:
            was = json.dumps(fields.get(name))
            found.add(name, value, f"{was}, as in {manifest}", _ANOTHER)
    found.raise_if_any()


def _manifest(identity: Mapping[str, object], points: int) -> bytes:
    text = json.dumps(identity, sort_keys=True)
    content = {
        "sweep": identity,
        "fingerprint": sha256(text.encode()).hexdigest(),
        "points": points,
    }
    return (json.dumps(content, indent=2) + "\n").encode()


def _discard(path: Path, *patterns: str) -> None:
    for pattern in patterns:
        for file in path.glob(pattern):
            file.unlink()


def _publish(path: Path, content: bytes) -> None:
    draft = path.with_name(f".draft-{path.name}")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
