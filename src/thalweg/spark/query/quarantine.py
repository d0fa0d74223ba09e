"""Finds the rows that make a query's operators fail, and takes them out of its way.

A row that raises (a text that is no number, a division by zero, an exception of a function in
Python) fails its whole batch, and the batch is done again with the same rows. So the rows that are
under way are tried apart from the stream, in smaller and smaller parts, until the rows are known
that fail alone. They become dead letters; the query goes on with the others.

Errors that tell of the world rather than of a row (a file that is not there, no memory, no
connection) send no row away: the query fails with them.
"""

from __future__ import annotations

import builtins
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import ThalwegError
from thalweg.spark.pipeline.windows import BOUNDS
from thalweg.spark.query.checkpoint import last_finished
from thalweg.spark.query.feeder import TakenLots
from thalweg.spark.query.intake import write_rows
from thalweg.spark.query.left_out import RowPlace, add_places
from thalweg.spark.query.running import first_words
from thalweg.spark.query.set_aside import LETTER_SCHEMA, SetAside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Data, functions of users, and what they raise on purpose: the classes of SQL states.
_STATES_OF_ROWS = ("22", "38", "39", "P0")
_ERRORS_OF_THE_WORLD = (OSError, MemoryError, ImportError)

Attempt = Callable[[Sequence[int]], str | None]
"""Tries the rows at these places; gives why they fail, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineLimits:
    """How much is set aside before it is the query that is called bad."""

    rows_per_lot: int = 1000
    search_s: float = 60.0
    """What a search has found by then is set aside; the rest, when the query fails again."""


LIMITS = QuarantineLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a query makes of some rows of one of its streams, as batch frames."""

    rows: DataFrame
    whole: DataFrame
    """All that the query publishes."""
    steps: Mapping[str, DataFrame]
    """What every operator puts out that these rows can reach, each after what it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedStream:
    """A stream that a query reads: who sends its rows, and what the query makes of a file."""

    sender: str
    try_file: Callable[[Path], Trial]
    find_places: Callable[[int], Sequence[RowPlace]] | None = None
    """Where in the log each row of a lot is, as it was laid down; None: nobody will ask."""


class SearchEnded(ThalwegError):
    """A search came to its end before all rows were tried."""


class Quarantine:
    """Sets aside the rows of unfinished lots on which the operators of a query fail."""

    def __init__(
        self,
        checkpoint: Path,
        folder: Path,
        streams: Mapping[str, TriedStream],
        limits: QuarantineLimits = LIMITS,
    ) -> None:
        self._checkpoint = checkpoint
        self._folder = folder
        self._streams = streams
        self._limits = limits
        self._set_aside = SetAside(folder)

    def __call__(self, is_unwanted: Callable[[], bool] = lambda: False) -> int:
        """Set aside what makes the query fail; gives the number of rows.

        0 where no row fails alone, where the fault is not in the rows, and where a lot has more
        bad rows than are allowed. The query must not run meanwhile. To do it again after a crash
        gives the same.
        """
        finished = TakenLots(self._checkpoint).finished(last_finished(self._checkpoint))
        deadline = time.monotonic() + self._limits.search_s
        count = 0
        for intake, stream in self._streams.items():
            trials = self._folder / intake / "trials"
            shutil.rmtree(trials, ignore_errors=True)
            trials.mkdir()
            for file in sorted((self._folder / intake / "rows").glob("*.parquet")):
                if int(file.stem) > finished.get(intake, -1):
                    search = _Search(stream, file, trials, deadline, is_unwanted)
                    count += self._clear(intake, search)
            shutil.rmtree(trials, ignore_errors=True)
        return 0 if is_unwanted() else count

    def _clear(self, intake: str, search: _Search) -> int:
        """Take the bad rows out of one lot."""
        lot, table = int(search.file.stem), search.table
        allowed = self._limits.rows_per_lot - self._set_aside.count(intake, lot)
        bad = search.find(allowed + 1)
        if not bad or len(bad) > allowed or search.is_unwanted():
            return 0
        places = self._places(intake, search)
        gone = [None if places is None else places[row] for row in sorted(bad)]
        letters = add_places(search.letters(bad), gone)
        self._set_aside.keep(intake, lot, of_rows=table.num_rows, letters=letters)
        write_rows(search.take(p for p in range(table.num_rows) if p not in bad), search.file)
        return len(bad)

    def _places(self, intake: str, search: _Search) -> list[RowPlace] | None:
        """Where in the log the rows are that are left in a lot; None where nobody will ask."""
        find = self._streams[intake].find_places
        if find is None:
            return None
        lot = int(search.file.stem)
        gone = self._set_aside.places(intake, lot)
        left = [place for place in find(lot) if place not in gone]
        # Unlike only where rows were taken out by a version that did not write down which.
        return left if len(left) == search.table.num_rows else None


class _Search:
    """The search for the bad rows of one lot."""

    def __init__(
        self,
        stream: TriedStream,
        file: Path,
        trials: Path,
        deadline: float,
        is_unwanted: Callable[[], bool],
    ) -> None:
        self.file = file
        self.table = pq.ParquetFile(file).read()
        self._stream = stream
        self._trials = trials
        self._deadline = deadline
        self.is_unwanted = is_unwanted

    def find(self, most: int) -> dict[int, str]:
        """The places of the rows that fail alone, as far as they were found, and why they do."""
        found: dict[int, str] = {}
        with suppress(SearchEnded):
            find_bad_rows(range(self.table.num_rows), self._attempt, found, most)
        return found

    def take(self, places: Iterable[int]) -> pa.Table:
        """The rows at these places."""
        return self.table.take(pa.array(places, pa.int64()))

    def letters(self, bad: Mapping[int, str]) -> pa.Table:
        """These rows as dead letters."""
        places = sorted(bad)
        operators = blame(places, self._step_names(), self._attempt_step)
        columns = {
            "operator": [operators[place] for place in places],
            "input": [self._stream.sender] * len(places),
            "reason": [bad[place] for place in places],
            "row": self._json(places),
        }
        return pa.table(columns, schema=LETTER_SCHEMA)

    def _attempt(self, places: Sequence[int]) -> str | None:
        if time.monotonic() > self._deadline or self.is_unwanted():
            raise SearchEnded("the search took too long")
        return why_it_fails(self._try(places).whole)

    def _attempt_step(self, name: str, places: Sequence[int]) -> str | None:
        return why_it_fails(self._try(places).steps[name])

    def _step_names(self) -> list[str]:
        return list(self._try([]).steps)

    def _json(self, places: Sequence[int]) -> list[str]:
        from pyspark.sql import functions as sql

        rows = self._try(places).rows.drop(*BOUNDS)
        written = rows.select(sql.to_json(sql.struct("*")).alias("json"))
        return [row.json for row in written.collect()]

    def _try(self, places: Sequence[int]) -> Trial:
        file = self._trials / f"{uuid4().hex}.parquet"
        write_rows(self.take(places), file)
        return self._stream.try_file(file)


def find_bad_rows(
    places: Sequence[int], attempt: Attempt, found: dict[int, str], most: int, *, fail: bool = False
) -> bool:
    """Add the places that fail alone to `found`, at most so many; gives whether any fail at all.

    `fail` says that these are known to, so that they need not be tried as a whole. What only fails
    together with other rows is not found.

    >>> found = {}
    >>> find_bad_rows(range(9), lambda places: "no" if 7 in places else None, found, 5)
    True
    >>> found
    {7: 'no'}
    """
    if not places or len(found) >= most:
        return False
    if not fail or len(places) == 1:
        reason = attempt(places)
        if reason is None:
            return False
        if len(places) == 1:
            found[places[0]] = reason
            return True
    middle = len(places) // 2
    early = find_bad_rows(places[:middle], attempt, found, most)
    # If it was not the first half, it is the second.
    find_bad_rows(places[middle:], attempt, found, most, fail=not early)
    return True


def blame(
    places: Sequence[int],
    operators: Sequence[str],
    attempt: Callable[[str, Sequence[int]], str | None],
) -> dict[int, str]:
    """The first operator that each row fails at; the last where none does on its own."""
    blamed: dict[int, str] = {}
    left = list(places)
    for name in operators:
        if not left or attempt(name, left) is None:
            continue
        for place in left:
            if len(left) == 1 or attempt(name, [place]) is not None:
                blamed[place] = name
        left = [place for place in left if place not in blamed]
    return blamed | dict.fromkeys(left, operators[-1])


def why_it_fails(frame: DataFrame) -> str | None:
    """Compute a frame; gives why its rows fail, or None where they do not.

    Raises:
        SearchEnded: where it fails for another cause than its rows.
    """
    try:
        frame.write.format("noop").mode("overwrite").save()
    except Exception as error:
        reason = _reason_in_row(error)
        if reason is None:
            raise SearchEnded(f"not for its rows: {first_words(error)}") from error
        return reason
    return None


def _reason_in_row(error: Exception) -> str | None:
    """What an error says of a row; None where it speaks of anything else."""
    find_state = getattr(error, "getSqlState", None)
    state = (find_state() if find_state is not None else None) or ""
    if not state.startswith(_STATES_OF_ROWS):
        return None
    reason = first_words(error)
    # The name of what was raised in Python, such as requests.exceptions.ConnectionError.
    name = reason.partition(":")[0].rpartition(".")[2]
    kind = getattr(builtins, name, None)
    of_the_world = isinstance(kind, type) and issubclass(kind, _ERRORS_OF_THE_WORLD)
    return None if of_the_world else reason


def downstream_of(reader_edges: Iterable[tuple[str, str]], first: Iterable[str]) -> set[str]:
    """These operators and all that read from them; edges come in the order of definition."""
    reached = set(first)
    for sender, reader in reader_edges:
        if sender in reached:
            reached.add(reader)
    return reached
