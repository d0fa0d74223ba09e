"""The link to a log on a disk that the site reaches: its sender publishes there by itself."""

from __future__ import annotations

import time
from collections.abc import Sequence

from thalweg.spark.link.arrival import Arrivals
from thalweg.spark.link.envelope import Envelope
from thalweg.spark.link.link import LinkSpec, directory_in


class DirectoryLink:
    """Puts what is sent into the log that the address names; there is nothing to receive.

    For sites that keep a log on a disk of their own, so that they go on while the disk of the cloud
    is away. Sites that write into the cloud's log at once need no link at all.
    """

    def __init__(self, spec: LinkSpec, *, durable: bool = True) -> None:
        self.address = spec.address
        self.problem = ""
        self._arrivals = Arrivals(directory_in(spec.address), durable=durable)

    def send(self, envelope: Envelope) -> None:
        """Publish an envelope."""
        self._arrivals.put(envelope)

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
        """Do nothing."""
