"""What sites publish, who may, and what the cloud makes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from campaign.control.feed import Feed
from campaign.control.invariants import Epoch, Window

EVER = 10**9
"""Later than the end of any window [s]."""


class CommandFailed(Exception):
    """A site cannot do what it was told."""


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

    def open(self, epoch: Epoch, start: int) -> int:
        """A writer's number; older writers of the epoch cannot publish any more."""
        self.writers[epoch] += 1
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
        self.ends[epoch] = max(end, self.ends[epoch])

    def fence(self, site: str, epoch: int, last_batch: int | None = None) -> None:
        """End an epoch; to do it again changes nothing."""
        last = -1 if last_batch is None else last_batch
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
                    for entry in entries:
                        self._count(epoch[0], entry)

    def _count(self, site: str, entry: Entry) -> None:
        if isinstance(entry, Out):
            self.put_out[site, entry.end] = entry.rows
            for row in entry.rows:
                self._add((site, row, entry.end))
            return
        for end in self.feeds[site].ends(entry.row):
            if entry.after < end <= entry.upto:
                self._add((site, entry.row, end))

    def _add(self, key: object) -> None:
        self.counted[key] += 1
        if self.counted[key] > 1:
            self.twice[key] = self.counted[key]
