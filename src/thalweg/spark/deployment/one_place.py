"""Is what came out of a split run what one place would have given?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.errors import Defect, Defects, InvalidInput, ThalwegError
from thalweg.history import Expectation, Verdict, check_history
from thalweg.spark.class_archive import archive_options
from thalweg.spark.deployment.check import find_pipeline
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.health.stakes import RunPlaces
from thalweg.spark.deployment.plan import fingerprint_graph
from thalweg.spark.deployment.publications import complete_ms, read_publications
from thalweg.spark.java import find_java
from thalweg.spark.log import Log
from thalweg.spark.log.names import source_stream
from thalweg.spark.query.clock import END_OF_TIME_MS
from thalweg.spark.query.intake import write_rows
from thalweg.spark.session import open_session
from thalweg.spark.site.config import site_config

if TYPE_CHECKING:
    from thalweg.spark.deployment.handle import Deployment
    from thalweg.spark.pipeline import Pipeline
    from thalweg.spark.pipeline.kinds import Step

_PATIENCE_S = 120.0
_LOOK_S = 0.2
_HEAP_MB = 768
# Sums of floating-point numbers in another order differ in the last digits.
_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Rows that came in at the sites, and what the checker of histories says of every sink."""

    born: int
    verdicts: Mapping[str, Verdict]
    ended: bool = True
    """Whether nothing will come any more; until then, what is not due yet may be missing."""

    @property
    def rows(self) -> int:
        """Rows that came out."""
        return sum(verdict.found for verdict in self.verdicts.values())

    @property
    def missing(self) -> int:
        """Rows that should have come and did not; one with a wrong value did not."""
        return sum(v.lost + v.wrong for v in self.verdicts.values())

    @property
    def extra(self) -> int:
        """Rows that came twice, or should not have come as they did."""
        return sum(v.duplicated + v.unknown + v.wrong for v in self.verdicts.values())

    @property
    def late(self) -> int:
        """Rows that came after it was said that none so old would."""
        return sum(verdict.late for verdict in self.verdicts.values())

    @property
    def same(self) -> bool:
        """Whether the split run gave the rows of the run in one place, and there are some."""
        return self.rows > 0 and all(verdict.is_right for verdict in self.verdicts.values())

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
    return (complete_ms(log) or 0) >= END_OF_TIME_MS


def compare_with_one_place(run: Deployment) -> Compared:
    """Work on all rows of a run once more, in one Spark here, and check every sink."""
    spec = run.prepared.spec
    # Without a link all sites write into one log; with one, each fog into its own.
    logs = [Log(root) for root in dict.fromkeys(spec.log_of(fog) for fog in spec.fogs)]
    return _compare(run.prepared.pipeline, Log(spec.log), logs)


def verify(pipeline: str, folder: Path | str) -> Compared:
    """Check what came out of the run of a pipeline, of a live one what is due by now.

    A folder may be a stranger's: what it says is imported is not, so the pipeline is named.

    Raises:
        InvalidInput: where there is no run in the folder, or it is not of this pipeline.
        ThalwegError: where nothing can be said yet.
    """
    found = RunFolder.of_run(folder)
    manifest, own = found.read_manifest(), find_pipeline(pipeline)
    defects = Defects()
    same = fingerprint_graph(own) == manifest.graph
    rule = f"the pipeline of this run, {manifest.pipeline}, as it was"
    defects.require(same, "pipeline", pipeline, rule)
    defects.raise_if_any()
    places = RunPlaces.of(found.path, manifest)
    logs = [Log(root) for root in dict.fromkeys(map(places.log_of, places.fogs))]
    return _compare(own, Log(places.log), logs)


def _compare(pipeline: Pipeline, log: Log, logs: Sequence[Log]) -> Compared:
    # Asked before anything is read: what was due by then is in what is read.
    upto_ms, ended = complete_ms(log), _has_ended(log)
    if upto_ms is None:
        raise ThalwegError(
            "no result is due yet: no site has said how far its time has come. "
            "Hint: look again when rows have come."
        )
    sources, sinks = (
        [step.name for step in pipeline.steps if step.role == role] for role in ("source", "sink")
    )
    born = {name: pa.concat_tables(_born(logs, name)) for name in sources}
    wanted = _compute(pipeline, born, sinks)
    verdicts = {}
    for name in sinks:
        due = _due_column(pipeline, name, wanted[name])
        if due is None and not ended:
            rule = "a run that has ended, or sinks whose rows have a time"
            raise InvalidInput([Defect(path=f"sinks.{name}", value="no time", rule=rule)])
        key = _key_columns(pipeline.step(name), wanted[name])
        expectation = Expectation(rows=wanted[name], key=key, due=due, tolerance=_TOLERANCE)
        verdicts[name] = check_history(
            expectation, read_publications(log, name), upto_ms=None if ended else upto_ms
        )
    return Compared(
        born=sum(table.num_rows for table in born.values()), verdicts=verdicts, ended=ended
    )


def _compute(
    pipeline: Pipeline, born: Mapping[str, pa.Table], sinks: Iterable[str]
) -> dict[str, pa.Table]:
    """What every sink gets where nothing is split."""
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
            return {name: results[name].toArrow() for name in sinks}


def _born(logs: Iterable[Log], source: str) -> list[pa.Table]:
    """What was born of a source; a log without any has no columns either."""
    tables = [log.read(source_stream(source)) for log in logs]
    found = [table for table in tables if table.num_rows]
    if not found:
        raise ThalwegError(f"no row of {source} has come in yet")
    return found


def _key_columns(sink: Step, rows: pa.Table) -> tuple[str, ...]:
    """What tells one row of a sink from another, so that a value that is wrong is told as such.

    The window and what it was grouped by, where the sink has them; or all columns that have no
    floating-point numbers; or all.
    """
    kinds = dict(zip(rows.column_names, rows.schema.types, strict=True))
    exact = tuple(name for name, kind in kinds.items() if not pa.types.is_floating(kind))
    for key in (("window", *_grouping(sink)), exact):
        if key and set(key) <= set(kinds) and _tells_apart(rows.select(list(key))):
            return key
    return tuple(kinds) or ("row",)


def _grouping(step: Step) -> tuple[str, ...]:
    """The columns by which the last stateful operator before a sink grouped its rows."""
    while step.inputs:
        (step, *_) = step.inputs
        if step.by:
            return step.by
        if step.is_stateful:
            return ()
    return ()


def _tells_apart(keys: pa.Table) -> bool:
    seen = {repr(row) for row in keys.to_pylist()}
    return len(seen) == int(keys.num_rows)


def _due_column(pipeline: Pipeline, sink: str, rows: pa.Table) -> str | None:
    """The column that says when a row happened: a time, or a window with its end."""
    kinds = dict(zip(rows.column_names, rows.schema.types, strict=True))
    for name in pipeline.step(sink).times:
        kind = kinds.get(name)
        if kind is None:
            continue
        has_end = pa.types.is_struct(kind) and kind.get_field_index("end") >= 0
        if pa.types.is_timestamp(kind) or has_end:
            return name
    return None
