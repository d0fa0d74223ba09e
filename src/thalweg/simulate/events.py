"""Events as columns: when each is where, when it was born, and what it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from thalweg.simulate.compiled.ordering import gather, gather_tokens, merge, sort_in_buckets

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]
NONE = np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events in the order of their times. A token tells what they are and which way they came."""

    time: Floats
    birth: Floats
    token: Index
    held: Floats = field(default_factory=lambda: NONE)
    """How long each has waited for windows to fill; empty where nobody has."""
    later_s: float = 0.0
    """They are where they are so much later than `time` says: a way that takes all as long."""

    @classmethod
    def none(cls) -> Events:
        """No events."""
        return cls(NONE, NONE, np.empty(0, dtype=np.int32))

    def __len__(self) -> int:
        return int(self.time.size)

    def __getitem__(self, part: slice) -> Events:
        held = self.held[part] if self.held.size else NONE
        return Events(self.time[part], self.birth[part], self.token[part], held, self.later_s)

    def take(self, chosen: Index) -> Events:
        """Those of these numbers."""
        held = gather(self.held, chosen) if self.held.size else NONE
        time, birth = gather(self.time, chosen), gather(self.birth, chosen)
        return Events(time, birth, gather_tokens(self.token, chosen), held, self.later_s)

    def at(self, time: Floats) -> Events:
        """The same events at other times."""
        return Events(time, self.birth, self.token, self.held)

    def delayed(self, seconds: float) -> Events:
        """The same events, all so much later."""
        if not seconds:
            return self
        return Events(self.time, self.birth, self.token, self.held, self.later_s + seconds)

    @property
    def moment(self) -> Floats:
        """When they are where they are."""
        return self.time + self.later_s if self.later_s else self.time

    def split_at(self, until_s: float) -> tuple[Events, Events]:
        """Those before a time, and the others."""
        if not len(self) or self.time[-1] + self.later_s < until_s:
            return self, self[len(self) :]
        place = int(np.searchsorted(self.moment, until_s, side="left"))
        return self[:place], self[place:]


def concatenate(rows: Sequence[Events]) -> Events:
    """Rows of events one after the other."""
    rows = [row for row in rows if len(row)]
    if len(rows) == 1:
        return rows[0]
    if not rows:
        return Events.none()
    held = NONE
    if any(row.held.size for row in rows):
        held = np.concatenate([row.held if row.held.size else np.zeros(len(row)) for row in rows])
    return Events(
        np.concatenate([row.moment for row in rows]),
        np.concatenate([row.birth for row in rows]),
        np.concatenate([row.token for row in rows]),
        held,
    )


def merge_all(rows: Iterable[Events]) -> Events:
    """All of these events in the order of their times; of equal ones, those of the first row."""
    rows = [row for row in rows if len(row)]
    if len(rows) <= 1:
        return rows[0] if rows else Events.none()
    if len(rows) == 2:
        a, b = rows
        return Events(
            *merge(
                a.time, a.later_s, a.birth, a.token, a.held,
                b.time, b.later_s, b.birth, b.token, b.held,
            )
        )  # fmt: skip
    together = concatenate(rows)
    time, order = np.empty(len(together)), np.empty(len(together), dtype=np.int32)
    begin = np.cumsum([0, *(len(row) for row in rows)])
    if not sort_in_buckets(together.time, begin, time, order):
        order = np.argsort(together.time, kind="stable").astype(np.int32)
        time = together.time[order]
    return together.take(order).at(time)


class Row:
    """Events on their way, or waiting: a line that grows at its end and shrinks at its head."""

    def __init__(self) -> None:
        self._parts: deque[Events] = deque()
        self.count = 0

    def append(self, events: Events) -> None:
        """Put events at the end."""
        if len(events):
            self._parts.append(events)
            self.count += len(events)

    def take_before(self, until_s: float) -> list[Events]:
        """Take those before a time from the head."""
        taken = []
        while self._parts:
            now, rest = self._parts[0].split_at(until_s)
            if len(now):
                taken.append(now)
                self.count -= len(now)
            if len(rest):
                self._parts[0] = rest
                break
            self._parts.popleft()
        return taken

    def take_all(self) -> list[Events]:
        """Take all of them."""
        taken = list(self._parts)
        self._parts.clear()
        self.count = 0
        return taken

    def give_back(self, events: Events) -> None:
        """Put events back at the head."""
        if len(events):
            self._parts.appendleft(events)
            self.count += len(events)

    def copy(self) -> Row:
        """A row of its own with the same events."""
        other = Row()
        other._parts, other.count = self._parts.copy(), self.count
        return other

    def __iter__(self) -> Iterator[Events]:
        return iter(self._parts)
