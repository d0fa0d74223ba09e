"""Who runs the waves of a sweep: Spark, or this process."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

import thalweg
from thalweg.errors import ThalwegError
from thalweg.spark.session import SparkUnavailable
from thalweg.spark.sweep.tasks import Answer, KeyedPoint, Mishap, Run, join_answers, run_points

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A wave is a list of tasks, a task a list of points.
Wave: TypeAlias = Sequence[Sequence[KeyedPoint]]

# While the last tasks of one wave run, those of the next keep the other cores busy.
_WAVES_IN_FLIGHT = 2
_ROWS_TO_GREET = 4096
_PATIENCE_S = 1.0


class WorkerMismatch(ThalwegError):
    """The workers of a cluster cannot run the sweep: something is not installed there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What to do with every point."""

    run: Run
    settings: Mapping[str, object]
    columns: pa.Schema

    def do(self, points: Iterable[KeyedPoint]) -> Answer:
        """Run these points, here and now."""
        return run_points(self.run, self.settings, self.columns, points)


class Crew(Protocol):
    """Takes waves and gives an answer for each, in any order."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time."""

    def answers(self, waves: Iterator[Wave]) -> Generator[Answer, None, None]:
        """The answers; a wave is asked for only when it can start soon."""


class LocalCrew:
    """This process, one point after the other: no JVM, no start-up time."""

    parallelism = 1

    def __init__(self, work: Work) -> None:
        self._work = work

    def answers(self, waves: Iterator[Wave]) -> Generator[Answer, None, None]:
        """One answer after the other."""
        for wave in waves:
            tasks = [self._work.do(points) for points in wave]
            yield join_answers(tasks, self._work.columns)


class SparkCrew:
    """The workers of a Spark session, classic or Connect; only the DataFrame API is used."""

    def __init__(self, session: SparkSession, work: Work) -> None:
        from pyspark import cloudpickle

        pickler: Any = cloudpickle
        self._session = session
        self._work = work
        # Pickled here, so that a worker that cannot load it says so instead of going down.
        self._run: bytes = pickler.dumps(work.run)
        self._tag = f"thalweg-sweep-{uuid.uuid4().hex}"
        self._stopped = False
        # A session through Spark Connect has no context.
        self._context: Any = getattr(session, "sparkContext", None)
        self.parallelism = self._greet()

    def answers(self, waves: Iterator[Wave]) -> Generator[Answer, None, None]:
        """The answers as waves end. Stops what is running where the caller stops asking."""
        flying = set[Future[Answer]]()
        with ThreadPoolExecutor(_WAVES_IN_FLIGHT, thread_name_prefix="sweep") as threads:
            try:
                while True:
                    while len(flying) < _WAVES_IN_FLIGHT and (wave := next(waves, None)):
                        flying.add(threads.submit(self._run_wave, wave))
                    if not flying:
                        return
                    landed, flying = wait(flying, return_when=FIRST_COMPLETED)
                    for future in landed:
                        yield future.result()
            except BaseException:
                self._stopped = True
                self._interrupt()
                # Again: a job that was about to start when the first call came has to stop too.
                while wait(flying, timeout=_PATIENCE_S).not_done:
                    self._interrupt()
                raise

    def _mark_jobs(self) -> None:
        """Mark what this thread starts from now on as part of this sweep."""
        if self._context is None:
            self._session.addTag(self._tag)
        else:
            self._context.addJobTag(self._tag)

    def _interrupt(self) -> None:
        """Stop what is marked."""
        if self._context is None:
            self._session.interruptTag(self._tag)
        else:
            # A classic session only interrupts what the calling thread itself has started.
            self._context.cancelJobsWithTag(self._tag)

    def _greet(self) -> int:
        """How many tasks run at once, after asking each worker whether it can do the work."""
        pickled = self._run

        def greet(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                pass
            import thalweg

            try:
                pickle.loads(pickled)  # noqa: S301  # nosec B301  # made by this sweep's driver
                problem = ""
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
            answer = {"version": [thalweg.__version__], "problem": [problem]}
            yield pa.RecordBatch.from_pydict(answer)

        # Without a number of partitions Spark takes as many as it can run at once.
        workers = self._session.range(_ROWS_TO_GREET)
        try:
            told = workers.mapInArrow(greet, "version string, problem string").toArrow()
        except Exception as error:
            why = _first_line_with(str(error), "No module named", "PYTHON_VERSION_MISMATCH")
            raise WorkerMismatch(
                f"the workers cannot load the sweep: {why} Hint: they need the same minor version "
                f"of Python and, installed in it, thalweg[spark]=={thalweg.__version__}."
            ) from error
        for greeting in told.to_pylist():
            if greeting["version"] != thalweg.__version__:
                raise WorkerMismatch(
                    f"a worker has thalweg {greeting['version']}, this is {thalweg.__version__}. "
                    "Hint: install the same version on the workers."
                )
            if greeting["problem"]:
                raise WorkerMismatch(
                    f"a worker cannot load the swept function: {greeting['problem']}. "
                    "Hint: its module must be installed in the Python of the workers."
                )
        return max(1, int(told.num_rows))

    def _run_wave(self, wave: Wave) -> Answer:
        """One job of as many tasks as the wave has, sought through where a worker goes down."""
        try:
            return self._run_job(wave)
        except Exception as error:
            if self._stopped:
                raise
            points = [point for task in wave for point in task]
            if len(points) == 1:
                self._require_spark()
                message = _first_line_with(str(error), "worker").rpartition("Exception: ")[2]
                lost = Mishap(error="WorkerLost", message=message, traceback="")
                empty = self._work.columns.empty_table()
                return Answer(table=empty, finished={}, failed={points[0][0]: lost})
            half = len(points) // 2
            parts = [[[point] for point in part] for part in (points[:half], points[half:])]
            return join_answers([self._run_wave(part) for part in parts], self._work.columns)

    def _require_spark(self) -> None:
        """Raise where Spark itself is gone: then no point is to blame, and the sweep ends."""
        try:
            self._session.range(1).count()
        except Exception as error:
            raise SparkUnavailable(
                f"Spark ended during the sweep: {_first_line_with(str(error))} "
                "Hint: what is finished is kept; start the sweep again to go on from there."
            ) from error

    def _run_job(self, wave: Wave) -> Answer:
        pickled, settings, columns = self._run, dict(self._work.settings), self._work.columns

        def run_tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            run = pickle.loads(pickled)  # noqa: S301  # nosec B301  # made by this sweep's driver
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    answer = run_points(run, settings, columns, wave[number]).to_bytes()
                    yield pa.RecordBatch.from_pydict({"answer": pa.array([answer], pa.binary())})

        # The points travel with the function, and the rows are the numbers of the tasks: that
        # makes exactly one row a task, without a shuffle and without Spark's own types in between.
        self._mark_jobs()
        numbers = self._session.range(0, len(wave), 1, len(wave))
        told = numbers.mapInArrow(run_tasks, "answer binary").toArrow()
        answers = [Answer.from_bytes(stream) for stream in told.column("answer").to_pylist()]
        return join_answers(answers, columns)


def _first_line_with(text: str, *words: str) -> str:
    """The first line of a long message that has one of the words; else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    likely = [line for line in lines if any(word in line for word in words)]
    return next(iter([*likely, *lines]), "")
