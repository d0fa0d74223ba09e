"""All rows of a run once more, in one place, without those that were rightly set aside.

A row on which an operator fails is a dead letter of the run, and in no result from there on: where
a site found it, the row of the source; where the cloud did, the row of one edge. So it is left out
here at the same place, but only if it is there, and fails here, too. A letter of any other row is
not expected, and a row that fails and has no letter is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from thalweg.spark.deployment.publications import Letters
from thalweg.spark.pipeline.dataflow import Edge, unite
from thalweg.spark.pipeline.kinds import DEAD_LETTERS
from thalweg.spark.query.intake import write_rows
from thalweg.spark.query.publisher import put_together
from thalweg.spark.query.quarantine import (
    LIMITS,
    blame,
    downstream_of,
    find_bad_rows,
    why_it_fails,
)
from thalweg.spark.query.set_aside import LETTER_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from thalweg.spark.pipeline import Pipeline

_ERROR_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
# No name of a column is like these by chance.
_PLACE, _JSON = "thalweg/place", "thalweg/json"
Letter = Mapping[str, str]
Frames = Mapping[str, "DataFrame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What every sink should have got, and the letters that there should be."""

    sinks: Mapping[str, pa.Table]
    letters: pa.Table


def replay(
    session: SparkSession,
    pipeline: Pipeline,
    born: Mapping[str, pa.Table],
    came: Letters,
    folder: Path,
) -> Replayed:
    """Work on all rows that were born; `came` are the letters of the run.

    Raises:
        SearchEnded: where the pipeline fails for another cause than its rows.
        Exception: what Spark raises, where it is no single row that fails.
    """
    work = _Replay(session, pipeline, born, folder)
    work.leave_out_births(_raised(pipeline, came.of_sites))
    work.leave_out_on_edges(_raised(pipeline, came.of_cloud))
    return work.finish()


def _raised(pipeline: Pipeline, letters: pa.Table) -> list[Letter]:
    """The letters of rows that made an operator fail; those of conditions are made here, too."""
    conditions = {f"{step.name} needs {c}" for step in pipeline.steps for c in step.must}
    return [letter for letter in letters.to_pylist() if letter["reason"] not in conditions]


class _Replay:
    """The rows of the sources that are left, what is left out on edges, and the letters so far."""

    def __init__(
        self,
        session: SparkSession,
        pipeline: Pipeline,
        born: Mapping[str, pa.Table],
        folder: Path,
    ) -> None:
        from pyspark.logger import PySparkLogger

        for name in _ERROR_LOGGERS:
            # What fails here is found out, or told by who asked.
            PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
        self._session, self._pipeline, self._folder = session, pipeline, folder
        self._schemas = pipeline.schemas(session)
        self._sinks = [step.name for step in pipeline.steps if step.role == "sink"]
        self._born = dict(born)
        self._shown: dict[str, DataFrame] = {}
        self._aside: dict[Edge, list[str]] = {}
        self._letters: list[Letter] = []

    # Letters of the run

    def leave_out_births(self, letters: Iterable[Letter]) -> None:
        """Leave out the rows of sources that sites have set aside, where they fail here."""
        for source, here in _by(letters, "input").items():
            if source not in self._born:
                continue
            claims = _by(here, "row")
            places = self._places_of(source, claims)
            gone: set[int] = set()
            for row, copies in claims.items():
                found = places.get(row, [])[: len(copies)]
                if found and self._fails_as_birth(source, found[0], copies[0]["operator"]):
                    gone.update(found)
                    self._letters += copies[: len(found)]
            if gone:
                self._drop(source, gone)

    def leave_out_on_edges(self, letters: Iterable[Letter]) -> None:
        """Leave out the rows of edges that the cloud has set aside, where they fail here."""
        left = list(letters)
        for edge in self._pipeline.edges if left else ():
            reached = downstream_of(self._pipeline.edges, [edge[1]])
            here = [one for one in left if one["input"] == edge[0] and one["operator"] in reached]
            if not here:
                continue
            claims = _by(here, "row")
            rows = self._rows_on(edge, claims)
            for row, copies in claims.items():
                table = rows.get(row)
                if table is None or not self._fails_on(edge, table, copies[0]["operator"]):
                    continue
                self._aside.setdefault(edge, []).append(row)
                # One for each row that there is: more have come twice, fewer are lost.
                self._letters += [copies[0]] * table.num_rows
                left = [one for one in left if one not in copies]

    def _places_of(self, source: str, rows: Collection[str]) -> dict[str, list[int]]:
        """Where these rows, as JSON, are among those of a source."""
        from pyspark.sql import functions as sql

        places = pa.array(range(self._born[source].num_rows), pa.int64())
        table = self._born[source].append_column(_PLACE, places)
        frame = self._show(source, table, numbered=True)
        written = frame.select(f"`{_PLACE}`", self._json_of(source).alias(_JSON))
        found: dict[str, list[int]] = {}
        for row in written.where(sql.col(f"`{_JSON}`").isin(list(rows))).collect():
            found.setdefault(row[_JSON], []).append(row[_PLACE])
        return {row: sorted(at) for row, at in found.items()}

    def _rows_on(self, edge: Edge, rows: Collection[str]) -> dict[str, pa.Table]:
        """Those of these rows, as JSON, that come along an edge."""
        from pyspark.sql import functions as sql

        sender = edge[0]

        def take(built: Frames) -> pa.Table:
            written = built[sender].withColumn(_JSON, self._json_of(sender))
            return written.where(sql.col(f"`{_JSON}`").isin(list(rows))).toArrow()

        table = self._without_failing(lambda built: built[sender], take)
        keys, plain = table[_JSON].to_pylist(), table.drop_columns([_JSON])
        places: dict[str, list[int]] = {}
        for place, row in enumerate(keys):
            places.setdefault(row, []).append(place)
        return {row: plain.take(at) for row, at in places.items()}

    def _fails_as_birth(self, source: str, place: int, operator: str) -> bool:
        frame = self._show(source, self._born[source].take([place]))
        return self._fails(self._pipeline.run({source: frame}), operator)

    def _fails_on(self, edge: Edge, rows: pa.Table, operator: str) -> bool:
        reached = downstream_of(self._pipeline.edges, [edge[1]])
        inbox = {
            (sender, reader): self._session.createDataFrame([], self._schemas[sender])
            for sender, reader in self._pipeline.edges
            if reader in reached and sender not in reached
        }
        inbox[edge] = self._show(edge[0], rows.slice(0, 1))
        return self._fails(self._pipeline.run({}, reached, inbox), operator)

    def _fails(self, built: Frames, operator: str) -> bool:
        """Whether the operator fails, or all that comes out; what nobody reads is not computed."""
        frames = [built[operator]] if operator in built else []
        frames.append(self._whole(built))
        return any(why_it_fails(frame) is not None for frame in frames)

    # Rows without a letter

    def _without_failing(
        self, whole: Callable[[Frames], DataFrame], take: Callable[[Frames], Any]
    ) -> Any:
        """What `take` gives; rows that fail are left out first, and a letter of each expected."""
        try:
            return take(self._build())
        except Exception:
            # Where it was no row, the search says so, or the second attempt does.
            for source in self._born:
                self._leave_out_failing(source, whole)
        return take(self._build())

    def _leave_out_failing(self, source: str, whole: Callable[[Frames], DataFrame]) -> None:
        table = self._born[source]

        def try_rows(places: Sequence[int]) -> dict[str, DataFrame]:
            return self._build({source: table.take(list(places))})

        def attempt(places: Sequence[int]) -> str | None:
            return why_it_fails(whole(try_rows(places)))

        def attempt_step(name: str, places: Sequence[int]) -> str | None:
            return why_it_fails(try_rows(places)[name])

        bad: dict[int, str] = {}
        find_bad_rows(range(table.num_rows), attempt, bad, LIMITS.rows_per_lot)
        if not bad:
            return
        steps = [step.name for step in self._pipeline.steps if step.role != "source"]
        operators = blame(sorted(bad), steps, attempt_step)
        for place, reason in bad.items():
            frame = self._show(source, table.take([place]))
            (row,) = frame.select(self._json_of(source).alias(_JSON)).collect()
            letter = (operators[place], source, reason, row[_JSON])
            self._letters.append(dict(zip(LETTER_SCHEMA.names, letter, strict=True)))
        self._drop(source, bad)

    # Frames

    def finish(self) -> Replayed:
        """What comes out of all rows that are left."""
        return self._without_failing(self._whole, self._collect)  # type: ignore[no-any-return]

    def _collect(self, built: Frames) -> Replayed:
        letters = [pa.Table.from_pylist([dict(one) for one in self._letters], LETTER_SCHEMA)]
        if DEAD_LETTERS in built:
            broken = built[DEAD_LETTERS].toArrow()
            letters.append(broken.select(LETTER_SCHEMA.names).cast(LETTER_SCHEMA))
        sinks = {name: built[name].toArrow() for name in self._sinks}
        return Replayed(sinks=sinks, letters=pa.concat_tables(letters))

    def _whole(self, built: Frames) -> DataFrame:
        """All that comes out, as one frame."""
        names = [name for name in (*self._sinks, DEAD_LETTERS) if name in built]
        return put_together({name: built[name] for name in names})

    def _build(self, born: Mapping[str, pa.Table] | None = None) -> dict[str, DataFrame]:
        """What every operator puts out, of all rows or of some of one source."""
        built = self._show_all() if born is None else self._show_some(born)
        if not self._aside:
            return self._pipeline.run(built)
        letters: list[DataFrame] = []
        for step in self._pipeline.steps:
            if step.role == "source":
                continue
            inbox = {
                (sender.name, step.name): self._left_on((sender.name, step.name), built)
                for sender in step.inputs
            }
            made = self._pipeline.run({}, [step.name], inbox)
            built[step.name] = made[step.name]
            letters += [made[DEAD_LETTERS]] if DEAD_LETTERS in made else []
        return {**built, DEAD_LETTERS: unite(letters)} if letters else built

    def _show_all(self) -> dict[str, DataFrame]:
        for name, table in self._born.items():
            if name not in self._shown:
                self._shown[name] = self._show(name, table)
        return dict(self._shown)

    def _show_some(self, born: Mapping[str, pa.Table]) -> dict[str, DataFrame]:
        return {n: self._show(n, born.get(n, t.slice(0, 0))) for n, t in self._born.items()}

    def _left_on(self, edge: Edge, built: Frames) -> DataFrame:
        frame, rows = built[edge[0]], self._aside.get(edge, [])
        return frame.where(~self._json_of(edge[0]).isin(rows)) if rows else frame

    def _json_of(self, sender: str) -> Column:
        """A row as a letter has it."""
        from pyspark.sql import functions as sql

        return sql.to_json(sql.struct(*(f"`{name}`" for name in self._schemas[sender].names)))

    def _show(self, name: str, table: pa.Table, *, numbered: bool = False) -> DataFrame:
        from pyspark.sql.types import LongType, StructType

        # From a file: rows that the driver hands over are worked on while planning.
        file = self._folder / f"{name}-{uuid4().hex}.parquet"
        write_rows(table, file)
        schema = StructType(list(self._schemas[name]))
        if numbered:
            schema = schema.add(_PLACE, LongType())
        return self._session.read.schema(schema).parquet(str(file))

    def _drop(self, source: str, places: Collection[int]) -> None:
        table = self._born[source]
        kept = [place not in places for place in range(table.num_rows)]
        self._born[source] = table.filter(pa.array(kept, pa.bool_()))
        self._shown.pop(source, None)


def _by(letters: Iterable[Letter], column: str) -> dict[str, list[Letter]]:
    """Letters by what they say in a column."""
    found: dict[str, list[Letter]] = {}
    for letter in letters:
        found.setdefault(letter[column], []).append(letter)
    return found
