"""Publishes batches in the log: whole, once, in order, and not after the epoch was fenced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from thalweg.errors import Defects, nearest
from thalweg.model.names import require_name
from thalweg.spark.log.disk import (
    Disk,
    LogError,
    explained,
    make_folders,
    move_into_place,
    names_in,
    remove_folder,
)
from thalweg.spark.log.epoch import CLOSED, OPEN, last_batch_of, make_gate
from thalweg.spark.log.fingerprint import HASH_KIND, hash_rows
from thalweg.spark.log.founding import HeldLog, found_log, holding_log, require_log
from thalweg.spark.log.names import EpochPlace, require_count, require_stream
from thalweg.spark.log.segment import (
    COMPRESSIONS,
    Part,
    Segment,
    describe,
    describe_columns,
    read_segment,
    write_manifest,
    write_part,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS_PER_RECORD_BATCH = 10_000


class Fenced(LogError):
    """The epoch has ended: nothing more can be published in it."""


class ReplayDiffers(LogError):
    """A batch was published before with other rows."""


class LogWriter:
    """The only writer of a stream for one site and epoch; a newer one takes over from an older.

    What an older writer has not published by then, it cannot publish any more. `time` names the
    column that has the event time. Without `durable`, nobody waits for the disk: what is published
    then survives the death of processes, but perhaps not a power cut. Without `founds`, there has
    to be a log already.

    Raises:
        InvalidInput: with all that is wrong with the arguments.
        LogError: where the folder cannot be written to.
    """

    def __init__(
        self,
        root: Path | str,
        stream: str,
        site: str,
        epoch: int,
        *,
        time: str | None = None,
        compression: str = "lz4",
        durable: bool = True,
        founds: bool = True,
        disk: Disk | None = None,
    ) -> None:
        defects = Defects()
        require_stream(defects, "stream", stream)
        require_name(defects, "site", site)
        require_count(defects, "epoch", epoch)
        known = compression in COMPRESSIONS
        hint = "" if known else nearest(str(compression), COMPRESSIONS)
        rule = f"one of {', '.join(COMPRESSIONS)}"
        defects.require(known, "compression", compression, rule, hint)
        defects.raise_if_any()
        self.place = EpochPlace(root=Path(root), stream=stream, site=site, epoch=epoch)
        self.time = time
        self.compression = compression
        self._disk = disk or Disk(durable=durable)
        self._drafts = self.place.gate / OPEN / stream.partition("/")[2]
        self._last_batch: int | None = None
        self._held: HeldLog | None = None
        if founds:
            found_log(root)
        else:
            require_log(root)
        with explained("write to the log", self.place.folder):
            make_folders(self._disk, self.place.folder, below=self.place.root)
            make_gate(self._disk, self.place.gate, root=self.place.root)
            for name in names_in(self._drafts):
                remove_folder(self._drafts / name)

    @property
    def durable(self) -> bool:
        """Whether what is published survives a power cut."""
        return self._disk.durable

    def publish(self, batch: int, table: pa.Table) -> Segment:
        """Publish the rows of a batch; one that is published already is found, and left as it is.

        Raises:
            InvalidInput: where the batch has no number >= 0, or the table no column of that time.
            ReplayDiffers: where the batch was published with other rows.
            Fenced: where the epoch has ended.
            LogError: where the disk is full or read-only, or a later batch is published already.
        """
        self._check(batch, table)
        columns = describe_columns(table.schema)
        batches = [b for b in table.to_batches(_ROWS_PER_RECORD_BATCH) if b.num_rows]
        with self.drafting(batch) as draft:
            part = write_part(
                self._disk,
                draft,
                "rows.arrow",
                batches,
                compression=self.compression,
                time=self.time,
                hash_of=hash_rows,
            )
            parts = [part] if part else []
            return self.commit(batch, draft, parts, columns=columns, hash_kind=HASH_KIND)

    @contextmanager
    def drafting(self, batch: int) -> Iterator[Path]:
        """A folder for the files of a batch, gone after the block unless it was published.

        Raises:
            Fenced: where the epoch has ended.
            LogError: where a later batch is published already, or the disk does not take it.
        """
        with holding_log(self.place.root) as self._held, self._drafting(batch) as draft:
            yield draft

    @contextmanager
    def _drafting(self, batch: int) -> Iterator[Path]:
        with explained("write to the log", self.place.folder):
            self._require_order(batch)
        draft = self._drafts / f"{batch}-{uuid4().hex}"
        made = False
        try:
            with explained("write to the log", draft):
                with suppress(FileExistsError):
                    self._disk.make_folder(self._drafts)
                self._disk.make_folder(draft)
            made = True
            yield draft
        except Exception as error:
            if not draft.is_dir() and not self.place.segment(batch).is_dir():
                self._tell_why_draft_is_gone(batch, error, made=made)
            raise
        finally:
            remove_folder(draft)

    def commit(
        self,
        batch: int,
        draft: Path,
        parts: Sequence[Part],
        *,
        columns: Mapping[str, str],
        hash_kind: str,
    ) -> Segment:
        """Publish a draft with these parts in it; see `publish`."""
        segment = describe(self.place, batch, parts, columns=columns, hash_kind=hash_kind)
        with explained(f"publish {segment}", segment.folder):
            for part in segment.parts:
                _require_size(draft / part.file, part.file_bytes)
            write_manifest(self._disk, draft, segment)
            self._disk.sync_folder(draft)
            make_folders(self._disk, segment.folder.parent, below=self.place.root)
            moved = move_into_place(self._disk, draft, segment.folder)
        if self._held is not None:
            self._held.require(segment.folder)
        if not moved:
            published = read_segment(self.place, batch)
            if published is None:
                raise LogError(f"cannot publish {segment}: {segment.folder} is in the way")
            _require_same(published, segment)
            segment = published
        self._last_batch = max(batch, -1 if self._last_batch is None else self._last_batch)
        return segment

    def _check(self, batch: int, table: pa.Table) -> None:
        defects = Defects()
        require_count(defects, "batch", batch)
        names = table.column_names
        if self.time is not None and self.time not in names:
            rule = "a table with the column of the event time"
            defects.add("table", names, rule, f"it has no {self.time}")
        defects.raise_if_any()

    def _require_order(self, batch: int) -> None:
        """Readers count on it that no batch appears after a later one."""
        if self._last_batch is None:
            self._last_batch = last_batch_of(self.place)
        if batch < self._last_batch and read_segment(self.place, batch) is None:
            raise LogError(
                f"cannot publish batch {batch} of {self.place.stream} from {self.place.site}, "
                f"epoch {self.place.epoch}: batch {self._last_batch} is published already. "
                "Hint: a query that starts over needs a new epoch."
            )

    def _tell_why_draft_is_gone(self, batch: int, error: Exception, *, made: bool) -> None:
        """Raise what lies behind an error in writing a draft that somebody has taken away."""
        place = self.place
        where = f"batch {batch} of {place.stream} from {place.site}"
        if (place.gate / CLOSED).is_dir():
            raise Fenced(
                f"cannot publish {where}: epoch {place.epoch} has been fenced. "
                "Hint: this query has been replaced by a newer one; stop it."
            ) from error
        if made and place.gate.is_dir():
            raise LogError(
                f"cannot publish {where}: a newer writer has taken over epoch {place.epoch}. "
                "Hint: two processes are the same site; stop the older one."
            ) from error


def _require_size(file: Path, file_bytes: int) -> None:
    found = file.stat().st_size
    if found != file_bytes:
        raise LogError(f"cannot publish {file}: it has {found} bytes, {file_bytes} were written")


def _require_same(published: Segment, again: Segment) -> None:
    """A replay gives the same rows in any order, or something is wrong with the application."""
    differences: Iterable[tuple[str, object, object]] = (
        ("columns", dict(published.columns), dict(again.columns)),
        ("rows", published.rows, again.rows),
        ("fingerprint", published.fingerprint, again.fingerprint),
    )
    for what, before, now in differences:
        if before == now or (what == "fingerprint" and published.hash_kind != again.hash_kind):
            continue
        raise ReplayDiffers(
            f"{published} was published before with other {what}: {before}, now {now}. Hint: "
            "operators must give the same rows for the same input; look for random numbers, "
            "the present time, or tables that changed."
        )
