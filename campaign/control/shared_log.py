"""What sites publish, who may, and what the cloud makes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from campaign.control.calls import CommandFailed
from campaign.control.feed import Feed
from campaign.control.invariants import Epoch, Window

EVER = 10**9
"""Later than the end of any window [s]."""


class Refused(Exception):
    """The log takes nothing from this writer any more."""


@dataclass(frozen=True, slots=True)
class Raw:
    """A row for the cloud, and which of its windows are computed there."""

    row: int
    after: int = -1
    upto: int = EVER


@dataclass(frozen=True, slots=True)
class Out:
    """A window that a site has computed."""

    end: int
    rows: tuple[int, ...]


Entry = Raw | Out


@dataclass(slots=True)
class SharedLog:
    """What is published: whole batches, in order, each once; nothing after an epoch's fence."""

    batches: dict[Epoch, list[tuple[int, tuple[Entry, ...]]]] = field(default_factory=dict)
    fences: dict[Epoch, int] = field(default_factory=dict)
    writers: Counter[Epoch] = field(default_factory=Counter)
    starts: dict[Epoch, int] = field(default_factory=dict)
    ends: dict[Epoch, int] = field(default_factory=dict)
    """The row after the last one that is in a batch which counts."""
    changes: int = 0
    """How often anything of this was changed."""

    def open(self, epoch: Epoch, start: int) -> int:
        """A writer's number; older writers of the epoch cannot publish any more."""
        self.writers[epoch] += 1
        self.changes += 1
        self.batches.setdefault(epoch, [])
        self.starts.setdefault(epoch, start)
        self.ends.setdefault(epoch, start)
        return self.writers[epoch]

    def require_open(self, epoch: Epoch, writer: int) -> None:
        """Raise `Refused` for a fenced epoch, or a writer that another one has followed."""
        if epoch in self.fences:
            raise Refused("fenced")
        if self.writers[epoch] != writer:
            raise Refused("a newer writer has taken over")

    def publish(
        self, epoch: Epoch, writer: int, batch: int, entries: tuple[Entry, ...], end: int
    ) -> None:
        """Publish a batch that takes rows up to an end; one that is there is left as it is."""
        self.require_open(epoch, writer)
        published = self.batches[epoch]
        if published and published[-1][0] >= batch:
            there = dict(published)[batch]
            if there != entries:
                raise CommandFailed(f"batch {batch} of {epoch} was {there}, now {entries}")
            return
        published.append((batch, entries))
        self.changes += 1
        self.ends[epoch] = max(end, self.ends[epoch])

    def last_batch(self, epoch: Epoch) -> int:
        """The last batch that is published; -1: none is."""
        published = self.batches.get(epoch)
        return published[-1][0] if published else -1

    def receive(self, epoch: Epoch, batch: int, entries: tuple[Entry, ...]) -> None:
        """Take a batch that was shipped; once, and not after the fence."""
        if batch > self.last_batch(epoch) and epoch not in self.fences:
            self.batches.setdefault(epoch, []).append((batch, entries))
            self.changes += 1

    def fence(self, site: str, epoch: int, last_batch: int | None = None) -> None:
        """End an epoch; to do it again changes nothing."""
        last = -1 if last_batch is None else last_batch
        self.changes += 1
        if self.fences.setdefault((site, epoch), last) != last:
            raise CommandFailed(f"epoch {epoch} of {site} is fenced elsewhere already")


@dataclass(slots=True)
class CloudReader:
    """Takes what is published, batch after batch, and knows what came of which row."""

    feeds: Mapping[str, Feed]
    read: dict[Epoch, int] = field(default_factory=dict)
    counted: Counter[object] = field(default_factory=Counter)
    """By site, row and end of a window."""
    twice: dict[object, int] = field(default_factory=dict)
    """What of it counts more than once."""
    put_out: dict[Window, tuple[int, ...]] = field(default_factory=dict)
    """Windows that sites have computed."""
    owners: dict[Window, set[str]] = field(default_factory=dict)
    """Who has computed something of a window: an epoch of its site, or the cloud."""
    shared: dict[Window, set[str]] = field(default_factory=dict)
    """Those of them with more than one owner."""
    changes: int = 0
    """How often it has found something new."""

    def look(self, log: SharedLog) -> None:
        """Take everything that is new and counts."""
        for epoch, published in log.batches.items():
            done = self.read.get(epoch, -1)
            last = log.fences.get(epoch, EVER)
            if not published or published[-1][0] <= done:
                continue
            for batch, entries in published:
                if done < batch <= last:
                    self.read[epoch] = batch
                    self.changes += 1
                    for entry in entries:
                        self._count(epoch, entry)

    def _count(self, epoch: Epoch, entry: Entry) -> None:
        site, number = epoch
        if isinstance(entry, Out):
            self.put_out[site, entry.end] = entry.rows
            self._own((site, entry.end), f"{site}@{number}")
            for row in entry.rows:
                self._add((site, row, entry.end))
            return
        for end in self.feeds[site].ends(entry.row):
            if entry.after < end <= entry.upto:
                self._own((site, end), "cloud")
                self._add((site, entry.row, end))

    def _own(self, window: Window, owner: str) -> None:
        owners = self.owners.setdefault(window, set())
        owners.add(owner)
        if len(owners) > 1:
            self.shared[window] = owners

    def _add(self, key: object) -> None:
        self.counted[key] += 1
        if self.counted[key] > 1:
            self.twice[key] = self.counted[key]
