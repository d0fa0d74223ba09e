"""What came of a hand-over, as it was measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCounts:
    """What became of events, told apart by their numbers."""

    sent: int
    delivered: int
    """Those that came out at least once."""
    lost: int
    duplicated: int
    """How many came out beyond the first of each."""

    @classmethod
    def of(cls, sent: npt.NDArray[np.int64], arrived: npt.NDArray[np.int64]) -> EventCounts:
        """Compare the numbers of events that went in with those that came out.

        What came out and is not among those that went in is not counted.

        >>> EventCounts.of(np.array([3, 4, 5]), np.array([1, 3, 5, 5]))
        EventCounts(sent=3, delivered=2, lost=1, duplicated=1)
        """
        known = arrived[np.isin(arrived, sent)]
        delivered = np.unique(known).size
        return cls(
            sent=int(sent.size),
            delivered=int(delivered),
            lost=int(sent.size - delivered),
            duplicated=int(known.size - delivered),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """One migration. Moments are those of the tracks; how long something took is by the clock."""

    source: str
    target: str
    planned_s: float
    prepared_s: float
    """When the target was begun to be prepared."""
    handed_over_s: float
    """When the source was fenced: it commits nothing from there on."""
    released_s: float
    """When the source had stopped."""
    ahead_bytes: int
    """Of state, read by the target while the source went on."""
    last_bytes: int
    """Of state, read by the target after the hand-over."""
    state_bytes: int
    """How large the state was in memory as it was handed over."""
    take_over_s: float
    """From the fence until the target had the whole state."""
    pause_s: float | None
    """From the last output before to the first one after; None where there is not both."""
    events: EventCounts
    """Those born from the preparation to the release."""

    @property
    def sent_bytes(self) -> int:
        """All that was sent of the state."""
        return self.ahead_bytes + self.last_bytes

    @property
    def late_s(self) -> float:
        """How long after its moment the hand-over was, in the time of the tracks."""
        return self.handed_over_s - self.planned_s

    def to_dict(self) -> dict[str, Any]:
        """The migration as plain data, ready for JSON."""
        return asdict(self) | {"sent_bytes": self.sent_bytes, "late_s": self.late_s}


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOverReport:
    """A run with all its migrations, and whether it came to what one place comes to."""

    sites: tuple[str, ...]
    vehicles: int
    window_s: float
    speedup: float
    seconds: float
    """How long rows flowed, by the clock, until all had come out."""
    moves: tuple[MoveReport, ...]
    events: EventCounts
    outputs_equal: bool
    """Whether what came out is, row by row, what a recount of all positions gives."""
    state_equal: bool
    """Whether the state at the end is that of the operator run in one place, and of the recount."""
    state_fingerprint: str
    steady_pause_s: float | None
    """The median time between two outputs while nothing moved."""

    @property
    def ok(self) -> bool:
        """Whether nothing was lost, nothing came twice, and everything is equal."""
        counts = self.events
        return self.outputs_equal and self.state_equal and not (counts.lost or counts.duplicated)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, ready for JSON."""
        values = asdict(self) | {"ok": self.ok, "sites": list(self.sites)}
        return values | {"moves": [move.to_dict() for move in self.moves]}

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Names of the columns, and a row for each migration."""
        names = ["from", "to", "planned", "at", "ahead", "last", "pause", "events", "lost", "twice"]
        return names, [_row(move) for move in self.moves]


def _row(move: MoveReport) -> list[str]:
    pause = "-" if move.pause_s is None else f"{move.pause_s:.2f} s"
    return [
        move.source,
        move.target,
        f"{move.planned_s:.1f} s",
        f"{move.handed_over_s:.1f} s",
        f"{move.ahead_bytes:,} B",
        f"{move.last_bytes:,} B",
        pause,
        str(move.events.sent),
        str(move.events.lost),
        str(move.events.duplicated),
    ]
