"""Runs a keyed operator as a streaming query: rows of the log in, commits in the log out.

Spark reads the rows of each batch; the operator's state is in the memory of the process where
`foreachBatch` runs, and every change of it is in the log before anybody sees what it led to (see
`thalweg.spark.keyed.log`). Spark's own state stores are not used, for two reasons. Their state is
read from a checkpoint by a query of its own, and given to a new query as it starts: all of that
would have to happen while nothing runs. And Python asks a store for one key or bucket after the
other. The price: a state has to fit into the memory of its site's driver.

A query that follows another epoch is a standby: it takes in the commits of that epoch while it
runs, and works on from the last of them as soon as that epoch is fenced. Nothing but the fence
decides which of the two commits the next batch. What was done by then and what was not, both know
from the log alone: a query keeps nothing elsewhere that it needs after a crash.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.spark.keyed.feed import LOT, KeyedFeeder, rows_folder
from thalweg.spark.keyed.log import KeyedLog, state_stream
from thalweg.spark.keyed.operator import load_operator
from thalweg.spark.keyed.work import KeyedOptions, KeyedWork
from thalweg.spark.log import Log
from thalweg.spark.log.names import EpochPlace
from thalweg.spark.query.ended_batches import EndedBatches
from thalweg.spark.query.intake import read_rows_files
from thalweg.spark.query.publisher import BatchGate
from thalweg.spark.query.source_lists import SourceLists
from thalweg.spark.query.spec import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def start(session: SparkSession, spec: QuerySpec) -> KeyedQuery:
    """Start the query of a keyed operator: what `thalweg.spark.query.queries` asks of role `own`.

    Raises:
        InvalidInput: where its options are not those of a keyed operator.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    options = KeyedOptions.of(spec)
    operator = load_operator(options.operator)
    # All that counts is in the log, so every start is a new one.
    shutil.rmtree(spec.checkpoint, ignore_errors=True)
    runs = spec.checkpoint.with_name(f"{spec.checkpoint.name}.lots")
    shutil.rmtree(runs, ignore_errors=True)
    folder = runs / uuid4().hex
    rows_folder(folder).mkdir(parents=True)
    schema = operator.rows.append(pa.field(LOT, pa.int64()))
    stream = read_rows_files(session, rows_folder(folder), from_arrow_schema(schema))
    query = (
        stream.writeStream.foreachBatch(KeyedPublisher(spec, folder))
        .queryName(spec.name)
        .option("checkpointLocation", str(spec.checkpoint))
        .trigger(processingTime=f"{round(spec.trigger_s * 1000)} milliseconds")
        .start()
    )
    feeder = KeyedFeeder(
        KeyedLog(Log(spec.log), operator),
        writer=EpochPlace(
            root=spec.log, stream=state_stream(operator.name), site=spec.site, epoch=spec.epoch
        ),
        follows=options.follows,
        stream=options.input,
        site=options.input_site,
        start=(spec.start or {}).get(options.input) or {},  # type: ignore[arg-type]
        rows=spec.rows_per_batch,
        folder=folder,
    )
    feeder.start()
    return KeyedQuery(query, feeder)


class KeyedQuery:
    """A streaming query and what feeds it, ended together."""

    def __init__(self, query: StreamingQuery, feeder: KeyedFeeder) -> None:
        self._query = query
        self._feeder = feeder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    @property
    def isActive(self) -> bool:  # noqa: N802
        """Whether it runs, and is fed."""
        return bool(self._query.isActive) and self._feeder.error is None

    def exception(self) -> object:
        """Why it ended, if it failed."""
        return self._feeder.error or self._query.exception()

    def stop(self) -> None:
        """End it."""
        self._feeder.close()
        self._query.stop()


class KeyedPublisher:
    """A function for `foreachBatch`: works on the rows of a lot, and commits what they did.

    Lots below zero have no rows: they tell a standby to take in what is new. After the fence of
    its own epoch it does nothing any more: another one has taken over.
    """

    def __init__(self, spec: QuerySpec, folder: Path) -> None:
        self._spec = spec
        self._folder = folder
        self._ended = EndedBatches()
        # A keyed query begins anew at every start: its lists need not survive a power cut.
        self._lists = SourceLists(spec.checkpoint, durable=False)
        self._work: KeyedWork | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Work on what the batch has."""
        self._ended.let_go()
        BatchGate(self._spec.checkpoint).pass_through()
        if self._work is None:
            self._work = KeyedWork(self._spec)
        table = batch.toArrow()
        for lot in sorted(pc.unique(table.column(LOT)).to_pylist()):
            if lot < 0:
                self._work.follow(-1 - lot)
            else:
                rows = table.filter(pc.equal(table.column(LOT), lot))
                end = json.loads((self._folder / f"{lot}.json").read_bytes())
                self._work.do(lot, rows, end)
        self._lists.shorten(number)

    def __getstate__(self) -> dict[str, Any]:
        # State and writers are made where the batches run.
        return self.__dict__ | {"_work": None}
