"""The link to a log on a disk that the site reaches: its sender publishes there by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from thalweg.spark.link.arrival import Arrivals
from thalweg.spark.link.envelope import Envelope
from thalweg.spark.link.link import LinkError, LinkSpec, directory_in
from thalweg.spark.log.disk import LogError
from thalweg.spark.log.founding import is_log, require_log

_RETRY_S = 0.5


class DirectoryLink:
    """Puts what is sent into the log that the address names; there is nothing to receive.

    For sites that keep a log on a disk of their own, so that they go on while the disk of the cloud
    is away. Sites that write into the cloud's log at once need no link at all.
    """

    def __init__(self, spec: LinkSpec, *, durable: bool = True) -> None:
        self.address = spec.address
        self.problem = ""
        self._root = directory_in(spec.address)
        # The log is the cloud's: who sends there does not begin it.
        self._arrivals = Arrivals(self._root, durable=durable, founds=False)
        self._closing = threading.Event()

    def send(self, envelope: Envelope) -> None:
        """Publish an envelope; a disk that is away or full is waited for."""
        while True:
            try:
                require_log(self._root)
                self._arrivals.put(envelope)
            except (LogError, LinkError) as error:
                if not self._is_outage(error):
                    raise
                self.problem = str(error)
            else:
                self.problem = ""
                return
            if self._closing.wait(_RETRY_S):
                raise LinkError(f"{self.address} was closed: {self.problem}")

    def _is_outage(self, error: Exception) -> bool:
        """Whether the disk is the reason, and not what was sent."""
        if isinstance(error.__cause__, OSError):
            return True
        try:
            return not is_log(self._root)
        except LogError:
            return True

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002
        """True: what was sent is published."""
        return True

    def listen(self, reader: str) -> None:
        """Do nothing: the senders have done it."""

    def receive(self, timeout_s: float) -> Sequence[Envelope]:
        """None, after a while."""
        time.sleep(timeout_s)
        return ()

    def acknowledge(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Wait for nothing any more."""
        self._closing.set()
