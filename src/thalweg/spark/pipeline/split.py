"""Tears the input of an operator into parts, and compares what comes out with the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.errors import Defects, nearest
from thalweg.spark.pipeline.dataflow import in_windows, unite
from thalweg.spark.pipeline.kinds import PARTIAL, Step
from thalweg.spark.session import open_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from thalweg.spark.pipeline.pipeline import Pipeline

_SHOWN_ROWS = 3
Tables = Mapping[str, "pa.Table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFindings:
    """What random splits of an operator's input have shown; `broken` says what went wrong."""

    kind: str
    rows: int
    splits: int
    broken: tuple[str, ...]


def compare_splits(
    pipeline: Pipeline,
    name: str,
    rows: pa.Table | Tables,
    *,
    splits: int,
    parts: int,
    seed: int,
) -> SplitFindings:
    """Run an operator on random splits of its input; see `thalweg.testing.check_operator`."""
    step, tables = _require_input(pipeline, name, rows, splits, parts)
    rng = np.random.default_rng(seed)
    with open_session() as session:
        trial = _Trial(pipeline, step, session, parts, rng)
        whole = trial.run_whole(tables)
        broken: list[str] = []
        # The input of most kinds is made once; that of a partitioned one belongs to the split.
        inputs = tables if step.role == "partitioned" else trial.inputs(tables)
        for number in range(1, splits + 1):
            difference = _difference(whole, trial.run_split(inputs))
            if difference:
                broken.append(f"{name} ({trial.kind}), split {number} of {splits}: {difference}")
    return SplitFindings(
        kind=trial.kind, rows=sum(whole.values()), splits=splits, broken=tuple(broken)
    )


def _require_input(
    pipeline: Pipeline, name: str, rows: pa.Table | Tables, splits: int, parts: int
) -> tuple[Step, dict[str, pa.Table]]:
    """The step that is meant, and the rows of each source that it depends on."""
    step = pipeline.step(name.removesuffix(PARTIAL))
    sources = [source.name for source in step.sources]
    defects = Defects()
    if step.role in ("source", "sink"):
        defects.add("name", name, "an operator", f"it is a {step.role}")
    for path, value in (("splits", splits), ("parts", parts)):
        defects.require(isinstance(value, int) and value >= 1, path, value, "a whole number >= 1")
    tables = dict(rows) if isinstance(rows, Mapping) else {sources[0]: rows}
    for source in sources:
        if source not in tables:
            defects.add("rows", f"none for {source}", "the rows of every source that it reads")
    for given in tables:
        if given not in sources:
            defects.add("rows", given, f"a source that {name} reads", nearest(given, sources))
    defects.raise_if_any()
    return step, tables


class _Trial:
    """One operator, and everything that it takes to run it."""

    def __init__(
        self,
        pipeline: Pipeline,
        step: Step,
        session: SparkSession,
        parts: int,
        rng: np.random.Generator,
    ) -> None:
        self.pipeline, self.step, self.session = pipeline, step, session
        self.parts, self.rng = parts, rng
        # The first half of a mergeable operator is what its input goes through.
        self.entry = step.inputs[0] if step.role == "merge" else step
        self.kind = "mergeable" if step.role == "merge" else str(step.role)
        self.before = _names_before(self.entry)

    def run_whole(self, tables: Tables) -> Counter[str]:
        """The rows that the operator gives where nothing is split."""
        return _count_rows(self._run(tables, {*self.before, self.entry.name, self.step.name}))

    def inputs(self, tables: Tables) -> dict[str, pa.Table]:
        """What the operator reads, by sender."""
        made = self.pipeline.run(self._frames(tables), only=self.before)
        return {sender.name: made[sender.name].toArrow() for sender in self.entry.inputs}

    def run_split(self, tables: Tables) -> Counter[str]:
        """The rows that the operator gives for a random split of its input."""
        if self.step.role == "partitioned":
            wanted = {*self.before, self.step.name}
            return sum((_count_rows(self._run(p, wanted)) for p in self._by_key(tables)), Counter())
        torn = [self._shuffled(tables)] if self.kind == "global" else self._anywhere(tables)
        made = [self._apply(self.entry, part) for part in torn]
        if self.step is self.entry:
            return sum((_count_rows(frame) for frame in made), Counter())
        return _count_rows(self.step(unite(made)))

    def _run(self, tables: Tables, only: set[str]) -> DataFrame:
        return self.pipeline.run(self._frames(tables), only=only)[self.step.name]

    def _frames(self, tables: Tables) -> dict[str, DataFrame]:
        return {name: self._frame(name, table) for name, table in tables.items()}

    def _frame(self, name: str, table: pa.Table) -> DataFrame:
        schema = self.pipeline.schema_of(name, self.session)
        return self.session.createDataFrame(table, schema)

    def _apply(self, step: Step, tables: Tables) -> DataFrame:
        frames = [self._frame(sender.name, tables[sender.name]) for sender in step.inputs]
        for condition in step.must:
            frames = [frame.where(condition) for frame in frames]
        pairs = zip(step.inputs, frames, strict=True)
        return step(*(in_windows(sender, step, frame) for sender, frame in pairs))

    def _shuffled(self, tables: Tables) -> dict[str, pa.Table]:
        return {n: t.take(self.rng.permutation(t.num_rows)) for n, t in tables.items()}

    def _anywhere(self, tables: Tables) -> list[dict[str, pa.Table]]:
        """Parts of the rows, each in a random order; some may be empty."""
        place = {n: self.rng.integers(self.parts, size=t.num_rows) for n, t in tables.items()}
        return [
            self._shuffled({n: t.filter(_mask(place[n] == part)) for n, t in tables.items()})
            for part in range(self.parts)
        ]

    def _by_key(self, tables: Tables) -> list[dict[str, pa.Table]]:
        """Parts of the sources' rows such that equal keys are together, over all sources."""
        columns = {n: t[self.pipeline.step(n).key].to_pylist() for n, t in tables.items()}
        keys = sorted({key for column in columns.values() for key in column}, key=str)
        home = dict(zip(keys, self.rng.integers(self.parts, size=len(keys)).tolist(), strict=True))
        place = {n: np.array([home[key] for key in column]) for n, column in columns.items()}
        return [
            self._shuffled({n: t.filter(_mask(place[n] == part)) for n, t in tables.items()})
            for part in range(self.parts)
        ]


def _names_before(step: Step) -> set[str]:
    """The operators that a step depends on."""
    found: set[str] = set()
    for sender in step.inputs:
        if sender.role != "source":
            found |= {sender.name} | _names_before(sender)
    return found


def _mask(flags: Any) -> Any:
    import pyarrow as pa

    return pa.array(flags, pa.bool_())


def _count_rows(frame: DataFrame) -> Counter[str]:
    """How often each row is there."""
    return Counter(map(str, frame.toArrow().to_pylist()))


def _difference(whole: Counter[str], split: Counter[str]) -> str:
    """What is missing and what is too much, with the first rows of each; nothing where equal."""
    found = []
    for rows, noun in ((whole - split, "missing"), (split - whole, "too many")):
        if rows:
            shown = "; ".join(sorted(rows.elements())[:_SHOWN_ROWS])
            found.append(f"{sum(rows.values())} rows {noun}, such as {shown}")
    return ", ".join(found)
