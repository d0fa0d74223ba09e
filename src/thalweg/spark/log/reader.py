"""The log: streams of rows in a folder, each batch published whole, once, or not at all.

It carries rows between processes that may die at any moment: from the generators to the sites, over
each edge that is cut, and out of the sinks. What makes it exactly once is a single step: a batch is
written into a draft folder and then renamed to the place that its key has, (stream, site, epoch,
batch). A file system does that at once, and refuses it where a folder with something in it is
there already; so of all who write a batch, one publishes it, and the others find that it is done.

The drafts of an epoch are behind its gate, a folder `open`. To fence the epoch is to rename that
folder: from then on nothing that is under way anywhere can be renamed out of it, and what is
published is all that will ever be. Needs a file system with the rename of POSIX: a local disk or a
shared mount.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import pyarrow as pa

from thalweg.errors import Defects
from thalweg.model.names import is_name, require_name
from thalweg.spark.log.disk import (
    Disk,
    LogError,
    explained,
    move_into_place,
    names_in,
    read_small,
    remove_folder,
)
from thalweg.spark.log.epoch import (
    close_gate,
    last_batch_of,
    list_batches,
    make_gate,
    numbers_in,
)
from thalweg.spark.log.founding import holding_log, while_there
from thalweg.spark.log.names import (
    EDGES,
    EpochPlace,
    edge_stream,
    gate_folder,
    require_count,
    require_stream,
    sink_stream,
    source_stream,
)
from thalweg.spark.log.segment import Segment, read_batches, read_segment
from thalweg.spark.log.writer import Fenced, LogWriter, ReplayDiffers

_FENCE = Path("fence") / "fence.json"

_MOST_REMEMBERED = 10_000

Offset: TypeAlias = Mapping[str, Mapping[str, int]]
"""The last batch by site and epoch; epochs are texts, as in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """The end of an epoch: later batches of it do not count; -1: none of it does."""

    kind: str
    site: str
    epoch: int
    last_batch: int


class Log:
    """All streams below one folder, for those who read them and those who end epochs.

    Two logs of the same folder are the same log; there is nothing to open or to close.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        # What is in the log never changes, so what was read once need not be read again.
        self._segments: dict[EpochPlace, dict[int, Segment]] = {}
        self._fences: dict[Path, Fence] = {}

    def streams(self, kind: str) -> list[str]:
        """The streams of a kind that somebody has written to, in alphabetical order."""
        defects = Defects()
        require_name(defects, "kind", kind)
        defects.raise_if_any()
        with explained("read the log", self.root):
            found = (f"{kind}/{name}" for name in names_in(self.root / kind))
            return sorted(stream for stream in found if _is_stream(stream))

    def segments(
        self,
        stream: str,
        site: str | None = None,
        *,
        after: Offset | None = None,
        fenced: bool = False,
    ) -> Iterator[Segment]:
        """The published segments in the order of site, epoch and batch, without opening one.

        Only those after an offset, if one is given; with `fenced` also those that do not count.

        Raises:
            InvalidInput: where there can be no such stream or site.
            LogError: where the log cannot be read.
        """
        for place in self.places(stream, site):
            yield from self.segments_at(place, batch_in(after, place), fenced=fenced)

    def places(self, stream: str, site: str | None = None) -> list[EpochPlace]:
        """The epochs of a stream, by site and then by number."""
        _check(stream=stream, site=site)
        with explained("read the log", self.root):
            sites = [site] if site else sorted(filter(is_name, names_in(self.root / stream)))
            return [
                EpochPlace(root=self.root, stream=stream, site=name, epoch=epoch)
                for name in sites
                for epoch in numbers_in(self.root / stream / name)
            ]

    def segments_at(
        self, place: EpochPlace, after: int = -1, *, upto: int | None = None, fenced: bool = False
    ) -> Iterator[Segment]:
        """The segments of one epoch in order, each read only when asked for."""
        fence = None if fenced else self.find_fence(place.site, place.epoch, kind=place.kind)
        last = None if fence is None else fence.last_batch
        ends = [end for end in (upto, last) if end is not None]
        self._forget(place, after)
        if ends and after >= min(ends):
            return
        with explained("read the log", place.folder):
            batches = list_batches(place, after)
        for batch in batches:
            if not ends or batch <= min(ends):
                yield self._segment(place, batch)

    def end(self, stream: str, site: str | None = None) -> dict[str, dict[str, int]]:
        """The offset at which everything that counts has been read."""
        offset: dict[str, dict[str, int]] = {}
        for place in self.places(stream, site):
            fence = self.find_fence(place.site, place.epoch, kind=place.kind)
            with explained("read the log", place.folder):
                last = last_batch_of(place, None if fence is None else fence.last_batch)
            if last >= 0:
                offset.setdefault(place.site, {})[str(place.epoch)] = last
        return offset

    def read(
        self, stream: str, site: str | None = None, *, after: Offset | None = None
    ) -> pa.Table:
        """All rows that count, segment by segment; no columns where there are no rows."""
        segments = self.segments(stream, site, after=after)
        batches = [b for s in segments for file in s.files for b in read_batches(file)]
        return pa.Table.from_batches(batches) if batches else pa.table({})

    def fence(
        self, site: str, epoch: int, last_batch: int | None = None, *, kind: str = EDGES
    ) -> Fence:
        """End an epoch of a site in all streams of a kind; to do it again changes nothing.

        From here on nothing can be published in that epoch, by whoever, and no reader takes a
        batch of it after `last_batch`. Without one, all that is published now counts, and nothing
        that is under way; only that is safe while readers may have taken the latest batches.

        Raises:
            InvalidInput: where an argument cannot be right.
            LogError: where the epoch was fenced elsewhere, or the log cannot be written.
        """
        _check(site=site, epoch=epoch, kind=kind, last_batch=last_batch)
        gate = gate_folder(self.root, kind, site, epoch)
        with holding_log(self.root) as held, explained(f"fence epoch {epoch} of {site}", gate):
            try:
                known = self._fence(Disk(), gate, site, epoch, last_batch, kind)
                held.require(gate / _FENCE)
            except LogError:
                self._fences.pop(gate / _FENCE, None)
                raise
        if known is None or last_batch not in (None, known.last_batch):
            raise LogError(
                f"epoch {epoch} of {site} is fenced after batch {known and known.last_batch} "
                f"already; it cannot be fenced after batch {last_batch}"
            )
        return known

    def _fence(
        self, disk: Disk, gate: Path, site: str, epoch: int, last_batch: int | None, kind: str
    ) -> Fence | None:
        make_gate(disk, gate, root=self.root)
        close_gate(disk, gate)
        known = self.find_fence(site, epoch, kind=kind)
        if known is None:
            # In a log that is away nothing is published.
            with while_there(self.root):
                published = self._last_published(kind, site, epoch)
            self._put_fence(disk, gate, published if last_batch is None else last_batch)
            known = self.find_fence(site, epoch, kind=kind)
        return known

    def find_fence(self, site: str, epoch: int, *, kind: str = EDGES) -> Fence | None:
        """The fence of an epoch, if it has one."""
        path = gate_folder(self.root, kind, site, epoch) / _FENCE
        if path not in self._fences:
            try:
                with explained("read the log", path):
                    last = json.loads(read_small(path))["last_batch"]
            except LogError as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    return None
                raise
            self._fences[path] = Fence(kind=kind, site=site, epoch=epoch, last_batch=int(last))
        return self._fences[path]

    def _put_fence(self, disk: Disk, gate: Path, last_batch: int) -> None:
        draft = gate / f".fence-{uuid4().hex}"
        disk.make_folder(draft)
        with disk.create(draft / _FENCE.name) as file:
            file.write(json.dumps({"last_batch": last_batch}).encode())
            disk.sync_file(file)
        disk.sync_folder(draft)
        move_into_place(disk, draft, gate / _FENCE.parent)
        for name in names_in(gate):
            if name.startswith("."):
                remove_folder(gate / name)

    def _last_published(self, kind: str, site: str, epoch: int) -> int:
        places = [
            EpochPlace(root=self.root, stream=stream, site=site, epoch=epoch)
            for stream in self.streams(kind)
        ]
        return max(map(last_batch_of, places), default=-1)

    def _segment(self, place: EpochPlace, batch: int) -> Segment:
        known = self._segments.setdefault(place, {})
        segment = known.get(batch)
        if segment is None:
            segment = read_segment(place, batch)
            if segment is None:
                path = place.segment(batch)
                raise LogError(
                    f"cannot read the log: {path} was there a moment ago, and is gone. "
                    "Hint: bring it back from a copy of the log; `thalweg doctor --deep` says what "
                    "else is missing."
                )
            if sum(map(len, list(self._segments.values()))) >= _MOST_REMEMBERED:
                self._segments.clear()
            self._segments.setdefault(place, {})[batch] = segment
        return segment

    def _forget(self, place: EpochPlace, upto: int) -> None:
        """Let go of what a reader has behind it: it would be megabytes that nobody asks for."""
        known = self._segments.get(place, {})
        for batch in [batch for batch in list(known) if batch <= upto]:
            known.pop(batch, None)


def batch_in(offset: Offset | None, place: EpochPlace) -> int:
    """The last batch of an epoch that is within an offset; -1: none is."""
    return (offset or {}).get(place.site, {}).get(str(place.epoch), -1)


def _is_stream(stream: str) -> bool:
    defects = Defects()
    require_stream(defects, "stream", stream)
    return not defects


def _check(
    *,
    stream: str | None = None,
    site: str | None = None,
    kind: str | None = None,
    epoch: int | None = None,
    last_batch: int | None = None,
) -> None:
    defects = Defects()
    if stream is not None:
        require_stream(defects, "stream", stream)
    for path, name in (("site", site), ("kind", kind)):
        if name is not None:
            require_name(defects, path, name)
    for path, number, least in (("epoch", epoch, 0), ("last_batch", last_batch, -1)):
        if number is not None:
            require_count(defects, path, number, least)
    defects.raise_if_any()


__all__: Sequence[str] = [
    "Fence",
    "Fenced",
    "Log",
    "LogError",
    "LogWriter",
    "Offset",
    "ReplayDiffers",
    "Segment",
    "edge_stream",
    "sink_stream",
    "source_stream",
]
