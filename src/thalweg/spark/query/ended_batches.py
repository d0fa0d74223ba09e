"""Lets go of what ended batches have in Spark's JVM.

A frame in Python keeps its plan, its stages and their broadcasts in the JVM until Python has
collected it. Frames are in cycles, and Python looks for cycles among old objects when there are a
quarter more of them, which in a process that works on tables is seldom: dozens of ended batches
were found in the heap of a site.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_EVERY_S = 3.0


class EndedBatches:
    """The batches that a query is done with; collected now and then."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._collected_s: float | None = None

    def let_go(self) -> None:
        """Collect them, if it was not done a moment ago: it costs some milliseconds."""
        now_s = self._now_s()
        if self._collected_s is None or now_s >= self._collected_s + _EVERY_S:
            self._collected_s = now_s
            gc.collect()


def spare_what_stays() -> None:
    """Have collections pass over all that is there by now: modules, classes, the session."""
    gc.collect()
    gc.freeze()
