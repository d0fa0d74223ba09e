"""Is what came out of a split run what one place would have given?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.errors import Defects, InvalidInput, ThalwegError
from thalweg.history import Expectation, Verdict, check_history
from thalweg.spark.class_archive import archive_options
from thalweg.spark.deployment.check import find_pipeline
from thalweg.spark.deployment.folder import RunFolder
from thalweg.spark.deployment.health.stakes import RunPlaces
from thalweg.spark.deployment.plan import fingerprint_graph
from thalweg.spark.deployment.publications import (
    Letters,
    complete_ms,
    read_letters,
    read_publications,
)
from thalweg.spark.deployment.replay import Replayed, replay
from thalweg.spark.deployment.rows_code import RowsCode, compare_code
from thalweg.spark.java import find_java
from thalweg.spark.log import Log
from thalweg.spark.log.names import source_stream
from thalweg.spark.pipeline.code import code_of
from thalweg.spark.pipeline.kinds import DEAD_LETTERS
from thalweg.spark.query.clock import END_OF_TIME_MS
from thalweg.spark.query.queries import arrow_schema
from thalweg.spark.query.running import first_words
from thalweg.spark.query.set_aside import LETTER_SCHEMA
from thalweg.spark.session import open_session
from thalweg.spark.site.config import site_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    code: RowsCode | None = None
    """The code that the rows were made with; None: that of this process, which ran them."""

    @property
    def rows(self) -> int:
        """Rows that came out; what was set aside did not."""
        return sum(v.found for name, v in self.verdicts.items() if name != DEAD_LETTERS)

    @property
    def letters(self) -> int:
        """Rows that were set aside as dead letters."""
        return self.verdicts[DEAD_LETTERS].found if DEAD_LETTERS in self.verdicts else 0

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
        came = self.rows + self.letters
        return came > 0 and all(verdict.is_right for verdict in self.verdicts.values())

    def __str__(self) -> str:
        verdict = "the same as in one place" if self.same else "NOT as in one place"
        aside = f", {self.letters:,} set aside" if self.letters else ""
        if self.code is not None and not self.code.is_same:
            # Neither right nor wrong: what came is compared with what other code gives.
            whose = "code unknown for some rows" if self.code.is_same is None else "OTHER code"
            verdict = f"by {whose}, {verdict}"
        return (
            f"{self.born:,} rows in, {self.rows:,} rows out{aside}: {verdict} "
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
    spec = run.prepared.spec
    log, deadline = Log(spec.log), time.monotonic() + patience_s
    while not _has_ended(log):
        if not run.is_active:
            raise run.exception or ThalwegError(
                "the run has ended before its last row. "
                f"Hint: `thalweg doctor {spec.folder}` says why; the same command goes on."
            )
        if time.monotonic() > deadline:
            raise ThalwegError(
                f"the last results are not there after {patience_s:g} s. "
                f"Hint: `thalweg status {spec.folder}` says how far it is, `thalweg doctor "
                f"{spec.folder}` what is wrong; it may also need more time."
            )
        meanwhile()
        time.sleep(_LOOK_S)


def _has_ended(log: Log) -> bool:
    return (complete_ms(log) or 0) >= END_OF_TIME_MS


def compare_with_one_place(run: Deployment) -> Compared:
    """Work on all rows of a run once more, in one Spark here, and check every sink."""
    spec = run.prepared.spec
    # Without a link all sites write into one log; with one, each fog into its own.
    logs = [Log(root) for root in dict.fromkeys(spec.log_of(fog) for fog in spec.fogs)]
    return _compare(run.prepared.pipeline, spec.folder, Log(spec.log), logs)


@contextmanager
def ready_to_compare(pipeline: Pipeline) -> Iterator[None]:
    """Within the block, comparisons in this process find a Spark that has started and is warm."""
    with _open_spark() as (session, rows):
        schemas = pipeline.schemas(session)
        sources = [step.name for step in pipeline.steps if step.role == "source"]
        none = {n: arrow_schema(schemas[n], bounded=False).empty_table() for n in sources}
        letters = LETTER_SCHEMA.empty_table()
        replay(session, pipeline, none, Letters(of_sites=letters, of_cloud=letters), rows)
        yield


def verify(pipeline: str, folder: Path | str) -> Compared:
    """Check what came out of the run of a pipeline, of a live one what is due by now.

    A folder may be a stranger's: what it says is imported is not, so the pipeline is named. Its
    code may have changed since; `Compared.code` says so, and rows are compared with those that the
    code here gives.

    Raises:
        InvalidInput: where there is no run in the folder, or it is not of this pipeline.
        ThalwegError: where nothing can be said yet, or the pipeline cannot run here.
    """
    found = RunFolder.of_run(folder)
    manifest, own = found.read_manifest(), find_pipeline(pipeline)
    defects = Defects()
    same = fingerprint_graph(own) == manifest.graph
    rule = f"the pipeline of this run, {manifest.pipeline}, as it was"
    hint = f"`thalweg verify {manifest.pipeline} {folder}`, with its code as the run had it"
    defects.require(same, "pipeline", pipeline, rule, hint)
    defects.raise_if_any()
    places = RunPlaces.of(found.path, manifest)
    logs = [Log(root) for root in dict.fromkeys(map(places.log_of, places.fogs))]
    code = compare_code(manifest, found.read_decisions(), code_of(own))
    return replace(_compare(own, found.path, Log(places.log), logs), code=code)


def _compare(pipeline: Pipeline, folder: Path, log: Log, logs: Sequence[Log]) -> Compared:
    # Asked before anything is read: what was due by then is in what is read.
    upto_ms, ended = complete_ms(log), _has_ended(log)
    if upto_ms is None:
        raise ThalwegError(
            "no result is due yet: no site has said how far its time has come. "
            "Hint: look again when rows have come."
        )
    sources = [step.name for step in pipeline.steps if step.role == "source"]
    try:
        born = {name: pa.concat_tables(_born(logs, name, folder)) for name in sources}
        letters = read_letters(log)
    except (pa.ArrowException, KeyError) as error:
        raise ThalwegError(
            f"the log holds other rows than a run writes: {error}. "
            f"Hint: `thalweg doctor {folder} --deep` says which, and what to do."
        ) from error
    wanted = _compute(pipeline, born, letters)
    verdicts = {
        name: _judge(pipeline, name, rows, log, None if ended else upto_ms)
        for name, rows in wanted.sinks.items()
    }
    if wanted.letters.num_rows or any(p.rows.num_rows for p in letters.publications):
        verdicts[DEAD_LETTERS] = _judge_letters(wanted.letters, letters, ended=ended)
    return Compared(
        born=sum(table.num_rows for table in born.values()), verdicts=verdicts, ended=ended
    )


def _judge(
    pipeline: Pipeline, sink: str, wanted: pa.Table, log: Log, upto_ms: int | None
) -> Verdict:
    """What the checker says of a sink; up to a time, where more may be still to come."""
    came, defects = list(read_publications(log, sink)), Defects()
    due = _due_column(pipeline, sink, [wanted, *(p.rows for p in came)])
    if due is None and upto_ms is not None:
        rule = "a run that has ended, or sinks whose rows have a time"
        hint = "`Gateway.close` at every source ends it; then ask again"
        defects.add(f"sinks.{sink}", "no time", rule, hint)
    names = sorted(wanted.column_names)
    for columns in sorted({tuple(sorted(p.rows.column_names)) for p in came if p.rows.num_rows}):
        rule = f"columns as the pipeline gives them: {', '.join(names)}"
        hint = "name the pipeline with its code as the run had it"
        shown = ", ".join(columns)
        defects.require(list(columns) == names, f"sinks.{sink}", shown, rule, hint)
    defects.raise_if_any()
    key = _key_columns(pipeline.step(sink), wanted)
    expectation = Expectation(rows=wanted, key=key, due=due, tolerance=_TOLERANCE)
    return check_history(expectation, came, upto_ms=upto_ms)


def _judge_letters(wanted: pa.Table, came: Letters, *, ended: bool) -> Verdict:
    """What the checker says of the dead letters; they have no time, so others may come later."""
    expectation = Expectation(rows=wanted, key=tuple(wanted.column_names))
    verdict = check_history(expectation, came.publications)
    if ended:
        return verdict
    shown = {fault: rows for fault, rows in verdict.examples.items() if fault != "lost"}
    return replace(verdict, lost=0, examples=shown)


def _compute(pipeline: Pipeline, born: Mapping[str, pa.Table], letters: Letters) -> Replayed:
    """What every sink gets where nothing is split, and which letters there should be.

    Raises:
        ThalwegError: where it cannot be computed, with the cause and what to do.
    """
    with _open_spark() as (session, rows):
        try:
            return replay(session, pipeline, born, letters, rows)
        except InvalidInput:
            raise
        except Exception as error:
            # What operators raise is theirs to choose.
            raise ThalwegError(
                f"the pipeline cannot work on these rows in one place: {first_words(error)}. "
                "Hint: it is no single row. See that it finds here what it needs: its files, "
                "its packages, memory; then ask again."
            ) from error


@contextmanager
def _open_spark() -> Iterator[tuple[SparkSession, Path]]:
    """A Spark for a single-site run, and a folder for its rows."""
    with tempfile.TemporaryDirectory(prefix="thalweg-one-place-") as temporary:
        scratch, rows = Path(temporary) / "spark", Path(temporary) / "rows"
        for folder in (scratch, rows):
            folder.mkdir()
        config = site_config("local[2]", scratch, _HEAP_MB, archive_options(find_java()))
        with open_session("local[2]", "one place", config=config) as session:
            yield session, rows


def _born(logs: Iterable[Log], source: str, folder: Path) -> list[pa.Table]:
    """What was born of a source; a log without any has no columns either."""
    tables = [log.read(source_stream(source)) for log in logs]
    found = [table for table in tables if table.num_rows]
    if not found:
        raise ThalwegError(
            f"no row of {source} has come in yet. Hint: a gateway sends them, see `thalweg status "
            f"{folder}`; look again when it has."
        )
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


def _due_column(pipeline: Pipeline, sink: str, tables: Iterable[pa.Table]) -> str | None:
    """The column that says when a row happened, in every row of these tables that have any."""
    first, *others = tables
    some = [first, *(table for table in others if table.num_rows)]
    times = pipeline.step(sink).times
    return next((name for name in times if all(_tells_time(t, name) for t in some)), None)


def _tells_time(table: pa.Table, name: str) -> bool:
    """Whether a column has a time in every row, or a window with its end."""
    if name not in table.column_names or table[name].null_count:
        return False
    kind = table[name].type
    has_end = pa.types.is_struct(kind) and kind.get_field_index("end") >= 0
    return bool(pa.types.is_timestamp(kind) or has_end)
