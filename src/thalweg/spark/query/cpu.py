"""The CPU that each batch of a query took: that of Spark's tasks, and of their Python workers.

Spark keeps what its stages took, also where it shows no page of them, and a streaming query says in
a stage's description which batch it is for. What a driver spends on planning is not in it: that
grows with the number of batches, not with that of rows. Python workers are processes of their own,
which serve one batch after the other; what they took is shared out by the tasks' CPU.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from thalweg.spark.monitor.process import read_children_cpu_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUN = re.compile(r"runId = (\S+)\s+batch = (\d+)")
_MOST_STAGES = 500
"""At one look; Spark remembers fewer."""
_MOST_FORGOTTEN = 200
"""How far ahead to look for stages where those that come next are forgotten."""


class BatchCpu:
    """Reads what the stages of a session took; of a Spark Connect server nothing is known."""

    def __init__(self, session: SparkSession) -> None:
        context: Any = getattr(session, "_jsc", None)
        self._store: Any = None if context is None else context.sc().statusStore()
        self._next = 0
        self._seconds: dict[tuple[str, int], float] = {}
        self._workers_s: float | None = None

    def take(self, run: str, batches: list[int]) -> dict[int, float]:
        """CPU seconds of these batches of a query's run; what is not known is left out."""
        if self._store is None or not batches:
            return {}
        if not self._read() and not any((run, n) in self._seconds for n in batches):
            self._skip_forgotten()
        found = {n: self._seconds[run, n] for n in batches if (run, n) in self._seconds}
        for key in [key for key in self._seconds if key[0] != run or key[1] <= max(batches)]:
            del self._seconds[key]
        return self._with_workers(found)

    def _read(self) -> bool:
        """Take in every stage that has ended since the last time; whether there was one."""
        begin = self._next
        for _ in range(_MOST_STAGES):
            stage = self._stage(self._next)
            if stage is None or str(stage.status()) in ("ACTIVE", "PENDING"):
                break
            self._next += 1
            text = stage.description()
            said = _RUN.search(text.get()) if text.isDefined() else None
            if said is not None:
                key = (said[1], int(said[2]))
                cpu_s = stage.executorCpuTime() / 1e9
                self._seconds[key] = self._seconds.get(key, 0.0) + cpu_s
        return self._next > begin

    def _stage(self, number: int) -> Any:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

        try:
            return self._store.lastStageAttempt(number)
        except Py4JJavaError:
            return None

    def _skip_forgotten(self) -> None:
        """Go on with the next stage that Spark still knows, after a long time without a look."""
        for ahead in range(1, _MOST_FORGOTTEN):
            if self._stage(self._next + ahead) is not None:
                self._next += ahead
                self._read()
                return

    def _with_workers(self, tasks_s: dict[int, float]) -> dict[int, float]:
        """The same with what Python workers took since the last time."""
        workers_s = read_children_cpu_s(os.getpid(), "python")
        before, self._workers_s = self._workers_s, workers_s
        total = sum(tasks_s.values())
        if before is None or workers_s <= before or total <= 0:
            return tasks_s
        return {n: s * (1.0 + (workers_s - before) / total) for n, s in tasks_s.items()}
