"""From the log of a fog over a link into that of the cloud: every batch at least once, in order."""

from __future__ import annotations

from campaign.control.invariants import Epoch
from campaign.control.scheduler import Network
from campaign.control.shared_log import Entry, SharedLog

LINK = "link"
_MOST_AT_ONCE = 4


class Link:
    """Keeps what fogs have sent until it is in the log of the cloud; it does not die itself."""

    def __init__(self, network: Network, own: SharedLog, cloud: SharedLog, cloud_name: str) -> None:
        self._network, self._own, self._cloud = network, own, cloud
        self._cloud_name = cloud_name
        self._kept = SharedLog()
        self._safe: dict[Epoch, int] = {}
        """The last batch that a fog knows to be kept, on its disk."""

    def is_safe(self, epoch: Epoch, batch: int) -> bool:
        """Whether a fog knows that all up to a batch is kept."""
        return self._safe.get(epoch, -1) >= batch

    def has_arrived(self, epoch: Epoch, batch: int) -> bool:
        """Whether the cloud has all up to a batch."""
        return self._cloud.last_batch(epoch) >= batch

    def send(self, fog: str) -> None:
        """Send what may not be kept yet, some of it again."""
        for epoch in self._own.batches:
            if epoch[0] == fog:
                self._carry(fog, LINK, self._own, self._kept, epoch, self._safe.get(epoch, -1))

    def deliver(self) -> None:
        """Send the cloud what it does not have."""
        for epoch in self._kept.batches:
            after = self._cloud.last_batch(epoch)
            if epoch not in self._cloud.fences:
                self._carry(LINK, self._cloud_name, self._kept, self._cloud, epoch, after)

    def _carry(
        self,
        sender: str,
        receiver: str,
        source: SharedLog,
        target: SharedLog,
        epoch: Epoch,
        after: int,
    ) -> None:
        if source.last_batch(epoch) <= after:
            return
        left = [each for each in source.batches[epoch] if each[0] > after]
        for batch, entries in left[:_MOST_AT_ONCE]:
            self._carry_one((sender, receiver), target, epoch, after, batch, entries)
            after = batch

    def _carry_one(
        self,
        way: tuple[str, str],
        target: SharedLog,
        epoch: Epoch,
        after: int,
        batch: int,
        entries: tuple[Entry, ...],
    ) -> None:
        sender, receiver = way
        name = f"batch {batch} of {epoch[0]}@{epoch[1]}"

        def know() -> None:
            self._safe[epoch] = max(batch, self._safe.get(epoch, -1))

        def arrive() -> None:
            if target.last_batch(epoch) < after:
                # What came before it is under way; all of it will be sent again.
                return
            target.receive(epoch, batch, entries)
            if receiver == LINK:
                self._network.send(receiver, sender, f"{receiver} keeps {name}", know)

        self._network.send(sender, receiver, f"{sender} → {receiver}: {name}", arrive)
