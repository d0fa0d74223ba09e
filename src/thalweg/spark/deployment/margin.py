"""How far ahead the bounds of windows are set for an epoch that is being prepared.

Windows that end within the margin stay with the cloud, which has to be sent their rows. So the
margin is as long as event time went on during the slowest change so far, and some more. Where time
gets past it all the same, the epoch is started without having been prepared: later, and with the
same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_FACTOR = 1.5
_SPARE_S = 0.5
_LEAST_S = 1.0


@dataclass(slots=True, kw_only=True)
class Margin:
    """The margin of the next change; `most_s` as long as none is known, and never more."""

    most_s: float
    _begun_ms: dict[str, int] = field(default_factory=dict)
    _went_on_ms: dict[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """By how much event time may go on, of whichever site it goes on most."""
        # Sites begin and end at the same time.
        known = tuple(self._went_on_ms.values())
        if not known:
            return self.most_s
        went_on_s = max(known) / 1000
        return min(self.most_s, max(_LEAST_S, _FACTOR * went_on_s + _SPARE_S))

    def begin(self, site: str, newest_ms: int) -> int:
        """Remember the newest event time at the start of a preparation; gives the one to plan for.

        >>> margin = Margin(most_s=6.0)
        >>> margin.begin("fog-1", 1_000)
        7000
        >>> margin.end("fog-1", 3_000)
        >>> margin.begin("fog-1", 9_000)
        12500
        """
        ahead_ms = newest_ms + round(self.seconds * 1000)
        self._begun_ms[site] = newest_ms
        return ahead_ms

    def end(self, site: str, newest_ms: int | None) -> None:
        """Remember the newest event time at the barrier."""
        begun_ms = self._begun_ms.pop(site, None)
        if begun_ms is not None and newest_ms is not None:
            self._went_on_ms[site] = max(self._went_on_ms.get(site, 0), newest_ms - begun_ms)

    def forget(self) -> None:
        """Know of no change: a site that was started again prepares its first epoch slowly."""
        self._went_on_ms = {}
