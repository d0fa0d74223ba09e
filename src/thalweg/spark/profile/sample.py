"""The rows that a pipeline is profiled with: generated, or read from files, and parts of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.errors import Defects, InvalidInput, nearest
from thalweg.model import TimeWindow
from thalweg.scenarios import readings, rides
from thalweg.spark.pipeline.kinds import Step, column_names

if TYPE_CHECKING:
    from thalweg.spark.pipeline import Pipeline

LEAST_ROWS, MOST_ROWS = 10, 5_000_000
_USUAL_LEAST, _USUAL_MOST = 10_000, 200_000
_SHORTEST_S, _WINDOWS = 20.0, 4
_ENDINGS = (".parquet", ".csv", ".json", ".jsonl")
_GENERATED = (rides.SCHEMA, readings.SCHEMA)

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleWish:
    """Which rows are wanted: how many, from which files, at which rate, for how many sites."""

    rows: int | None = None
    data: Mapping[str, Path]
    rate: float | None = None
    sites: int = 1
    seed: int = 0


def require_sample(defects: Defects, pipeline: Pipeline, wish: SampleWish) -> None:
    """Remember a defect for all that can be known to be wrong before Spark is started."""
    sources = {step.name: step for step in pipeline.steps if step.role == "source"}
    for name, path in wish.data.items():
        if name not in sources:
            rule = f"the name of a source of {pipeline.name}"
            defects.add("data", name, rule, nearest(name, sources))
        elif path.suffix.lower() not in _ENDINGS:
            defects.add("data", str(path), f"a file that ends in {', '.join(_ENDINGS)}")
        elif not path.is_file():
            defects.add("data", str(path), "a file that is there")
        else:
            step = sources[name]
            if not _is_trip_file(step, path):
                defects.attempt("", lambda path=path, step=step: _require_columns(path, step))  # type: ignore[misc]
    for name, step in sources.items():
        if name not in wish.data and step.schema not in _GENERATED:
            rule = f"a file with rows of the source {name}: {', '.join(column_names(step.schema))}"
            hint = "rows are generated only for taxi rides and for sensor messages"
            defects.add("data", None, rule, hint)


def take_samples(
    pipeline: Pipeline, wish: SampleWish, columns: Mapping[str, pa.Schema]
) -> dict[str, pa.Table]:
    """The rows of every source, in the order of their event times, with these columns.

    Raises:
        InvalidInput: for every file that cannot be read as such rows.
    """
    defects = Defects()
    found: dict[str, pa.Table] = {}
    for step in pipeline.steps:
        if step.role != "source":
            continue
        path = wish.data.get(step.name)
        if path is None:
            found[step.name] = _generate(step, wish, usual_rows(pipeline, step))
        else:
            schema = columns[step.name]
            table = defects.attempt("", lambda p=path, s=step, c=schema: _read(p, s, c, wish))  # type: ignore[misc]
            if table is not None:
                found[step.name] = table
    defects.raise_if_any()
    return found


def usual_rows(pipeline: Pipeline, source: Step) -> int:
    """How many rows fill some windows of the pipeline at the rate of the source."""
    windows = [step.operator.window for step in pipeline.steps]
    longest_s = max((w.length for w in windows if isinstance(w, TimeWindow)), default=0.0)
    rate = source.operator.rate or 0.0
    rows = rate * max(_SHORTEST_S, _WINDOWS * longest_s)
    return round(min(max(rows, _USUAL_LEAST), _USUAL_MOST))


def _generate(step: Step, wish: SampleWish, usual: int) -> pa.Table:
    count = wish.rows or usual
    rate = wish.rate or step.operator.rate or 1.0
    seconds = count / rate
    if step.schema == rides.SCHEMA:
        return rides.generate_rides(count, wish.seed, seconds=seconds)
    return readings.generate_messages(count, wish.seed, seconds=seconds)


def _is_trip_file(step: Step, path: Path) -> bool:
    """Whether these are official trips, from which rides are made, rather than rides."""
    if step.schema != rides.SCHEMA or path.suffix.lower() != ".parquet":
        return False
    try:
        names = _column_names_in(path)
    except (OSError, pa.ArrowException):
        return False
    return "record" not in names and "ride" not in names


def _require_columns(path: Path, step: Step) -> None:
    """Raise `InvalidInput` with all columns that the file lacks."""
    defects = Defects()
    wanted = column_names(step.schema)
    try:
        names = _column_names_in(path)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        defects.add("", path.name, f"a readable {path.suffix[1:]} file", reason)
    else:
        for name in wanted:
            if name not in names:
                hint = nearest(name, [n for n in names if n not in wanted])
                defects.add(name, "no such column", f"a column {name} of {step.name}", hint)
    _raise_in_file(defects, path)


def _column_names_in(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    ending = path.suffix.lower()
    if ending == ".parquet":
        return list(pq.read_schema(path).names)
    return list(_read_text(path).column_names)


def _read_text(path: Path) -> pa.Table:
    from pyarrow import csv, json

    return csv.read_csv(path) if path.suffix.lower() == ".csv" else json.read_json(path)


def _read(path: Path, step: Step, schema: pa.Schema, wish: SampleWish) -> pa.Table:
    """The first rows of a file by event time, with the types of the source."""
    import pyarrow.parquet as pq

    if _is_trip_file(step, path):
        table = rides.read_rides(path, most=wish.rows or _USUAL_MOST)
    else:
        is_parquet = path.suffix.lower() == ".parquet"
        table = pq.read_table(path, columns=schema.names) if is_parquet else _read_text(path)
    table = _cast(table.select(schema.names), schema, path)
    if step.time is not None:
        table = table.sort_by(step.time)
    table = table.slice(0, wish.rows or _USUAL_MOST)
    if table.num_rows < LEAST_ROWS:
        defects = Defects()
        defects.add("", f"{table.num_rows} rows", f"at least {LEAST_ROWS} rows to measure with")
        _raise_in_file(defects, path)
    return table if wish.rate is None else at_rate(table, step.time, wish.rate)


def _cast(table: pa.Table, schema: pa.Schema, path: Path) -> pa.Table:
    """The table with the types wanted; raises `InvalidInput` for all columns that have others."""
    defects, columns = Defects(), []
    for field in schema:
        try:
            columns.append(pc.cast(table[field.name].combine_chunks(), field.type))
        except pa.ArrowException as error:
            found = str(table.schema.field(field.name).type)
            reason = str(error).splitlines()[0]
            defects.add(field.name, found, f"a column that can be read as {field.type}", reason)
    _raise_in_file(defects, path)
    return pa.table(columns, names=schema.names)


def _raise_in_file(defects: Defects, path: Path) -> None:
    try:
        defects.raise_if_any()
    except InvalidInput as error:
        raise error.in_file(os.fspath(path)) from None


def at_rate(table: pa.Table, time: str | None, rate: float) -> pa.Table:
    """The rows with their event times drawn together, or apart, so that so many come per second.

    >>> rows = rides.generate_rides(100, seconds=1000.0)
    >>> times = event_times_us(at_rate(rows, "pickup_time", 10.0), "pickup_time")
    >>> int(times[-1] - times[0]) / 1e6
    10.0
    """
    times = event_times_us(table, time)
    if times is None or time is None or times.size == 0:
        return table
    span_us = int(times[-1] - times[0])
    wanted_us = round(table.num_rows / rate * 1e6)
    after = (times - times[0]) / max(span_us, 1) * wanted_us
    moved = pa.array(times[0] + np.rint(after).astype(np.int64), pa.int64())
    place = table.column_names.index(time)
    sort = table.schema.field(time).type
    return table.set_column(place, time, moved.cast(pa.timestamp("us", sort.tz)).cast(sort))


def event_times_us(table: pa.Table, time: str | None) -> Times | None:
    """The event times in microseconds since 1970; None without any."""
    if time is None or not pa.types.is_timestamp(table.schema.field(time).type):
        return None
    column = table[time].drop_null()
    zone = table.schema.field(time).type.tz
    times: Times = column.cast(pa.timestamp("us", zone)).cast(pa.int64()).to_numpy()
    return times


def growing_counts(total: int, times_us: Times | None, slide_s: float, sizes: int) -> list[int]:
    """How many of the rows each part has, from few to all; each begins with the first row.

    With windows, parts end where a window does: all have the same share of unfinished windows
    then, which so adds nothing to the slope of a line through them.

    >>> growing_counts(90, None, 0.0, 3)
    [30, 60, 90]
    >>> growing_counts(100, np.arange(100) * 1_000_000, 10.0, 3)
    [30, 70, 100]
    """
    plain = sorted({max(1, round(total * (k + 1) / sizes)) for k in range(sizes)})
    if times_us is None or slide_s <= 0.0 or times_us.size < total:
        return plain
    slide_us = round(slide_s * 1e6)
    ends = [round((int(times_us[count - 1]) + 1) / slide_us) * slide_us for count in plain]
    aligned = sorted({int(np.searchsorted(times_us, end)) for end in ends} - {0})
    return aligned if len(aligned) == len(plain) else plain


def split_sites(table: pa.Table, key: str, sites: int) -> Sequence[pa.Table]:
    """The rows of each of so many sites; equal keys are at one site."""
    if sites == 1:
        return [table]
    names: Any = [str(number) for number in range(sites)]
    return list(rides.split_by_key(table, key, names).values())
