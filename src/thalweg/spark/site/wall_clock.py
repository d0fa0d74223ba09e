"""Whether the clock of a machine was set back; Spark waits for its next batch by that clock."""

from __future__ import annotations

import time
from collections.abc import Callable


class WallClock:
    """Notices when the clock on the wall is set back, by one that only goes forward."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        forward: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall, self._forward = wall, forward
        self._ahead_s = wall() - forward()

    def went_back_s(self) -> float:
        """By how many seconds it was set back since this was last asked; 0 where it was not."""
        before_s, self._ahead_s = self._ahead_s, self._wall() - self._forward()
        return max(0.0, before_s - self._ahead_s)
