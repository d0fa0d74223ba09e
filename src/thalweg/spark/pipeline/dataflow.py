"""Builds the DataFrames of a pipeline, or of a part of it, in batch or streaming."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from thalweg.errors import Defects, nearest
from thalweg.spark.pipeline.kinds import DEAD_LETTERS, Step
from thalweg.spark.pipeline.row_keeping import keeps_rows
from thalweg.spark.pipeline.windows import BOUNDS, open_windows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

Edge = tuple[str, str]
# Spark's own key for the delay of a watermark, in the metadata of a column.
_WATERMARK = "spark.watermarkDelayMs"
_ERROR_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
# So long that no row moves the time on: see `Terms.clocked`.
_NEVER = "36500 days"

Watch = Callable[[str, "DataFrame"], "DataFrame"]
WatchBroken = Callable[[str, str, "DataFrame"], "DataFrame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On what terms frames are built.

    - `clocked`: how far event time has come is told by a clock of its own, not by the rows.
    - `gates`: operator → the last end of a window [ms] that does not count here.
    - `watch`: called with each operator and what it puts out; gives the frame that is read.
    - `watch_broken`: called with sender, reader and the rows along that edge that break a `must`.
    """

    clocked: bool = False
    gates: Mapping[str, int] = field(default_factory=dict)
    watch: Watch | None = None
    watch_broken: WatchBroken | None = None


PLAIN = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What is known of a step before it runs."""

    schema: StructType
    keeps_rows: bool
    """Whether it puts out a row for each that it reads and does not refuse."""


def find_outputs(steps: Iterable[Step], session: SparkSession) -> dict[str, Output]:
    """What every step puts out, found by running its function on empty frames.

    Raises:
        InvalidInput: for every operator whose function does not fit what its inputs put out.
    """
    defects = Defects()
    empty: dict[str, DataFrame] = {}
    outputs: dict[str, Output] = {}
    for step in steps:
        inputs = [empty[sender.name] for sender in step.inputs if sender.name in empty]
        # What comes after a wrong operator cannot be judged.
        if len(inputs) == len(step.inputs):
            with _quiet_loggers():
                made = _try_step(defects, step, inputs, session)
            if made is not None:
                empty[step.name] = session.createDataFrame([], made.schema)
                kept = len(inputs) == 1 and not step.is_stateful
                kept = kept and keeps_rows(made, len(step.must))
                outputs[step.name] = Output(schema=empty[step.name].schema, keeps_rows=kept)
    defects.raise_if_any()
    return outputs


@contextmanager
def _quiet_loggers() -> Iterator[None]:
    """Keep pyspark from printing the errors that will be told as defects."""
    from pyspark.logger import PySparkLogger

    # A logger of that name that is not pyspark's own does not take its arguments.
    loggers = [PySparkLogger.getLogger(name) for name in _ERROR_LOGGERS]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _try_step(
    defects: Defects, step: Step, inputs: list[DataFrame], session: SparkSession
) -> DataFrame | None:
    from pyspark.errors import PySparkException

    before = bool(defects)
    for column in step.by:
        for sender, frame in zip(step.inputs, inputs, strict=True):
            if column not in frame.columns:
                rule = f"a column of {sender.name}"
                defects.add(f"{step.name}.by", column, rule, nearest(column, frame.columns))
    condition = ""
    try:
        for condition in step.must:
            inputs = [frame.where(condition) for frame in inputs]
        condition = ""
        if step.role == "source":
            return session.createDataFrame([], step.schema)
        inputs = [
            in_windows(sender, step, frame, PLAIN)
            for sender, frame in zip(step.inputs, inputs, strict=True)
        ]
        made: Any = unite(inputs) if step.role == "sink" else step(*inputs)
        known = getattr(made, "schema", None) is not None
    except (PySparkException, TypeError, ValueError, AttributeError, KeyError) as error:
        reason = f"{type(error).__name__}: {_first_line(error)}"
        columns = "; ".join(
            f"{s.name}: {', '.join(f.columns)}" for s, f in zip(step.inputs, inputs, strict=True)
        )
        if condition:
            defects.add(f"{step.name}.must", condition, f"a condition on {columns}", reason)
        elif step.role == "source":
            defects.add(f"{step.name}.schema", step.schema, "columns as in SQL", reason)
        else:
            rule = f"a function that fits its inputs ({columns})"
            defects.add(step.name, getattr(step.function, "__name__", step.name), rule, reason)
        return None
    if not known or not hasattr(made, "isStreaming"):
        defects.add(step.name, type(made).__name__, "a function that returns a DataFrame")
        return None
    good: DataFrame = made
    return good if before or not defects else None


def build_frames(
    steps: Sequence[Step],
    schemas: Mapping[str, StructType],
    frames: Mapping[str, DataFrame],
    only: Collection[str] | None,
    inbox: Mapping[Edge, DataFrame],
    terms: Terms = PLAIN,
) -> dict[str, DataFrame]:
    """What every step puts out that something reaches; see `Pipeline.run`."""
    _require_fitting(steps, schemas, frames, only, inbox)
    built = dict(frames)
    letters: list[DataFrame] = []
    defects = Defects()
    for step in steps:
        if step.role == "source" or (only is not None and step.name not in only):
            continue
        found = [_read_edge(sender, step, built, inbox, terms) for sender in step.inputs]
        given = [frame for frame in found if frame is not None]
        if not given:
            continue
        inputs = [
            _empty_input(defects, sender, step, schemas, given[0]) if frame is None else frame
            for sender, frame in zip(step.inputs, found, strict=True)
        ]
        defects.raise_if_any()
        if step.must:
            for sender, frame in zip(step.inputs, inputs, strict=True):
                broken = _broken_rows(step, sender, frame)
                if terms.watch_broken is not None:
                    broken = terms.watch_broken(sender.name, step.name, broken)
                letters.append(broken)
            inputs = [keep_good(frame, step.must) for frame in inputs]
        if step.is_stateful:
            inputs = [
                _with_watermark(defects, frame, sender, step, terms)
                for sender, frame in zip(step.inputs, inputs, strict=True)
            ]
            defects.raise_if_any()
            inputs = [
                in_windows(sender, step, frame, terms)
                for sender, frame in zip(step.inputs, inputs, strict=True)
            ]
        made = unite(inputs) if step.role == "sink" else step(*inputs)
        built[step.name] = made if terms.watch is None else terms.watch(step.name, made)
    if letters:
        built[DEAD_LETTERS] = unite(letters)
    return built


def unite(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of these frames; the columns are those of the first that has a watermark.

    Spark takes the columns of a union, and what is known of them, from its first frame.
    """
    first, *rest = sorted(frames, key=lambda frame: not _has_watermark(frame))
    for frame in rest:
        # Which windows count is told of some rows only.
        told = bool(set(BOUNDS) & {*first.columns, *frame.columns})
        first = first.unionByName(frame, allowMissingColumns=told)
    return first


def _read_edge(
    sender: Step,
    step: Step,
    built: Mapping[str, DataFrame],
    inbox: Mapping[Edge, DataFrame],
    terms: Terms,
) -> DataFrame | None:
    """What flows along an edge: the sender's output here, and what came from elsewhere."""
    own, other = built.get(sender.name), inbox.get((sender.name, step.name))
    if other is not None and sender.follows_state:
        # Spark allows no second watermark behind a first, so after the union would be too late.
        other = _set_watermark(other, sender, terms)
    given = [frame for frame in (own, other) if frame is not None]
    if not given:
        return None
    return unite(given)


def in_windows(sender: Step, step: Step, frame: DataFrame, terms: Terms = PLAIN) -> DataFrame:
    """The rows in the windows of the operator that reads them, if they are in none yet."""
    time = _time_of(sender, frame)
    if step.window is None or sender not in step.opened or time is None:
        return frame
    return open_windows(frame, time, step.window, after_ms=terms.gates.get(step.name))


def _time_of(sender: Step, frame: DataFrame) -> str | None:
    return next((column for column in sender.times if column in frame.columns), None)


def _empty_input(
    defects: Defects, sender: Step, step: Step, schemas: Mapping[str, StructType], beside: DataFrame
) -> DataFrame:
    if beside.isStreaming:
        defects.add(
            "inbox",
            f"nothing for {sender.name} → {step.name}",
            "a frame for every input of an operator that runs here",
            "in a stream an input cannot be left out; give it an inbox without rows",
        )
    return beside.sparkSession.createDataFrame([], schemas[sender.name])


def _broken_rows(step: Step, sender: Step, frame: DataFrame) -> DataFrame:
    """The rows that break a condition, as text, with the first condition that they break."""
    from pyspark.sql import functions as sql

    reason = sql.coalesce(
        *(sql.when(~_holds(c), sql.lit(f"{step.name} needs {c}")) for c in step.must)
    )
    # Which windows count is for operators to know, and no part of the row.
    columns = [f"`{name}`" for name in frame.columns if name not in BOUNDS]
    return frame.select(
        sql.lit(step.name).alias("operator"),
        sql.lit(sender.name).alias("input"),
        reason.alias("reason"),
        sql.to_json(sql.struct(*columns)).alias("row"),
    ).where("reason IS NOT NULL")


def keep_good(frame: DataFrame, conditions: Iterable[str]) -> DataFrame:
    """The rows that meet all of these conditions."""
    for condition in conditions:
        frame = frame.where(condition)
    return frame


def _holds(condition: str) -> Column:
    from pyspark.sql import functions as sql

    # A condition that is neither true nor false does not hold.
    return sql.coalesce(sql.expr(condition), sql.lit(False))


def _has_watermark(frame: DataFrame) -> bool:
    return frame.isStreaming and any(_WATERMARK in (c.metadata or {}) for c in frame.schema)


def _set_watermark(frame: DataFrame, sender: Step, terms: Terms) -> DataFrame:
    """The frame with the watermark of its event time, if it is a stream that needs one."""
    time = _time_of(sender, frame)
    if not frame.isStreaming or time is None or _has_watermark(frame):
        return frame
    if terms.clocked:
        return frame.withWatermark(time, _NEVER)
    delay_s = max(source.delay_s for source in sender.sources)
    return frame.withWatermark(time, f"{round(delay_s * 1000)} milliseconds")


def _with_watermark(
    defects: Defects, frame: DataFrame, sender: Step, step: Step, terms: Terms
) -> DataFrame:
    if frame.isStreaming and sender.follows_state and not _has_watermark(frame):
        defects.add(
            sender.name,
            ", ".join(frame.columns),
            f"a column by which {step.name} can tell how far time has come",
            'pass the column "window" (or another with the event time) on as it is',
        )
        return frame
    return _set_watermark(frame, sender, terms)


def _require_fitting(
    steps: Sequence[Step],
    schemas: Mapping[str, StructType],
    frames: Mapping[str, DataFrame],
    only: Collection[str] | None,
    inbox: Mapping[Edge, DataFrame],
) -> None:
    """Raise `InvalidInput` for whatever was given that the pipeline has no use for."""
    defects = Defects()
    known = {step.name: step for step in steps}
    births = [step.name for step in steps if step.role == "source"]
    for name, frame in frames.items():
        if name in births:
            _require_columns(defects, f"frames[{name}]", frame, schemas[name])
        else:
            defects.add(f"frames[{name}]", name, "the name of a source", nearest(name, births))
    edges = [(sender.name, step.name) for step in steps for sender in step.inputs]
    for edge, frame in inbox.items():
        shown = " → ".join(map(str, edge))
        if edge in edges:
            plain = frame.drop(*BOUNDS)
            _require_columns(defects, f"inbox[{shown}]", plain, schemas[edge[0]])
        else:
            hint = nearest(shown, [" → ".join(e) for e in edges])
            defects.add(f"inbox[{shown}]", shown, "two operators, one after the other", hint)
    for name in sorted(only or ()):
        if name not in known:
            defects.add("only", name, "the name of an operator", nearest(name, known))
            continue
        for sender in known[name].inputs:
            here = sender.name in frames or sender.name in (only or ())
            if not here and (sender.name, name) not in inbox:
                hint = f"add {sender.name}, or an inbox for {sender.name} → {name}"
                defects.add("only", name, "operators together with all that they read", hint)
    streams = {frame.isStreaming for frame in (*frames.values(), *inbox.values())}
    if len(streams) > 1:
        defects.add("frames", "streams and tables", "all of them streams, or none")
    defects.raise_if_any()


def _require_columns(defects: Defects, path: str, frame: DataFrame, wanted: StructType) -> None:
    """Remember a defect for each column that is missing, of another type, or not known."""
    found = {column.name: column.dataType.simpleString() for column in frame.schema}
    names = [column.name for column in wanted]
    for column in wanted:
        sort = column.dataType.simpleString()
        if column.name not in found:
            strangers = [name for name in found if name not in names]
            hint = nearest(column.name, strangers)
            defects.add(f"{path}.{column.name}", "no such column", f"a column of type {sort}", hint)
        elif found[column.name] != sort:
            defects.add(f"{path}.{column.name}", found[column.name], f"the type {sort}")
    for name in found:
        if name not in names:
            defects.add(f"{path}.{name}", name, "a column of the schema", nearest(name, names))


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or "no reason given").splitlines()[0]
