"""Counts the CPU time that Spark takes for a piece of work on this machine.

The time of Spark's own threads while they work on tasks comes from Spark's record of its stages; it
leaves out what compiling and collecting garbage take on other threads. The time of the Python
workers, where an operator has any, comes from the processes below the JVM.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PROCESSES = Path("/proc")
_GROUPS = count()


class CpuMeter:
    """Measures the CPU seconds of work that is done through one local session."""

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        # There is no public way to a stage's CPU time but the page of Spark, which is off.
        java_context: Any = self._context._jsc.sc()
        self._stages = java_context.statusStore()
        self._events = java_context.listenerBus()
        self._jvm = int(self._context._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]

    def measure(self, work: Callable[[], None]) -> float:
        """The CPU seconds of all tasks that the work takes."""
        group = f"thalweg-profile-{os.getpid()}-{next(_GROUPS)}"
        before_s = children_cpu_s(self._jvm)
        self._context.setJobGroup(group, "thalweg profile")
        try:
            work()
        finally:
            self._context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        python_s = children_cpu_s(self._jvm) - before_s
        self._events.waitUntilEmpty()
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        task_ns = sum(self._stages.lastStageAttempt(stage).executorCpuTime() for stage in stages)
        return float(task_ns / 1e9 + max(0.0, python_s))

    def measure_frame(self, frame: DataFrame) -> float:
        """The CPU seconds that it takes to compute every row of a frame, which is then dropped."""
        return self.measure(lambda: frame.write.format("noop").mode("overwrite").save())


def children_cpu_s(parent: int) -> float:
    """The CPU seconds of the processes below one, of those that have ended too; 0 off Linux."""
    ticks: dict[int, int] = {}
    parents: dict[int, int] = {}
    for folder in _PROCESSES.glob("[0-9]*"):
        try:
            # The name before the last bracket may have spaces in it.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(folder.name)
        parents[number] = int(fields[1])
        ticks[number] = sum(map(int, fields[11:15]))
    below = {parent}
    grown = True
    while grown:
        found = {number for number, above in parents.items() if above in below}
        grown = not found <= below
        below |= found
    return sum(ticks[number] for number in below - {parent}) / os.sysconf("SC_CLK_TCK")
