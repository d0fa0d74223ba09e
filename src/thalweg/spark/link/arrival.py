"""Publishes what has come over a link in the cloud's log: once, in order, and nothing too late."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from thalweg.spark.link.envelope import MARKS, Envelope
from thalweg.spark.link.link import LinkError, LinkGap
from thalweg.spark.log.disk import Disk, explained
from thalweg.spark.log.epoch import last_batch_of
from thalweg.spark.log.founding import found_log
from thalweg.spark.log.names import EpochPlace
from thalweg.spark.log.reader import Fenced, Log, LogWriter, ReplayDiffers, Segment
from thalweg.spark.log.segment import describe, read_segment

_FENCE_TIMEOUT_S = 30.0
_MOST_WRITERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCounts:
    """What has gone over one end of a link since it was opened; marks do not count.

    `repeated` segments were in the log already; `dropped` ones came after the fence of their epoch.
    """

    segments: int = 0
    rows: int = 0
    bytes: int = 0
    repeated: int = 0
    dropped: int = 0


class Arrivals:
    """Puts envelopes into a log; it has no memory but that log, so it can die at any moment.

    Without `durable`, nobody waits for the disk. Without `founds`, there has to be a log already.
    """

    def __init__(self, log_root: Path | str, *, durable: bool = True, founds: bool = True) -> None:
        if founds:
            found_log(log_root)
        self._log = Log(log_root)
        self._disk = Disk(durable=durable)
        self._writers: dict[EpochPlace, LogWriter] = {}
        self._counted: Counter[str] = Counter()

    @property
    def counts(self) -> LinkCounts:
        """What has arrived."""
        return LinkCounts(**self._counted)

    def put(self, envelope: Envelope) -> None:
        """Publish what is in an envelope, unless it is there or comes too late.

        Raises:
            LinkGap: where something before it is missing; it can be put again when that is there.
            LinkError: where its epoch was fenced too early: rows are lost.
            ReplayDiffers: where the batch is there with other rows.
            LogError: where the log cannot be written.
        """
        place = EpochPlace(
            root=self._log.root, stream=envelope.stream, site=envelope.site, epoch=envelope.epoch
        )
        if envelope.is_mark:
            if _last_batch(place) < envelope.batch:
                self._require_ends(envelope)
                self._publish(place, envelope)
            return
        published = read_segment(place, envelope.batch)
        if published is not None:
            _require_same(published, envelope)
            self._counted["repeated"] += 1
        elif self._is_too_late(envelope, place):
            self._counted["dropped"] += 1
        else:
            self._publish_in_order(place, envelope)

    def _publish_in_order(self, place: EpochPlace, envelope: Envelope) -> None:
        if _last_batch(place) < envelope.after:
            raise _gap(envelope, f"batch {envelope.after}")
        self._require_ends(envelope)
        try:
            self._publish(place, envelope)
        except Fenced:
            # The gate closes a moment before the fence says how much counts.
            deadline = time.monotonic() + _FENCE_TIMEOUT_S
            while not self._is_too_late(envelope, place):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            self._counted["dropped"] += 1
            return
        self._counted["segments"] += 1
        self._counted["rows"] += envelope.rows
        self._counted["bytes"] += len(envelope.body)

    def _require_ends(self, envelope: Envelope) -> None:
        """See that the rows are there that a mark or a clock speaks of: time must not pass them."""
        site, epoch = envelope.site, envelope.epoch
        for stream, last in sorted(envelope.ends.items()):
            place = EpochPlace(root=self._log.root, stream=stream, site=site, epoch=epoch)
            # Batches are published in order: where this one is, all before it are.
            if place.segment(last).is_dir() or _last_batch(place) >= last:
                continue
            # What a fence has cut off is not missing.
            if self._log.find_fence(site, epoch, kind=place.kind) is None:
                raise _gap(envelope, f"batch {last} of {stream}")

    def _is_too_late(self, envelope: Envelope, place: EpochPlace) -> bool:
        fence = self._log.find_fence(place.site, place.epoch, kind=place.kind)
        if fence is None:
            return False
        if envelope.batch <= fence.last_batch:
            raise LinkError(
                f"{envelope} came over the link after the epoch was fenced, and within its fence, "
                f"batch {fence.last_batch}: its rows are lost to readers. Hint: fence an epoch "
                "after its sender's flush() has arrived."
            )
        return True

    def _publish(self, place: EpochPlace, envelope: Envelope) -> Segment:
        writer = self._writer(place)
        with writer.drafting(envelope.batch) as draft:
            for name, content in envelope.files():
                path = draft / name
                with explained("write to the log", path), self._disk.create(path) as file:
                    file.write(content)
                    self._disk.sync_file(file)
            return writer.commit(
                envelope.batch,
                draft,
                envelope.parts,
                columns=envelope.columns,
                hash_kind=envelope.hash_kind,
            )

    def _writer(self, place: EpochPlace) -> LogWriter:
        if place not in self._writers:
            if len(self._writers) >= _MOST_WRITERS:
                self._writers.clear()
            self._writers[place] = LogWriter(
                place.root, place.stream, place.site, place.epoch, disk=self._disk, founds=False
            )
        return self._writers[place]


def _last_batch(place: EpochPlace) -> int:
    with explained("read the log", place.folder):
        return last_batch_of(place)


def _gap(envelope: Envelope, missing: str) -> LinkGap:
    return LinkGap(
        f"{envelope} came over the link, but {missing} before it did not. Hint: has the link "
        "thrown something away, or is this log a new one? A run has the site send everything "
        "again; a sender of your own does so with resend=True."
    )


def has_arrived(log_root: Path | str, site: str, epoch: int, batch: int) -> bool:
    """Whether all that a site had published up to a batch is in this log.

    True once the mark is there that the site's sender puts behind it; see `LinkSender.flush`.
    """
    place = EpochPlace(root=Path(log_root), stream=MARKS, site=site, epoch=epoch)
    return _last_batch(place) >= batch


def _require_same(published: Segment, envelope: Envelope) -> None:
    place = EpochPlace(
        root=Path(), stream=envelope.stream, site=envelope.site, epoch=envelope.epoch
    )
    again = describe(
        place,
        envelope.batch,
        envelope.parts,
        columns=envelope.columns,
        hash_kind=envelope.hash_kind,
    )
    for what in ("rows", "columns", "fingerprint"):
        before, now = getattr(published, what), getattr(again, what)
        if before != now:
            raise ReplayDiffers(
                f"{envelope} came over the link again with other {what}: {before}, now {now}. "
                "Hint: a site whose log is gone has to begin a new epoch."
            )
