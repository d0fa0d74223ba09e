"""Sweeps: a table of points in, a table of results out, on any Spark, resumable at any time.

The driver sends points to Spark in waves of a few tasks for each core, two waves at a time, and
writes what a finished wave answers as one Parquet part. So every result is safe within seconds, a
sweep goes on where it was stopped, and the workers need no disk in common with the driver. Tasks
start with one point and grow until they take about a second, so that short points do not drown in
Spark's own time and long ones are spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from thalweg.spark.session import open_session
from thalweg.spark.sweep.crew import Crew, LocalCrew, SparkCrew, Wave, Work
from thalweg.spark.sweep.folder import SweepFolder, open_folder
from thalweg.spark.sweep.points import Point, Points, jsonable
from thalweg.spark.sweep.request import IN_PROCESS, OnProgress, SweepRequest, check_request
from thalweg.spark.sweep.tasks import Answer, Mishap, Run

__all__ = ["IN_PROCESS", "SweepFailure", "SweepResult", "sweep"]

SPARK_LOG = "spark.log"
_TASKS_PER_CORE = 2
_TASK_SECONDS = 1.0
_SHORTEST_TASK_SECONDS = 0.25
_FASTEST_GROWTH = 8
# The JVM hands out tasks and little else: the time to compile its code well is never earned back.
_QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFailure:
    """A point that raised instead of returning rows."""

    point: Point
    error: str
    message: str
    traceback: str

    def __str__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.point.items())
        return f"{parameters}: {self.error}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """What a sweep found.

    Attributes:
        table: the parameters of each finished point and, beside them, its rows; ordered by point.
        failures: the points that failed this time, ordered by point.
        points: how many points were asked for.
        resumed: how many of them were finished already, and did not run again.
        into: the folder where all of this is kept.
    """

    table: pa.Table
    failures: tuple[SweepFailure, ...]
    points: int
    resumed: int
    into: Path


def sweep(
    points: pa.Table | Iterable[Mapping[str, object]],
    run: Run,
    *,
    into: str | Path,
    columns: pa.Schema,
    name: str | None = None,
    settings: Mapping[str, object] | None = None,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    points_per_task: int | None = None,
    restart: bool = False,
    on_progress: OnProgress | None = None,
) -> SweepResult:
    """Run a function on every point that is not finished yet, and return all rows.

    The result does not depend on the master, on the number of workers, or on how often the sweep
    was stopped and resumed: it is ordered by the points and, within one, as the function returned
    the rows.

    Args:
        points: one row or mapping per point; no two may be the same.
        run: a function of a module, which takes a point (a dict of its parameters and the
            settings) and returns a list of rows, each a mapping, or a pyarrow table. A point that
            raises is reported as a failure, and is tried again when the sweep is resumed.
        into: the folder for parts, manifest and `results.parquet`; a sweep is resumed by calling
            with the same folder. The points may be others then, the rest has to be the same.
        columns: the columns that `run` returns; the parameters are added to them.
        name: what the sweep is called, else the name of `run`.
        settings: further arguments, the same for every point.
        master: as `open_session` takes it; or `IN_PROCESS` to do without Spark.
        config: further settings of Spark, where a session is started for the sweep.
        points_per_task: how many points a task of Spark has; else found as the sweep goes on.
        restart: discard what the folder has of an earlier sweep.
        on_progress: called with the number of points done, failed ones too, and the number of all.

    Raises:
        InvalidInput: with all that is wrong with the arguments, or where the folder holds a sweep
            with another function, parameters, settings, columns or version of Thalweg.
        MissingExtra: where pyspark is needed and not installed.
        SparkUnavailable: where Spark does not start, does not answer, or ends too early.
        WorkerMismatch: where the workers lack Thalweg or the module of `run`.
    """
    request = check_request(
        points=points,
        run=run,
        into=into,
        columns=columns,
        name=name,
        settings=settings,
        master=master,
        config=config,
        points_per_task=points_per_task,
        on_progress=on_progress,
    )
    held = open_folder(
        request.into,
        request.identity,
        request.columns,
        points=len(request.points.keys),
        restart=restart,
    )
    with held as folder:
        return _resume(request, folder)


def _resume(request: SweepRequest, folder: SweepFolder) -> SweepResult:
    """Run what is missing, if anything is, and write down the whole result."""
    keys = request.points.keys
    resumed = sum(key in folder.finished for key in keys)
    request.on_progress(resumed, len(keys))
    failed = dict[str, Mishap]()
    if resumed < len(keys):
        with ExitStack() as stack:
            failed = _run_missing(_hire(request, stack), request, folder)
    failures = tuple(
        _failure(point, failed[key])
        for key, point in zip(keys, request.points.rows, strict=True)
        if key in failed
    )
    table = folder.table(request.points)
    folder.publish(table, [_as_json(failure) for failure in failures])
    return SweepResult(
        table=table, failures=failures, points=len(keys), resumed=resumed, into=request.into
    )


def _hire(request: SweepRequest, stack: ExitStack) -> Crew:
    work = Work(run=request.run, settings=request.settings, columns=request.columns)
    if request.master == IN_PROCESS:
        return LocalCrew(work)
    remote = request.master is not None and request.master.startswith("sc://")
    config = {**({} if remote else _QUICK_START), **request.config}
    log = request.into / SPARK_LOG
    opened = open_session(request.master, request.name, config=config, log=log)
    return SparkCrew(stack.enter_context(opened), work)


def _run_missing(crew: Crew, request: SweepRequest, folder: SweepFolder) -> dict[str, Mishap]:
    """Run what is not finished; the folder has the rows, and what failed is returned."""
    pace = _Pace(crew.parallelism, request.points_per_task)
    failed = dict[str, Mishap]()
    keys = request.points.keys
    # Closed: where writing a part or telling the progress raises, the waves in flight are stopped.
    with closing(crew.answers(_waves(request.points, folder.finished, pace))) as answers:
        for answer in answers:
            folder.add(answer)
            failed |= answer.failed
            pace.learn(answer)
            request.on_progress(len(folder.finished.intersection(keys)) + len(failed), len(keys))
    return failed


def _waves(points: Points, finished: frozenset[str], pace: _Pace) -> Iterator[Wave]:
    """The unfinished points in order, cut into waves as large as the pace says when asked."""
    pairs = zip(points.keys, points.rows, strict=True)
    missing = [(key, point) for key, point in pairs if key not in finished]
    start = 0
    while start < len(missing):
        size = pace.points_per_task(len(missing) - start)
        end = min(len(missing), start + size * pace.tasks_per_wave)
        yield [missing[at : min(end, at + size)] for at in range(start, end, size)]
        start = end


class _Pace:
    """How many points a task gets: so many that it takes about a second."""

    def __init__(self, parallelism: int, fixed: int | None) -> None:
        self.tasks_per_wave = parallelism * _TASKS_PER_CORE
        self._fixed = fixed
        self._size = 1

    def learn(self, answer: Answer) -> None:
        """Take the last answer as the best guess of how long a point takes."""
        ran = len(answer.finished) + len(answer.failed)
        wanted = int(_TASK_SECONDS * ran / max(answer.seconds, 1e-9))
        self._size = max(1, min(wanted, self._size * _FASTEST_GROWTH))

    def points_per_task(self, remaining: int) -> int:
        """For the next wave; towards the end less, so that all cores have work to the last."""
        if self._fixed is not None:
            return self._fixed
        share = -(-remaining // (2 * self.tasks_per_wave))
        least = int(self._size * _SHORTEST_TASK_SECONDS / _TASK_SECONDS)
        return max(1, least, min(self._size, share))


def _failure(point: Point, mishap: Mishap) -> SweepFailure:
    return SweepFailure(
        point=point, error=mishap.error, message=mishap.message, traceback=mishap.traceback
    )


def _as_json(failure: SweepFailure) -> dict[str, object]:
    return {
        "point": {name: jsonable(value) for name, value in failure.point.items()},
        "error": failure.error,
        "message": failure.message,
        "traceback": failure.traceback,
    }
