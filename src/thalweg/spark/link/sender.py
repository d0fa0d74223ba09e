"""The site's end of a link: hands every segment of the site's log to the link, in order."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from thalweg.errors import Defects
from thalweg.model.names import require_name
from thalweg.spark.link.arrival import LinkCounts
from thalweg.spark.link.envelope import make_envelope, make_mark
from thalweg.spark.link.link import Link, LinkLate
from thalweg.spark.link.place import Position
from thalweg.spark.link.worker import LinkWorker
from thalweg.spark.log.founding import found_log, while_there
from thalweg.spark.log.names import EDGES, require_count
from thalweg.spark.log.reader import Log, Segment
from thalweg.spark.query.clock import SITE_CLOCK

_BYTES_PER_FLUSH = 32_000_000
_SEGMENTS_PER_FLUSH = 200
_FLUSH_STEP_S = 0.5


class LinkSender(LinkWorker):
    """Ships what a site publishes in `edges/…` of its own log; a thread that survives outages.

    Of one batch, the rows go before what the clock says about them. What is safe with the link is
    noted beside the log; after a crash the rest is sent again, and the receiver knows it. With
    `resend` everything is; see `send_again`. Without `founds`, there has to be a log already.

    Raises:
        InvalidInput: where the site has no name.
        LinkError: where this site has a sender already.
        LogError: where the log's folder cannot be written.
    """

    def __init__(
        self,
        link: Link,
        log_root: Path | str,
        site: str,
        *,
        poll_s: float = 0.05,
        resend: bool = False,
        founds: bool = True,
    ) -> None:
        defects = Defects()
        require_name(defects, "site", site)
        defects.raise_if_any()
        if founds:
            found_log(log_root)
        super().__init__(link, log_root, site)
        self.site = site
        self._log = Log(log_root)
        self._poll_s = poll_s
        self._sent: Counter[str] = Counter()
        self._asked: queue.SimpleQueue[_Mark] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._again = threading.Event()
        if resend:
            self._again.set()
        # What was handed to the link; noted beside the log once it is safe there.
        self._position = self._place.read_position()

    @property
    def counts(self) -> LinkCounts:
        """What is safe with the link."""
        return LinkCounts(**self._sent)

    def flush(self, epoch: int, batch: int, timeout_s: float = 60.0) -> None:
        """Wait until all that the site has published up to a batch is safe with the link.

        To be called when the batch is published in all its streams. A mark goes behind it, for
        which `LinkReceiver.wait_for` waits at the other end.

        Raises:
            LinkError: where it takes longer, or the sender has ended.
        """
        defects = Defects()
        require_count(defects, "epoch", epoch)
        require_count(defects, "batch", batch)
        defects.raise_if_any()
        mark = _Mark(epoch, batch)
        self._asked.put(mark)
        self._wake.set()
        deadline = time.monotonic() + timeout_s
        while not mark.safe.wait(0.05):
            self._require_working()
            if time.monotonic() > deadline:
                raise LinkLate(
                    f"batch {batch} of {self.site}, epoch {epoch}, was not taken by the link "
                    f"within {timeout_s:g} s: {self._problem()}"
                )

    def send_again(self) -> None:
        """Send everything from the first segment on, for a receiver that misses some of it.

        To ask again while that is under way changes nothing: else it might never come to an end.
        """
        self._again.set()
        self._wake.set()

    def close(self) -> None:
        """End the work after the present step; what is not sent by then is sent next time."""
        self._closing.set()
        self._wake.set()
        super().close()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.clear()
            again = self._again.is_set()
            if again:
                self._place.forget_position()
                self._position = {}
            # Marks first: what was published before one was asked for is then in the list.
            marks = [self._asked.get() for _ in range(self._asked.qsize())]
            found = self._find_new()
            done = all(map(self._ship, _in_lots(found)))
            if again and done:
                self._again.clear()
            for mark in marks if done else ():
                self.link.send(make_mark(self.site, mark.epoch, mark.batch, self._ends(mark.epoch)))
            if marks and done and self._wait_until_safe():
                for mark in marks:
                    mark.safe.set()
            elif not found:
                self._wake.wait(self._poll_s)

    def _find_new(self) -> list[tuple[Segment, int]]:
        """The segments not sent yet, each with the batch before it, in the order to send them.

        By epoch, batch, and name of the stream, the clock last. The clock is looked at before
        anything else, the list of streams too: what it speaks of was published before, and so is
        found.
        """
        with while_there(self._log.root):
            found = self._new_in(SITE_CLOCK)
            for stream in self._log.streams(EDGES):
                if stream != SITE_CLOCK:
                    found += self._new_in(stream)
        return sorted(found, key=lambda each: _turn_of(each[0]))

    def _new_in(self, stream: str) -> list[tuple[Segment, int]]:
        found = []
        for place in self._log.places(stream, self.site):
            after = self._position.get(stream, {}).get(place.epoch, -1)
            for segment in self._log.segments_at(place, after):
                found.append((segment, after))
                after = segment.batch
        return found

    def _ship(self, lot: list[tuple[Segment, int]]) -> bool:
        """Send some segments, and note them when they are safe; False where closing came first."""
        for segment, after in lot:
            if self._closing.is_set():
                return False
            # A clock says which rows came before it: lost ones must not be passed over in time.
            ends = self._ends(segment.epoch) if segment.stream == SITE_CLOCK else {}
            self.link.send(make_envelope(segment, after, ends))
            _advance(self._position, segment)
        if not self._wait_until_safe():
            return False
        for segment, _ in lot:
            self._sent["segments"] += 1
            self._sent["rows"] += segment.rows
            self._sent["bytes"] += segment.file_bytes
        self._place.write_position(self._position)
        return True

    def _ends(self, epoch: int) -> dict[str, int]:
        """The last batch of an epoch that was handed to the link, by stream."""
        return {s: epochs[epoch] for s, epochs in self._position.items() if epoch in epochs}

    def _wait_until_safe(self) -> bool:
        while not self.link.flush(_FLUSH_STEP_S):
            if self._closing.is_set():
                return False
        return True


class _Mark:
    """A wish to know when a batch is safe with the link."""

    def __init__(self, epoch: int, batch: int) -> None:
        self.epoch = epoch
        self.batch = batch
        self.safe = threading.Event()


def _turn_of(segment: Segment) -> tuple[int, int, bool, str]:
    return segment.epoch, segment.batch, segment.stream == SITE_CLOCK, segment.stream


def _advance(position: Position, segment: Segment) -> None:
    position.setdefault(segment.stream, {})[segment.epoch] = segment.batch


def _in_lots(found: list[tuple[Segment, int]]) -> Iterator[list[tuple[Segment, int]]]:
    """The same in lots that are made safe together: not too many bytes at risk of another trip."""
    lot: list[tuple[Segment, int]] = []
    size = 0
    for each in found:
        lot.append(each)
        size += each[0].file_bytes
        if size >= _BYTES_PER_FLUSH or len(lot) >= _SEGMENTS_PER_FLUSH:
            yield lot
            lot, size = [], 0
    if lot:
        yield lot
