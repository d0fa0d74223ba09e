"""The commits of a keyed operator, and the epochs that make them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from thalweg.spark.keyed.move import Run


class Refused(Exception):
    """The log takes nothing from this writer any more."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One batch: which rows it took, the counts by key after it."""

    epoch: int
    site: str
    batch: int
    start: int
    end: int
    state: dict[str, int]


@dataclass(slots=True)
class CommitLog:
    """Commits in their order, what was published of them, and the fences of both."""

    commits: list[Commit] = field(default_factory=list)
    fenced: set[tuple[str, int]] = field(default_factory=set)
    published: Counter[object] = field(default_factory=Counter)
    """By site, epoch and batch."""
    output_fenced: set[tuple[str, int]] = field(default_factory=set)
    writers: Counter[tuple[str, int]] = field(default_factory=Counter)
    stands: dict[tuple[str, int], int] = field(default_factory=dict)
    """How many commits a standby has followed."""

    def last(self, upto_epoch: int) -> Commit | None:
        """The newest commit of epochs up to one."""
        return max(
            (c for c in self.commits if c.epoch <= upto_epoch),
            key=lambda c: (c.epoch, c.batch),
            default=None,
        )

    def commit(self, commit: Commit, writer: int) -> None:
        """Add a commit, unless the epoch has ended or somebody else has taken over."""
        place = (commit.site, commit.epoch)
        if place in self.fenced or self.writers[place] != writer:
            raise Refused
        there = [c.batch for c in self.commits if (c.site, c.epoch) == place]
        if commit.batch != max(there, default=-1) + 1:
            raise Refused
        self.commits.append(commit)

    def publish(self, commit: Commit) -> None:
        """Publish the output of a commit; it is there already, or its epoch's output has ended."""
        if (commit.site, commit.epoch) not in self.output_fenced:
            key = (commit.site, commit.epoch, commit.batch)
            self.published[key] = 1


class Worker:
    """The query of an epoch in one process."""

    def __init__(self, run: Run, log: CommitLog) -> None:
        self.run, self.log = run, log
        self.place = (run.site, run.epoch)
        self.writer: int | None = None
        self.at: Commit | None = None
        self.unpublished: Commit | None = None

    def work(self, rows: list[str], upto: int) -> None:
        """Follow, begin, commit or publish; raises `Refused` where this epoch has ended."""
        log, follows = self.log, self.run.follows
        if self.unpublished is not None:
            log.publish(self.unpublished)
            self.unpublished = None
            return
        if self.place in log.fenced:
            raise Refused
        if self.writer is None:
            if follows is not None and follows not in log.fenced:
                log.stands[self.place] = len(log.commits)
                return
            self._begin()
            return
        start = 0 if self.at is None else self.at.end
        if upto <= start:
            return
        state = Counter({} if self.at is None else self.at.state)
        state.update(rows[start:upto])
        own = self.at is not None and (self.at.site, self.at.epoch) == self.place
        batch = self.at.batch + 1 if own and self.at is not None else 0
        commit = Commit(self.run.epoch, self.run.site, batch, start, upto, dict(state))
        log.commit(commit, self.writer)
        self.at = self.unpublished = commit

    def _begin(self) -> None:
        """Take over: the state of the last commit, and its output, if that is not out yet."""
        log = self.log
        log.writers[self.place] += 1
        self.writer = log.writers[self.place]
        self.at = log.last(self.run.epoch)
        if self.at is not None:
            log.publish(self.at)
        first = 0 if self.at is None else self.at.epoch
        before = {(c.site, c.epoch) for c in log.commits if first <= c.epoch < self.run.epoch}
        if self.run.follows is not None:
            before.add(self.run.follows)
        log.output_fenced |= before
