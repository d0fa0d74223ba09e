"""A site without Spark: a thread in place of the streaming query, and all else as it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.spark.keyed.feed import KeyedFeeder, rows_folder
from thalweg.spark.keyed.log import KeyedLog, state_stream
from thalweg.spark.keyed.operator import load_operator
from thalweg.spark.keyed.query import KeyedPublisher
from thalweg.spark.keyed.work import KeyedOptions, KeyedWork
from thalweg.spark.log.names import EpochPlace
from thalweg.spark.log.reader import Log
from thalweg.spark.query.spec import QuerySpec

Spoil = Callable[[pa.Table], pa.Table]


class ThreadedSite:
    """Runs keyed queries; `spoil` changes what they put out, after it was committed."""

    def __init__(self, spoil: Spoil | None = None) -> None:
        self.alive = True
        self.told: list[str] = []
        self._spoil = spoil
        self._queries: dict[str, _Query] = {}

    def start(self, query: QuerySpec) -> None:
        self.told.append(f"start {query.name}")
        if query.name not in self._queries:
            self._queries[query.name] = _Query(query, self._spoil)

    def stop(self, query: str) -> None:
        self.told.append(f"stop {query}")
        if query in self._queries:
            self._queries.pop(query).end()

    def status(self) -> Any:
        told = [SimpleNamespace(name=n, error=q.error) for n, q in self._queries.items()]
        return SimpleNamespace(queries=told)


class _Query:
    def __init__(self, spec: QuerySpec, spoil: Spoil | None) -> None:
        self.error: str | None = None
        self._folder = Path(f"{spec.checkpoint}.lots")
        rows_folder(self._folder).mkdir(parents=True)
        spec.checkpoint.mkdir(parents=True)
        options = KeyedOptions.of(spec)
        operator = load_operator(options.operator)
        self._publisher = KeyedPublisher(spec, self._folder)
        self._publisher._work = _SpoiledWork(spec, spoil)
        self._feeder = KeyedFeeder(
            KeyedLog(Log(spec.log), operator),
            writer=EpochPlace(
                root=spec.log, stream=state_stream(operator.name), site=spec.site, epoch=spec.epoch
            ),
            follows=options.follows,
            stream=options.input,
            site=None,
            start={},
            rows=None,
            folder=self._folder,
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        taken: set[Path] = set()
        try:
            while not self._ending.wait(0.01):
                self._feeder.look()
                new = sorted(set(rows_folder(self._folder).glob("[!.]*.parquet")) - taken)
                taken.update(new)
                for file in new:
                    table = pq.read_table(file)
                    self._publisher(SimpleNamespace(toArrow=lambda table=table: table), 0)
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"


class _SpoiledWork(KeyedWork):
    def __init__(self, spec: QuerySpec, spoil: Spoil | None) -> None:
        super().__init__(spec)
        self._spoil = spoil or (lambda output: output)

    def _publish(self, batch: int, output: pa.Table) -> None:
        super()._publish(batch, self._spoil(output))
