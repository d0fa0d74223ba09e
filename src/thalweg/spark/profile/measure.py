"""Measures what the operators of a pipeline do to events and cost, by running them with Spark.

Each operator runs in batch mode on parts of a sample that grow, several times; a line through what
was measured tells what an event adds from what a run costs at all. Selectivity, event sizes and CPU
time then take the place of the declared figures, each with its spread.

Sizes are bytes of Arrow's format without compression, as `Segment.data_bytes` of the log counts
them: what a row weighs does not depend on how many others are in its batch.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thalweg.errors import Defect, Defects, InvalidInput
from thalweg.model import Application, TimeWindow
from thalweg.spark.pipeline.kinds import Step
from thalweg.spark.profile.calibration import Calibration, calibrate
from thalweg.spark.profile.figures import StepProfile, judge_operator, judge_source
from thalweg.spark.profile.meter import CpuMeter
from thalweg.spark.profile.run import measure_cpu, run_part
from thalweg.spark.profile.sample import (
    LEAST_ROWS,
    MOST_ROWS,
    SampleWish,
    event_times_us,
    growing_counts,
    require_sample,
    split_sites,
    take_samples,
)
from thalweg.spark.profile.state import measure_states
from thalweg.spark.session import open_session
from thalweg.spark.site.config import site_config

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from thalweg.spark.pipeline import Pipeline

Figure = Literal["event_size", "selectivity", "compression", "cpu_per_event"]
TOLERANCE = 0.1
_LOCAL = "local[1]"
_HEAP_MB = 1024
_SIZES = 3
_MOST_SITES, _MOST_REPEATS = 100, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A declared figure that is not what was measured; `off` is its distance, as a share."""

    operator: str
    figure: Figure
    declared: float
    measured: float
    off: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What was measured of a pipeline; `application` has it in place of what was declared."""

    application: Application
    steps: tuple[StepProfile, ...]
    calibration: Calibration
    rows: Mapping[str, int]
    rate: Mapping[str, float]
    sites: int
    repeat: int

    def step(self, name: str) -> StepProfile:
        """What was measured of the source or operator of that name."""
        return next(step for step in self.steps if step.name == name)

    def differences(self, tolerance: float = TOLERANCE) -> tuple[Difference, ...]:
        """The declared sizes and ratios that are off by more than that, in the graph's order.

        CPU is left out: what is declared for it is for another machine.
        """
        found: list[Difference] = []
        for step in self.steps:
            is_source = step.role == "source"
            figures: tuple[Figure, ...] = (
                ("event_size",) if is_source else ("selectivity", "compression")
            )
            for figure in figures:
                declared = float(getattr(step.declared, figure))
                measured = float(getattr(step.measured, figure))
                off = abs(declared - measured) / max(measured, 1e-12)
                if off > tolerance:
                    found.append(
                        Difference(
                            operator=step.name,
                            figure=figure,
                            declared=declared,
                            measured=measured,
                            off=off,
                        )
                    )
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        from thalweg.spark.profile.report import profile_data

        return profile_data(self)


def profile(
    pipeline: Pipeline,
    rows: int | None = None,
    *,
    data: Mapping[str, str | os.PathLike[str]] | str | os.PathLike[str] | None = None,
    repeat: int = 5,
    rate: float | None = None,
    sites: int = 1,
    seed: int = 0,
    master: str | None = None,
    session: SparkSession | None = None,
    calibration: Calibration | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Profile:
    """Measure every operator of a pipeline on a sample of so many rows of each source.

    - `rows`: by default as many as fill some windows at the rate of the source.
    - `data`: a file with a source's rows (Parquet, CSV or JSON lines), by the source's name where
      there are several. Taxi rides and sensor messages are generated, with `seed`, where none is
      given; rides can also be read from the Taxi & Limousine Commission's files.
    - `rate`: events per second of event time. Generated rows come at the declared rate by default,
      those of a file when they did; what windows let through depends on it.
    - `sites`: over how many sites the rows are split. Operators that aggregate a part of the rows
      let through the more, the more sites there are.
    - `master`: a local one, `local[1]` by default, since the machine whose speed is measured must
      be the one that does the work. Spark is set up as at a site. Or a running `session`.

    Raises:
        InvalidInput: with all that is wrong with the arguments and the files.
    """
    wish = _read_wish(pipeline, rows, data, rate, sites, seed)
    _require_run(pipeline, wish, repeat, master, session)
    with _local_session(master, session) as spark:
        samples = take_samples(pipeline, wish, _arrow_columns(pipeline, spark))
        parts = [
            run_part(pipeline, spark, tables, batches)
            for tables, batches in _growing_parts(pipeline, samples, wish)
        ]
        cpu = measure_cpu(pipeline, CpuMeter(spark), parts, repeat, on_progress)
        states = measure_states(pipeline, spark, parts[-1])
    machine = calibration or calibrate()
    rates = {s.name: _sample_rate(s, samples[s.name]) for s in _sources(pipeline)}
    span_s = max((parts[-1].flows[n].rows / r for n, r in rates.items() if r > 0), default=0.0)
    steps = tuple(
        judge_source(step, parts[-1])
        if step.role == "source"
        else judge_operator(step, parts, cpu[step.name], states.get(step.name), machine, span_s)
        for step in pipeline.steps
        if step.role != "sink"
    )
    return Profile(
        application=_with_figures(pipeline.application, steps),
        steps=steps,
        calibration=machine,
        rows={name: table.num_rows for name, table in samples.items()},
        rate=rates,
        sites=sites,
        repeat=repeat,
    )


def _read_wish(
    pipeline: Pipeline,
    rows: int | None,
    data: Mapping[str, str | os.PathLike[str]] | str | os.PathLike[str] | None,
    rate: float | None,
    sites: int,
    seed: int,
) -> SampleWish:
    if isinstance(data, (str, os.PathLike)):
        names = [step.name for step in _sources(pipeline)]
        if len(names) != 1:
            rule = f"a file for each of the sources {', '.join(names)}, by its name"
            raise InvalidInput([Defect(path="data", value=os.fspath(data), rule=rule)])
        data = {names[0]: data}
    files = {name: Path(path) for name, path in (data or {}).items()}
    return SampleWish(rows=rows, data=files, rate=rate, sites=sites, seed=seed)


def _require_run(
    pipeline: Pipeline,
    wish: SampleWish,
    repeat: int,
    master: str | None,
    session: SparkSession | None,
) -> None:
    defects = Defects()
    if wish.rows is not None:
        rule = f"a whole number from {LEAST_ROWS} to {MOST_ROWS:,}"
        defects.require(LEAST_ROWS <= wish.rows <= MOST_ROWS, "rows", wish.rows, rule)
    if wish.rate is not None:
        defects.require(0 < wish.rate <= 1e9, "rate", wish.rate, "events per second, up to 1e9")
    rule = f"a whole number from 1 to {_MOST_SITES}"
    defects.require(1 <= wish.sites <= _MOST_SITES, "sites", wish.sites, rule)
    rule = f"a whole number from 1 to {_MOST_REPEATS}"
    defects.require(1 <= repeat <= _MOST_REPEATS, "repeat", repeat, rule)
    hint = "CPU time becomes instructions by the speed of this machine"
    asked = master if session is None else _master_of(session)
    if asked is not None:
        defects.require(asked.startswith("local"), "master", asked, "local or local[N]", hint)
    require_sample(defects, pipeline, wish)
    defects.raise_if_any()


def _master_of(session: SparkSession) -> str:
    context = getattr(session, "_sc", None)
    return "a Spark Connect server" if context is None else str(context.master)


@contextmanager
def _local_session(master: str | None, session: SparkSession | None) -> Iterator[SparkSession]:
    """The session given, or one that is set up as that of a site."""
    if session is not None:
        yield session
        return
    with tempfile.TemporaryDirectory(prefix="thalweg-profile-") as scratch:
        config = site_config(master or _LOCAL, Path(scratch), _HEAP_MB, ())
        with open_session(master or _LOCAL, "thalweg-profile", config=config) as opened:
            yield opened


def _arrow_columns(pipeline: Pipeline, session: SparkSession) -> dict[str, pa.Schema]:
    from pyspark.sql.pandas.types import to_arrow_schema

    schemas = pipeline.schemas(session)
    return {s.name: to_arrow_schema(schemas[s.name], timezone="UTC") for s in _sources(pipeline)}


def _sources(pipeline: Pipeline) -> list[Step]:
    return [step for step in pipeline.steps if step.role == "source"]


def _growing_parts(
    pipeline: Pipeline, samples: Mapping[str, pa.Table], wish: SampleWish
) -> Iterator[tuple[dict[str, list[pa.Table]], int]]:
    """The rows of each part by source and site, and into how many batches they go."""
    windows = [step.operator.window for step in pipeline.steps]
    slide_s = max((w.slide for w in windows if isinstance(w, TimeWindow)), default=0.0)
    counts = {}
    for step in _sources(pipeline):
        table = samples[step.name]
        times = event_times_us(table, step.time)
        counts[step.name] = growing_counts(table.num_rows, times, slide_s, _SIZES)
    for size in range(min(len(count) for count in counts.values())):
        tables, batches = {}, 1
        for step in _sources(pipeline):
            table = samples[step.name].slice(0, counts[step.name][size])
            tables[step.name] = list(split_sites(table, step.key, wish.sites))
            sample_rate = _sample_rate(step, samples[step.name]) or table.num_rows
            batches = max(batches, round(table.num_rows / sample_rate))
        yield tables, batches


def _sample_rate(step: Step, table: pa.Table) -> float:
    """Events per second of event time; the declared rate where there are no times."""
    times = event_times_us(table, step.time)
    if times is None or times.size < 2 or times[-1] == times[0]:
        return float(step.operator.rate or 0.0)
    # So many events have one gap less between them.
    return float((times.size - 1) / ((times[-1] - times[0]) / 1e6))


def _with_figures(application: Application, steps: tuple[StepProfile, ...]) -> Application:
    measured = {step.name: step.measured for step in steps}
    operators = [measured.get(operator.name, operator) for operator in application.operators]
    return replace(application, operators=operators)
