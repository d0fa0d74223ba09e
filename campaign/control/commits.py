"""The commits of a keyed operator, and the epochs that make them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

Place = tuple[str, int]
"""A writer and the number of its epoch."""


class Refused(Exception):
    """The log takes nothing from this process any more."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One batch: which rows it took, the counts by key after it."""

    epoch: int
    writer: str
    batch: int
    start: int
    end: int
    state: dict[str, int]
    changed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The keys that it changed: their counts before and after it."""


@dataclass(slots=True)
class CommitLog:
    """Commits in their order, what was published of them, and the fences of both."""

    commits: list[Commit] = field(default_factory=list)
    begun: dict[Place, Place | None] = field(default_factory=dict)
    """Every epoch that a site was ever told to start, and the one that it follows."""
    fenced: set[Place] = field(default_factory=set)
    output_fenced: set[Place] = field(default_factory=set)
    published: Counter[object] = field(default_factory=Counter)
    """By writer, epoch and batch."""
    stands: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """The epoch and the batch up to which a standby says that it has followed."""
    last_batches: dict[Place, int] = field(default_factory=dict)
    key_changes: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    """Of every key: the epoch of each change, its count before and after it."""
    key_places: dict[str, dict[Place, None]] = field(default_factory=dict)
    """Of every key: who has changed it, in order."""
    is_away: bool = False
    """Whether its disk is."""
    changes: int = 0
    """How often anything of this was changed."""

    def begin(self, place: Place, follows: Place | None) -> None:
        """A site runs an epoch."""
        self.begun[place] = follows
        self.changes += 1

    def last(self, upto_epoch: int) -> Commit | None:
        """The newest commit of epochs up to one."""
        return max(
            (c for c in self.commits if c.epoch <= upto_epoch),
            key=lambda c: (c.epoch, c.batch),
            default=None,
        )

    def commit(self, commit: Commit) -> None:
        """Add a commit, unless the epoch has ended, or another process has made this batch."""
        place = (commit.writer, commit.epoch)
        if place in self.fenced or commit.batch != self.last_batches.get(place, -1) + 1:
            raise Refused
        self.commits.append(commit)
        self.last_batches[place] = commit.batch
        for key, (before, after) in commit.changed.items():
            self.key_changes.setdefault(key, []).append((commit.epoch, before, after))
            self.key_places.setdefault(key, {})[place] = None
        self.changes += 1

    def publish(self, commit: Commit) -> None:
        """Publish the output of a commit; it is there already, or its epoch's output has ended."""
        if (commit.writer, commit.epoch) not in self.output_fenced:
            self.published[commit.writer, commit.epoch, commit.batch] = 1
            self.changes += 1

    def fence(self, place: Place) -> None:
        """End an epoch: nothing more can be committed in it."""
        self.fenced.add(place)
        self.changes += 1

    def fence_outputs(self, places: set[Place]) -> None:
        """End the output of epochs."""
        self.output_fenced |= places
        self.changes += 1

    def key_owners(self) -> dict[str, list[str]]:
        """Of every key: the epochs that have changed it and could do so again."""
        return {
            key: [f"{place[0]}@{place[1]}" for place in places if place not in self.fenced]
            for key, places in self.key_places.items()
        }


class Worker:
    """The query of an epoch in one process."""

    def __init__(self, name: str, place: Place, follows: Place | None, log: CommitLog) -> None:
        self.name, self.place, self.follows, self.log = name, place, follows, log
        self.error: str | None = None
        self.has_begun = False
        self.at: Commit | None = None
        self.unpublished: Commit | None = None
        self._followed = 0

    @property
    def is_over(self) -> bool:
        """Whether it will never do anything again."""
        return self.error is not None or (self._is_fenced() and self.unpublished is None)

    def work(self, rows: list[str], more: int, come: int) -> None:
        """Follow, begin, commit or publish; after its fence it does nothing any more."""
        log = self.log
        if self.error is not None:
            return
        if self.unpublished is not None:
            log.publish(self.unpublished)
            self.unpublished = None
        elif self._is_fenced():
            return
        elif self.has_begun:
            self._commit(rows, more, come)
        elif self.follows is not None and self.follows not in log.fenced:
            self._follow(more)
        else:
            self._begin()

    def _is_fenced(self) -> bool:
        return self.place in self.log.fenced

    def _follow(self, more: int) -> None:
        """Take in some commits, and say how far that is."""
        commits = self.log.commits
        self._followed = min(self._followed + more, len(commits))
        last = commits[self._followed - 1] if self._followed else None
        stand = (-1, -1) if last is None else (last.epoch, last.batch)
        self.log.stands[self.place] = stand

    def _begin(self) -> None:
        """Take over: the state of the last commit, and its output, if that is not out yet."""
        log, (_, epoch) = self.log, self.place
        self.has_begun = True
        self.at = log.last(epoch)
        if self.at is not None:
            log.publish(self.at)
        first = 0 if self.at is None else self.at.epoch
        before = {(c.writer, c.epoch) for c in log.commits if first <= c.epoch < epoch}
        if self.follows is not None:
            before.add(self.follows)
        log.fence_outputs(before)

    def _commit(self, rows: list[str], more: int, come: int) -> None:
        """Count some rows; where somebody else has made this batch, that is an error."""
        at, (writer, epoch) = self.at, self.place
        start = 0 if at is None else at.end
        upto = min(come, start + more)
        if upto <= start:
            return
        before = {} if at is None else at.state
        state = Counter(before)
        state.update(rows[start:upto])
        changed = {key: (before.get(key, 0), state[key]) for key in sorted(set(rows[start:upto]))}
        own = at is not None and (at.writer, at.epoch) == self.place
        batch = at.batch + 1 if own and at is not None else 0
        commit = Commit(epoch, writer, batch, start, upto, dict(state), changed)
        try:
            self.log.commit(commit)
        except Refused:
            if not self._is_fenced():
                self.error = f"batch {batch} was published before with other rows"
            return
        self.at = self.unpublished = commit
