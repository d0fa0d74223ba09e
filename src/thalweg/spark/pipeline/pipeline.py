"""A stream-processing application as PySpark functions: one graph to plan, simulate and run.

```python
taxi = Pipeline("taxi-fares")
rides = taxi.source("rides", schema="ride long, zone int, pickup_time timestamp, fare double",
                    key="zone", time="pickup_time", delay="10 s")

@taxi.operator(rides, kind="row-wise", selectivity=0.9)
def clean(rides):
    return rides.where("fare > 0")

@taxi.operator(clean, kind="partitioned", by="zone", window=TimeWindow("60 s", "30 s"))
def fares_by_zone(clean):
    return clean.groupBy("window", "zone").agg(max("fare").alias("fare"))

taxi.sink("board", fares_by_zone)
```
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from thalweg.errors import Defect, Defects, InvalidInput, nearest
from thalweg.model import Application, Limits, Operator, Pin, Stream, TimeWindow
from thalweg.model.names import require_name
from thalweg.model.operator import Window
from thalweg.spark.pipeline.dataflow import PLAIN, Edge, Output, Terms, build_frames, find_outputs
from thalweg.spark.pipeline.definition import Wishes, make_operator
from thalweg.spark.pipeline.kinds import (
    DEAD_LETTERS,
    Function,
    Step,
    as_columns,
    require_cut,
    require_new_name,
    require_source_columns,
)
from thalweg.spark.pipeline.mergeable import Aggregate, halves_of, require_aggregates
from thalweg.spark.pipeline.reference import load_pipeline
from thalweg.spark.pipeline.windows import Opening
from thalweg.spark.session import SparkUnavailable
from thalweg.units import DURATION, parse_quantity

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["DEAD_LETTERS", "Pipeline", "Step", "load_pipeline"]


class Pipeline:
    """Sources, operators and sinks, each defined after what it reads.

    An operator's name is that of its function, with dashes for underscores, unless another one is
    given. Whatever is wrong with a definition is told when it is made, all of it at once; what
    only the columns can tell, before anything runs.
    """

    def __init__(self, name: str, *, limits: Limits | None = None) -> None:
        defects = Defects()
        require_name(defects, "name", name)
        defects.raise_if_any()
        self.name = name
        self.limits = limits or Limits()
        self._steps: dict[str, Step] = {}
        self._outputs: dict[str, Output] = {}
        self._application: Application | None = None

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r}, {len(self._steps)} steps)"

    # Definition

    def source(
        self,
        name: str,
        *,
        schema: str,
        key: str,
        time: str | None = None,
        delay: str = "0 s",
        determines_key: str | Iterable[str] = (),
        rate: float = 1000.0,
        event_size: float = 100.0,
        pin: Pin | None = None,
    ) -> Step:
        """Rows that are born at the sites: in every fog, unless a pin says otherwise.

        - `schema`: its columns, as in SQL.
        - `key`: the column by which rows are split over the sites: rows with equal keys are born
          at one site. A column of `determines_key` has this property, too: no value of it comes
          with two keys.
        - `time`: the column with the event time; `delay`: how late a row may come in a stream.
        """
        defects, determining = Defects(), as_columns(determines_key)
        require_new_name(defects, name, self._steps)
        require_source_columns(defects, name, schema, key, time, determining)
        delay_s = defects.attempt("", lambda: parse_quantity(delay, DURATION, path=f"{name}.delay"))
        operator = defects.attempt(
            name,
            lambda: Operator(
                name=name,
                kind="source",
                rate=rate,
                event_size=event_size,
                pin=pin or Pin(tier="fog"),
            ),
        )
        defects.raise_if_any()
        return self._add(
            Step(
                operator=_sure(operator),
                role="source",
                schema=schema,
                key=key,
                determines_key=determining,
                time=time,
                delay_s=delay_s or 0.0,
            )
        )

    def operator(
        self,
        *inputs: Step | str,
        kind: str,
        name: str | None = None,
        by: str | Iterable[str] = (),
        merge: Function | None = None,
        merge_figures: Mapping[str, Any] | None = None,
        must: str | Iterable[str] = (),
        time: str | None = None,
        window: Window | None = None,
        **figures: Any,
    ) -> Callable[[Function], Step]:
        """Make a function of DataFrames, one for each input, an operator of the pipeline.

        - `kind`: how its input may be split; see `thalweg.spark.pipeline.kinds`. *partitioned*
          needs the columns `by` that its rows are grouped by, *mergeable* a second function
          `merge` of what the parts gave (with `merge_figures` of its own).
        - `must`: SQL conditions that hold for every row of its input. A row that breaks one goes
          to the dead letters instead. Use functions that do not fail, such as `try_cast`.
        - `time`: the column of its output with the event time, where `Step.times` is wrong.
        - `window`: with a `TimeWindow`, rows that are in no window yet come with the column
          `window`: one row for each window that they belong to. Group by it.
        - `figures`: other fields of `thalweg.model.Operator`.
        """

        wishes = Wishes(
            kind=kind,
            by=as_columns(by),
            merge=merge,
            merge_figures=merge_figures or {},
            must=as_columns(must),
            time=time,
            figures={"window": window, **figures},
        )

        def define(function: Function) -> Step:
            named = name or getattr(function, "__name__", "").replace("_", "-")
            defects = Defects()
            steps = self._inputs(defects, named, inputs)
            made = make_operator(defects, named, function, steps, wishes, self._steps, len(inputs))
            return [self._add(step) for step in made][-1]

        return define

    def aggregate(
        self,
        name: str,
        source: Step | str,
        *,
        window: TimeWindow,
        by: str | Iterable[str] = (),
        columns: Mapping[str, Aggregate],
        **options: Any,
    ) -> Step:
        """A mergeable operator made of the common aggregates, over time windows.

        `columns` names each result: `{"rides": count(), "fare": mean_of("fare")}`. The output has
        the columns `window`, those of `by`, and these. Options are those of `operator`.
        """
        defects = Defects()
        (step,) = self._inputs(defects, name, [source]) or (None,)
        require_aggregates(defects, f"{name}.columns", columns)
        defects.require(isinstance(window, TimeWindow), f"{name}.window", window, "a TimeWindow")
        if step is not None and not step.times:
            rule = "an input with an event time"
            defects.add(name, step.name, rule, "the source has none: declare its time")
        defects.raise_if_any()
        partial, merge = halves_of(as_columns(by), columns)
        define = self.operator(
            source, kind="mergeable", name=name, merge=merge, window=window, **options
        )
        return define(partial)

    def sink(self, name: str, *inputs: Step | str) -> Step:
        """Where results leave the pipeline, in the cloud; several inputs are put together."""
        defects = Defects()
        require_new_name(defects, name, self._steps)
        steps = self._inputs(defects, name, inputs)
        operator = defects.attempt(
            name, lambda: Operator(name=name, kind="sink", pin=Pin(tier="cloud"))
        )
        defects.raise_if_any()
        return self._add(Step(operator=_sure(operator), role="sink", inputs=steps))

    def _inputs(
        self, defects: Defects, path: str, inputs: Iterable[Step | str]
    ) -> tuple[Step, ...]:
        """The steps that are meant; a defect for each that cannot be read from."""
        found: list[Step] = []
        for given in inputs:
            name = given.name if isinstance(given, Step) else str(given)
            step = self._steps.get(name)
            if step is None or (isinstance(given, Step) and given is not step):
                rule = f"a source or an operator of {self.name}, defined before"
                defects.add(f"{path}.inputs", name, rule, nearest(name, self._steps))
            elif step.role == "sink":
                rule = "a source or an operator"
                defects.add(f"{path}.inputs", name, rule, "nothing flows out of a sink")
            elif step in found:
                defects.add(f"{path}.inputs", name, "every input once")
            else:
                found.append(step)
        defects.require(bool(inputs), f"{path}.inputs", None, "at least one input")
        return tuple(found)

    def _add(self, step: Step) -> Step:
        self._steps[step.name] = step
        self._application = None
        return step

    # The graph

    @property
    def steps(self) -> tuple[Step, ...]:
        """Sources, operators and sinks, each after what it reads."""
        return tuple(self._steps.values())

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Every (sender, reader), in the order of definition."""
        return tuple((sender.name, s.name) for s in self.steps for sender in s.inputs)

    @property
    def application(self) -> Application:
        """What the planner plans: the same graph with its figures."""
        if self._application is None:
            self._application = Application(
                name=self.name,
                operators=[step.operator for step in self.steps],
                streams=[Stream(source=a, target=b) for a, b in self.edges],
                limits=self.limits,
            )
        return self._application

    @property
    def openings(self) -> dict[str, Opening]:
        """The operators that put rows into time windows, and may do so at a site."""
        return {
            step.name: Opening(senders=tuple(s.name for s in step.opened), window=step.window)
            for step in self.steps
            if step.window is not None and step.opened and step.operator.replicable
        }

    def upstream_of(self, name: str) -> frozenset[str]:
        """An operator and all before it, without the sources."""
        step = self.step(name)
        before = (self.upstream_of(sender.name) for sender in step.inputs)
        own = () if step.role == "source" else (step.name,)
        return frozenset(own).union(*before)

    def step(self, name: str) -> Step:
        """The source, operator or sink of that name."""
        if name not in self._steps:
            rule = f"the name of an operator of {self.name}"
            hint = nearest(str(name), self._steps)
            raise InvalidInput([Defect(path="operator", value=name, rule=rule, hint=hint)])
        return self._steps[name]

    def function_of(self, name: str) -> Function:
        """The function of an operator."""
        return self.step(name).__call__

    def inputs_of(self, name: str) -> tuple[str, ...]:
        """What an operator reads, in the order of its function's parameters."""
        return tuple(step.name for step in self.step(name).inputs)

    def crossing_edges(self, cut: Collection[str]) -> tuple[Edge, ...]:
        """The edges that lead from the sites to the cloud when these operators run at the sites.

        Raises:
            InvalidInput: if the operators cannot run at the sites, or not without others.
        """
        require_cut(self._steps, cut)
        here = {*cut, *(step.name for step in self.steps if step.role == "source")}
        return tuple((a, b) for a, b in self.edges if a in here and b not in here)

    # Execution

    def schema_of(self, name: str, session: SparkSession | None = None) -> StructType:
        """The columns that an operator puts out; with no session given, the active one is asked."""
        return self.schemas(session)[self.step(name).name]

    def schemas(self, session: SparkSession | None = None) -> dict[str, StructType]:
        """The columns that every operator puts out, found by running it on empty frames.

        Raises:
            InvalidInput: for every operator that does not fit what it reads.
            SparkUnavailable: where no session is given and there is none.
        """
        return {name: output.schema for name, output in self._find_outputs(session).items()}

    def row_keepers(self, session: SparkSession | None = None) -> frozenset[str]:
        """The operators that are known to put out a row for each that they take.

        Raises as `schemas` does.
        """
        return frozenset(
            n for n, output in self._find_outputs(session).items() if output.keeps_rows
        )

    def _find_outputs(self, session: SparkSession | None) -> dict[str, Output]:
        if len(self._outputs) != len(self._steps):
            self._outputs = find_outputs(self.steps, session or _active_session())
        return self._outputs

    def run(
        self,
        frames: Mapping[str, DataFrame],
        only: Collection[str] | None = None,
        inbox: Mapping[Edge, DataFrame] | None = None,
        terms: Terms = PLAIN,
    ) -> dict[str, DataFrame]:
        """The DataFrames of the pipeline, batch or streaming; nothing is computed yet.

        `frames` holds the rows of sources, by name; a source without a frame has no rows here.
        `only` names the operators to build, with all that they read; all of them by default.
        `inbox` holds rows that other places computed, for edges (sender, reader): what an operator
        reads is the output of the sender here and the rows of the inbox. For `terms`, see there.

        Streams get their watermark where a stateful operator reads, after the union with the
        inbox; rows of an inbox that have passed a stateful operator get theirs before it. A frame
        that has a watermark keeps it.

        The result has the output of every step that rows can reach; a sink's is what it takes in.
        Where operators have a `must`, the rows that broke one are under `DEAD_LETTERS`, with the
        columns operator, input, reason and row (as JSON).

        Raises:
            InvalidInput: for frames that do not have the columns they should, names that the
                pipeline does not know, and functions that do not fit together.
        """
        given = {**frames}
        arrived = {**inbox} if inbox else {}
        some = next(iter((*given.values(), *arrived.values())), None)
        if some is None:
            return {}
        schemas = self.schemas(some.sparkSession)
        return build_frames(self.steps, schemas, given, only, arrived, terms)


def _active_session() -> SparkSession:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        raise SparkUnavailable(
            "columns are found by running functions on empty frames, and there is no Spark session."
            " Hint: open one with thalweg.spark.session.open_session."
        )
    return session


def _sure(value: Any) -> Any:
    """What `Defects.attempt` made, after it was found that there are no defects."""
    return value
