"""What a query computes of the rows that it reads, be they streams or a file of a few rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.spark.monitor.counting import Counting
from thalweg.spark.pipeline.dataflow import Edge, Terms, Watch, WatchBroken, keep_good
from thalweg.spark.pipeline.reference import load_pipeline
from thalweg.spark.pipeline.windows import BOUNDS, with_bounds
from thalweg.spark.query.plan import QueryPlan, plan_query
from thalweg.spark.query.publisher import put_together
from thalweg.spark.query.quarantine import Trial, downstream_of
from thalweg.spark.query.widths import RowWidth, widths_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from thalweg.spark.pipeline import Pipeline
    from thalweg.spark.query.spec import QuerySpec


@dataclass(frozen=True, kw_only=True)
class QueryParts:
    """The frames of a query, built from those that it reads."""

    pipeline: Pipeline
    plan: QueryPlan
    schemas: Mapping[str, StructType]
    gates: Mapping[str, int]

    @classmethod
    def of_spec(cls, session: SparkSession, spec: QuerySpec) -> QueryParts:
        """The parts of the query that this spec is of."""
        pipeline = load_pipeline(spec.pipeline)
        plan = plan_query(pipeline, spec)
        schemas = pipeline.schemas(session)
        return cls(pipeline=pipeline, plan=plan, schemas=schemas, gates=spec.gates)

    @property
    def outlets(self) -> dict[str, tuple[str, ...]]:
        """The streams that each part is published in."""
        shared = {f"{a}+{b}": (stream,) for (a, b), stream in self.plan.shared.items()}
        return {**self.plan.outlets, **shared}

    def counting(self, session: SparkSession) -> Counting:
        """How the rows of its operators are counted."""
        steps = [step for step in self.pipeline.steps if step.name in self.plan.operators]
        return Counting(
            senders={step.name: [sender.name for sender in step.inputs] for step in steps},
            sources=self.plan.sources,
            inbox=self.plan.inbox,
            published={n for n in self.plan.outlets if n in self.plan.operators},
            keepers=self.pipeline.row_keepers(session),
            fixed_bytes={name: self.widths[name].fixed_bytes for name in self.plan.operators},
            variable={n for n in self.plan.operators if not self.widths[n].is_fixed},
        )

    @cached_property
    def widths(self) -> dict[str, RowWidth]:
        """How many bytes the rows of each operator take."""
        return widths_of(self.schemas)

    def row_schema(self, sender: str, reader: str | None = None) -> StructType:
        """The columns of a source's rows, or of those that come along an edge."""
        from pyspark.sql.types import StructType

        schema = StructType(list(self.schemas[sender]))
        for name in BOUNDS if (sender, reader) in opening_edges(self.pipeline) else ():
            schema = schema.add(name, BOUNDS[name])
        return schema

    def run(
        self,
        frames: Mapping[str, DataFrame],
        inbox: Mapping[Edge, DataFrame],
        watch: Watch | None = None,
        watch_broken: WatchBroken | None = None,
    ) -> dict[str, DataFrame]:
        """What every operator of the query puts out."""
        terms = Terms(clocked=True, gates=self.gates, watch=watch, watch_broken=watch_broken)
        return self.pipeline.run(frames, self.plan.operators, inbox, terms)

    def of(self, built: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """What is published of all this, by outlet."""
        # Dead letters have a frame where operators have conditions.
        parts = {name: built[name] for name in self.plan.outlets if name in built}
        for sender, reader in self.plan.shared:
            parts[f"{sender}+{reader}"] = self._shared_rows(built[sender], sender, reader)
        return parts

    def try_rows(self, session: SparkSession, stream: str, file: Path) -> Trial:
        """What the query makes of the rows in a file, if they are all that it reads."""

        def read(of: str, sender: str, reader: str | None = None) -> DataFrame:
            schema = self.row_schema(sender, reader)
            if of == stream:
                return session.read.schema(schema).parquet(str(file))
            return session.createDataFrame([], schema)

        frames = {name: read(of, name) for name, of in self.plan.sources.items()}
        inbox = {edge: read(of, *edge) for edge, of in self.plan.inbox.items()}
        built = self.run(frames, inbox)
        first = [name for name, of in self.plan.sources.items() if of == stream]
        first += [reader for (_, reader), of in self.plan.inbox.items() if of == stream]
        reached = downstream_of(self.pipeline.edges, first) & self.plan.operators
        streams = (*self.plan.sources.values(), *self.plan.inbox.values())
        given = dict(zip(streams, (*frames.values(), *inbox.values()), strict=True))
        return Trial(
            rows=given[stream],
            whole=put_together(self.of(built)),
            steps={s.name: built[s.name] for s in self.pipeline.steps if s.name in reached},
        )

    def _shared_rows(self, frame: DataFrame, sender: str, reader: str) -> DataFrame:
        """The rows that are in windows which the cloud still computes, and which those are."""
        from pyspark.sql import functions as sql

        gate_ms = self.gates[reader]
        # Those that the reader refuses have their dead letters here.
        frame = keep_good(frame, self.pipeline.step(reader).must)
        time = next(name for name in self.pipeline.step(sender).times if name in frame.columns)
        early = frame.where(sql.col(time) < sql.timestamp_millis(sql.lit(gate_ms)))
        return with_bounds(early, upto_ms=gate_ms)


def opening_edges(pipeline: Pipeline) -> set[Edge]:
    """The edges along which rows of several places may come that concern the same windows."""
    openings = pipeline.openings.items()
    return {(sender, name) for name, opening in openings for sender in opening.senders}
