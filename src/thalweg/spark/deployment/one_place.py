"""Is what came out of a split run what one place would have given? Asked after its last row."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.errors import ThalwegError
from thalweg.spark.class_archive import archive_options
from thalweg.spark.java import find_java
from thalweg.spark.log import Log
from thalweg.spark.log.names import sink_stream, source_stream
from thalweg.spark.query.clock import END_OF_TIME_MS, SINK_CLOCK
from thalweg.spark.query.intake import write_rows
from thalweg.spark.session import open_session
from thalweg.spark.site.config import site_config

if TYPE_CHECKING:
    from thalweg.spark.deployment.handle import Deployment

_PATIENCE_S = 120.0
_LOOK_S = 0.2
_HEAP_MB = 768


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Rows that came in at the sites, rows that came out, and how those differ from one place."""

    born: int
    rows: int
    missing: int
    extra: int

    @property
    def same(self) -> bool:
        """Whether the split run gave the rows of the run in one place, and there are some."""
        return self.rows > 0 and self.missing == self.extra == 0

    def __str__(self) -> str:
        verdict = "the same as in one place" if self.same else "NOT as in one place"
        return (
            f"{self.born:,} rows in, {self.rows:,} rows out: {verdict} "
            f"({self.missing} missing, {self.extra} too many)"
        )


def await_last_row(
    run: Deployment,
    *,
    patience_s: float = _PATIENCE_S,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Wait until the cloud has said that nothing will come any more.

    It says so after every gateway has: `feed_rides(..., close=True)` makes them.

    Raises:
        ThalwegError: where the run ends before that, or it takes too long.
    """
    log, deadline = Log(run.prepared.spec.log), time.monotonic() + patience_s
    while not _has_ended(log):
        if not run.is_active:
            raise run.exception or ThalwegError("the run has ended before its last row")
        if time.monotonic() > deadline:
            raise ThalwegError(f"the last results are not there after {patience_s:g} s")
        meanwhile()
        time.sleep(_LOOK_S)


def _has_ended(log: Log) -> bool:
    latest = [s.latest_us for s in log.segments(SINK_CLOCK) if s.latest_us is not None]
    return max(latest, default=0) >= END_OF_TIME_MS * 1000


def compare_with_one_place(run: Deployment) -> Compared:
    """Work on all rows of a run once more, in one Spark here, and compare the sinks row by row."""
    pipeline, spec = run.prepared.pipeline, run.prepared.spec
    sources, sinks = (
        [step.name for step in pipeline.steps if step.role == role] for role in ("source", "sink")
    )
    # Without a link all sites write into one log; with one, each fog into its own.
    logs = [Log(root) for root in dict.fromkeys(spec.log_of(fog) for fog in spec.fogs)]
    born = {name: pa.concat_tables(_born(logs, name)) for name in sources}
    with tempfile.TemporaryDirectory(prefix="thalweg-one-place-") as temporary:
        scratch = Path(temporary) / "spark"
        scratch.mkdir()
        config = site_config("local[2]", scratch, _HEAP_MB, archive_options(find_java()))
        with open_session("local[2]", "one place", config=config) as session:
            frames = {}
            for name, table in born.items():
                # From a file: rows that the driver hands over are worked on while planning.
                file = Path(temporary) / f"{name}.parquet"
                write_rows(table, file)
                schema = pipeline.schemas(session)[name]
                frames[name] = session.read.schema(schema).parquet(str(file))
            results = pipeline.run(frames)
            wanted = Counter(_rows((name, results[name].toArrow()) for name in sinks))
    found = Counter(_rows((name, Log(spec.log).read(sink_stream(name))) for name in sinks))
    return Compared(
        born=sum(table.num_rows for table in born.values()),
        rows=found.total(),
        missing=(wanted - found).total(),
        extra=(found - wanted).total(),
    )


def _born(logs: Iterable[Log], source: str) -> list[pa.Table]:
    """What was born of a source; a log without any has no columns either."""
    tables = [log.read(source_stream(source)) for log in logs]
    return [table for table in tables if table.num_rows]


def _rows(tables: Iterable[tuple[str, pa.Table]]) -> Iterable[str]:
    for name, table in tables:
        yield from (f"{name}: {sorted(row.items())}" for row in table.to_pylist())
