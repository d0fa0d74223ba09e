"""The cloud's end of a link: publishes what comes in the cloud's log."""

from __future__ import annotations

import time
from pathlib import Path

from thalweg.spark.link.arrival import Arrivals, LinkCounts, has_arrived
from thalweg.spark.link.envelope import Envelope
from thalweg.spark.link.link import Link, LinkGap, LinkLate
from thalweg.spark.link.worker import LinkWorker

_RECEIVE_STEP_S = 0.2
_LOOK_S = 0.02


class LinkReceiver(LinkWorker):
    """Publishes every segment that comes over a link, once; a thread that survives outages.

    All that it knows is in the log; one that was killed is replaced by a new one. What comes after
    the fence of its epoch is dropped, and counted. What comes after something that is missing is
    left out until it comes again behind what was missing; that is for the site's sender to do, and
    nothing is acknowledged before. Without `founds`, there has to be a log already.

    Raises:
        LinkError: where the log has a receiver for this link already.
        LogError: where the log's folder cannot be written.
    """

    def __init__(
        self, link: Link, log_root: Path | str, *, durable: bool = True, founds: bool = True
    ) -> None:
        # First: what follows holds a lock, and nobody would let go of it.
        self._arrivals = Arrivals(log_root, durable=durable, founds=founds)
        super().__init__(link, log_root, "")
        self._gaps: dict[tuple[str, str, int], tuple[int, LinkGap]] = {}
        self._stuck_since_s: dict[str, float] = {}

    @property
    def counts(self) -> LinkCounts:
        """What has arrived."""
        return self._arrivals.counts

    @property
    def gaps(self) -> dict[str, str]:
        """What is missing, by site."""
        found = sorted(self._gaps.copy().items(), reverse=True)
        return {site: str(gap) for (site, _, _), (_, gap) in found}

    def lasting_gaps(self, least_s: float) -> dict[str, str]:
        """What has been missing for so long, by site, with nothing coming again meanwhile.

        A site that sends everything again may take long before it gets to what is missing.
        """
        now_s, since_s = time.monotonic(), self._stuck_since_s.copy()
        return {
            site: gap
            for site, gap in self.gaps.items()
            if now_s - since_s.get(site, now_s) >= least_s
        }

    def wait_for(self, site: str, epoch: int, batch: int, timeout_s: float = 60.0) -> None:
        """Wait until all that a site had published up to a batch is in the log.

        Its sender has to be flushed up to that batch, before or meanwhile.

        Raises:
            LinkError: where it takes longer, or the receiver has ended.
        """
        deadline = time.monotonic() + timeout_s
        while not has_arrived(self.log_root, site, epoch, batch):
            self._require_working()
            if time.monotonic() > deadline:
                problem = (
                    f"{self._problem()}. Hint: was the site's sender flushed up to that batch?"
                )
                raise LinkLate(
                    f"batch {batch} of {site}, epoch {epoch}, has not come over the link within "
                    f"{timeout_s:g} s: {self.gaps.get(site, problem)}"
                )
            time.sleep(_LOOK_S)

    def _run(self) -> None:
        self.link.listen(self._place.reader_id())
        while not self._closing.is_set():
            envelopes = self.link.receive(_RECEIVE_STEP_S)
            for envelope in envelopes:
                self._take(envelope)
            if envelopes and not self._gaps:
                self.link.acknowledge()

    def _take(self, envelope: Envelope) -> None:
        place, now_s = (envelope.site, envelope.stream, envelope.epoch), time.monotonic()
        last, _ = self._gaps.get(place, (envelope.batch, None))
        repeated = self._arrivals.counts.repeated
        try:
            self._arrivals.put(envelope)
        except LinkGap as gap:
            self._gaps[place] = (max(last, envelope.batch), gap)
            self._stuck_since_s.setdefault(envelope.site, now_s)
            return
        if envelope.site in self._stuck_since_s:
            if place in self._gaps or self._arrivals.counts.repeated > repeated:
                # It is being sent again.
                self._stuck_since_s[envelope.site] = now_s
            if envelope.batch >= last:
                self._gaps.pop(place, None)
            if all(site != envelope.site for site, _, _ in self._gaps):
                del self._stuck_since_s[envelope.site]
