"""The rows of a site, and the windows that they are put in."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from thalweg.model import TimeWindow


@dataclass(frozen=True, slots=True)
class Feed:
    """The rows of one site: when each comes, its event time, and the windows they are put in."""

    times: tuple[int, ...]
    comes_s: tuple[float, ...]
    length: int
    slide: int
    delay: int

    @classmethod
    def draw(cls, random: Random, over_s: float, window: tuple[int, int, int]) -> Feed:
        """Rows in bursts, out of order by at most the delay."""
        length, slide, delay = window
        newest, times = 20, list[int]()
        for _ in range(random.randint(1, 40)):
            times.append(max(newest + random.randint(0, 4) - random.randint(0, delay), 0))
            newest = max(newest, times[-1])
        comes = sorted(random.uniform(0.0, over_s) for _ in times)
        return cls(tuple(times), tuple(comes), length, slide, delay)

    @property
    def window(self) -> TimeWindow:
        """The windows of `o`."""
        return TimeWindow(float(self.length), float(self.slide))

    def ends(self, row: int) -> list[int]:
        """The ends of the windows that a row belongs to."""
        time = self.times[row]
        first = time // self.slide * self.slide
        return [s + self.length for s in range(first, time - self.length, -self.slide)]

    def windows(self) -> dict[int, list[int]]:
        """Every window with its rows."""
        found: dict[int, list[int]] = {}
        for row in range(len(self.times)):
            for end in self.ends(row):
                found.setdefault(end, []).append(row)
        return found
