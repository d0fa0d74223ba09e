"""A taxi application on fogs and a cloud that really run, and what has to come out of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.scenarios.rides import MONDAY, generate_rides
from thalweg.scheduling.cuts import list_cuts
from thalweg.spark.deployment.coordinator import Coordinator
from thalweg.spark.deployment.logs import open_logs
from thalweg.spark.deployment.spec import DeploymentSpec
from thalweg.spark.log import Log
from thalweg.spark.log.writer import LogWriter
from thalweg.spark.pipeline import Pipeline, load_pipeline
from thalweg.spark.query.clock import END_OF_TIME_MS, SOURCE_CLOCK, clock_table
from thalweg.spark.site.site import SiteSpec
from thalweg.spark.site.sites import Sites

PATIENCE_S = 180.0
RIDES_PER_S = 200


def wait_for(happened: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """What `happened` gives, as soon as it is something."""
    deadline = time.monotonic() + patience_s
    while not (found := happened()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return found


class Meters:
    """Numbered rides, each born at the fog of its zone, a second of event time in each batch."""

    def __init__(self, log: Path, fogs: tuple[str, ...], seed: int = 0) -> None:
        self._log, self._fogs, self._seed = log, fogs, seed
        self._writers = {
            fog: LogWriter(log, "sources/rides", fog, 0, time="pickup_time", durable=False)
            for fog in fogs
        }
        self._batch = 0
        self.rows: list[pa.Table] = []

    def send(self, seconds: int = 1) -> None:
        for _ in range(seconds):
            start = MONDAY + timedelta(hours=12, seconds=self._batch)
            rides = generate_rides(
                RIDES_PER_S,
                self._seed + self._batch,
                start=start,
                seconds=1.0,
                first=self._batch * RIDES_PER_S,
            )
            self.rows.append(rides)
            for place, fog in enumerate(self._fogs):
                here = pc.equal(pc.bit_wise_and(rides["zone"], 1), place % 2)
                if len(self._fogs) == 1:
                    here = pc.is_valid(rides["zone"])
                self._writers[fog].publish(self._batch, rides.filter(here))
            self._batch += 1

    def end(self) -> None:
        """Say that nothing else will come, so that every window closes."""
        for fog in self._fogs:
            clock = LogWriter(self._log, SOURCE_CLOCK, fog, 0, time="time", durable=False)
            clock.publish(0, clock_table(END_OF_TIME_MS))

    @property
    def table(self) -> pa.Table:
        return pa.concat_tables(self.rows)


def legal_cuts(reference: str) -> list[tuple[str, ...]]:
    """Every set of operators that may run at a site."""
    pipeline = load_pipeline(reference)
    cuts = list_cuts(pipeline.application)
    names = [operator.name for operator in pipeline.application.operators]
    sources = {step.name for step in pipeline.steps if step.role == "source"}
    chosen = (dict(zip(names, row, strict=True)) for row in cuts.members)
    return [tuple(n for n, on in cut.items() if on and n not in sources) for cut in chosen]


def count_rows(rows: list[dict[str, Any]]) -> Counter[str]:
    """Rows that can be compared whatever their order."""
    return Counter(repr(sorted(row.items(), key=lambda item: item[0])) for row in rows)


def run_in_one_place(session: Any, pipeline: Pipeline, rides: pa.Table) -> dict[str, Counter[str]]:
    """What every sink gets where nothing is split."""
    frame = session.createDataFrame(rides.to_pandas(), schema=pipeline.schemas(session)["rides"])
    built = pipeline.run({"rides": frame})
    sinks = [step.name for step in pipeline.steps if step.role == "sink"]
    return {name: count_rows(built[name].toArrow().to_pylist()) for name in sinks}


def results(log: Path, sinks: Mapping[str, Any]) -> dict[str, Counter[str]]:
    return {name: count_rows(Log(log).read(f"sinks/{name}").to_pylist()) for name in sinks}


@contextmanager
def running_sites(folder: Path, names: tuple[str, ...]) -> Iterator[Sites]:
    with Sites() as sites:
        sites.start([SiteSpec(name=n, folder=folder / "sites" / n, heap_mb=512) for n in names])
        yield sites


def deployment(folder: Path, reference: str, fogs: tuple[str, ...]) -> DeploymentSpec:
    return DeploymentSpec(
        pipeline=reference, folder=folder, fogs=fogs, trigger="100 ms", durable=False
    )


def coordinate(spec: DeploymentSpec, sites: Mapping[str, Any]) -> Coordinator:
    open_logs(spec)
    return Coordinator(spec, sites, Log(spec.log))
